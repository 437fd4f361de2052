"""The command lines that are written into hosts' files: absolute, independent of PATH and current folder."""

import os
import shlex
import site
import sys
from collections.abc import Mapping

from msgspec import Struct

import pilotfish
from pilotfish.system.real_path import real_path

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
        return [] if self.home is None else ["/usr/bin/env", f"PILOTFISH_HOME={self.home}"]


def _scripts(package: str) -> tuple[str, str]:
    """The hook program and Aider's linter: the copies of an installation, whose paths outlive its version of Python."""
    shared = os.path.join(sys.prefix, "share", "pilotfish")
    copies = os.path.join(shared, HOOK[-1]), os.path.join(shared, LINT[-1])
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site_packages = os.path.join(sys.prefix, "lib", version, "site-packages")
    if os.path.dirname(package) == site_packages and all(map(os.path.isfile, copies)):
        return copies
    return os.path.join(package, *HOOK), os.path.join(package, *LINT)


def installed_programs(environment: Mapping[str, str]) -> Programs:
    """The programs of this installation."""
    package = os.path.dirname(os.path.abspath(pilotfish.__file__))
    users = real_path(site.getusersitepackages())
    home = environment.get("PILOTFISH_HOME")
    return Programs(
        sys.executable,
        *_scripts(package),
        isolated=os.path.commonpath([real_path(package), users]) != users,
        home=os.path.abspath(home) if home else None,
    )


def shell(command: list[str]) -> str:
    """For hosts that run it in a shell."""
    return shlex.join(command)
