"""All hosts by name: each is one module of this folder, imported when it is asked for.

A module is named as its host, with underscores, and has a `HOST`: the dialect of its hook, the files that `setup`
writes, how to try them, and in its docstring what is known of the host. A new host is a new module, and nothing else;
one that only reads the name of our MCP server is a row of `mcp_only` and a name in `MCP_ONLY`.
"""

import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from pilotfish.errors import Code, Refused

if TYPE_CHECKING:
    # The daemon starts without them.
    from pilotfish.hosts.shared.host_spec import HostSpec
    from pilotfish.hosts.shared.tool_hooks import HostDialect

PLAIN = "plain"
"""The dialect of scripts, which is no host's."""

OTHER_MODULES = frozenset({"__init__", "registry", "mcp_only"})

MCP_ONLY = ("continue-dev", "junie", "roo-code", "zed")
"""The rows of `mcp_only`: their names are wanted where it is not imported."""


@cache
def host_names() -> tuple[str, ...]:
    """All of them, in the order of the alphabet."""
    modules = (name.removesuffix(".py") for name in os.listdir(os.path.dirname(__file__)) if name.endswith(".py"))
    return tuple(sorted((*(name.replace("_", "-") for name in modules if name not in OTHER_MODULES), *MCP_ONLY)))


def load_host(name: str) -> "HostSpec":
    """One host; raises `Refused` when there is none of that name."""
    if name not in host_names():
        raise unknown_host(name)
    from msgspec.structs import replace

    if name in MCP_ONLY:
        return replace(import_module("pilotfish.hosts.mcp_only").HOSTS[name], name=name)
    return replace(import_module(f"pilotfish.hosts.{name.replace('-', '_')}").HOST, name=name)


def load_hosts() -> "Mapping[str, HostSpec]":
    return {name: load_host(name) for name in host_names()}


def dialect_of(name: str) -> "HostDialect":
    """What the hook of a host speaks; raises `Refused` for a host without a hook."""
    if name == PLAIN:
        return import_module("pilotfish.hosts.shared.plain").DIALECT
    host = load_host(name)
    if host.dialect is None:
        raise Refused(Code.INVALID_INPUT, f"{host.title} has no hook after an edit")
    return host.dialect


def unknown_host(name: str) -> Refused:
    """The refusal of a name, with the host that was probably meant."""
    import difflib

    near = [known for known in host_names() if known.startswith(name) or name.startswith(known)] if name else []
    near = near or difflib.get_close_matches(name, host_names(), n=1)
    meant = f"Did you mean {near[0]}? " if near else ""
    known = ", ".join(host_names())
    return Refused(Code.INVALID_INPUT, f"no host is called {name!r}", hint=f"{meant}Known hosts: {known}.")
