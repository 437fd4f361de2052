"""The configuration in force: from the merged layers to a `Config`, and the rules that concern several files.

`Config` is a value, frozen and complete (every default filled in): a reload makes another one.
"""

import difflib
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import asdict, fields

from pilotfish.config.gate import GatedValue
from pilotfish.config.merge import ConfigSource, EqualValues, Layer, Merged, ValueOrigin
from pilotfish.config.problems import Problem, ProblemGrade, path_text, shown
from pilotfish.config.schema import (
    HOST_RESTART,
    FeedbackSettings,
    PoolSettings,
    RestartPolicy,
    SecuritySettings,
    ServerEntry,
    TimingSettings,
)
from pilotfish.config.trust import Trust, Trusted
from pilotfish.config.validation import validated
from pilotfish.model import AbsPath

OUR_OWN = frozenset({"timeouts", "timing", "restart", "withheld"})
"""The fields of `ServerConfig` that the server's process never sees."""


class ServerConfig(ServerEntry, frozen=True, kw_only=True):
    """One server's entry, complete. `command` is empty when no file that we believe named one."""

    id: str
    restart: RestartPolicy = "backoff"
    timing: TimingSettings
    """Its own limits where it has some."""
    withheld: tuple[str, ...] = ()
    """What a project's file sets and is ignored for want of trust, as paths below the entry."""

    @property
    def fingerprint(self) -> str:
        """Equal for two entries exactly when one process may serve both (REG-4)."""
        seen = {name: value for name, value in asdict(self).items() if name not in OUR_OWN}
        return hashlib.sha256(json.dumps(msgspec.to_builtins(seen), sort_keys=True).encode()).hexdigest()


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
    start_ahead: bool
    navigation_tools: bool
    mcp_tools: Literal["named", "lsp"]
    mcp_structured: bool
    trust: Trust
    origins: Mapping[tuple[str, ...], ValueOrigin] = field(repr=False, compare=False)
    """The origin of each value, by its path in the merged file (`("lsp", "pyright", "command")`)."""

    @property
    def trusted(self) -> bool:
        return isinstance(self.trust, Trusted)

    @property
    def named(self) -> set[str]:
        """The servers whose command a file of the user or of the project says, or the host itself."""
        commands = {path[1]: origin for path, origin in self.origins.items() if path[::2] == ("lsp", "command")}
        return {server for server, origin in commands.items() if origin.source is not ConfigSource.CATALOGUE}

    @property
    def withholds(self) -> bool:
        """Whether the project's file may not say what runs."""
        return not isinstance(self.trust, Trusted) or self.trust.is_adopted


class Circumstances(Struct, frozen=True):
    """What decides besides the layers."""

    root: AbsPath
    host: str | None
    trust: Trust
    catalogue: Collection[str]
    """The ids that the catalogue knows."""
    withheld: Sequence[GatedValue]
    foreign: Collection[AbsPath] = ()
    """The files that are another host's, where nothing is an error."""


_servers: EqualValues[Mapping[str, ServerConfig]] = EqualValues(16)


def effective(merged: Merged, layers: Sequence[Layer], about: Circumstances) -> tuple[Config, tuple[Problem, ...]]:
    """The configuration, and what is wrong with its servers; a server that is incomplete is left out."""
    file = validated(merged.value)
    entries = file.lsp if isinstance(file.lsp, dict) else {}
    problems = {id_: found for id_, entry in entries.items() if (found := _incomplete(id_, entry, layers, about))}
    servers = {id_: _server(id_, entries[id_], file.timing, merged, about) for id_ in sorted(entries.keys() - problems)}
    config = Config(
        root=about.root,
        enabled=file.lsp is not False,
        servers=_servers.one(servers),
        timing=file.timing,
        feedback=file.feedback,
        pool=file.pool,
        security=file.security,
        start_ahead=file.start_ahead,
        navigation_tools=file.navigation_tools,
        mcp_tools=file.mcp.tools,
        mcp_structured=file.mcp.structured,
        trust=about.trust,
        origins=merged.origins,
    )
    return config, tuple(problems.values())


def _server(
    server: str, entry: ServerEntry, general: TimingSettings, merged: Merged, about: Circumstances
) -> ServerConfig:
    by_host = HOST_RESTART.get(about.host, "backoff")
    own: dict[str, Any] = {
        "id": server,
        "restart": by_host if entry.restart is UNSET else entry.restart,
        "timing": _server_timing(server, entry.timeouts, general, merged),
        "withheld": tuple(path_text(gated.path) for gated in about.withheld if gated.server == server),
    }
    return ServerConfig(**{**asdict(entry), **own})


def _server_timing(server: str, own: TimingSettings, general: TimingSettings, merged: Merged) -> TimingSettings:
    """The server's own limits where it has some; those of the catalogue may raise the general ones, not lower them."""
    limits: dict[str, int] = {}
    for limit in fields(TimingSettings):
        origin = merged.origins.get(("lsp", server, "timeouts", limit.encode_name))
        if origin is not None:
            least = getattr(general, limit.name) if origin.source is ConfigSource.CATALOGUE else 0
            limits[limit.name] = max(least, getattr(own, limit.name))
    return msgspec.structs.replace(general, **limits)


def _incomplete(server: str, entry: ServerEntry, layers: Sequence[Layer], about: Circumstances) -> Problem | None:
    """A server that is not in the catalogue needs a command and extensions, unless it is off or they were ignored."""
    missing = [key for key in ("command", "extensions") if not getattr(entry, key)]
    asked = {gated.path[0] for gated in about.withheld if gated.server == server}
    if server in about.catalogue or entry.disabled or not set(missing) - asked:
        return None
    near = difflib.get_close_matches(server, about.catalogue, n=1)
    file = _mentioned_in(server, layers)
    return Problem(
        ProblemGrade.NOTE if file in about.foreign else ProblemGrade.ERROR,
        file,
        ("lsp", server),
        f"the catalogue has no server {shown(server)}, and a custom one lacks {' and '.join(missing)}",
        accepted="an id of the catalogue, or a server with command and extensions",
        nearest=near[0] if near else None,
    )


def _mentioned_in(server: str, layers: Sequence[Layer]) -> str:
    def mentions(layer: Layer) -> bool:
        servers = layer.value.get("lsp")
        return isinstance(servers, dict) and server in servers

    return next((layer.origin.file for layer in reversed(layers) if layer.origin.file and mentions(layer)), "")
