"""One conversation as the service keeps it, and which of its edits are judged together (FMT-9).

Edits whose results a model reads together are judged as one change. Where the host reports the end of a batch, its
edits are held until then: what each file was before the first of them is noted, and the servers are shown the files.
Elsewhere an edit that arrives while another one of its conversation is judged takes that over, and tells of both. So
nothing is said that the same batch repairs. No edit is lost: what is still held when a turn begins or ends is judged
then.

A daemon may be stopped, replaced or killed in the middle of a turn, and forgets a conversation that is silent for long:
what was promised by then must still be told. Kept for each workspace are its last conversations, as far as they fit.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress

import anyio
import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.api.questions import Moment, Touch
from pilotfish.api.status import ConversationRow
from pilotfish.config.schema import FeedbackSettings
from pilotfish.errors import Refused
from pilotfish.feedback.conversation import Conversation, Debt, Standing, TextsBefore
from pilotfish.feedback.written_files import WrittenFiles
from pilotfish.model import AbsPath
from pilotfish.policy.boundary import Want, admit
from pilotfish.service.recent import Remembered
from pilotfish.service.texts import Given, old_text_to_send
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession, Visit
from pilotfish.system.git_state import GitMove, GitState
from pilotfish.system.ports import Memory

KIND = "conversations"

MAX_WORKSPACES = 64
"""Whose conversations need not be read again from the store."""

MAX_BYTES = 256 * 1024
"""Of one workspace: the texts of the files that were edited and not judged, or have errors of the conversation."""

TURN_SECONDS = 1800.0
"""A turn may go on for this long without an event, as a client session may. What was changed on disk while a
conversation was silent for longer is a person's work, and nobody is told of it."""


class EditUnderWay(Struct):
    """An edit that is being judged. Another one that arrives meanwhile takes it over, and tells of both."""

    touch: Touch
    visit: Visit
    given: Mapping[str, Given]
    """The texts of the touch, as `CheckRunner.take` took them."""
    texts: dict[AbsPath, str | None]
    """The texts before it."""
    call: int
    move: GitMove | None
    """What git did since the event before it."""
    scope: anyio.CancelScope
    taken_over: bool = False


class Background(Struct, frozen=True):
    """A check that goes on when its event has been answered, and what it is about."""

    pending: dict[AbsPath, Debt]
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)


class ConversationRecord(Struct):
    client: ClientSession
    state: Conversation = field(default_factory=Conversation)
    written: WrittenFiles = field(default_factory=WrittenFiles)
    """Since its last event."""
    git: GitState | None = None
    """Where git stood then; None: nobody has looked, or there is none."""
    taken: bool = False
    """Git has changed files of its making since it was last looked what is left of what it broke."""
    conflicted: str | None = None
    """What git is in the middle of, as the conversation was told."""
    held: dict[AbsPath, str | None] = field(default_factory=dict[AbsPath, str | None])
    """Files with edits that are judged with a later event: the texts before the first of them."""
    batches: bool = False
    """Whether its host reports the end of a batch: then an edit is held until that."""
    judgement: EditUnderWay | None = None
    """The edit that is being judged now and may be taken over."""
    idle: bool = False
    """Its turn is over: what changes on disk now is a person's work, until a tool of the agent says otherwise."""
    looked_at: float = 0.0
    """Wall time: what was changed until then is known, where nobody watches."""
    is_watched: bool = False
    """Whether somebody does, and what was changed before that is known, too."""
    telling: anyio.Lock = field(default_factory=anyio.Lock)
    """One event at a time looks for what is to be told, so that nothing is told twice."""
    background: Background | None = None
    """The check that goes on, if one does."""
    left: tuple[AbsPath, ...] = ()
    """Other files that it has not come to yet."""
    on_late: Callable[[], None] | None = None
    """Called when that has ended, for clients that can be told at any time."""

    def call(self, *, counts: bool) -> int:
        """The number of the call that an event belongs to."""
        self.state.calls += counts
        return self.state.calls + (not counts)

    def note_batches(self, event: Touch | Moment) -> None:
        """Learn from an event whether the host reports the end of a batch: an edit before the first one is not held."""
        self.batches |= event.batch == "end" if isinstance(event, Touch) else event.kind == "call" and event.counts

    def holds(self, touch: Touch, settings: FeedbackSettings) -> bool:
        """Whether an edit is judged with a later event."""
        if touch.batch is None or settings.after == "edit":
            return False
        return settings.after != "batch" or (self.batches and not touch.counts)

    def is_quiet(self, moment: Moment, settings: FeedbackSettings) -> bool:
        """Whether nothing is told at a moment, because another one follows at which it is."""
        if moment.kind == "stop":
            return settings.after == "ask"
        if settings.after == "stop" and moment.kind == "prompt" and self.idle:
            # What the last stop had no time for is told now, as is said there.
            return False
        return settings.after in ("stop", "ask") or (self.batches and not moment.counts and settings.after == "batch")

    def gathered(
        self, touch: Touch, texts: TextsBefore, seen: Callable[[AbsPath], str | None]
    ) -> tuple[Touch, dict[AbsPath, str | None]]:
        """The edit together with those that are judged with it, from the texts before the first of them.

        `seen`: what a file had when it was looked at last. Edits of a batch that were not held were told then.
        """
        if touch.batch is None:
            return touch, dict(texts)
        mine = dict(texts)
        if touch.batch == "end":
            touch = replace(touch, only_new=touch.only_new or self.held.keys().isdisjoint(texts))
            mine = {path: self.held.pop(path) if path in self.held else seen(path) for path in texts}
        if self.judgement is not None:
            mine |= self.judgement.texts
            self.judgement.taken_over = True
            self.judgement.scope.cancel()
        if mine == texts:
            return touch, mine
        before = (touch.before or {}) | {path: text for path, text in mine.items() if text is not None}
        added = [path for path in mine if path not in texts]
        return replace(touch, paths=(*touch.paths, *added), kind="patch" if added else touch.kind, before=before), mine

    def owe_held(self) -> None:
        """Nothing more is waited for: what is held is owed, as an edit whose time was over."""
        for path, text in self.held.items():
            self.state.owe(path, text, call=self.state.calls)
        self.held.clear()

    @property
    def row(self) -> ConversationRow:
        """The conversation as people see it."""
        return ConversationRow(
            session=self.client.id,
            host=self.client.host,
            root=self.client.root,
            calls=self.state.calls,
            told=self.state.told,
            pending=len(self.state.standing(Standing.PENDING)),
            late=len(self.state.standing(Standing.LATE)),
            dropped=dict(self.state.dropped),
        )


