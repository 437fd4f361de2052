"""What was judged for one event of a conversation: what of it is told, and what is known or owed from then on.

Nothing here waits: what a text says is known as soon as the text is made.
"""

from collections.abc import Collection, Iterable

from msgspec import Struct

from pilotfish.feedback.conversation import Conversation, Fate, Standing, untold
from pilotfish.feedback.conversation_text import Group, chosen, groups_text, late_heading, stop_heading
from pilotfish.feedback.delta import Delta
from pilotfish.feedback.text import Form
from pilotfish.model import AbsPath, Diagnostic, Severity
from pilotfish.service.conversations.judged_files import checked_text, introduced_in, without
from pilotfish.service.diagnostics.edit_feedback import Judged


class News(Struct):
    """What was judged for one event, and is not told yet."""

    edit: Judged | None = None
    written: Judged | None = None
    late: Judged | None = None
    left: Judged | None = None
    """Before a stop: the files that were changed in this turn, as they are now."""
    uncounted: int = 0
    """Files changed by commands that are too many to judge."""


def note_judged(state: Conversation, judged: Judged, call: int) -> None:
    """What was judged in time is settled, the rest is owed."""
    missing = judged.others.unchecked > 0
    for verdict in judged.edited:
        path = verdict.path
        if verdict.refused is not None:
            state.settle(path, Fate.JUDGED)
        elif path in judged.uncompared:
            state.owe(path, judged.before.get(path), call=call)
        elif verdict.is_fresh:
            state.judged(path, checked_text(verdict), judged.changes[path], edited=True)
            state.settle(path, Fate.JUDGED)
            if missing:
                state.owe_others(path, judged.first.get(path), call=call)
        elif verdict.is_late:
            heard = checked_text(verdict) if verdict.answered else None
            state.owe(path, judged.before.get(path), call=call, heard=heard)
        else:
            state.settle(path, Fate.NO_VERDICT)
    for path in judged.deleted:
        state.settle(path, Fate.JUDGED)
        state.left.pop(path, None)
        if missing:
            state.owe_others(path, judged.first.get(path), call=call)
    for verdict in judged.others.verdicts:
        if verdict.refused is None and verdict.path in judged.others.changes:
            state.judged(verdict.path, checked_text(verdict), judged.others.changes[verdict.path], edited=False)
            state.settle(verdict.path, Fate.JUDGED)


def late_groups(state: Conversation, judged: Judged, form: Form, wanted: Iterable[Severity]) -> list[Group]:
    """What is told of files whose verdicts came after the event that they belong to."""
    groups, severities = list[Group](), frozenset(wanted)
    for verdict in judged.edited:
        debt = state.debts.get(verdict.path)
        if debt is None or debt.standing is not Standing.LATE:
            continue
        if verdict.refused is not None:
            state.settle(verdict.path, Fate.OVER)
        elif verdict.is_fresh and verdict.path not in judged.uncompared:
            now, change = checked_text(verdict), judged.changes[verdict.path]
            found = [one for one in untold(now, change) if one.severity in severities]
            state.settle(verdict.path, Fate.TOLD if found else Fate.OVER)
            state.judged(verdict.path, now, change, edited=debt.edited)
            ago, certain = max(1, state.calls - debt.call), isinstance(change, Delta)
            heading = late_heading(verdict.path, form, edited=debt.edited, ago=ago, certain=certain)
            groups += [Group(heading, (chosen(verdict.path, found),))] if found else []
    return groups


def what_is_left(
    state: Conversation, news: News, form: Form, wanted: Collection[Severity], *, keep: bool = True
) -> str:
    """Before a stop: what the conversation introduced and is still there, however it came about."""
    now = {one.path: one for one in news.left.edited if one.is_fresh} if news.left is not None else {}
    if keep and news.written is not None:
        news.written.keep()
    _note_written(state, news, now)
    if news.left is None:
        return ""
    files = list[tuple[AbsPath, tuple[Diagnostic, ...]]]()
    unknown = {path for path, change in news.left.changes.items() if not isinstance(change, Delta)}
    for path, verdict in now.items():
        if path in unknown:
            continue
        state.judged(path, checked_text(verdict), news.left.changes[path], edited=False)
        found = state.remaining(path, checked_text(verdict), wanted)
        state.settle(path, Fate.TOLD if found else Fate.OVER)
        files += [(path, found)] if found else []
    if keep:
        news.left.baselines.keep(without=unknown)
    state.told += len(files)
    return groups_text([Group(stop_heading(), tuple(chosen(path, found) for path, found in files))], form)


def _note_written(state: Conversation, news: News, now: Collection[AbsPath]) -> None:
    """What commands changed is known; of files that could not be looked at once more, it is told later."""
    if news.written is None:
        return
    note_judged(state, news.written, state.calls)
    introduced = introduced_in({**news.written.changes, **news.written.others.changes})
    for verdict in news.written.verdicts:
        if verdict.path in introduced and verdict.path not in {*now, *news.written.uncompared}:
            base = without(checked_text(verdict), introduced[verdict.path])
            edited = verdict.path in news.written.changes
            state.found(verdict.path, base, call=state.calls, edited=edited)
