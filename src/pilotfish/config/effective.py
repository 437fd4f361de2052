"""From the merged layers to the `Config` in force, and the rules that no single file can break."""

import difflib
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct
from msgspec.structs import asdict

from pilotfish.config.defaults import DEFAULT_RESTART, RESTART
from pilotfish.config.gate import GatedValue
from pilotfish.config.merge import Layer, Merged
from pilotfish.config.problems import Problem, ProblemGrade, path_text, shown
from pilotfish.config.sections import feedback_of, security_of, snake, value_of
from pilotfish.config.validation import typed
from pilotfish.config.values import (
    Config,
    ConfigSource,
    PoolSettings,
    RestartPolicy,
    ServerConfig,
    TimingSettings,
    Trust,
)
from pilotfish.model import AbsPath

if TYPE_CHECKING:
    from pilotfish.config.schema import Server


class Circumstances(Struct, frozen=True):
    """What else decides, besides the layers."""

    root: AbsPath
    host: str | None
    trust: Trust
    catalogue: Collection[str]
    """The ids that the catalogue knows."""
    withheld: Sequence[GatedValue]
    foreign: Collection[AbsPath] = ()
    """The files that are another host's, where nothing is an error."""


def effective(merged: Merged, layers: Sequence[Layer], about: Circumstances) -> tuple[Config, tuple[Problem, ...]]:
    """The configuration, and what is wrong with its servers; a server that cannot be one is left out."""
    valid = typed(merged.value)
    file = cast("Mapping[str, Any]", valid)  # the defaults below every layer make it complete
    entries = valid.get("lsp") or {}
    timing = value_of(TimingSettings, file["timing"])
    problems = {id_: found for id_ in entries if (found := _incomplete(id_, entries[id_], layers, about))}
    servers = {id_: _server(id_, entries[id_], timing, merged, about) for id_ in entries if id_ not in problems}
    config = Config(
        root=about.root,
        enabled=file.get("lsp") is not False,
        servers=dict(sorted(servers.items())),
        timing=timing,
        feedback=feedback_of(file["feedback"]),
        pool=value_of(PoolSettings, file["pool"]),
        security=security_of(file["security"]),
        navigation_tools=file["navigationTools"],
        mcp_tools=file["mcp"]["tools"],
        trust=about.trust,
        origins=merged.origins,
    )
    return config, tuple(problems.values())


def _server(
    server: str, entry: "Server", general: TimingSettings, merged: Merged, about: Circumstances
) -> ServerConfig:
    command, watch = entry.get("command"), entry.get("watch")
    return ServerConfig(
        id=server,
        disabled=entry.get("disabled", False),
        command=tuple(command) if command else None,
        extensions=tuple(entry.get("extensions", ())),
        env=entry.get("env", {}),
        initialization=entry.get("initialization", {}),
        settings=entry.get("settings", {}),
        roots=tuple(entry.get("roots", ())),
        language_id=entry.get("languageId", {}),
        watch=tuple(watch) if watch else None,
        restart=RestartPolicy(entry.get("restart", RESTART.get(about.host, DEFAULT_RESTART))),
        timing=_server_timing(server, entry, general, merged),
        withheld=tuple(path_text(gated.path) for gated in about.withheld if gated.server == server),
    )


def _server_timing(server: str, entry: "Server", general: TimingSettings, merged: Merged) -> TimingSettings:
    """The server's own limits where it has some; those of the catalogue may raise the general ones, not lower them."""
    own = cast("Mapping[str, int]", entry.get("timeouts", {}))
    if not own:
        return general
    limits: dict[str, int] = asdict(general)
    for key, value in own.items():
        name = snake(key)
        from_catalogue = merged.origins["lsp", server, "timeouts", key].source is ConfigSource.CATALOGUE
        limits[name] = max(limits[name], value) if from_catalogue else value
    return TimingSettings(**limits)


def _incomplete(server: str, entry: "Server", layers: Sequence[Layer], about: Circumstances) -> Problem | None:
    """A server that the catalogue does not know must say what it is, unless it is off or was not believed."""
    missing = [key for key in ("command", "extensions") if key not in entry]
    asked = {gated.path[0] for gated in about.withheld if gated.server == server}
    if server in about.catalogue or entry.get("disabled") or not set(missing) - asked:
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
