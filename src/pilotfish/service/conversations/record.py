"""One conversation as the service keeps it: what it was told, what changed on disk meanwhile, what goes on for it."""

from collections.abc import Callable

import anyio
from msgspec import Struct, field

from pilotfish.api.status import ConversationRow
from pilotfish.feedback.conversation import Conversation, Debt, Standing
from pilotfish.feedback.written_files import WrittenFiles
from pilotfish.model import AbsPath
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.git_state import GitState


class EditUnderWay(Struct):
    """An edit that is being judged. Another one that arrives meanwhile takes it over, and tells of both."""

    scope: anyio.CancelScope
    texts: dict[AbsPath, str | None]
    """The texts before it."""
    call: int
    taken_over: bool = False


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
    background: anyio.CancelScope | None = None
    """The check that goes on, if one does."""
    ended: anyio.Event = field(default_factory=anyio.Event)
    """Set when that has ended."""
    left: tuple[AbsPath, ...] = ()
    """Other files that it has not come to yet."""
    judging: dict[AbsPath, Debt] = field(default_factory=dict[AbsPath, Debt])
    """What that is about."""
    on_late: Callable[[], None] | None = None
    """Called when that has ended, for clients that can be told at any time."""

    @property
    def told_late(self) -> list[AbsPath]:
        """Files to be looked at: something was found late, or was told and may be gone."""
        return list(
            dict.fromkeys((*self.state.standing(Standing.LATE), *(self.state.introduced if self.taken else ())))
        )

    def call(self, *, counts: bool) -> int:
        """The number of the call that an event belongs to."""
        self.state.calls += counts
        return self.state.calls + (not counts)


def row_of(record: ConversationRecord) -> ConversationRow:
    """The conversation as people see it."""
    state = record.state
    return ConversationRow(
        session=record.client.id,
        host=record.client.host,
        root=record.client.root,
        calls=state.calls,
        told=state.told,
        pending=len(state.standing(Standing.PENDING)),
        late=len(state.standing(Standing.LATE)),
        dropped=dict(state.dropped),
    )
