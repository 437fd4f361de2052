"""What a person looks at: all servers at one moment, one in detail, and what was counted. Shapes, as in `api`."""

from typing import Literal

from msgspec import field

from pilotfish.api.answers import Api, Feedback, SeverityWord, State

# --- The snapshot ----------------------------------------------------------------------------------------------------


class BrokenState(Api, frozen=True):
    attempts: int
    retry_at: int
    """Milliseconds since the epoch."""
    last_error: str


class Counts(Api, frozen=True):
    error: int
    warning: int
    info: int
    hint: int
    total: int


class WatchState(Api, frozen=True):
    """How changes on disk below a root are noticed. Degraded: some folders are polled, or not looked at."""

    state: Literal["ok", "degraded"]
    reason: str | None = None
    watched: int = 0
    polled: int = 0
    overflows: int = 0


class SidecarRow(Api, frozen=True):
    """What runs beside a server. Without `pid` it does not run, and `reason` says why."""

    pid: int | None = None
    starts: int = 0
    reason: str | None = None
    stderr: tuple[str, ...] = ()


class Instance(Api, frozen=True, kw_only=True):
    """One server at one root, whether it runs or not. What is not known, or not so, is absent."""

    root: str
    state: Literal["starting", "active", "stopping", "idle", "broken"]
    pid: int | None = None
    memory_mib: float | None = None
    """Of the whole process tree; absent where nobody measured."""
    shared_with: tuple[str, ...] = ()
    """The other worktrees that take turns at the same process."""
    rested: str | None = None
    """Why it was stopped, where it may come back."""
    uptime_ms: int | None = None
    last_latency_ms: int | None = None
    """How long its last answer took."""
    last_error: str | None = None
    """Why it last failed, even if it runs again."""
    restarts: int = 0
    sessions: int = 0
    """Client sessions that use it."""
    documents: int = 0
    """Files that are open at it."""
    busy: tuple[str, ...] = ()
    """What it says that it is working on."""
    watching: WatchState | None = None
    confined: tuple[str, ...] = ()
    """What the system holds it to, because the workspace is not trusted: `privileges`, `files`, `network`."""


class ServerRow(Api, frozen=True):
    """One known or configured server."""

    server_id: str
    source: Literal["builtin", "global", "project", "merged"]
    disabled: bool
    extensions: tuple[str, ...]
    configured_roots: tuple[str, ...]
    connected_roots: tuple[str, ...]
    spawning_roots: tuple[str, ...]
    broken: BrokenState | None = None
    diagnostics: Counts | None = None
    last_seen_at: int | None = None
    watching: WatchState | None = None
    """Of several roots, the one with the most trouble."""
    sidecars: tuple[SidecarRow, ...] = ()
    unavailable: str | None = None
    """Why it could not be started: its program is not there, or may not run here."""
    instances: tuple[Instance, ...] = ()
    """By root."""


class ProcessRow(Api, frozen=True, kw_only=True):
    """One server that runs, or one at rest, of any project of the user."""

    server_id: str
    roots: tuple[str, ...]
    """The worktrees that take turns at it; most have one."""
    memory_mib: float | None = None
    rested: str | None = None


class Totals(Api, frozen=True):
    configured: int
    connected: int
    spawning: int
    broken: int
    disabled: int
    unavailable: int = 0


class ConversationRow(Api, frozen=True, kw_only=True):
    """What one conversation was told, and what it has still to be told: files, counted."""

    session: str
    host: str | None = None
    root: str = ""
    calls: int = 0
    told: int = 0
    pending: int = 0
    """Checks that did not end in time and go on."""
    late: int = 0
    """Found since, to be told with its next event."""
    dropped: dict[str, int] = field(default_factory=dict[str, int])
    """Never told, by reason."""


class Snapshot(Api, frozen=True):
    """All servers at one moment, as the panel shows them."""

    generated_at: int
    rows: tuple[ServerRow, ...]
    totals: Totals
    root: str = ""
    """The workspace."""
    trusted: bool = False
    disabled: str | None = None
    """Why nothing is started here at all."""
    warnings: tuple[str, ...] = ()
    """What is wrong with the configuration, and what an untrusted project does not get."""
    conversations: tuple[ConversationRow, ...] = ()
    processes: tuple[ProcessRow, ...] = ()
    """Of all projects: what the memory is used for."""
    memory_limit_mib: float | None = None
    """Of all servers together."""


