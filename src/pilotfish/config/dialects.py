"""Which files may hold a configuration, ours and those of other hosts, and in which order they are looked for. Data.

Ours comes first; only where there is none is another host's read: of the user, the one of the host that is asking; of a
project, the first that says something about language servers. `config.foreign` knows what stands in them.
"""

from collections.abc import Iterator

from msgspec import Struct

from pilotfish.config.places import Places
from pilotfish.model import AbsPath

PROJECT_FILE = ".pilotfish/lsp.json"


class ConfigDialect(Struct, frozen=True):
    """Where one host keeps its language servers."""

    host: str
    project_files: tuple[str, ...]
    global_files: tuple[str, ...] = ()
    """`~` is the home folder, `$CONFIG` the folder that `XDG_CONFIG_HOME` names."""
    section: str | None = None
    """The key that holds everything; None when the file has no other purpose."""
    servers: tuple[str, ...] = ("servers",)
    """The keys of the section that hold servers; none when the section is the servers."""
    false_is_off: bool = True
    """Whether `false` turns us off, and not only the host's own servers."""


CONFIG_DIALECTS = (
    ConfigDialect("pi", (".pi/lsp.json",), ("~/.pi/agent/lsp.json",), servers=("lsp", "servers")),
    ConfigDialect("dispatch", (".dispatch/lsp.json",), servers=("servers", "lsp")),
    ConfigDialect(
        "llxprt",
        (".llxprt/settings.json",),
        ("~/.llxprt/settings.json", "$CONFIG/llxprt-code/settings.json"),
        section="lsp",
    ),
    # OpenCode's own servers are off by default and are best left off beside ours, so `false` says nothing about us.
    ConfigDialect(
        "opencode",
        ("opencode.json", "opencode.jsonc"),
        ("$CONFIG/opencode/opencode.json", "$CONFIG/opencode/opencode.jsonc"),
        section="lsp",
        servers=(),
        false_is_off=False,
    ),
)
"""In the order in which a project's files are looked for."""


def user_files(places: Places, host: str | None) -> Iterator[tuple[ConfigDialect | None, AbsPath]]:
    """Every file that may speak for the user, first choice first."""
    yield None, places.global_file
    for dialect in CONFIG_DIALECTS:
        for pattern in dialect.global_files if dialect.host == host else ():
            yield dialect, AbsPath(pattern.replace("~", places.home, 1).replace("$CONFIG", places.config, 1))


def project_files() -> Iterator[tuple[ConfigDialect | None, str]]:
    """Every file that may speak for a project, relative to it, first choice first."""
    yield None, PROJECT_FILE
    for dialect in CONFIG_DIALECTS:
        for name in dialect.project_files:
            yield dialect, name
