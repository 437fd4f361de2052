"""What is known of a host: the dialect of its hook, the files that it reads, and what `setup` writes into each.

The command lines in it are absolute, and independent of PATH and the current folder.
"""

import os
import shlex
import site
import sys
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

import pilotfish
from pilotfish.hosts.edits.edit import Edit
from pilotfish.hosts.shared.tool_hooks import HostDialect
from pilotfish.system.real_path import real_path
from pilotfish.system.windows import for_cmd

HOOK = ("surfaces", "hook.py")
"""Below the package. Hosts' files hold this path, so it does not change with our folders."""

LINT = ("hosts", "plugins", "aider_lint.py")


class Programs(Struct, frozen=True):
    interpreter: str
    """Not resolved: in a virtual environment it is a link, and the path of the link selects the environment."""
    hook_file: str
    lint_file: str
    isolated: bool
    """Whether the package is found without the user's site-packages (`-I`)."""
    home: str | None = None
    """`PILOTFISH_HOME`, where it is set: the host may not have it in its environment."""

    def hook(self, host: str) -> list[str]:
        """Without site-packages: the quickest start."""
        return [*self._at_home, self.interpreter, "-I", "-S", self.hook_file, host]

    @property
    def lint(self) -> list[str]:
        return [*self._at_home, self.interpreter, "-I", "-S", self.lint_file]

    @property
    def pilotfish(self) -> list[str]:
        return [self.interpreter, *(["-I"] if self.isolated else []), "-m", "pilotfish"]

    @property
    def mcp(self) -> list[str]:
        return [*self._at_home, *self.pilotfish, "mcp"]

    def lsp(self, host: str) -> list[str]:
        return [*self._at_home, *self.pilotfish, "lsp", "--host", host]

    @property
    def status(self) -> list[str]:
        return [*self._at_home, *self.pilotfish, "status"]

    @property
    def _at_home(self) -> list[str]:
        # Windows has no such program, and there a variable that a person sets is set for all programs.
        is_said = self.home is not None and sys.platform != "win32"
        return ["/usr/bin/env", f"PILOTFISH_HOME={self.home}"] if is_said else []


def installed_programs(environment: Mapping[str, str]) -> Programs:
    package = os.path.dirname(os.path.abspath(pilotfish.__file__))
    users = real_path(site.getusersitepackages())
    home = environment.get("PILOTFISH_HOME")
    scripts = [os.path.join(package, *HOOK), os.path.join(package, *LINT)]
    # The paths of the copies of an installation outlive its version of Python.
    copies = [os.path.join(sys.prefix, "share", "pilotfish", os.path.basename(script)) for script in scripts]
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site_packages = os.path.join(sys.prefix, "lib", version, "site-packages")
    is_installed = os.path.dirname(package) == site_packages and all(map(os.path.isfile, copies))
    return Programs(
        os.path.normpath(sys.executable),
        *(copies if is_installed else scripts),
        isolated=os.path.commonpath([real_path(package), users]) != users,
        home=os.path.abspath(home) if home else None,
    )


def shell(command: list[str], on_windows: Callable[[list[str]], str] = for_cmd) -> str:
    """For hosts that run it in a shell: on Windows that is `cmd`, as Node and Python start one, or what they say."""
    return on_windows(command) if sys.platform == "win32" else shlex.join(command)


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
    in_project: tuple[str, ...] = ()
    """The same where it is set up in a project."""
    by_lsp: str = ""
    """What its model is shown when it is wired by its LSP client, where that is less than in its usual way."""
    unseen: str = ""
    """What it also depends on and cannot be checked from outside."""
    missing: tuple[str, ...] = ()
    """What its model is not told or not given, though the files for it are written; for its page."""
    notice_key: str = ""
    """The member of an answer that it shows to the person, and to no model; empty where it has none."""
    tells: Literal["model", "person"] = "model"
    """Who reads what its hook answers; for its page."""
    cautions: Mapping[str, Callable[[Where], bool]] = {}
    """Warnings, each with the condition under which it is shown."""
