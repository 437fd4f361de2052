"""What is known of a host: the dialect of its hook, the files that it reads, and what `setup` writes into each."""

import os
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

from pilotfish.hosts.edits.edit import Edit
from pilotfish.hosts.shared.programs import Programs
from pilotfish.hosts.shared.tool_hooks import HostDialect

SetupScope = Literal["global", "project"]

Way = Literal["command", "mcp", "lsp"]
"""How a host calls us after an edit: it starts the hook program, calls a tool of our MCP server, or tells its own LSP
client, for which we are a language server. Never in two ways at once: its model would read everything twice."""

Probe = Literal["hook", "lint", "mcp", "lsp", "daemon"]

SESSION_EVENTS = (
    '{"hook_event_name":"SessionStart","session_id":"%s","cwd":"%s"}',
    '{"hook_event_name":"SessionEnd","session_id":"%s","cwd":"%s"}',
)
"""How most hosts say that a conversation begins and ends."""


class Where(Struct, frozen=True):
    """Whose files: those of the user, or those of one project."""

    scope: SetupScope
    home: str
    config: str
    """`XDG_CONFIG_HOME`."""
    root: str
    environment: Mapping[str, str]
    programs: Programs
    way: Way = "command"

    @property
    def is_global(self) -> bool:
        return self.scope == "global"

    def folder(self, name: str, variable: str = "", project: str = "") -> "HostFolder":
        """A host's folder: the project's; or the one that a variable names; or `name`, below the home folder."""
        if not self.is_global:
            return HostFolder(os.path.join(self.root, project), self.root)
        named = self.environment.get(variable) if variable else None
        if named and os.path.isabs(named):
            return HostFolder(os.path.normpath(named), os.path.normpath(named))
        path = os.path.normpath(os.path.join(self.home, name))
        is_inside = os.path.commonpath([path, self.home]) == self.home
        return HostFolder(path, self.home if is_inside else self.config)

    def below_config(self, name: str, variable: str = "", project: str = "") -> "HostFolder":
        """The same for a host whose folder is below `XDG_CONFIG_HOME`."""
        return self.folder(os.path.join(self.config, name), variable, project)


class HostFolder(Struct, frozen=True):
    path: str
    within: str
    """What no link may lead out of."""

    def file(self, name: str, edit: Edit, **more: bool) -> "WiredFile":
        return WiredFile(os.path.normpath(os.path.join(self.path, name)), self.within, edit, **more)

    def first(self, *names: str) -> str:
        """The first of these files that exists; else the first name."""
        return next((name for name in names if os.path.lexists(os.path.join(self.path, name))), names[0])


class WiredFile(Struct, frozen=True):
    """A file of a host, and what `setup` puts into it."""

    path: str
    within: str
    edit: Edit
    executable: bool = False
    optional: bool = False
    """Left out where a file of this name exists that is not ours."""


class HostSpec(Struct, frozen=True, kw_only=True):
    name: str = ""
    """As the registry has it."""
    title: str
    files: Callable[[Where], tuple[WiredFile, ...]]
    programs: tuple[str, ...]
    """Its commands: one on the PATH means that the host is installed."""
    folders: tuple[str, ...]
    """Below the home folder; the other sign that it is installed."""
    dialect: HostDialect | None = None
    """None: it runs nothing after an edit that could answer."""
    probes: tuple[Probe, ...] = ("hook", "mcp")
    """What it starts, and what can therefore be tried."""
    session_events: tuple[str, str] = SESSION_EVENTS
    """The begin and the end of a conversation, with places for its id and its folder: how its hook is tried."""
    ways: tuple[Way, ...] = ("command",)
    """Those that it knows, the usual one first."""
    scopes: tuple[SetupScope, ...] = ("global", "project")
    afterwards: tuple[str, ...] = ()
    """What the person still has to do."""
    by_lsp: str = ""
    """What its model is shown when it is wired by its LSP client, where that is less than in its usual way."""
    unseen: str = ""
    """What it also depends on and cannot be checked from outside."""
    missing: tuple[str, ...] = ()
    """What its model is not told or not given, though the files for it are written; for its page."""
    notice_key: str = ""
    """The member of an answer that it shows to the person, and to no model; empty where it has none."""
    tells: Literal["model", "person"] = "model"
    """Who reads what its hook answers."""
    cautions: Mapping[str, Callable[[Where], bool]] = {}
    """Warnings, each with the condition under which it is shown."""
