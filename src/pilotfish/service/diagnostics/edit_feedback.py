"""The trip of an edit: from the files that a host changed to the text that its model reads.

The edited files are checked, compared with what they were before, and then the files that they may have broken. What
can be told by then is told; what cannot is said in one line.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import anyio.to_thread
from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.api.answers import Effort, Feedback, OtherFiles, answer_from, error_text
from pilotfish.api.questions import Operation, Touch
from pilotfish.config.schema import FeedbackSettings
from pilotfish.errors import Code, Refused
from pilotfish.feedback.conversation import credited, still_there, with_late
from pilotfish.feedback.delta import CheckedText, Comparison, Delta, delta, in_either
from pilotfish.feedback.select import Checked, Selection, selection
from pilotfish.feedback.shapes.changes import old_signatures, old_symbol
from pilotfish.feedback.shapes.python import PYTHON
from pilotfish.feedback.text import MAX_NAMED, feedback_text, named, places_of, with_notes
from pilotfish.feedback.unresolved_imports import missing_imports_line
from pilotfish.model import AbsPath
from pilotfish.paths import package_folder
from pilotfish.policy.boundary import Want, admit
from pilotfish.service.changed_settings import ChangedSettings
from pilotfish.service.diagnostics.affected import EditedText
from pilotfish.service.diagnostics.broken_files import BrokenSearch, ProjectCheck
from pilotfish.service.diagnostics.file_states import FileStates, moved_files, text_before
from pilotfish.service.diagnostics.missing_imports import explanations, without_missing_packages
from pilotfish.service.diagnostics.notices import Notices, in_few_words, is_lacking
from pilotfish.service.diagnostics.proposals import IMPOSSIBLE, ProposalRunner
from pilotfish.service.diagnostics.runner import CheckRunner, Patience
from pilotfish.service.diagnostics.verdicts import BrokenFiles, FileVerdict, KnownFindings, effort_of
from pilotfish.service.texts import Given, old_text_to_send
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import Visit
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
    until: float = 0.0
    """When an answer must be there for which an agent waits, while servers load; it hears of the rest later."""
    carried: Mapping[AbsPath, str] = field(default_factory=dict[AbsPath, str])
    """Texts before changes that were never judged: what is new since then is new, too."""
    unfinished: Mapping[AbsPath, str] = field(default_factory=dict[AbsPath, str])
    """Texts before changes whose effect on other files is not known: with these the search for such files begins."""
    settled: Collection[AbsPath] = ()
    """Files whose own change was judged before: only what it broke elsewhere is asked for."""
    untold: Mapping[AbsPath, CheckedText] = field(default_factory=dict[AbsPath, CheckedText])
    """What was found late in files and has not been told: it counts with whatever this check finds."""
    told: Mapping[AbsPath, CheckedText] = field(default_factory=dict[AbsPath, CheckedText])
    """What was told of files, and was there when they were judged last."""
    heard: Collection[AbsPath] = ()
    """Other files of which a server has published errors that nobody knows the cause of."""
    gone: Collection[AbsPath] = ()
    """Files that were seen to go, whether or not anybody knows what was in them."""
    hear: Callable[[BrokenFiles], None] = lambda _: None
    """As in `KnownFindings`."""


class Judged(Struct, frozen=True):
    """What is known of files after a check."""

    edited: Sequence[FileVerdict]
    changes: Mapping[AbsPath, Comparison]
    limits: FeedbackSettings
    others: BrokenFiles = BrokenFiles()
    before: Mapping[AbsPath, str | None] = field(default_factory=dict[AbsPath, str | None])
    """The text of each edited file before the edit; None where nobody knows it."""
    missing: frozenset[str] = frozenset()
    """Packages that could not be found."""
    newly_missing: frozenset[str] = frozenset()
    """Those of them that the edit may have brought."""
    deleted: tuple[AbsPath, ...] = ()
    uncompared: frozenset[AbsPath] = frozenset()
    """Edited files with a fresh verdict, of which it is not known in time what is new. Nothing is told of them yet."""
    first: Mapping[AbsPath, str | None] = field(default_factory=dict[AbsPath, str | None])
    """The texts with which the search for other files began."""
    settings: tuple[AbsPath, ...] = ()
    """Of all that was changed, what configures servers."""
    signatures: tuple[tuple[str, str], ...] = ()
    """What the edit changed that other files may call; only where something was found in them."""

    @property
    def verdicts(self) -> tuple[FileVerdict, ...]:
        return (*self.edited, *self.others.verdicts)


class _Edit(Struct, frozen=True):
    """One change of files, by the verdicts on those that are there and the texts that all of them had before."""

    verdicts: Sequence[FileVerdict]
    before: Mapping[AbsPath, str | None]
    deleted: Mapping[AbsPath, str]
    """Files that are gone, with their last texts."""
    moved: Mapping[AbsPath, tuple[AbsPath, str]]
    """Of files that are new here: what they were before, under another name or before they were deleted."""
    settings: Mapping[AbsPath, str] = field(default_factory=dict[AbsPath, str])
    """Of all that was changed, what configures servers and was there before, with what it was."""


class EditFeedback:
    def __init__(
        self, runner: CheckRunner, states: FileStates, proposal_runner: ProposalRunner, project: ProjectCheck
    ) -> None:
        self._runner = runner
        self._states = states
        self._proposal_runner = proposal_runner
        self._project = project
        self.notices = Notices()
        self.settings = ChangedSettings(runner, states)

    async def judge(self, touch: Touch, visit: Visit, scope: Scope | None = None) -> Judged:
        """Check the files of a touch and compare them with what they were before it; nothing is told by this alone.

        Raises `Unavailable` after `"lsp": false`.
        """
        workspace = visit.workspace
        scope = scope or Scope()
        packages = [AbsPath(path) for path in touch.paths if package_folder(path) == path]
        world, rewritten = self._states.world, {*self.settings.rewritten(), *packages}
        files = [path for path in touch.paths if path not in packages]
        checked = await self._runner.run(visit, files, given=scope.given, patience=scope.patience)
        self.notices.answered(visit.client, checked)
        limits = replace(workspace.config.feedback, only_new=workspace.config.feedback.only_new or touch.only_new)
        if touch.kind == "read":
            self._remember(workspace, checked, world)
            return Judged(checked, {}, limits)
        said = _said(workspace, touch) | {one.path: one.text for one in checked if one.path in scope.settled}
        edit = await self._edit_of(workspace, checked, {**scope.carried, **said}, scope.gone)
        changed, known = [*packages, *(_real(workspace, one.path) for one in checked)], {**scope.unfinished, **said}
        edit = replace(edit, settings=await self.settings.old_texts(workspace, changed, known, rewritten))
        earlier = {path: text for path, text in scope.carried.items() if edit.before.get(path, text) != text}
        seconds = (scope.patience and scope.patience.later) or workspace.wait_seconds
        changes, late = await self._compare_twice(visit, edit, earlier, limits, seconds, scope.told)
        self._remember(workspace, checked, world)
        now = {one.path: one.checked for one in edit.verdicts if one.refused is None}
        changes = {path: with_late(one, scope.untold.get(path), now[path]) for path, one in changes.items()}
        sifted = {path: without_missing_packages(workspace, path, one, edit.deleted) for path, one in changes.items()}
        first = {**edit.before, **earlier, **scope.unfinished}
        others = BrokenFiles()
        if scope.others and touch.kind in limits.other_files_after:
            others = await self._others(visit, edit, first, scope)
            first |= edit.settings
        signatures = await anyio.to_thread.run_sync(_signatures, edit) if others.changes else ()
        return Judged(
            edit.verdicts,
            {path: one for path, (one, _, _) in sifted.items()} | dict.fromkeys(edit.deleted, Delta((), (), ())),
            limits,
            others,
            before=edit.before,
            missing=frozenset[str]().union(*(found for _, found, _ in sifted.values())),
            newly_missing=frozenset[str]().union(*(brought for _, _, brought in sifted.values())),
            deleted=tuple(edit.deleted),
            # A verdict that is not final is owed anyway.
            uncompared=frozenset(one.path for one in edit.verdicts if one.is_final and one.path in late),
            first=first,
            settings=tuple(edit.settings),
            signatures=signatures,
        )

    async def _others(
        self, visit: Visit, edit: _Edit, first: Mapping[AbsPath, str | None], scope: Scope
    ) -> BrokenFiles:
        """What the edit broke in other files, and what the edits since the texts in `first` broke together."""
        deadline = max(visit.started + visit.workspace.wait_seconds, current_time() + scope.others_seconds)
        deadline = min(deadline, scope.until or deadline)
        texts = {one.path: one.text for one in edit.verdicts if one.answered} | dict.fromkeys(edit.deleted, None)
        edits = [EditedText(path, edit.before.get(path), text) for path, text in texts.items()]
        since = [EditedText(path, first.get(path), text) for path, text in texts.items()]
        found, world, until = BrokenFiles(), self._states.world, scope.until
        if edits:
            known = KnownFindings(scope.untold, scope.told, scope.hear)
            waits_since = visit.started if until else None
            search = BrokenSearch(edits, deadline, world, known, since, until=until, waits_since=waits_since)
            found = await self._project.run(visit, search, scope.heard)
        if edit.settings:
            own = [one for one in since if one.path not in edit.settings]
            files = self.settings.judged_by(edit.settings, visit.workspace)
            search = BrokenSearch(own, deadline, world, settings=edit.settings)
            found = found.joined(await self._project.rejudge(visit, files, search))
        if edit.settings or any(self.settings.configures(one.path) for one in edit.verdicts):
            # Of files that nobody has judged under the old settings, nobody will know.
            found = replace(found, complete=False)
        return found

    async def _compare_twice(
        self,
        visit: Visit,
        edit: _Edit,
        earlier: Mapping[AbsPath, str],
        limits: FeedbackSettings,
        seconds: float,
        told: Mapping[AbsPath, CheckedText],
    ) -> tuple[dict[AbsPath, Comparison], frozenset[AbsPath]]:
        """What is new since right before the edit, or since the texts in `earlier`, whose changes were never judged."""
        changes, late = await self._compare(visit, edit, limits, seconds)
        if earlier:
            whole = replace(edit, before={**edit.before, **earlier})
            also, still_late = await self._compare(visit, whole, limits, seconds)
            known = {one.path: still_there(told.get(one.path), one.checked) for one in edit.verdicts}
            changes |= {path: in_either(changes[path], also[path], known[path]) for path in earlier if path in changes}
            late |= still_late
        return changes, late

    def spoken_of(self, workspace: Workspace) -> list[AbsPath]:
        """Files of which servers have published errors since anybody has listened."""
        return self._project.spoken_of(workspace)

    def latest_text(self, path: AbsPath) -> str | None:
        """What a file has now, as far as anybody has noticed."""
        return self._states.latest_text(path)

    async def look(self, visit: Visit, paths: Sequence[AbsPath], patience: Patience) -> dict[AbsPath, FileVerdict]:
        """The verdicts on these files as they are now; what they were before is no question."""
        world, standing = self._states.world, self._project.standing(paths)
        known = {path: one for path, one in standing.items() if self._runner.can_be_asked(one)}
        checked = await self._runner.run_until_certain(visit, [one for one in paths if one not in known], patience)
        self._remember(visit.workspace, checked, world)
        return {**known, **{one.path: one for one in checked}}

    def known(self, paths: Iterable[AbsPath]) -> dict[AbsPath, FileVerdict]:
        """The verdicts on these files that stand, without asking anybody."""
        processes = self._runner.processes()
        return {path: one for path in paths if (one := self._states.current(path, processes)) is not None}

    async def _edit_of(
        self,
        workspace: Workspace,
        checked: Sequence[FileVerdict],
        said: Mapping[AbsPath, str],
        gone: Collection[AbsPath],
    ) -> _Edit:
        """The change that a touch is about. A missing file that nobody has seen, nor seen go, was not deleted."""
        before, deleted, there = dict[AbsPath, str | None](), dict[AbsPath, str](), list[FileVerdict]()
        for one in checked:
            path = one.path if one.refused is None else _real(workspace, one.path)
            known = said.get(path)
            if one.refused is None:
                before[path] = (
                    known if known is not None else await text_before(self._states, workspace, path, one.text)
                )
            elif one.refused.code is Code.FILE_MISSING:
                text = known or await text_before(self._states, workspace, path, "")
                if text:
                    before[path] = deleted[path] = text
                    self._states.had(path, text)
                    continue
                if path in gone:
                    deleted[path] = ""
                    continue
            there.append(one)
        created = {one.path: one.text for one in there if before.get(one.path) == ""}
        moved = {path: (gone, deleted[gone]) for path, gone in moved_files(created, deleted).items()}
        # One that had been deleted and comes back has its old errors again.
        returned = {path: text for path in created if (text := self._states.deleted_text(path))}
        moved |= {path: (path, text) for path, text in returned.items() if path not in moved}
        return _Edit(there, before, deleted, moved)

    async def _compare(
        self, visit: Visit, edit: _Edit, limits: FeedbackSettings, seconds: float
    ) -> tuple[dict[AbsPath, Comparison], frozenset[AbsPath]]:
        """What the edit changed in each of its files; and those of which a server has not said it in time."""
        there = [one for one in edit.verdicts if one.refused is None]
        changes = {one.path: delta(self._known_before(one, edit), one.checked) for one in there}
        unknown = [one for one in there if limits.only_new and changes[one.path].undated(limits.severities)]
        # Where the old text is not known, nothing is called new.
        unknown = [one for one in unknown if edit.before.get(one.path) is not None or one.path in edit.moved]
        if not unknown:
            return changes, frozenset()
        proposed = {path: text for path, text in edit.before.items() if text} | dict(edit.moved.values())
        wanted = {one.path: edit.moved[one.path][0] if one.path in edit.moved else one.path for one in unknown}
        if all(text == one.text for one in there for text in [edit.before.get(one.path)]) and not edit.deleted:
            # Nothing was changed: whatever is there was there before.
            return changes | {one.path: delta(one.checked, one.checked) for one in unknown}, frozenset()
        judged = await self._proposal_runner.run(visit, proposed, {}, seconds)
        earlier = {one.path: one for one in judged}
        for one in unknown:
            found = earlier.get(wanted[one.path])
            if found is not None and found.is_final:
                changes[one.path] = delta(found.checked, one.checked)
        late = [one.path for one in unknown if (old := earlier.get(wanted[one.path])) is not None and _may_follow(old)]
        return changes, frozenset(late)

    def _known_before(self, verdict: FileVerdict, edit: _Edit) -> CheckedText | None:
        if verdict.path not in edit.moved:
            own = {path: text for path, text in edit.before.items() if path not in edit.settings}
            return self._states.before(verdict, own, edit.settings)
        path, text = edit.moved[verdict.path]
        return self._states.before(replace(verdict, path=path), {**edit.before, path: text})

    def tell(
        self, judged: Judged, touch: Touch, visit: Visit, brought: Mapping[AbsPath, CheckedText] | None = None
    ) -> Feedback:
        """The text for the model. What was found is known from now on.

        `brought`: what the conversation has brought and was there before the edit. It has fixed only that.
        """
        workspace = visit.workspace
        if touch.kind == "read":
            return _feedback("", judged, judged.changes, visit.started)
        notes = self.notes(judged, visit)
        changes = {path: change for path, change in judged.changes.items() if path not in judged.uncompared}
        only_new, known = judged.limits.only_new, brought or {}
        own = {path: credited(change, known.get(path), only_new=only_new) for path, change in changes.items()}
        most = min((size for size in (judged.limits.max_bytes, touch.max_bytes) if size is not None), default=None)
        form = workspace.form(plain=touch.plain, max_bytes=most, stops=touch.stops)
        found = feedback_text(_chosen(touch, judged, own), form)
        text = with_notes(found, notes, form)
        if text:
            # What was so before the edit is no reason to speak, and worth a line where something is said.
            lines = self._missing_line(visit, judged.missing, judged)
            notes += [line for line in lines if line not in notes]
            if judged.limits.no_verdict == "say":
                notes += self.notices.take_restrictions(visit, judged.edited)
            text = with_notes(found, notes, form)
        # What was found and is not told as an error: the answer is not the whole one then.
        untold = [
            *(missing_imports_line(len(each)) for each in [judged.missing] if each),
            *dict.fromkeys(str(one) for one in explanations(workspace, judged.verdicts) if one.hides_uses),
            *_older_line(workspace, judged),
            *_uncompared(workspace, judged),
        ]
        return _feedback(text, judged, changes, visit.started, untold)

    def notes(self, judged: Judged, visit: Visit) -> list[str]:
        """What could not be judged, one line each."""
        say = judged.limits.no_verdict == "say"
        without = (*judged.edited, *judged.others.unjudged)
        notes = [*self.notices.take(visit, without), *_uncompared(visit.workspace, judged)] if say else []
        notes += self.notices.take_lines(visit.client, _unknown_settings(visit.workspace, judged)) if say else ()
        # These were taken out of the findings, so they are told whatever `noVerdict` says.
        notes += self._missing_line(visit, judged.newly_missing, judged)
        notes += self.notices.take_lacking(visit.client, explanations(visit.workspace, judged.verdicts))
        return notes

    def _missing_line(self, visit: Visit, packages: frozenset[str], judged: Judged) -> list[str]:
        """A line about all of them when one of these was not mentioned before."""
        if not self.notices.is_first(visit.client, packages):
            return []
        why = next((str(one) for one in explanations(visit.workspace, judged.edited) if one.of_packages), None)
        return [missing_imports_line(len(judged.missing), why)]

    def _remember(self, workspace: Workspace, verdicts: Sequence[FileVerdict], world: int) -> None:
        """What the files hold now is what the next edit starts from; a file that is not there is created by it."""
        self.settings.learn()
        for verdict in verdicts:
            if verdict.refused is None and verdict.is_final:
                self._states.put(verdict, world)
            elif verdict.refused is None:
                self._states.saw(verdict.path, verdict.text)
            elif verdict.refused.code is Code.FILE_MISSING:
                self._states.saw(_real(workspace, verdict.path), "")


def _may_follow(verdict: FileVerdict) -> bool:
    return any(outcome.is_late and outcome.why not in IMPOSSIBLE for outcome in verdict.outcomes)


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


def _possibly_older(limits: FeedbackSettings, others: BrokenFiles) -> list[AbsPath]:
    """Other files with findings of which nobody knows whether the edit caused them."""
    if not limits.only_new:
        return []
    return [path for path, change in others.changes.items() if change.undated(limits.severities)]


def _older_line(workspace: Workspace, judged: Judged) -> list[str]:
    """Once: from then on it is known what these files had."""
    paths = _possibly_older(judged.limits, judged.others)
    if not paths:
        return []
    files = "1 other file has" if len(paths) == 1 else f"{len(paths)} other files have"
    names = [*(named(path, workspace.root) for path in paths[:MAX_NAMED]), *["…"] * (len(paths) > MAX_NAMED)]
    return [f"{files} errors that may be older than this edit: {', '.join(names)}"]


def _unknown_settings(workspace: Workspace, judged: Judged) -> list[str]:
    """What a change of settings did to other files, where nobody had judged these before it."""
    if not judged.settings or judged.others.unchecked:
        return []
    settings = ", ".join(named(path, workspace.root) for path in judged.settings)
    places = {
        f"{named(path, workspace.root)}:{one.range.start.line + 1}": None
        for path in _possibly_older(judged.limits, judged.others)
        for one in judged.others.changes[path].undated(judged.limits.severities)
    }
    if places:
        more = [f"{len(places) - MAX_NAMED} more"] if len(places) > MAX_NAMED else []
        return [f"Whether {settings} brought these errors is not known: {', '.join([*places][:MAX_NAMED] + more)}."]
    unknown = f"What {settings} changes for other files is not known: none was checked before."
    return [] if judged.others.verdicts else [unknown]


def _uncompared(workspace: Workspace, judged: Judged) -> list[str]:
    names = ", ".join(named(path, workspace.root) for path in sorted(judged.uncompared))
    return [f"It is not known yet which errors are new in {names}: they follow."] if names else []


def _chosen(touch: Touch, judged: Judged, changes: Mapping[AbsPath, Comparison]) -> Selection:
    assert touch.kind != "read"  # the caller looked
    texts = {one.path: one.text for one in judged.verdicts}
    edited = [Checked(path, change, texts.get(path, "")) for path, change in changes.items()]
    related = [Checked(path, change, texts.get(path, "")) for path, change in judged.others.changes.items()]
    chosen = selection(edited, related, touch.kind, judged.limits)
    if chosen.others and not any(file.left_out for file in chosen.others):
        places = [place for file in chosen.others for place in places_of(file)]
        chosen = replace(chosen, changed=old_symbol(judged.signatures, places))
    return chosen


def _signatures(edit: _Edit) -> tuple[tuple[str, str], ...]:
    """Blocking: for a thread."""
    texts = ((edit.before.get(one.path), one.text) for one in edit.verdicts if one.path.endswith(PYTHON))
    return tuple(found for before, after in texts if before for found in old_signatures(before, after))


def _feedback(
    text: str, judged: Judged, changes: Mapping[AbsPath, Comparison], started: float, caveats: Sequence[str] = ()
) -> Feedback:
    edited, others, wanted = judged.edited, judged.others, judged.limits.severities
    both = (*changes.values(), *others.changes.values())
    found = {verdict.path: verdict.diagnostics for verdict in edited}
    effort = _with_others(effort_of(edited, others.verdicts, started), others)
    if not edited:
        # Files were deleted: what others have to say about it is the answer, though nobody else may be concerned.
        effort = replace(effort, server_hits=1)
    effort = replace(effort, caveats=(*effort.caveats, *caveats))
    meta = answer_from(Operation.DIAGNOSTICS, found, effort).meta
    introduced = sum(one.severity in wanted for change in both for one in change.introduced)
    # Feedback has no list of errors beside its reason. Why a server is missing or withheld is told by `Notices`.
    lacking = [one for one in effort.errors if is_lacking(one)] if effort.server_hits else []
    reasons = dict.fromkeys((*effort.caveats, *(error_text(one) for one in effort.errors if one not in lacking)))
    is_clean = not introduced and all(one.is_final for one in edited) and not any(one.undated(wanted) for one in both)
    if lacking and is_clean and not reasons:
        reasons = {"this edit caused no error": None}
    reasons |= dict.fromkeys(map(in_few_words, lacking))
    return Feedback(
        text,
        meta.state,
        effort.duration_ms,
        "; ".join(reasons) or meta.reason,
        introduced=introduced,
        fixed=sum(one.severity in wanted for change in both for one in change.fixed),
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
