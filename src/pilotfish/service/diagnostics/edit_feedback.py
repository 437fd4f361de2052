"""The trip of an edit: from the files that a host changed to the text that its model reads.

The edited files are checked, compared with what they were before, and then the files that they may have broken. What
can be told by then is told; what cannot is said in one line.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.api.answers import Effort, Feedback, OtherFiles, answer_from, error_text
from pilotfish.api.questions import Operation, Touch
from pilotfish.config.schema import FeedbackSettings
from pilotfish.errors import Code, Refused
from pilotfish.feedback.delta import Comparison, Delta, NoBaseline, in_either
from pilotfish.feedback.missing_imports import missing_imports_line
from pilotfish.feedback.select import Checked, selection
from pilotfish.feedback.text import MAX_NAMED, Form, feedback_text, named
from pilotfish.model import AbsPath, Diagnostic, Severity
from pilotfish.policy.boundary import Want, admit
from pilotfish.service.diagnostics.affected import EditedText
from pilotfish.service.diagnostics.baselines import Baselines
from pilotfish.service.diagnostics.broken_files import BrokenFiles, ProjectCheck
from pilotfish.service.diagnostics.earlier import Compared, Earlier
from pilotfish.service.diagnostics.effort import effort_of
from pilotfish.service.diagnostics.missing_packages import SortedChange, without_missing_packages
from pilotfish.service.diagnostics.notices import Notices
from pilotfish.service.diagnostics.runner import CheckRunner, FileVerdict, Patience
from pilotfish.service.texts import Given, Texts, old_text_to_send
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import current_time

OTHERS_SECONDS = 1.5
"""What other files get at least, however long the edited one took: a cold server has used up the ordinary wait."""


class Scope(Struct, frozen=True):
    """How far one check goes. By default as far as an edit's own check."""

    patience: Patience | None = None
    given: Mapping[str, Given] = field(default_factory=dict[str, Given])
    """Texts of the edited files that the host has told, by path as it names them."""
    others: bool = True
    """Whether other files are checked, where the configuration has it."""
    others_seconds: float = OTHERS_SECONDS
    """What they get at least."""
    carried: Mapping[AbsPath, str] = field(default_factory=dict[AbsPath, str])
    """Texts before changes that were never judged: they go before what the host says."""
    unfinished: Mapping[AbsPath, str] = field(default_factory=dict[AbsPath, str])
    """Texts before changes whose effect on other files is not known: with these the search for such files begins."""


class MissingPackages(Struct, frozen=True):
    """Packages that could not be found, and those of them that the edit may have brought."""

    packages: frozenset[str] = frozenset()
    introduced: frozenset[str] = frozenset()

    @classmethod
    def of(cls, changes: Sequence[SortedChange]) -> "MissingPackages":
        return cls(
            frozenset[str]().union(*(one.packages for one in changes)),
            frozenset[str]().union(*(one.introduced for one in changes)),
        )


class Judged(Struct, frozen=True):
    """What is known of files after a check. `keep` makes it what later ones are compared with."""

    edited: Sequence[FileVerdict]
    changes: Mapping[AbsPath, Comparison]
    others: BrokenFiles
    before: Mapping[AbsPath, str | None]
    """The text of each edited file before the edit; None where nobody knows it."""
    missing: MissingPackages
    limits: FeedbackSettings
    baselines: Baselines
    deleted: tuple[AbsPath, ...] = ()
    uncompared: frozenset[AbsPath] = frozenset()
    """Edited files with a fresh verdict, of which it is not known in time what is new. Nothing is told of them yet."""
    first: Mapping[AbsPath, str | None] = field(default_factory=dict[AbsPath, str | None])
    """The texts with which the search for other files began."""

    def keep(self) -> None:
        """It was told: compare later states with this one."""
        self.baselines.keep(without=self.uncompared)

    @property
    def verdicts(self) -> tuple[FileVerdict, ...]:
        return (*self.edited, *self.others.verdicts)


