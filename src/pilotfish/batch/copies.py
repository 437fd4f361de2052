"""A copy of a workspace at its base, for patches to be written to.

What git ignores and what holds dependencies is linked, not copied: it is large, and no patch writes there.
"""

import os
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence

import anyio
import anyio.to_thread

from pilotfish.errors import Code, Refused, Unavailable
from pilotfish.model import AbsPath
from pilotfish.paths import DEPENDENCY_FOLDERS
from pilotfish.system.git import run_git
from pilotfish.system.source_files import REPOSITORIES
from pilotfish.system.watching.ignoring import IgnoreRules, is_ignored, read_rules, rules_above

PLAIN_VARIABLES = {"PATH": os.defpath}
"""Of a program of the system: a project may be on the user's `PATH`, and `TAR_OPTIONS` names programs."""


def make_copy(root: AbsPath, target: AbsPath, base: str | None, git: str | None) -> None:
    """Copy the workspace into the empty folder `target`: at a commit, or as it is. Blocking.

    Raises `Refused` where the commit is not known, `Unavailable` where the disk does not take the copy.
    """
    try:
        if base is not None:
            _check_out(root, target, base, git)
        _fill(root, target, rules_above(root), copies=base is None)
    except OSError as error:
        raise Unavailable(Code.FILE_UNREADABLE, f"{root} could not be copied: {error}") from error


def duplicate(copy: AbsPath, target: AbsPath) -> None:
    """Another copy of a copy. Blocking."""
    left = deque([(copy, target)])
    try:
        while left:
            folder, made = left.popleft()
            for entry in _entries(folder):
                path = AbsPath(os.path.join(made, entry.name))
                if entry.is_dir(follow_symlinks=False):
                    os.mkdir(path)
                    left.append((AbsPath(entry.path), path))
                else:
                    shutil.copy2(entry.path, path, follow_symlinks=False)
    except OSError as error:
        raise Unavailable(Code.FILE_UNREADABLE, f"{copy} could not be copied: {error}") from error


class Bases:
    """The copies from which those of the judges are made, in a folder of the batch: one for each base of patches."""

    def __init__(self, root: AbsPath, git: str | None, folder: AbsPath) -> None:
        self._root = root
        self._git = git
        self._folder = folder
        self._made: dict[str | None, AbsPath] = {}
        self._making = anyio.Lock()

    async def copy_of(self, base: str | None) -> AbsPath:
        """Raises `Refused` where there is no such base, `Unavailable` where there is no room."""
        async with self._making:
            if base not in self._made:
                copy = AbsPath(os.path.join(self._folder, str(len(self._made))))
                os.makedirs(copy, exist_ok=True)
                await anyio.to_thread.run_sync(make_copy, self._root, copy, base, self._git)
                self._made[base] = copy
            return self._made[base]


def _check_out(root: AbsPath, target: AbsPath, base: str, git: str | None) -> None:
    """The files of a commit, without filters and hooks of the repository; nothing of the repository changes."""
    if git is None:
        raise Refused(Code.INVALID_INPUT, f"git was not found, so nothing is known of {base}")
    if base.startswith("-"):
        raise Refused(Code.INVALID_INPUT, f"a base is the name of a commit, not an option of git: {base}")
    with tempfile.TemporaryDirectory(prefix="pilotfish-index-") as scratch:
        index = {"GIT_INDEX_FILE": os.path.join(scratch, "index")}
        for words in (["read-tree", f"{base}:./"], ["checkout-index", "-a", f"--prefix={target}/"]):
            done = run_git(git, root, words, index)
            if done.returncode:
                last_line = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
                raise Refused(Code.INVALID_INPUT, f"git has no files of {base}: {' '.join(last_line)}")


def _fill(root: AbsPath, copy: AbsPath, above: Sequence[IgnoreRules], *, copies: bool) -> None:
    """Link what is ignored or not ours, and copy the rest where `copies`."""
    left = deque([(root, copy, above)])
    while left:
        folder, target, rules = left.popleft()
        own = read_rules(folder)
        rules = rules if own is None else (*rules, own)
        for entry in _entries(folder):
            made = AbsPath(os.path.join(target, entry.name))
            if entry.name not in REPOSITORIES and _is_to_fill(entry, made, rules, copies=copies):
                left.append((AbsPath(entry.path), made, rules))


def _is_to_fill(entry: "os.DirEntry[str]", made: AbsPath, rules: Sequence[IgnoreRules], *, copies: bool) -> bool:
    """Make what the copy shall have of an entry; True for a folder to go on with. No link of the copy is followed.

    A commit may have what is ignored by now: that stays.
    """
    path = AbsPath(entry.path)
    if entry.is_symlink():
        if copies:
            os.symlink(os.readlink(path), made)
        return False
    if entry.is_dir(follow_symlinks=False):
        if entry.name in DEPENDENCY_FOLDERS or is_ignored(path, rules):
            if not os.path.lexists(made):
                os.symlink(path, made)
            return False
        if copies:
            os.mkdir(made)
        return os.path.isdir(made) and not os.path.islink(made)
    wanted = entry.is_file(follow_symlinks=False) and (copies or is_ignored(path, rules))
    if wanted and not os.path.lexists(made):
        shutil.copy2(path, made, follow_symlinks=False)
    return False


def _entries(folder: AbsPath) -> Iterator["os.DirEntry[str]"]:
    with os.scandir(folder) as found:
        yield from found


def packed(copy: AbsPath) -> bytes:
    """A copy as one piece, for another machine. Blocking."""
    command = ["tar", "-C", copy, "-czf", "-", "."]
    return subprocess.run(command, capture_output=True, check=True, env=PLAIN_VARIABLES).stdout


def unpack(piece: bytes, target: AbsPath) -> None:
    """Blocking."""
    subprocess.run(["tar", "-C", target, "-xzf", "-"], input=piece, check=True, env=PLAIN_VARIABLES)


# --- Diffs of a base --------------------------------------------------------------------------------------------------

# Applied with `git apply --cached` to a private index: renames, modes and missing line ends mean what they mean to git,
# and nothing of the user's repository is read or written.


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