# --- What else is looked at ------------------------------------------------------------------------------------------


class Exchange(Api, frozen=True, kw_only=True):
    """One request to a server that has ended, without its content."""

    method: str
    asked_at: int
    """Milliseconds since the epoch."""
    duration_ms: int
    end: Literal["answered", "failed", "given up"]


class InstanceDetails(Api, frozen=True, kw_only=True):
    """What is too much for a snapshot: read when a person looks at one server."""

    root: str
    program: str = ""
    """Name and version as the server says them."""
    stderr: tuple[str, ...] = ()
    """Its last words on standard error, of the last run if it does not run now."""
    messages: tuple[str, ...] = ()
    """What it logged by way of the protocol, newest last."""
    documents: tuple[str, ...] = ()
    """Open files, the most recently used first."""
    diagnostics: dict[str, int] = field(default_factory=dict[str, int])
    """How many there are, by file."""
    exchanges: tuple[Exchange, ...] = ()
    """Newest last."""


class Latencies(Api, frozen=True, kw_only=True):
    """Of the last thousand times something was done, how long it took."""

    name: str
    count: int
    """Of all times."""
    p50_ms: int
    p95_ms: int


class ServerStats(Api, frozen=True, kw_only=True):
    server_id: str
    starts: int = 0
    failures: dict[str, int] = field(default_factory=dict[str, int])
    """By code: `server_crashed`, `init_timeout` and so on."""
    checks: int = 0
    time_outs: int = 0
    diagnostics: int = 0
    """That its checks found, of all of them together."""
    memory_mib: float | None = None


class Stats(Api, frozen=True, kw_only=True):
    """What was counted since the service was started. It stays on this machine."""

    uptime_ms: int
    operations: tuple[Latencies, ...] = ()
    checks: tuple[Latencies, ...] = ()
    """By server."""
    servers: tuple[ServerStats, ...] = ()
    memory_mib: float | None = None
    """Of this process, without the servers."""


class Restarted(Api, frozen=True, kw_only=True):
    """What became of a server at one root: it runs again, or why not."""

    root: str
    pid: int | None = None
    duration_ms: int = 0
    error: str | None = None


# --- What agents were told --------------------------------------------------------------------------------------------


class Said(Api, frozen=True, kw_only=True):
    """What a server said last about a place, in its own units: for people, and no verdict."""

    line: int
    severity: SeverityWord
    message: str
    server: str


class FileReport(Api, frozen=True, kw_only=True):
    path: str
    diagnostics: tuple[Said, ...]
    counts: Counts
    """Of all, also of those that are left out."""
    more: int = 0
    """How many are left out."""
    outdated: bool = False
    """Whether something was changed since that may have mended them."""


class ChangedLines(Api, frozen=True, kw_only=True):
    """Lines of a file before and after an edit; `more` of either are left out."""

    path: str
    line: int
    """The first of the new ones, from 1."""
    old: tuple[str, ...]
    new: tuple[str, ...]
    more: int = 0


class FeedbackShown(Api, frozen=True, kw_only=True):
    """What an agent was shown after an edit."""

    at: int
    """Milliseconds since the epoch."""
    root: str
    host: str | None = None
    session: str = ""
    conversation: str | None = None
    """Absent when its session has ended."""
    paths: tuple[str, ...]
    feedback: Feedback
    changes: tuple[ChangedLines, ...] = ()
    """What the edit changed, where the text before it is known."""


class QuestionShown(Api, frozen=True, kw_only=True):
    """What an agent asked, and how it was answered."""

    at: int
    """Milliseconds since the epoch."""
    root: str
    host: str | None = None
    session: str = ""
    conversation: str | None = None
    operation: str
    about: str = ""
    """The place, the symbol or the words."""
    state: State
    duration_ms: int
    results: int | None = None
    """Of a list."""


class DayTotals(Api, frozen=True):
    """Of one project since midnight."""

    edits: int = 0
    told: int = 0
    """Edits after which there was something to tell."""
    introduced: int = 0
    fixed: int = 0
    saved_ms: int = 0
    """Less waiting than if each answer had taken as long as the first, for which the servers were started."""


class Activity(Api, frozen=True, kw_only=True):
    """The diagnostics of a workspace and what its agents were told, the newest first."""

    files: tuple[FileReport, ...] = ()
    more_files: int = 0
    feedback: tuple[FeedbackShown, ...] = ()
