"""The Python environments of a workspace's roots: found as data, kept while the files they rest on stay as they are."""

import hashlib
import os
from collections.abc import Mapping

from pilotfish.model import AbsPath
from pilotfish.servers.python_environment import Project, PythonEnvironment, find_environment, stand_in
from pilotfish.servers.tree import DiskTree, Evidence, Witness
from pilotfish.system import calls
from pilotfish.system.ownership import is_private, make_private_folders
from pilotfish.system.regular_files import replace_file


class PythonEnvironments:
    def __init__(self, workspace: AbsPath, variables: Mapping[str, str], folder: str) -> None:
        self._workspace = workspace
        self._variables = variables
        self._folder = folder
        """Private, outside of every project: where the stand-in interpreters are."""
        self._known: dict[AbsPath, tuple[PythonEnvironment | None, Evidence]] = {}

    def of(self, root: AbsPath) -> PythonEnvironment | None:
        known = self._known.get(root)
        if known is not None and known[1].holds():
            return known[0]
        witness = Witness(DiskTree())
        environment = find_environment(Project(root, self._workspace, self._variables), witness)
        evidence = witness.evidence()
        if evidence is None:
            # Something changed just now: look again next time.
            self._known.pop(root, None)
        else:
            self._known[root] = environment, evidence
        return environment

    def interpreter(self, root: AbsPath) -> str | None:
        """A program of ours that answers as the environment's interpreter would; None without an environment."""
        environment = self.of(root)
        return None if environment is None else self._written(stand_in(environment))

    def fingerprint(self, root: AbsPath) -> str:
        """Differs when a server would have to be told of another environment."""
        environment = self.of(root)
        return "" if environment is None else _digest(stand_in(environment))

    def _written(self, script: str) -> str:
        path = os.path.join(self._folder, f"python-{_digest(script)}")
        if not _is_ours(path, script):
            make_private_folders(self._folder)
            replace_file(path, script.encode(errors="surrogateescape"), 0o700)
        return path


def _is_ours(path: str, script: str) -> bool:
    """Whether the file is there, is this user's alone, and says just that: servers run it."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", opener=_without_links) as file:
            return is_private(os.fstat(file.fileno())) and file.read(len(script) + 1) == script
    except OSError:
        return False


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | calls.O_NOFOLLOW | calls.O_NONBLOCK)


def _digest(script: str) -> str:
    return hashlib.sha256(script.encode(errors="surrogateescape")).hexdigest()[:16]
