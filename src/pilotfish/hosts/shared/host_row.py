"""What setup knows of a host: the files that it reads, and what each of them gets."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pilotfish.hosts.edits.edit import Edit
from pilotfish.hosts.shared.programs import Programs

Scope = Literal["global", "project"]

Way = Literal["command", "mcp"]
"""How a host calls us after an edit: it starts the hook program, or asks a tool of our MCP server."""


Probe = Literal["hook", "lint", "mcp", "daemon"]


@dataclass(frozen=True, slots=True)
class Where:
    """Whose files: those of the user, or those of one project."""

    scope: Scope
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

    def folder(self, ours: str, variable: str = "", project: str = "") -> "Folder":
        """A host's folder: the project's; or the one that a variable names; or `ours`, below the home folder."""
        if not self.is_global:
            return Folder(os.path.join(self.root, project), self.root)
        named = self.environment.get(variable) if variable else None
        if named and os.path.isabs(named):
            return Folder(os.path.normpath(named), os.path.normpath(named))
        path = os.path.normpath(os.path.join(self.home, ours))
        is_inside = os.path.commonpath([path, self.home]) == self.home
        return Folder(path, self.home if is_inside else self.config)

    def below_config(self, name: str, variable: str = "", project: str = "") -> "Folder":
        """The same for a host whose folder is below `XDG_CONFIG_HOME`."""
        return self.folder(os.path.join(self.config, name), variable, project)


@dataclass(frozen=True, slots=True)
class Folder:
    path: str
    within: str
    """What no link may lead out of."""

    def gets(self, name: str, edit: Edit, **more: bool) -> "Wiring":
        return Wiring(os.path.normpath(os.path.join(self.path, name)), self.within, edit, **more)

    def first(self, *names: str) -> str:
        """The first of these files that is there; else the first."""
        return next((name for name in names if os.path.lexists(os.path.join(self.path, name))), names[0])


@dataclass(frozen=True, slots=True)
class Wiring:
    """One file, and what it gets."""

    path: str
    within: str
    edit: Edit
    executable: bool = False
    optional: bool = False
    """Where a file of somebody else is in the way, we do without."""


@dataclass(frozen=True, slots=True)
class HostRow:
    name: str
    title: str
    wirings: Callable[[Where], tuple[Wiring, ...]]
    programs: tuple[str, ...]
    """What its command is called: how `--all` knows that it is there."""
    folders: tuple[str, ...]
    """Below the home folder; the other sign that it is there."""
    probes: tuple[Probe, ...] = ("hook", "mcp")
    """What it starts, and what can therefore be tried."""
    scopes: tuple[Scope, ...] = ("global", "project")
    afterwards: tuple[str, ...] = ()
    """What is left to the person."""
    unseen: str = ""
    """What else has to be so, and cannot be seen from here."""
    cautions: Mapping[str, Callable[[Where], bool]] = field(default_factory=dict[str, Callable[[Where], bool]])
    """What to say when something is so."""