def texts_before(touch: Touch, workspace: Workspace) -> dict[AbsPath, str | None]:
    """The files of a touch, with the texts before it where the host says them."""
    found: dict[AbsPath, str | None] = {}
    for path in touch.paths:
        with suppress(Refused):  # it is refused when it is checked, and is said to be
            told = (touch.before or {}).get(path)
            real = admit(path, workspace.boundary, Want.PLACE).path
            found[real] = None if told is None else old_text_to_send(real, told)
    return found


class _Kept(Struct, frozen=True):
    state: Conversation
    held: dict[AbsPath, str | None]
    git: GitState | None
    batches: bool
    idle: bool
    at: float
    """Wall time of its last event."""


class KeptConversations:
    """From one run of the daemon to the next."""

    def __init__(self, memory: Memory | None, wall: Callable[[], float]) -> None:
        self._memory = memory
        self._wall = wall
        kind = dict[str, msgspec.Raw]
        self._known = Remembered(memory, KIND, kind, kind, MAX_WORKSPACES)
        """By workspace and conversation, the last one at the end."""

    def restore(self, record: ConversationRecord) -> None:
        """Give a record what is kept of its conversation. Only one that has a name is known again."""
        # What is on disk now was there before.
        record.looked_at = self._wall()
        found = self._known.get(record.client.root).get(_name(record.client))
        try:
            kept = None if found is None else msgspec.json.decode(found, type=_Kept)
        except msgspec.MsgspecError:
            # Written by another version.
            kept = None
        if kept is None:
            return
        record.state, record.held, record.batches, record.idle = kept.state, kept.held, kept.batches, kept.idle
        if not kept.idle and self._wall() - kept.at < TURN_SECONDS:
            record.git, record.looked_at = kept.git, kept.at

    def keep(self, record: ConversationRecord) -> None:
        name, state = _name(record.client), record.state
        if not name or self._memory is None:
            return
        known = self._known.get(record.client.root)
        has_something = state.changed or state.introduced or state.debts or state.gone or record.held
        if not has_something and name not in known:
            return
        kept = _Kept(replace(state, finished={}), record.held, record.git, record.batches, record.idle, self._wall())
        # A path may be no text.
        with suppress(UnicodeEncodeError):
            encoded = msgspec.Raw(msgspec.json.encode(kept))
            known.pop(name, None)
            known[name] = encoded
            while known and sum(len(bytes(one)) for one in known.values()) > MAX_BYTES:
                del known[next(iter(known))]
            self._known.put(record.client.root, known)

    def forget(self, client: ClientSession) -> None:
        """It has ended for good."""
        known = self._known.get(client.root)
        if known.pop(_name(client), None) is not None:
            self._known.put(client.root, known)


def _name(client: ClientSession) -> str:
    """Empty where the host has no name for it."""
    return "" if client.conversation is None else f"{client.host} {client.conversation}"
