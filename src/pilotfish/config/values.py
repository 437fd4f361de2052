"""The configuration in force, as the layers above see it. Frozen, complete (every default filled in), free of pydantic.

`Config` is a value: a reload makes another one, and `config.changes` says what lies between the two.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from msgspec import Struct

from pilotfish.model import AbsPath, Severity
from pilotfish.protocol.wire import Json

TouchKind = Literal["edit", "write", "patch"]


class ConfigSource(StrEnum):
    """Who said a value, weakest first."""

    DEFAULT = "default"
    HOST = "host"
    CATALOGUE = "catalogue"
    GLOBAL = "global"
    PROJECT = "project"


class ValueOrigin(Struct, frozen=True):
    """Where one value comes from. `preset` names the preset that put it there."""

    source: ConfigSource
    file: AbsPath | None = None
    preset: str | None = None

    def __str__(self) -> str:
        file = f" {self.file}" if self.file else ""
        preset = f" (preset {self.preset})" if self.preset else ""
        return f"{self.source}{file}{preset}"


class Policy(StrEnum):
    """Whether a project's own file may say what runs."""

    TRUSTED_ONLY = "trusted-only"
    ALWAYS = "always"
    NEVER = "never"


class RestartPolicy(StrEnum):
    """What follows a crash."""

    BACKOFF = "backoff"
    NEVER = "never"


class TimingSettings(Struct, frozen=True):
    """Time limits in milliseconds."""

    initialize_timeout_ms: int
    request_timeout_ms: int
    diagnostics_wait_timeout_ms: int
    first_touch_timeout_ms: int


class FeedbackSettings(Struct, frozen=True):
    """What follows an edit. None means: no limit."""

    include_severities: tuple[Severity, ...]
    max_per_file: int
    max_other_files: int
    max_total_lines: int | None
    max_bytes: int | None
    other_files_order: Literal["path", "severity"]
    other_files_after: tuple[TouchKind, ...]
    """After which kinds of change other files than the changed ones are shown."""
    only_new: bool = False


class PoolSettings(Struct, frozen=True):
    """How long and how large servers may live. None means: no limit."""

    idle_minutes: int
    memory_mib_per_server: int | None
    memory_mib: int | None


class SecuritySettings(Struct, frozen=True):
    """The user's own rules; never read from a project."""

    project_config_policy: Policy
    trusted_project_roots: tuple[str, ...]
    allow_external_paths: bool


class Trusted(Struct, frozen=True):
    """What the workspace names may run."""

    why: str


class Untrusted(Struct, frozen=True):
    """Nothing that the workspace names may run."""

    why: str


class Stale(Struct, frozen=True):
    """It was approved, and what would run is not what was approved any more. Nothing of it may run."""

    why: str
    differences: tuple[str, ...]


Trust = Trusted | Untrusted | Stale


class ServerConfig(Struct, frozen=True):
    """One server's entry. `command` is None when nobody that we believe named one."""

    id: str
    disabled: bool
    command: tuple[str, ...] | None
    extensions: tuple[str, ...]
    env: Mapping[str, str]
    initialization: Mapping[str, Json]
    settings: Mapping[str, Json]
    roots: tuple[str, ...]
    language_id: Mapping[str, str]
    watch: tuple[str, ...] | None
    restart: RestartPolicy
    timing: TimingSettings
    withheld: tuple[str, ...] = ()
    """What a project's file said and was not believed, as paths below the entry (`settings.python.pythonPath`)."""


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that holds for one workspace under one host."""

    root: AbsPath
    """The workspace, symlinks resolved."""
    enabled: bool
    """False after `"lsp": false`: no server, no feedback, no tools."""
    servers: Mapping[str, ServerConfig]
    timing: TimingSettings
    feedback: FeedbackSettings
    pool: PoolSettings
    security: SecuritySettings
    navigation_tools: bool
    mcp_tools: Literal["named", "lsp"]
    trust: Trust
    origins: Mapping[tuple[str, ...], ValueOrigin] = field(repr=False, compare=False)
    """Who said each value, by its path in the merged file (`("lsp", "pyright", "command")`)."""

    @property
    def trusted(self) -> bool:
        return isinstance(self.trust, Trusted)
