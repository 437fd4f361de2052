"""What was judged for one event of a conversation: what of it is told, and what is known or owed from then on.

Nothing here waits: what a text says is known as soon as the text is made.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.api.answers import Feedback, State
from pilotfish.api.questions import Moment, Touch
from pilotfish.config.schema import FeedbackSettings
from pilotfish.feedback.conversation import Conversation, Fate, Standing, still_there
from pilotfish.feedback.delta import CheckedText, Comparison, Delta
from pilotfish.feedback.select import Chosen
from pilotfish.feedback.text import (
    MAX_NAMED,
    STOP_HEADING,
    STOP_UNKNOWN,
    FileRole,
    Form,
    Group,
    chosen,
    command_heading,
    groups_text,
    late_heading,
    named,
)
from pilotfish.model import AbsPath, Diagnostic, Severity
from pilotfish.service.diagnostics.edit_feedback import Judged, Scope
from pilotfish.service.diagnostics.runner import Patience
from pilotfish.service.diagnostics.verdicts import FileVerdict, milliseconds_since
from pilotfish.service.status.recent_feedback import EditedFile
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import Visit
from pilotfish.system.clock import current_time

NOTHING_NEW = "there is nothing to tell"

TOLD_TOGETHER = "it is judged together with other edits"

CONFLICT = "git is in the middle of {}: errors are told again when that is finished."

Verdicts = Mapping[AbsPath, FileVerdict]


class News(Struct):
    """What was judged for one event, and is not told yet."""

    edit: Judged | None = None
    written: Judged | None = None
    late: Verdicts = field(default_factory=dict[AbsPath, FileVerdict])
    """Files of which something was found late, as they are now."""
    left: Verdicts | None = None
    """Before a stop: the files that were changed in this turn, as they are now."""
    unchecked: tuple[AbsPath, ...] = ()
    """Files that the background has not come to: they may be broken."""


def scope_of(state: Conversation) -> Scope:
    """A check that has to make up for what the conversation is owed."""
    return Scope(
        carried=state.unjudged,
        unfinished=state.unfinished,
        settled=state.settled,
        untold=state.untold,
        told=state.introduced,
        heard=state.heard,
    )


def without_told(state: Conversation, judged: Judged) -> Judged:
    """What is news of it to the conversation."""
    return without_older(state, _sifted(judged, state.without_told))


def without_older(state: Conversation, judged: Judged) -> Judged:
    """The same without what is older than the conversation, see `Conversation.without_older`."""
    return _sifted(judged, state.without_older)


def _sifted(judged: Judged, sift: Callable[[AbsPath, CheckedText, Comparison], Comparison]) -> Judged:
    now = {one.path: one.checked for one in judged.verdicts if one.refused is None}

    def news(changes: Mapping[AbsPath, Comparison]) -> dict[AbsPath, Comparison]:
        return {path: sift(path, now[path], one) if path in now else one for path, one in changes.items()}

    others = replace(judged.others, changes=news(judged.others.changes))
    return replace(judged, changes=news(judged.changes), others=others)


def note_judged(state: Conversation, judged: Judged, call: int) -> None:
    """What was judged in time is settled, the rest is owed."""
    missing = not judged.others.settled
    for verdict in judged.edited:
        _note_edited(state, judged, verdict, call, missing=missing)
    for path in judged.deleted:
        state.settle(path, Fate.JUDGED)
        state.introduced.pop(path, None)
        if judged.first.get(path):
            # One that came and went within the conversation leaves the others as they were.
            _note_others(state, judged, path, call, missing=missing)
    for path in judged.settings if missing else ():
        # What a change of settings broke follows, whoever judges such files.
        state.owe_others(path, judged.first.get(path), call=call)
    for verdict in judged.others.verdicts:
        if verdict.refused is None and verdict.path in judged.others.changes:
            change = judged.others.changes[verdict.path]
            causes, before = judged.before, verdict.text
            state.judged(verdict.path, verdict.checked, change, edited=False, before=before, causes=causes)
    for path in compared(judged.others.changes):
        state.heard_of(path)


def _note_edited(state: Conversation, judged: Judged, verdict: FileVerdict, call: int, *, missing: bool) -> None:
    path = verdict.path
    if verdict.refused is not None:
        state.settle(path, Fate.JUDGED)
        return
    before, change = judged.before.get(path), judged.changes[path]
    if path in judged.uncompared:
        state.owe(path, before, call=call)
    elif verdict.is_final:
        state.judged(path, verdict.checked, change, edited=True, before=before, causes=judged.before)
        state.settle(path, Fate.JUDGED)
        _note_others(state, judged, path, call, missing=missing, text=verdict.text)
    elif verdict.is_late:
        state.owe(path, before, call=call, heard=verdict.checked if verdict.answered else None)
    else:
        if verdict.answered:
            # Nothing better will come, and what was found is told.
            state.judged(path, verdict.checked, change, edited=True, before=before)
        state.settle(path, Fate.NO_VERDICT)


def _note_others(
    state: Conversation, judged: Judged, path: AbsPath, call: int, *, missing: bool, text: str = ""
) -> None:
    before = judged.first.get(path)
    # One that is as it was at first may have broken what was adapted in between.
    before = judged.before.get(path) if before == text else before
    if missing and before != text:
        state.owe_others(path, before, call=call)
    elif not missing:
        state.finish(path, before)


def command_groups(judged: Judged, form: Form, wanted: Iterable[Severity]) -> list[Group]:
    severities, groups = frozenset(wanted), list[Group]()
    edited = judged.edited, judged.changes, FileRole.EDITED
    for verdicts, changes, role in (edited, (judged.others.verdicts, judged.others.changes, FileRole.OTHER)):
        shown = list[Chosen]()
        for verdict in verdicts:
            change = changes.get(verdict.path)
            if verdict.is_final and isinstance(change, Delta) and verdict.path not in judged.uncompared:
                found = [one for one in change.introduced if one.severity in severities]
                shown += [chosen(verdict.path, verdict.text, found)] if found else []
        groups.append(Group(command_heading(form, others=role is FileRole.OTHER), tuple(shown), role))
    return groups


def compared(changes: Mapping[AbsPath, Comparison]) -> list[AbsPath]:
    """The files of which it is known what is new: what was found late in any other is still to be told."""
    return [path for path, change in changes.items() if isinstance(change, Delta)]


def edited_files(judged: Judged | None) -> tuple[EditedFile, ...]:
    """What an edit changed, where the text before it is known."""
    if judged is None:
        return ()
    known = ((verdict, judged.before.get(verdict.path)) for verdict in judged.edited)
    return tuple(EditedFile(verdict.path, before, verdict.text) for verdict, before in known if before is not None)


def introduced_in(changes: Mapping[AbsPath, Comparison]) -> dict[AbsPath, tuple[Diagnostic, ...]]:
    return {path: change.introduced for path, change in changes.items() if change.introduced}


def told_files(judged: Judged) -> int:
    """How many files the feedback of an edit speaks of."""
    edited = [change for path, change in judged.changes.items() if path not in judged.uncompared]
    found = [one.introduced if isinstance(one, Delta) else one.diagnostics for one in edited]
    found += introduced_in(judged.others.changes).values()
    return sum(any(one.severity in judged.limits.severities for one in each) for each in found)


def late_groups(state: Conversation, late: Verdicts, form: Form, wanted: Iterable[Severity]) -> list[Group]:
    """What is told of files whose verdicts came after the event that they belong to."""
    groups, others, severities = list[Group](), list[Chosen](), frozenset(wanted)
    for path, verdict in late.items():
        debt = state.debts.get(path)
        if debt is None and verdict.is_final:
            # It was told, and is looked at because it may be gone.
            state.judged(path, verdict.checked, Delta((), (), ()), edited=False)
        if debt is None or debt.standing is not Standing.LATE:
            continue
        if verdict.refused is not None:
            state.settle(path, Fate.OVER)
        elif verdict.is_final:
            now = verdict.checked
            there = still_there(debt.found, now)
            found = [one for one in there if one.severity in severities]
            state.settle(path, Fate.TOLD if found else Fate.OVER)
            if debt.certain:
                state.judged(path, now, Delta(there, (), ()), edited=debt.edited)
            if found and not debt.edited and form.wording == "worklist":
                others.append(chosen(path, now.text, found))
                continue
            heading = late_heading(path, form, debt, state.calls)
            groups += [Group(heading, (chosen(path, now.text, found),))] if found else []
    return [*groups, Group("", tuple(others), FileRole.OTHER)]


def what_is_left(
    state: Conversation, news: News, form: Form, settings: FeedbackSettings, agent: str
) -> tuple[str, bool]:
    """Before an agent stops: what the conversation introduced and is still there, however it came about.

    With it, whether there are errors in it, and not only files of which nobody knows.
    """
    wanted, looked_at = settings.severities, news.left or {}
    now = {path: one for path, one in looked_at.items() if one.is_final}
    _note_written(state, news, now)
    files, late = list[Chosen](), state.untold
    for path, verdict in now.items():
        if path in late:
            # Found in the background, and no event came that would have told it.
            there = still_there(late[path], verdict.checked)
            state.judged(path, verdict.checked, Delta(there, (), ()), edited=False)
        found = state.remaining(path, verdict.checked, wanted)
        state.judged(path, verdict.checked, Delta((), (), ()), edited=False)
        if path in state.standing(Standing.LATE):
            # What is pending by now could not be judged in time, and is owed.
            state.settle(path, Fate.TOLD if found else Fate.OVER)
        files += [chosen(path, verdict.text, found)] if found else []
    unsure = {path: one for path, one in looked_at.items() if path not in now and one.answered}
    # A list that may not be whole shows what is there, and not what is mended.
    left = {path: found for path, one in unsure.items() if (found := state.remaining(path, one.checked, wanted))}
    files += [chosen(path, unsure[path].text, found) for path, found in left.items()]
    state.told += len(files)
    refused = {path for path, one in looked_at.items() if one.refused is not None}
    unknown, notes = _unknown_files(state, {*now, *left, *refused}, wanted), list[str]()
    if settings.no_verdict == "say" and agent not in state.unsure:
        unchecked = news.unchecked if news.written is None else news.written.others.left
        notes = _unjudged_lines(state, form, now, {file.path for file in files}, unchecked)
    groups = [Group(STOP_HEADING, tuple(files), FileRole.LEFT), Group(STOP_UNKNOWN, unknown, FileRole.LEFT)]
    return groups_text(groups, form, notes), bool(files)


def _note_written(state: Conversation, news: News, now: Collection[AbsPath]) -> None:
    """What commands changed is known; of files that could not be looked at once more, it is told later."""
    if news.written is None:
        return
    note_judged(state, news.written, state.calls)
    introduced = introduced_in({**news.written.changes, **news.written.others.changes})
    for verdict in news.written.verdicts:
        if verdict.path in introduced and verdict.path not in {*now, *news.written.uncompared}:
            found = CheckedText(verdict.text, introduced[verdict.path])
            edited = verdict.path in news.written.changes
            state.found(verdict.path, found, call=state.calls, edited=edited)


def _unknown_files(state: Conversation, now: AbstractSet[AbsPath], wanted: Collection[Severity]) -> tuple[Chosen, ...]:
    """What was told of files of which nobody knows in time whether it is left; those that were edited come first."""
    files = list[Chosen]()
    paths = (state.changed - now) & state.introduced.keys()
    for path in sorted(paths, key=lambda path: (path not in state.own_texts, path)):
        known = state.introduced[path]
        found = [one for one in known.diagnostics if one.severity in wanted]
        files += [chosen(path, known.text, found)] if found else []
    return tuple(files)


def _unjudged_lines(
    state: Conversation, form: Form, now: Verdicts, told: Collection[AbsPath], unchecked: Sequence[AbsPath]
) -> list[str]:
    """The edited files without a verdict, whatever was said of them before: silence would mean that they are clean.

    Then those of which nobody knows yet what they broke elsewhere, and where that may be.

    `told`: files of which errors are told beside this.
    """
    lines, causes = list[str](), list[str]()
    for path, debt in sorted(state.standing(Standing.PENDING).items()):
        name = named(path, form.workspace)
        if not debt.edited:
            continue
        if debt.before is None and debt.unfinished is not None:
            causes.append(name if os.path.lexists(path) else f"the removal of {name}")
        elif path not in now:
            lines.append(f"{name} was not checked: its servers have not answered in time.")
        elif path not in told and now[path].diagnostics:
            lines.append(f"{name} has errors, and there was no time to tell which of them are new.")
    if causes and not state.is_undone:
        names = [named(path, form.workspace) for path in unchecked[:MAX_NAMED]]
        names += [f"{len(unchecked) - MAX_NAMED} more"] if len(unchecked) > MAX_NAMED else []
        left = f": {', '.join(names)}" if names else ""
        lines.append(f"Not all files that {' and '.join(causes)} may have broken could be checked in time{left}.")
    return lines


def without_verdict(visit: Visit, reason: str, *, say: bool = False) -> Feedback:
    """The feedback where nothing was judged that is told now. `say`: the model is told why, where it wants to be."""
    text = reason if say and visit.workspace.config.feedback.no_verdict == "say" else ""
    return Feedback(text, State.UNAVAILABLE, milliseconds_since(visit.started), reason)


def patience_until(deadline: float, loading: float = 0.0) -> Patience:
    """`loading`: the same for servers in their first use, which may take longer."""
    now = current_time()
    left = max(0.1, deadline - now)
    return Patience(left, left, loading - now)


def form_at(event: Touch | Moment, workspace: Workspace, told: str = "") -> Form:
    """How something is written beside what was told for the same event."""
    known = [size for size in (event.max_bytes, workspace.config.feedback.max_bytes) if size is not None]
    left = max(0, min(known) - len(told.encode()) - 2) if known else None
    return workspace.form(plain=event.plain, max_bytes=left)
