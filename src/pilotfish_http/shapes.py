"""What HTTP clients send and get. The OpenAPI document is made from these types.

The shapes of a conversation are those of Dispatch, word for word; the rest is `api`'s.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from pilotfish.api.answers import Api
from pilotfish.api.status import DayTotals, FeedbackShown, FileReport, QuestionShown, ServerRow

MAX_ID = 200
ID = r"^[A-Za-z0-9_-][A-Za-z0-9_.:@~+=-]*$"
"""Of a conversation: whatever hosts use as such, and nothing that a path or a log could trip over."""

MAX_PATH = 4096

ABSOLUTE = r"^/[^\x00]*$"
FolderPath = Annotated[str, Meta(pattern=ABSOLUTE, max_length=MAX_PATH, description="An absolute path.")]


class Trouble(Api, frozen=True):
    """Every answer that is none: what is wrong, a stable name for it, and what to do."""

    error: str
    code: str
    hint: str | None = None


# --- Conversations ------------------------------------------------------------------------------------------------


class Move(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a conversation works from now on."""

    cwd: FolderPath


class Whereabouts(Struct, frozen=True, rename="camel"):
    """Where a conversation works; null when nobody has said."""

    conversation_id: str
    cwd: str | None


LoadedState = Literal["connected", "starting", "error", "not-started"]


class LoadedServer(Api, frozen=True, kw_only=True):
    """One server at one root."""

    id: str
    name: str
    root: str
    extensions: tuple[str, ...]
    state: LoadedState
    error: str | None = None


class AskedFrom(Api, frozen=True, kw_only=True):
    """The part of a question that is not the operation's own."""

    cwd: FolderPath | None = None
    """Where the conversation works from now on; without it, where it worked before."""


class LoadedServers(Struct, frozen=True, rename="camel"):
    """The servers of a conversation: those that run, that its files would start, and that are configured.

    A server that may not run for want of trust is there, too, with the reason as its error.
    """

    conversation_id: str
    cwd: str | None
    servers: tuple[LoadedServer, ...]
    connected: bool = False
    """Whether any of them runs."""


class NamedServer(Struct, frozen=True, forbid_unknown_fields=True):
    """A server of a workspace that some client is connected for."""

    root: FolderPath
    server: str


class ServerLog(Api, frozen=True, kw_only=True):
    """What a server wrote last: its standard error, then its log messages, for each root."""

    lines: tuple[str, ...]


# --- Everything at one moment -------------------------------------------------------------------------------------


class SessionShown(Api, frozen=True, kw_only=True):
    """A client session, for people."""

    session: str
    host: str | None = None
    conversation: str | None = None
    started_at: int
    """Milliseconds since the epoch."""
    attached: bool
    """Whether a connection carries it; hooks and the HTTP API have none between two calls."""
    told: int = 0
    """Files that it heard of; the other counts are as in `pilotfish status --json`."""
    pending: int = 0
    late: int = 0
    dropped: dict[str, int] = field(default_factory=dict[str, int])


class WorkspaceState(Api, frozen=True, kw_only=True):
    root: str
    conversations: tuple[SessionShown, ...]
    servers: tuple[ServerRow, ...]
    """Those that run or ran, and those that the user has configured."""
    files: tuple[FileReport, ...] = ()
    more_files: int = 0
    """How many are left out."""
    warnings: tuple[str, ...] = ()
    today: DayTotals = DayTotals()


class Everything(Api, frozen=True, kw_only=True):
    """The daemon at one moment. Reading it changes nothing."""

    generated_at: int
    pid: int
    uptime_ms: int
    workspaces: tuple[WorkspaceState, ...]
    feedback: tuple[FeedbackShown, ...] = ()
    """The newest first."""
    questions: tuple[QuestionShown, ...] = ()
    """The newest first."""
    notices: tuple[str, ...] = ()
