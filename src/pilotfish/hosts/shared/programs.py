"""The command lines that hosts get: absolute, so that neither a PATH nor a current folder decides what runs."""

import os
import shlex
import site
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import pilotfish

HOOK = ("surfaces", "hook.py")
"""Below the package. The files of hosts hold this path, so it does not change with our folders."""

LINT = ("hosts", "aider_lint.py")


@dataclass(frozen=True, slots=True)
class Programs:
    interpreter: str
    """As it was called: inside a virtual environment that is a link, and the link is what makes it the environment."""
    hook_file: str
    lint_file: str
    isolated: bool
    """Whether the package is found without the user's own packages."""
    home: str | None = None
    """`PILOTFISH_HOME`, where somebody has set it: the host may not have it in its environment."""

    def hook(self, host: str) -> list[str]:
        """Without any packages: the quickest start there is."""
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

    @property
    def status(self) -> list[str]:
        return [*self._at_home, *self.pilotfish, "status"]

    @property
    def _at_home(self) -> list[str]:
        return [] if self.home is None else ["/usr/bin/env", f"PILOTFISH_HOME={self.home}"]


def installed(environment: Mapping[str, str]) -> Programs:
    """The programs of this very installation."""
    package = os.path.dirname(os.path.abspath(pilotfish.__file__))
    users = os.path.realpath(site.getusersitepackages())
    home = environment.get("PILOTFISH_HOME")
    return Programs(
        sys.executable,
        os.path.join(package, *HOOK),
        os.path.join(package, *LINT),
        isolated=os.path.commonpath([os.path.realpath(package), users]) != users,
        home=os.path.abspath(home) if home else None,
    )


def shell(command: list[str]) -> str:
    """For hosts that hand it to a shell."""
    return shlex.join(command)
