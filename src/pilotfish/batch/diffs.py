"""Applies a unified diff with `git apply --cached` to a private index, and returns the texts of the changed files.

So renames, modes and missing line ends mean what they mean to git; nothing of the user's repository is read or written.
"""

import os
import shutil

from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.system.git import run_git


class DiffReader:
    """The diffs of one base. `scratch` is an empty folder that it may fill."""

    def __init__(self, git: str, scratch: AbsPath) -> None:
        self._git = git
        self._store = os.path.join(scratch, "diffs.git")
        self._index = os.path.join(scratch, "index")
        self._base = os.path.join(scratch, "base-index")
        self._folder = scratch
        self._tree = ""

    def begin(self, copy: AbsPath) -> None:
        """Take the files of a copy that is at its base. Blocking, as all of this."""
        self._run(["init", "-q", "--bare", self._store], {})
        # What the project ignores is none of git's business here.
        work = {"GIT_WORK_TREE": copy, "GIT_INDEX_FILE": self._base}
        self._run(["add", "-A", "-f", "."], work, folder=copy)
        self._tree = self._run(["write-tree"], work).decode().strip()

    def files(self, diff: str) -> dict[str, str | None]:
        """Raises `Refused` where it does not apply, or makes something that is no text."""
        shutil.copyfile(self._base, self._index)
        index = {"GIT_INDEX_FILE": self._index}
        given = (diff if diff.endswith("\n") else diff + "\n").encode(errors="surrogateescape")
        self._run(["apply", "--cached", "--whitespace=nowarn", "--unidiff-zero", "-"], index, given)
        listed = self._run(["diff-index", "--cached", "--no-renames", "--raw", "-z", "--abbrev=40", self._tree], index)
        parts = listed.split(b"\0")
        found: dict[str, str | None] = {}
        for about, name in zip(parts[0::2], parts[1::2], strict=False):
            path, blob = os.fsdecode(name), about.split()[3].decode()
            found[path] = self._text(path, blob) if blob.strip("0") else None
        return found

    def _text(self, path: str, blob: str) -> str:
        try:
            return self._run(["cat-file", "blob", blob], {}).decode()
        except UnicodeDecodeError:
            raise Refused(Code.INVALID_INPUT, f"{path} would be no UTF-8 text") from None

    def _run(
        self, words: list[str], variables: dict[str, str], given: bytes | None = None, folder: str | None = None
    ) -> bytes:
        store = {} if words[0] == "init" else {"GIT_DIR": self._store}
        done = run_git(self._git, AbsPath(folder or self._folder), words, {**store, **variables}, given)
        if done.returncode:
            why = " ".join(done.stderr.decode(errors="replace").split())
            raise Refused(Code.INVALID_INPUT, f"the diff does not apply: {why}")
        return done.stdout
