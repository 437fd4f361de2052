"""Edits whose results a model reads together are judged together, as one change (FMT-9).

Where the host reports the end of a batch, its edits are held until then: what each file was before the first of them is
noted, and the servers are shown the files. Elsewhere an edit that arrives while another one of its conversation is
judged takes that over, and tells of both. So nothing is said that the same batch repairs.

No edit is lost: what is still held when a turn begins or ends is judged then.
"""

from collections.abc import Callable
from contextlib import suppress

from msgspec.structs import replace

from pilotfish.api.questions import Moment, Touch
from pilotfish.config.schema import FeedbackSettings
from pilotfish.errors import Refused
from pilotfish.feedback.conversation import TextsBefore
from pilotfish.model import AbsPath
from pilotfish.policy.boundary import Want, admit
from pilotfish.service.conversations.record import ConversationRecord
from pilotfish.service.texts import old_text_to_send
from pilotfish.service.workspace import Workspace


def note_batches(record: ConversationRecord, event: Touch | Moment) -> None:
    """Learn from an event whether the host reports the end of a batch: an edit before the first one is not held."""
    if event.batch == "end" if isinstance(event, Touch) else event.kind == "call" and event.counts:
        record.batches = True


def is_held(record: ConversationRecord, touch: Touch, settings: FeedbackSettings) -> bool:
    """Whether an edit is judged with a later event."""
    if touch.batch is None or settings.after == "edit":
        return False
    return settings.after != "batch" or (record.batches and not touch.counts)


def is_quiet(record: ConversationRecord, moment: Moment, settings: FeedbackSettings) -> bool:
    """Whether nothing is told at a moment, because another one follows at which it is."""
    if moment.kind == "stop":
        return settings.after == "ask"
    if settings.after == "stop" and moment.kind == "prompt" and record.idle:
        # What the last stop had no time for is told now, as is said there.
        return False
    return settings.after in ("stop", "ask") or (record.batches and not moment.counts and settings.after == "batch")


def gathered(
    record: ConversationRecord, touch: Touch, texts: TextsBefore, seen: Callable[[AbsPath], str | None]
) -> tuple[Touch, dict[AbsPath, str | None]]:
    """The edit together with those that are judged with it, from the texts before the first of them.

    `seen`: what a file had when it was looked at last. Edits of a batch that were not held were told then.
    """
    if touch.batch is None:
        return touch, dict(texts)
    mine = dict(texts)
    if touch.batch == "end":
        touch = replace(touch, only_new=touch.only_new or record.held.keys().isdisjoint(texts))
        mine = {path: record.held.pop(path) if path in record.held else seen(path) for path in texts}
    running = record.judgement
    if running is not None:
        mine |= running.texts
        running.taken_over = True
        running.scope.cancel()
    if mine == texts:
        return touch, mine
    before = (touch.before or {}) | {path: text for path, text in mine.items() if text is not None}
    added = [path for path in mine if path not in texts]
    return replace(touch, paths=(*touch.paths, *added), kind="patch" if added else touch.kind, before=before), mine


def owe_held(record: ConversationRecord) -> None:
    """Nothing more is waited for: what is held is owed, as an edit whose time was over."""
    for path, text in record.held.items():
        record.state.owe(path, text, call=record.state.calls)
    record.held.clear()


def owe_written(record: ConversationRecord, workspace: Workspace) -> None:
    """What commands changed and a stop had no time for is judged in the background: the turn may be over."""
    for path, one in record.written.all().items():
        if workspace.serves(path):
            record.state.owe(path, one.before, call=record.state.calls)
    record.written.clear()


def texts_before(touch: Touch, workspace: Workspace) -> dict[AbsPath, str | None]:
    """The files of a touch, with the texts before it where the host says them."""
    found: dict[AbsPath, str | None] = {}
    for path in touch.paths:
        with suppress(Refused):  # it is refused when it is checked, and is said to be
            told = (touch.before or {}).get(path)
            real = admit(path, workspace.boundary, Want.PLACE).path
            found[real] = None if told is None else old_text_to_send(real, told)
    return found
