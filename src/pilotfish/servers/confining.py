"""What a server may read and change that runs although nobody trusts the workspace: an allow-list (T35, T46).

It changes its own state, cache and temporary folder and nothing else. Of the user's home it reads the workspace, the
toolchains, its own configuration and the Python environment, as far as that is the user's and not the project's.
Nothing that a file of the project names is added here, or the project would choose what is read.
"""

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from tempfile import TemporaryDirectory, gettempdir

from msgspec import Struct

from pilotfish.config.places import Places
from pilotfish.model import AbsPath
from pilotfish.paths import ancestors, is_inside
from pilotfish.servers.environment import TOOLCHAIN_VARIABLES
from pilotfish.servers.spec import ServerSpec
from pilotfish.system import calls
from pilotfish.system.ownership import is_private, own_home
from pilotfish.system.ports import Confinement
from pilotfish.system.real_path import real_path

AT_HOME = (
    ".asdf", ".bun", ".cache/pypoetry/virtualenvs", ".cache/uv", ".cargo/bin", ".deno/bin", ".fnm", ".goenv",
    ".local/bin", ".local/lib", ".local/pipx", ".local/share/fnm", ".local/share/hatch", ".local/share/mise",
    ".local/share/pdm", ".local/share/pipx", ".local/share/pnpm", ".local/share/uv", ".local/share/virtualenvs",
    ".mise", ".nodenv", ".npm-global", ".npm-packages", ".nvm", ".pixi", ".pyenv", ".rbenv", ".rustup", ".rye",
    ".sdkman", ".virtualenvs", ".volta", "anaconda3", "go/pkg/mod", "mambaforge", "miniconda3", "miniforge3", "n",
)  # fmt: skip
"""Where toolchains and packages are in a home: no folder that also keeps a password or a token."""

SETTINGS_AT_HOME = (".clang-format", ".clang-tidy", ".editorconfig", ".shellcheckrc")
"""What people write for tools, and tools look for above the workspace."""

SETTINGS = ("go", "git/ignore", "git/attributes")
"""The same, in the folder of the user's configuration, besides that of the server itself."""

WITH_SECRETS = frozenset({"CARGO_HOME", "GRADLE_USER_HOME", "M2_HOME"})
"""Variables of toolchains whose folders keep tokens too."""

CACHES = frozenset({"DENO_DIR", "GOCACHE", "UV_CACHE_DIR", "ZIG_GLOBAL_CACHE_DIR"})
"""Variables that name caches: what a server of an untrusted project writes is never in one that others read."""

OWN_FOLDERS = {
    "TMPDIR": "temporary",
    "TEMP": "temporary",
    "TMP": "temporary",
    "XDG_CACHE_HOME": "cache",
    "XDG_STATE_HOME": "state",
}
"""Variables by which programs find a place to write, and the folder below the server's own."""


MAX_FOLDER_BYTES = 56
"""Of a server's own folder: a socket has 107 for its whole path, and that of Biome has 44 behind `cache`."""


class Computer(Struct, frozen=True):
    """Whose computer it is, and where the project is on it."""

    places: Places
    territory: tuple[AbsPath, ...]
    path: tuple[AbsPath, ...]  # Folders of programs

    @property
    def home(self) -> AbsPath:
        return AbsPath(real_path(self.places.home))

    @property
    def private(self) -> tuple[AbsPath, ...]:
        """Real folders of the user. A home that is itself inside the workspace is what the person has opened."""
        folders = (self.places.home, own_home(), self.places.config, self.places.state)
        real = dict.fromkeys(AbsPath(real_path(folder)) for folder in folders)
        return tuple(one for one in real if one != "/" and not any(is_inside(one, top) for top in self.territory))