class EditFeedback:
    def __init__(self, runner: CheckRunner, baselines: Baselines, earlier: Earlier, project: ProjectCheck) -> None:
        self._runner = runner
        self._baselines = baselines
        self._earlier = earlier
        self._project = project
        self._notices = Notices()

    async def judge(
        self, touch: Touch, client: ClientSession, workspace: Workspace, started: float, scope: Scope | None = None
    ) -> Judged:
        """Check the files of a touch and compare; nothing is told, and nothing kept, by this alone.

        Raises `Unavailable` after `"lsp": false`.
        """
        scope = scope or Scope()
        baselines = self._baselines.fork()
        checked = await self._runner.run(
            client,
            workspace,
            touch.paths,
            given=scope.given,
            patience=scope.patience or Patience(),
        )
        self._notices.answered(client, checked)
        edited: Sequence[FileVerdict] = checked
        said = {**_said(workspace, touch), **scope.carried}
        before = {one.path: baselines.text(client, one.path) for one in edited}
        doubtful = {one.path for one in edited if said.get(one.path) not in {None, before[one.path]}}
        changes = {one.path: _compare(baselines, client, one, said.get(one.path)) for one in edited if not one.refused}
        limits = replace(workspace.config.feedback, only_new=workspace.config.feedback.only_new or touch.only_new)
        if touch.kind == "read":
            self._remember(workspace, edited)
            return Judged(edited, changes, BrokenFiles(), before, MissingPackages(), limits, baselines)
        before |= await self._texts_before(workspace, edited, before, said)
        uncompared = frozenset[AbsPath]()
        if limits.only_new:
            seconds = (scope.patience and scope.patience.later) or _wait(workspace)
            unknown = [one for one in edited if _is_unknown(changes.get(one.path), limits, doubt=one.path in doubtful)]
            compared = await self._compare_with_earlier(client, workspace, unknown, before, seconds)
            changes |= {path: in_either(changes[path], change) for path, change in compared.changes.items()}
            # A verdict that is not fresh is owed anyway.
            uncompared = frozenset(one.path for one in edited if one.is_fresh and one.path in compared.late)
        first = {**before, **scope.unfinished}
        edits = [EditedText(one.path, first.get(one.path), one.text) for one in edited if one.answered]
        deleted = await self._deleted(baselines, client, workspace, edited, said)
        edits += deleted.values()
        edited = [one for one in edited if one.path not in deleted]
        changes |= dict.fromkeys((one.path for one in deleted.values()), Delta((), (), ()))
        sorted_out = [without_missing_packages(workspace, path, one, tuple(deleted)) for path, one in changes.items()]
        changes = {path: one.change for path, one in zip(changes, sorted_out, strict=True)}
        missing = MissingPackages.of(sorted_out)
        before |= {one.path: one.before for one in deleted.values()}
        first |= {one.path: one.before for one in deleted.values()}
        others = BrokenFiles()
        if edits and scope.others and touch.kind in limits.other_files_after:
            deadline = max(started + _wait(workspace), current_time() + scope.others_seconds)
            others = await self._project.comparing_with(baselines).run(client, workspace, edits, deadline)
        self._remember(workspace, checked)
        deleted_paths = tuple(one.path for one in deleted.values())
        return Judged(edited, changes, others, before, missing, limits, baselines, deleted_paths, uncompared, first)

    def tell(
        self, judged: Judged, touch: Touch, client: ClientSession, workspace: Workspace, started: float
    ) -> Feedback:
        """The text for the model. What was found is known from now on."""
        judged.keep()
        if touch.kind == "read":
            return _feedback("", judged.edited, judged.changes, judged.others, started)
        notes = self.notes(judged, client, workspace)
        changes = {path: change for path, change in judged.changes.items() if path not in judged.uncompared}
        text = _text(workspace, touch, judged.limits, changes, judged.others, notes)
        if text:
            # What was so before the edit is no reason to speak, and worth a line where something is said.
            notes += self._missing_line(client, judged.missing.packages, judged)
            if judged.limits.no_verdict == "say":
                notes += self._notices.take_restrictions(client, workspace, judged.edited)
            text = _text(workspace, touch, judged.limits, changes, judged.others, notes)
        untold = [*_untold(judged.missing.packages), *_older_line(workspace, judged), *_uncompared(workspace, judged)]
        return _feedback(text, judged.edited, changes, judged.others, started, untold)

    def notes(self, judged: Judged, client: ClientSession, workspace: Workspace) -> list[str]:
        """What could not be judged, one line each."""
        say = judged.limits.no_verdict == "say"
        notes = [*self._notices.take(client, workspace, judged.edited), *_uncompared(workspace, judged)] if say else []
        # These were taken out of the findings, so they are told whatever `noVerdict` says.
        notes += self._missing_line(client, judged.missing.introduced, judged)
        return [*notes, *_unchecked(judged.others), *_older_line(workspace, judged)]

    def late_notes(self, client: ClientSession, workspace: Workspace, paths: Sequence[AbsPath]) -> tuple[str, ...]:
        """That these files have no verdict yet, where it was not said."""
        return self._notices.take_late(client, workspace, paths)

    def _missing_line(self, client: ClientSession, packages: frozenset[str], judged: Judged) -> list[str]:
        """A line about all of them when one of these was not mentioned before."""
        is_first = self._notices.is_first(client, packages)
        return [missing_imports_line(len(judged.missing.packages))] if is_first else []

    async def remember_uncommitted(self, workspace: Workspace, texts: Texts) -> None:
        """What git does not know of now was there before the conversation that begins."""
        await self._earlier.remember_uncommitted(workspace, texts)

    def drop(self, is_meant: Callable[[AbsPath], bool]) -> None:
        """Keep nothing of these files and roots any longer."""
        self._earlier.texts.drop(is_meant)
        self._project.drop(is_meant)

    def start_from(self, client: ClientSession, path: AbsPath, text: str) -> None:
        """Compare the next edit with this text: whatever was known is about another one."""
        self._baselines.forget(client, path)
        self._earlier.texts.saw(path, text)

    def saw(self, verdict: FileVerdict) -> None:
        """Somebody has looked at the file: this is what the next edit starts from."""
        self._earlier.texts.saw(verdict.path, verdict.text)

    def _remember(self, workspace: Workspace, verdicts: Sequence[FileVerdict]) -> None:
        """What the files hold now is what the next edit starts from; a file that is not there is created by it."""
        for verdict in verdicts:
            if verdict.refused is None:
                self.saw(verdict)
            elif verdict.refused.code is Code.FILE_MISSING:
                self._earlier.texts.saw(_real(workspace, verdict.path), "")

    async def _deleted(
        self,
        baselines: Baselines,
        client: ClientSession,
        workspace: Workspace,
        edited: Sequence[FileVerdict],
        said: Mapping[AbsPath, str],
    ) -> dict[AbsPath, EditedText]:
        """The files of a touch that are gone, with what they had; one that nobody has seen was not deleted."""
        found = dict[AbsPath, EditedText]()
        for one in edited:
            if one.refused is None or one.refused.code is not Code.FILE_MISSING:
                continue
            path = _real(workspace, one.path)
            text = said.get(path) or baselines.text(client, path)
            text = text or await self._earlier.text_before(workspace, FileVerdict(path, "", ()), None)
            baselines.deleted(path)
            if text:
                self._earlier.texts.deleted(path, text)
                found[one.path] = EditedText(path, text, None)
        return found

    async def _texts_before(
        self,
        workspace: Workspace,
        edited: Sequence[FileVerdict],
        known: Mapping[AbsPath, str | None],
        said: Mapping[AbsPath, str],
    ) -> dict[AbsPath, str | None]:
        """The text of each file before the edit; None where nobody knows it."""
        unknown = [one for one in edited if one.refused is None and known.get(one.path) is None]
        found = {one.path: await self._earlier.text_before(workspace, one, said.get(one.path)) for one in unknown}
        return {**said, **found}

    async def _compare_with_earlier(
        self,
        client: ClientSession,
        workspace: Workspace,
        edited: Sequence[FileVerdict],
        before: Mapping[AbsPath, str | None],
        seconds: float,
    ) -> Compared:
        """What changed in these files since they had the texts in `before`, where there is something to compare."""
        wanted = workspace.config.feedback.severities
        texts_before = self._earlier.texts.with_deleted(before)
        known = {path: text for path, text in texts_before.items() if text is not None}
        found = [one for one in edited if one.path in known and _has(one.diagnostics, wanted)]
        texts = {verdict.path: known[verdict.path] for verdict in found}
        return await self._earlier.compare(client, workspace, found, texts, seconds) if found else Compared()


