"""What can go wrong, in four kinds by who must act.

Who must act: `Refused` the caller, `Unavailable` no one yet, `ServerFailed` the language server, `Bug` we.
The set is closed: a surface maps the kind and the `Code`, and never parses the message.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar


class Code(StrEnum):
    """The stable names of failures; they reach envelopes, logs and tests."""

    SERVER_MISSING = "server_missing"
    SERVER_START_FAILED = "server_start_failed"
    INIT_TIMEOUT = "init_timeout"
    SERVER_CRASHED = "server_crashed"
    SERVER_HUNG = "server_hung"
    SERVER_ERROR = "server_error"
    PROTOCOL_ERROR = "protocol_error"
    REQUEST_TIMEOUT = "ETIMEDOUT"
    CANCELLED = "cancelled"
    UNSUPPORTED = "unsupported"
    UNTRUSTED = "untrusted"
    OVERLOADED = "overloaded"
    LIMIT_EXCEEDED = "limit_exceeded"
    ROOT_GONE = "root_gone"
    SHUTTING_DOWN = "shutting_down"
    UPGRADE = "upgrade"
    CRASH_LOOP = "crash_loop"
    INVALID_INPUT = "invalid_input"
    INVALID_CONFIG = "invalid_config"
    AMBIGUOUS = "ambiguous"
    NOT_FOUND = "not_found"
    FILE_MISSING = "file_missing"
    FILE_UNREADABLE = "file_unreadable"
    NOT_A_FILE = "not_a_file"
    OUTSIDE_WORKSPACE = "outside_workspace"
    EXTERNAL = "external"
    PROTECTED = "protected"
    STALE = "stale"
    NEEDS_CONFIRMATION = "needs_confirmation"
    BUG = "bug"


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a failure happened: enough for a person to find the process and for an agent to name the server."""

    server: str | None = None
    root: str | None = None
    pid: int | None = None
    phase: str | None = None
    stderr: tuple[str, ...] = field(default=())


class Failure(Exception):
    """Abstract base of the four kinds."""

    exit_code: ClassVar[int]

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        hint: str | None = None,
        scene: Scene | None = None,
        retry_at: float | None = None,
        rpc_code: int | None = None,
    ) -> None:
        if type(self) is Failure:
            raise TypeError("raise one of the four kinds, not Failure itself")
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.scene = scene or Scene()
        self.retry_at = retry_at
        """Of `Unavailable`: when (monotonic) asking again makes sense, if that is known."""
        self.rpc_code = rpc_code
        """Of `ServerFailed`: its own error code, where it gave one."""


class Refused(Failure):
    """The caller asked for something that we will not do; asking again the same way gives the same answer."""

    exit_code = 3


class Unavailable(Failure):
    """Nothing can answer now."""

    exit_code = 2


class ServerFailed(Failure):
    """The language server crashed, hung, lied or said no."""

    exit_code = 2


class Bug(Failure):
    """We broke our own rule. The message is for an issue report."""

    exit_code = 2

    def __init__(self, message: str, *, scene: Scene | None = None) -> None:
        super().__init__(Code.BUG, message, hint="This is a fault in pilotfish: please report it.", scene=scene)