def confinement(
    spec: ServerSpec,
    computer: Computer,
    environment: Mapping[str, str],
    *,
    own: AbsPath,
    programs: Iterable[AbsPath],
    packages: Iterable[AbsPath],
    network: bool,
) -> Confinement:
    """What a server is held to. `own` is its folder, `programs` are those that it consists of and may run."""
    places, home = computer.places, computer.home
    wanted = [
        *computer.territory,
        *packages,
        *(os.path.join(places.state, name) for name in ("tools", "pythons")),
        *(os.path.join(home, name) for name in (*AT_HOME, *SETTINGS_AT_HOME)),
        *(os.path.join(places.config, name) for name in (spec.id, *spec.command[:1], *SETTINGS)),
        *(place for folder in computer.path for place in _installation(folder, home)),
        *(place for program in (*programs, AbsPath(sys.executable)) for place in _program(program, home)),
        *_named(environment),
    ]
    real = dict.fromkeys(AbsPath(real_path(place)) for place in wanted)
    return Confinement(
        sealed=computer.territory,
        writable=(AbsPath(real_path(own)),),
        private=computer.private,
        readable=tuple(place for place in real if _is_part(place, computer.private)),
        network=network,
        required=spec.shown is not None and spec.shown.confined,
    )


def _program(program: AbsPath, home: AbsPath) -> Iterator[str]:
    """What a program consists of: the installation that it is in, and all packages beside a script of npm."""
    real = real_path(program)
    yield real
    for place in (program, real):
        yield from _installation(os.path.dirname(place), home)
    packages = [folder for folder in ancestors(real) if os.path.basename(folder) == "node_modules"]
    yield from packages[-1:]


def _installation(folder: str, home: AbsPath) -> Iterator[str]:
    """A folder of programs, and what is around `bin`, unless that is a folder of everything: `~`, `~/.local`."""
    yield folder
    around = os.path.dirname(folder)
    of_everything = os.path.dirname(around) == home and os.path.basename(around).startswith(".")
    if os.path.basename(folder) in {"bin", ".bin"} and not of_everything:
        yield around


def _named(environment: Mapping[str, str]) -> Iterator[str]:
    """The folders that variables of toolchains name; of one inside the project, nothing is left here."""
    for name in TOOLCHAIN_VARIABLES - WITH_SECRETS:
        for entry in environment.get(name, "").split(os.pathsep):
            if os.path.isabs(entry):
                yield entry


def _is_part(place: AbsPath, private: tuple[AbsPath, ...]) -> bool:
    return any(is_inside(place, folder) for folder in private) and not any(is_inside(one, place) for one in private)


def own_variables(environment: Mapping[str, str], folder: str) -> dict[str, str]:
    """The environment with every cache and temporary folder in the server's own one."""
    kept = {name: value for name, value in environment.items() if name not in CACHES}
    short = _with_room_for_sockets(folder)
    return kept | {name: os.path.join(short, place) for name, place in OWN_FOLDERS.items()}


def _with_room_for_sockets(folder: str) -> str:
    """The same folder, where its name is too long by a link to it."""
    if len(os.fsencode(folder)) <= MAX_FOLDER_BYTES:
        return folder
    try:
        link = os.path.join(_links().name, hashlib.sha256(os.fsencode(folder)).hexdigest()[:8])
        if not os.path.islink(link):
            os.symlink(folder, link)
    except OSError:
        return folder
    return link


@cache
def _links() -> TemporaryDirectory[str]:
    """As long as the process lives: servers that it has started go by these names. One that was killed left its own."""
    remove_dead_links()
    return TemporaryDirectory(prefix=f"{_kin()}{os.getpid()}-")


def _kin() -> str:
    space = 0  # Tells where a process id means this process: containers may share the temporary folder.
    with suppress(OSError):
        space = os.stat("/proc/self/ns/pid").st_ino
    return f"pilotfish-links-{space}-"


def remove_dead_links() -> None:
    """Remove the links of processes that have ended, as far as they are this user's: anybody may choose such a name."""
    kin = _kin()
    with suppress(OSError), os.scandir(gettempdir()) as entries:
        for entry in entries:
            pid = entry.name.removeprefix(kin).partition("-")[0]
            is_ours = entry.name.startswith(kin) and entry.is_dir(follow_symlinks=False)
            if is_ours and pid.isdecimal() and is_private(os.lstat(entry)) and not calls.lives(int(pid)):
                for link in os.listdir(entry):
                    os.unlink(os.path.join(entry, link))
                os.rmdir(entry)
