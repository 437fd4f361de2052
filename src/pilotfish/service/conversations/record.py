"""One conversation as the service keeps it: what it was told, what changed on disk meanwhile, what goes on for it."""

from collections.abc import Callable

import anyio
from msgspec import Struct, field

from pilotfish.feedback.conversation import Conversation, Debt
from pilotfish.feedback.written_files import WrittenFiles
from pilotfish.model import AbsPath
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.git_state import GitState


class ConversationRecord(Struct):
    client: ClientSession
    state: Conversation = field(default_factory=Conversation)
    written: WrittenFiles = field(default_factory=WrittenFiles)
    """Since its last event."""
    git: GitState | None = None
    """Where git stood then; None: nobody has looked, or there is none."""
    conflicted: str | None = None
    """What git is in the middle of, as the conversation was told."""
    idle: bool = False
    """Its turn is over: what changes on disk now is a person's work, until a tool of the agent says otherwise."""
    telling: anyio.Lock = field(default_factory=anyio.Lock)
    """One event at a time looks for what is to be told, so that nothing is told twice."""
    unsaid: set[AbsPath] = field(default_factory=set[AbsPath])
    """Files without a verdict when the turn ended, which was not said then."""
    background: anyio.CancelScope | None = None
    """The check that goes on, if one does."""
    judging: dict[AbsPath, Debt] = field(default_factory=dict[AbsPath, Debt])
    """What that is about."""
    on_late: Callable[[], None] | None = None
    """Called when that has ended, for clients that can be told at any time."""

    def call(self, *, counts: bool) -> int:
        """The number of the call that an event belongs to."""
        self.state.calls += counts
        return self.state.calls + (not counts)
