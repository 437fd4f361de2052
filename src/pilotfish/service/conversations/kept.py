"""What conversations were told and are owed, from one run of the daemon to the next.

A daemon may be stopped, replaced or killed in the middle of a turn, and forgets a conversation that is silent for long:
what was promised by then must still be told. Kept for each workspace are its last conversations, as far as they fit.
"""

from collections.abc import Callable

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pilotfish.feedback.conversation import Conversation
from pilotfish.model import AbsPath
from pilotfish.service.conversations.record import ConversationRecord
from pilotfish.service.recent import Remembered
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.git_state import GitState
from pilotfish.system.ports import Memory

KIND = "conversations"

MAX_WORKSPACES = 64
"""Whose conversations need not be read again from the store."""

MAX_BYTES = 256 * 1024
"""Of one workspace: the texts of the files that were edited and not judged, or have errors of the conversation."""

TURN_SECONDS = 1800.0
"""A turn may go on for this long without an event, as a client session may. What was changed on disk while a
conversation was silent for longer is a person's work, and nobody is told of it."""


class _Kept(Struct, frozen=True):
    state: Conversation
    held: dict[AbsPath, str | None]
    git: GitState | None
    batches: bool
    idle: bool
    at: float
    """Wall time of its last event."""


class KeptConversations:
    def __init__(self, memory: Memory | None, wall: Callable[[], float]) -> None:
        self._memory = memory
        self._wall = wall
        kind = dict[str, msgspec.Raw]
        self._known = Remembered(memory, KIND, kind, kind, MAX_WORKSPACES)
        """By workspace and conversation, the last one at the end."""

    def restore(self, record: ConversationRecord) -> None:
        """Give a record what is kept of its conversation. Only one that has a name is known again."""
        name = _name(record.client)
        found = None if name is None else self._known.get(record.client.root).get(name)
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
        if name is None or self._memory is None:
            return
        known = self._known.get(record.client.root)
        has_something = state.changed or state.introduced or state.debts or state.gone or record.held
        if not has_something and name not in known:
            return
        kept = _Kept(replace(state, finished={}), record.held, record.git, record.batches, record.idle, self._wall())
        try:
            encoded = msgspec.Raw(msgspec.json.encode(kept))
        except UnicodeEncodeError:
            # A path that is no text.
            return
        known.pop(name, None)
        known[name] = encoded
        self._put(record.client.root, known)

    def forget(self, client: ClientSession) -> None:
        """It has ended for good."""
        name, known = _name(client), self._known.get(client.root)
        if name is not None and known.pop(name, None) is not None:
            self._put(client.root, known)

    def _put(self, root: AbsPath, known: dict[str, msgspec.Raw]) -> None:
        while known and sum(len(bytes(one)) for one in known.values()) > MAX_BYTES:
            del known[next(iter(known))]
        self._known.put(root, known)


def _name(client: ClientSession) -> str | None:
    return None if client.conversation is None else f"{client.host} {client.conversation}"
