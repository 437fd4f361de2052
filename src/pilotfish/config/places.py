"""Where the user's folders are, and which files may hold a configuration, ours and those of other hosts.

The folders are decided from the environment once, by the composition root. Of the files, ours come first; only where
there is none is another host's read: of the user, the one of the host that is asking; of a project, the first that
says something about language servers. `config.sheets` knows what is in them.
"""

import os
import sys
from collections.abc import Iterator, Mapping

from msgspec import Struct

from pilotfish.model import AbsPath


class Places(Struct, frozen=True):
    home: AbsPath
    config: AbsPath  # `XDG_CONFIG_HOME`: every program has its own folder below
    state: AbsPath  # Our own state; `PILOTFISH_HOME` moves all of it

    @property
    def global_file(self) -> AbsPath:
        return AbsPath(os.path.join(self.config, "pilotfish", "lsp.json"))

    @property
    def pins(self) -> AbsPath:
        return AbsPath(os.path.join(self.state, "trust"))

    @property
    def shown(self) -> AbsPath:
        """The folder of what a terminal has shown, see `config.trust`."""
        return AbsPath(os.path.join(self.state, "shown"))

    @property
    def journals(self) -> AbsPath:
        return AbsPath(os.path.join(self.state, "journal"))

    @property
    def store(self) -> AbsPath:
        return AbsPath(os.path.join(self.state, "store.sqlite"))


def user_places(environment: Mapping[str, str]) -> Places:
    """The folders that `environment` names; relative names are ignored, as the XDG specification asks."""
    windows = sys.platform == "win32"
    # On Windows `HOME` is what a shell of another system means by it: `/c/Users/me`.
    home = _absolute(environment.get("USERPROFILE" if windows else "HOME")) or os.path.expanduser("~")
    config = _absolute(environment.get("XDG_CONFIG_HOME")) or os.path.join(home, ".config")
    usual = os.path.join(home, *(("AppData", "Local") if windows else (".local", "state")))
    state = _absolute(environment.get("LOCALAPPDATA" if windows else "XDG_STATE_HOME")) or usual
    own = environment.get("PILOTFISH_HOME")
    return Places(
        home=AbsPath(os.path.normpath(home)),
        config=AbsPath(os.path.normpath(config)),
        state=AbsPath(os.path.abspath(own) if own else os.path.join(state, "pilotfish")),
    )


def _absolute(path: str | None) -> str | None:
    return path if path and os.path.isabs(path) else None


# --- Config files -------------------------------------------------------------------------------------------------

PROJECT_FILE = ".pilotfish/lsp.json"


class ConfigDialect(Struct, frozen=True):
    """Where one host keeps its language servers, and under which keys."""

    host: str
    project_files: tuple[str, ...]
    global_files: tuple[str, ...] = ()  # `~` is the home folder, `$CONFIG` the folder that `XDG_CONFIG_HOME` names
    section: str | None = None  # The key of the section about language servers; None when the whole file is about them
    servers: tuple[str, ...] = ("servers",)
    """The keys of the section that hold servers; empty when the section itself holds them."""
    switch: str | None = None  # The key of the section that turns everything off when it is false
    false_is_off: bool = True  # Whether `false` turns Pilotfish off, and not only the host's own servers


CONFIG_DIALECTS = (
    ConfigDialect("pi", (".pi/lsp.json",), ("~/.pi/agent/lsp.json",), servers=("lsp", "servers")),
    ConfigDialect("dispatch", (".dispatch/lsp.json",), servers=("servers", "lsp")),
    ConfigDialect(
        "llxprt",
        (".llxprt/settings.json",),
        ("~/.llxprt/settings.json", "$CONFIG/llxprt-code/settings.json"),
        section="lsp",
    ),
    # OpenCode's own servers are off by default and are best left off beside ours, so `false` does not mean Pilotfish.
    ConfigDialect(
        "opencode",
        ("opencode.json", "opencode.jsonc"),
        ("$CONFIG/opencode/opencode.json", "$CONFIG/opencode/opencode.jsonc"),
        section="lsp",
        servers=(),
        false_is_off=False,
    ),
    ConfigDialect("opta", (".opta/config.json",), ("$CONFIG/opta/config.json",), section="lsp", switch="enabled"),
)
"""In the order in which a project is searched for their files."""


def user_files(places: Places, host: str | None) -> Iterator[tuple[ConfigDialect | None, AbsPath]]:
    """Every file that may hold the user's configuration, first choice first."""
    yield None, places.global_file
    for dialect in CONFIG_DIALECTS:
        for pattern in dialect.global_files if dialect.host == host else ():
            yield dialect, AbsPath(pattern.replace("~", places.home, 1).replace("$CONFIG", places.config, 1))


def project_files() -> Iterator[tuple[ConfigDialect | None, str]]:
    """Every file that may hold a project's configuration, relative to the project, first choice first."""
    yield None, PROJECT_FILE
    for dialect in CONFIG_DIALECTS:
        for name in dialect.project_files:
            yield dialect, name
