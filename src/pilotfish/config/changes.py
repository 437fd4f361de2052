"""What lies between two configurations: who must be told, who must be started anew, who must go (CFG-10, F80). Pure.

Every change of a server's entry clears its back-off. A change of trust concerns them all: which binaries count and
which restrictions hold is decided again for each.
"""

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from pilotfish.config.values import Config, ServerConfig


class Effect(StrEnum):
    """What a change of one server's entry asks for, mildest first."""

    ADJUST = "adjust"
    """Our own limits: nothing to send."""
    NOTIFY = "notify"
    """`workspace/didChangeConfiguration`."""
    RESTART = "restart"
    """Drain, stop, start anew."""
    ADD = "add"
    STOP = "stop"


EFFECTS: Mapping[str, Effect] = {
    "settings": Effect.NOTIFY,
    "timing": Effect.ADJUST,
    "restart": Effect.ADJUST,
    "withheld": Effect.ADJUST,
}
"""By field of `ServerConfig`; every other field restarts the server."""

SEVERITY = tuple(Effect)


class Changes(Struct, frozen=True):
    """The difference, by server id; servers that stay as they are do not appear."""

    servers: Mapping[str, Effect]
    trust: bool
    general: bool
    """Something that is no server's own: timing, feedback, the pool, the tools, on or off."""


def changes(old: Config, new: Config) -> Changes:
    """What it takes to get from `old` to `new`."""
    before, after = _running(old), _running(new)
    effects = {server: _effect(before.get(server), after.get(server)) for server in sorted({*before, *after})}
    return Changes(
        servers={server: effect for server, effect in effects.items() if effect is not None},
        trust=old.trusted != new.trusted,
        general=_general(old) != _general(new),
    )


def fingerprint(server: ServerConfig) -> str:
    """The same for two entries exactly when one process may serve both (REG-4)."""
    kept = {name: value for name, value in asdict(server).items() if EFFECTS.get(name) is not Effect.ADJUST}
    return hashlib.sha256(json.dumps(msgspec.to_builtins(kept), sort_keys=True).encode()).hexdigest()


def _running(config: Config) -> dict[str, ServerConfig]:
    return {id_: server for id_, server in config.servers.items() if not server.disabled}


def _effect(old: ServerConfig | None, new: ServerConfig | None) -> Effect | None:
    if new is None:
        return Effect.STOP
    if old is None:
        return Effect.ADD
    changed = [name for name in new.__struct_fields__ if getattr(old, name) != getattr(new, name)]
    return max((EFFECTS.get(name, Effect.RESTART) for name in changed), key=SEVERITY.index, default=None)


def _general(config: Config) -> tuple[object, ...]:
    tools = (config.navigation_tools, config.mcp_tools)
    return (config.enabled, config.timing, config.feedback, config.pool, config.security, *tools)