def _compare(baselines: Baselines, client: ClientSession, verdict: FileVerdict, said: str | None) -> Comparison:
    """The change since the last fresh state, unless that is already the state after the edit.

    A host tells that it is about to edit a file; the check that this causes may read it when the edit is made.
    """
    known = baselines.text(client, verdict.path)
    change = baselines.compare(client, verdict)
    is_late = said is not None and known == verdict.text != said
    return NoBaseline(verdict.diagnostics) if is_late else change


def _is_unknown(change: Comparison | None, limits: FeedbackSettings, *, doubt: bool) -> bool:
    """Whether the text before the edit must tell what is new: nothing else does, or somebody changed the file since.

    What went away then, and is brought back by the edit, is not older.
    """
    return isinstance(change, NoBaseline) or (doubt and change is not None and _has(change.older, limits.severities))


def _has(found: Sequence[Diagnostic], severities: frozenset[Severity]) -> bool:
    return any(one.severity in severities for one in found)


def _said(workspace: Workspace, touch: Touch) -> dict[AbsPath, str]:
    """The texts before the edit that the host told."""
    told = ((_real(workspace, path), old_text_to_send(path, text)) for path, text in (touch.before or {}).items())
    return {path: text for path, text in told if text is not None}


def _real(workspace: Workspace, path: str) -> AbsPath:
    """The path as it is checked; as it was given where it may not be used, which is said elsewhere."""
    try:
        return admit(path, workspace.boundary, Want.TARGET).path
    except Refused:
        return AbsPath(path)


def _wait(workspace: Workspace) -> float:
    return workspace.config.timing.diagnostics_wait_timeout_ms / 1000


def _unchecked(others: BrokenFiles) -> list[str]:
    if not others.unchecked:
        return []
    files = "file was" if others.candidates == 1 else "files were"
    return [f"{others.unchecked} of {others.candidates} possibly affected {files} not checked yet."]


def _possibly_older(limits: FeedbackSettings, others: BrokenFiles) -> list[AbsPath]:
    """Other files with findings of which nobody knows whether the edit caused them."""
    if not limits.only_new:
        return []
    unknown = {path: change for path, change in others.changes.items() if isinstance(change, NoBaseline)}
    return [
        path
        for path, change in unknown.items()
        if any(found.severity in limits.severities for found in change.diagnostics)
    ]


def _older_line(workspace: Workspace, judged: Judged) -> list[str]:
    """Once: from then on it is known what these files had."""
    paths = _possibly_older(judged.limits, judged.others)
    if not paths:
        return []
    names = [named(path, workspace.root) for path in paths[:MAX_NAMED]] + ["…"] * (len(paths) > MAX_NAMED)
    files = "1 other file has" if len(paths) == 1 else f"{len(paths)} other files have"
    return [f"{files} errors that may be older than this edit: {', '.join(names)}"]


def _uncompared(workspace: Workspace, judged: Judged) -> list[str]:
    names = ", ".join(named(path, workspace.root) for path in sorted(judged.uncompared))
    return [f"It is not known yet which errors are new in {names}: they follow."] if names else []


def _untold(packages: frozenset[str]) -> list[str]:
    """What was found and is not told as an error: the answer is not the whole one then."""
    return [missing_imports_line(len(packages))] if packages else []


def _text(
    workspace: Workspace,
    touch: Touch,
    limits: FeedbackSettings,
    changes: Mapping[AbsPath, Comparison],
    others: BrokenFiles,
    notes: Sequence[str],
) -> str:
    if touch.kind == "read":
        return ""
    most = min((size for size in (limits.max_bytes, touch.max_bytes) if size is not None), default=None)
    edited = [Checked(path, change) for path, change in changes.items()]
    related = [Checked(path, change) for path, change in others.changes.items()]
    chosen = selection(edited, related, touch.kind, limits)
    return feedback_text(chosen, Form(workspace.root, plain=touch.plain, max_bytes=most), notes)


def _feedback(
    text: str,
    edited: Sequence[FileVerdict],
    changes: Mapping[AbsPath, Comparison],
    others: BrokenFiles,
    started: float,
    caveats: Sequence[str] = (),
) -> Feedback:
    deltas = [change for change in (*changes.values(), *others.changes.values()) if isinstance(change, Delta)]
    found = {verdict.path: verdict.diagnostics for verdict in edited}
    effort = _with_others(effort_of(edited, others.verdicts, started), others)
    if not edited:
        # Files were deleted: what others have to say about it is the answer, though nobody else may be concerned.
        effort = replace(effort, server_hits=1)
    effort = replace(effort, caveats=(*effort.caveats, *caveats))
    meta = answer_from(Operation.DIAGNOSTICS, found, effort).meta
    # Feedback has no list of errors beside its reason.
    reasons = dict.fromkeys((*effort.caveats, *map(error_text, effort.errors)))
    return Feedback(
        text,
        meta.state,
        effort.duration_ms,
        "; ".join(reasons) or meta.reason,
        introduced=sum(len(change.introduced) for change in deltas),
        fixed=sum(len(change.fixed) for change in deltas),
        others=_counted(others),
    )


def _with_others(effort: Effort, others: BrokenFiles) -> Effort:
    if others.complete:
        return effort
    why = f"{others.unchecked} of {others.candidates} possibly affected files were not checked"
    return replace(effort, caveats=(*effort.caveats, why if others.unchecked else "not every file was searched"))


def _counted(others: BrokenFiles) -> OtherFiles | None:
    if not others.candidates and others.complete and not others.whole:
        return None
    complete = ("project" if others.whole else "candidates") if others.complete else "no"
    return OtherFiles(len(others.verdicts), others.candidates, complete)
