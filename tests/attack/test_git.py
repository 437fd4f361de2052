"""A repository that is a trap for git: nothing of it, nor of a submodule in it, runs by a git of ours (T29, T46).

It may come from an archive or a share, `.git` and all.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pilotfish.batch.copies import DiffReader, make_copy
from pilotfish.errors import Refused
from pilotfish.model import AbsPath
from pilotfish.system.git import changed_files, committed_content, run_git
from pilotfish.system.git_state import INDEX, GitMove, brought_by_git, git_state
from support.daemon.homes import DaemonHome
from support.daemon.users import ShellUser
from support.files.canaries import Canary
from support.files.repositories import commit_everything
from support.files.repositories import run_git as plain_git
from support.traps.watched_home import SECRETS, WatchedHome, plant_secrets

pytestmark = pytest.mark.proves("T29", "T46")

GIT = shutil.which("git") or ""

PROGRAMS = (
    "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "diff.external",
    "diff.evil.command", "diff.evil.textconv", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process",
    "gpg.program", "merge.evil.driver", "sequence.editor", "core.alternateRefsCommand",
)  # fmt: skip
"""Settings that name a program."""

HOOKS = ("post-index-change", "pre-commit", "post-checkout", "fsmonitor-watchman", "reference-transaction")

TEXT = "x = 1\n"


def make_hostile(folder: Path, program: Path) -> None:
    """Have every setting of a repository lead to a program, and make a change that git must look at."""
    for key in PROGRAMS:
        plain_git(folder, "config", key, str(program))
    place = Path(plain_git(folder, "rev-parse", "--absolute-git-dir").strip())
    for hook in HOOKS:
        shutil.copy(program, place / "hooks" / hook)
    for file in folder.glob("*.py"):
        status = file.stat()
        file.write_text(TEXT.replace("1", "2"))
        os.utime(file, (status.st_atime, status.st_mtime + 5))


@pytest.fixture
def ran(tmp_path: Path) -> Iterator[Canary]:
    made = Canary(tmp_path / "ran")
    yield made
    made.close()


@pytest.fixture
def trap(tmp_path: Path, ran: Canary) -> Path:
    """A repository with a populated submodule, both hostile."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n: < {ran}\ncat\n")
    program.chmod(0o755)
    top = Path(os.path.realpath(tmp_path)) / "top"
    for folder in (top / "sub", top):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "a.py").write_text(TEXT)
        (folder / ".gitattributes").write_text("*.py filter=evil diff=evil merge=evil\n")
        commit_everything(folder)
    (top / ".gitmodules").write_text('[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n')
    commit_everything(top)
    make_hostile(top / "sub", program)
    make_hostile(top, program)
    assert not ran.was_read()
    return top


def copied(root: AbsPath, target: Path) -> None:
    target.mkdir()
    make_copy(root, AbsPath(str(target)), "HEAD", GIT)


def diffed(root: AbsPath, scratch: Path) -> None:
    scratch.mkdir()
    reader = DiffReader(GIT, AbsPath(str(scratch)))
    reader.begin(root)
    reader.files("--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 2\n+x = 3\n")


def brought(root: AbsPath, target: str) -> None:
    state = git_state(root)
    assert state is not None
    move = GitMove(target, "HEAD", frozenset())
    brought_by_git(GIT, state, move, [AbsPath(f"{root}/{name}") for name in ("a.py", "sub/a.py", "gone.py")])


COMMANDS: dict[str, Callable[[AbsPath, Path], object]] = {
    "changes": lambda root, _: changed_files(GIT, root),
    "committed": lambda root, _: committed_content(GIT, AbsPath(f"{root}/a.py")),
    "committed in the submodule": lambda root, _: committed_content(GIT, AbsPath(f"{root}/sub/a.py")),
    "changes of the submodule": lambda root, _: changed_files(GIT, AbsPath(f"{root}/sub")),
    "copy of a commit": lambda root, scratch: copied(root, scratch / "copy"),
    "diff": lambda root, scratch: diffed(root, scratch / "diffs"),
    "what git left": lambda root, _: brought(root, INDEX),
    "what is as in a commit": lambda root, _: brought(root, "HEAD"),
}
"""Every git of ours."""


FILES = (
    "core.excludesFile", "core.attributesFile", "diff.orderFile", "blame.ignoreRevsFile", "mailmap.file",
    "commit.template", "core.hooksPath", "http.cookieFile", "gpg.ssh.allowedSignersFile",
)  # fmt: skip
"""Settings that name a file to read."""

LOGS = ("trace2.normalTarget", "trace2.eventTarget", "trace2.perfTarget")
"""Settings that name a file to write."""


@pytest.mark.proves("T35")
@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_written_or_read_beyond_the_repository(command: str, trap: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    plant_secrets(home)
    for folder in (trap / "sub", trap):
        for key, name in zip(FILES, SECRETS, strict=False):
            plain_git(folder, "config", key, str(home / name))
        for key in LOGS:
            plain_git(folder, "config", key, str(home / "log"))
    watched = WatchedHome(home, trap)
    COMMANDS[command](AbsPath(str(trap)), tmp_path)
    assert (watched.read(), watched.written()) == (set(), set())
    excludes = Canary(home / SECRETS[0])
    plain_git(trap, "ls-files", "--others", "--exclude-standard")
    assert excludes.was_read(), "the trap works on plain git"
    excludes.close()


@pytest.mark.proves("A2.2")
@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_of_a_repository_runs(command: str, trap: Path, ran: Canary, tmp_path: Path) -> None:
    COMMANDS[command](AbsPath(str(trap)), tmp_path)
    assert not ran.was_read()


@pytest.mark.parametrize("command", COMMANDS)
def test_aliases_signatures_and_a_remote_that_has_what_is_missing_run_nothing(
    command: str, trap: Path, ran: Canary, tmp_path: Path
) -> None:
    program = tmp_path / "ends"  # git waits for what answers nothing
    program.write_text(f"#!/bin/sh\n: < {ran}\nexit 1\n")
    program.chmod(0o755)
    for name in ("ls-files", "diff-files", "diff-index", "ls-tree", "cat-file", "read-tree", "checkout-index", "apply"):
        plain_git(trap, "config", f"alias.{name}", f"!{program}")
    remote = {"promisor": "true", "url": f"ext::{program} %S", "partialclonefilter": "blob:none"}
    said = {"log.showSignature": "true", "commit.gpgSign": "true", "protocol.ext.allow": "always"}
    for key, value in {**said, **{f"remote.evil.{key}": value for key, value in remote.items()}}.items():
        plain_git(trap, "config", key, value)
    plain_git(trap, "config", "core.repositoryFormatVersion", "1")
    plain_git(trap, "config", "extensions.partialClone", "evil")
    blob = plain_git(trap, "rev-parse", "HEAD:a.py").strip()
    (trap / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with suppress(Refused):
        COMMANDS[command](AbsPath(str(trap)), tmp_path)
    assert not ran.was_read()
    subprocess.run([GIT, "cat-file", "-p", blob], cwd=trap, capture_output=True, check=False)
    assert ran.was_read(), "the trap works on plain git"


def conditional(top: Path) -> Path:
    included = top / ".git" / "included"
    (top / ".git" / "config").rename(included)
    text = included.read_text().partition("[filter")[0]
    conditions = (f"gitdir:{top}/", "onbranch:**", "hasconfig:remote.*.url:*")
    includes = (f'[includeIf "{condition}"]\n\tpath = included\n' for condition in conditions)
    (top / ".git" / "config").write_text(f'{text.partition("[diff")[0]}[remote "x"]\n\turl = y\n{"".join(includes)}')
    return top


def of_a_worktree(top: Path) -> Path:
    (top / ".git" / "config").rename(top / ".git" / "config.worktree")
    (top / ".git" / "config").write_text(
        "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n"
    )
    return top


def elsewhere(top: Path) -> Path:
    (top / ".git").rename(top / "hidden")
    (top / ".git").write_text("gitdir: hidden\n")
    return top


def bare(top: Path) -> Path:
    """A folder of a worktree that is a repository, as one that was cloned can have: git needs no `.git` for that."""
    (top / ".git").rename(top / "inner")
    plain_git(top / "inner", "config", "core.worktree", str(top))
    return top / "inner"


PLACES: dict[str, Callable[[Path], Path]] = {
    "included on a condition": conditional,
    "of a worktree": of_a_worktree,
    "in another folder": elsewhere,
    "without .git": bare,
}


@pytest.mark.proves("A2.3")
@pytest.mark.parametrize("place", PLACES)
def test_nothing_runs_wherever_the_configuration_stands(place: str, trap: Path, ran: Canary) -> None:
    root = AbsPath(str(PLACES[place](trap)))
    changed_files(GIT, root)
    committed_content(GIT, AbsPath(f"{root}/a.py"))
    run_git(GIT, root, ["diff-files", "--ignore-submodules=all", "--name-only"], {})
    run_git(GIT, root, ["checkout-index", "--all", "--force", f"--prefix={root}/copy/"], {})
    assert not ran.was_read()
    plain_git(Path(root), "diff-index", "HEAD", "--")
    assert ran.was_read(), "the trap works"


@pytest.mark.parametrize("words", [["status"], ["diff-index", "HEAD"]], ids=" ".join)
def test_the_trap_works_on_plain_git(words: list[str], trap: Path, ran: Canary) -> None:
    plain_git(trap, *words)
    assert ran.was_read()


@pytest.mark.proves("A2.2")
def test_a_submodule_alone_is_a_trap_for_a_git_that_enters_it(tmp_path: Path, trap: Path, ran: Canary) -> None:
    for key in PROGRAMS:
        plain_git(trap, "config", "--unset", key)
    safe = run_git(GIT, AbsPath(str(trap)), ["diff-index", "--ignore-submodules=all", "HEAD"], {})
    assert (safe.returncode, ran.was_read()) == (0, False)
    run_git(GIT, AbsPath(str(trap)), ["diff-index", "HEAD"], {})
    assert ran.was_read()


def test_changes_are_still_listed(trap: Path) -> None:
    assert changed_files(GIT, AbsPath(str(trap))) == (AbsPath(f"{trap}/a.py"),)
    assert committed_content(GIT, AbsPath(f"{trap}/a.py")) == TEXT.encode()


@pytest.mark.proves("A2.4")
@pytest.mark.parametrize("config", ["[filter\n", '[include]\n\tpath = "~nobody/x"\n'], ids=["broken", "no such user"])
def test_a_configuration_that_git_cannot_read_leaves_nothing_to_run(
    config: str, trap: Path, ran: Canary, tmp_path: Path
) -> None:
    with (trap / ".git" / "config").open("a") as file:
        file.write(config)
    root = AbsPath(str(trap))
    assert changed_files(GIT, root) is None
    with pytest.raises(Refused):
        copied(root, tmp_path / "copy")
    assert not ran.was_read()


def _no_git(*_words: object, **_options: object) -> None:
    pytest.fail("git was run")


BLOCKING = {
    "included": "[include]\n\tpath = fifo\n",
    "quoted": '[INCLUDE] path = "fifo"\n',
    "with a remark": "[include]\n\tpath = fifo ; a remark\n",
    "in two lines": "[include]\n\tpath = fi\\\nfo\n",
    "by another": "[include]\n\tpath = other\n",
    "by condition": '[includeIf "gitdir:**"]\n\tpath = ./fifo\n',
}


@pytest.mark.proves("A13.5")
@pytest.mark.parametrize("config", BLOCKING.values(), ids=BLOCKING)
def test_git_is_not_run_where_it_would_wait_for_a_pipe(
    config: str, trap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = trap / ".git"
    os.mkfifo(place / "fifo")
    (place / "other").write_text("[include]\n\tpath = fifo\n")
    with (place / "config").open("a") as file:
        file.write(config)
    monkeypatch.setattr("subprocess.run", _no_git)
    root = AbsPath(str(trap))
    assert changed_files(GIT, root) is None
    assert committed_content(GIT, AbsPath(f"{root}/a.py")) is None
    with pytest.raises(Refused):
        run_git(GIT, root, ["status"], {})


@pytest.mark.proves("A13.5")
@pytest.mark.parametrize("name", ["config", "HEAD", "index", "info/exclude"])
def test_nor_where_a_file_of_the_repository_is_a_pipe(name: str, trap: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (trap / ".git" / name).unlink()
    os.mkfifo(trap / ".git" / name)
    monkeypatch.setattr("subprocess.run", _no_git)
    assert changed_files(GIT, AbsPath(str(trap))) is None


@pytest.mark.proves("A13.5")
@pytest.mark.parametrize("ending", ["\0x", "\u2003", " "])
def test_nor_where_a_pipe_is_in_the_common_folder_by_a_name_that_only_git_reads(
    ending: str, trap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For git the name ends at a NUL and at the end of the line, and nowhere else."""
    common = trap / f"common{ending}".partition("\0")[0]
    common.mkdir()
    os.mkfifo(common / "config")
    (trap / ".git" / "commondir").write_text(f"../common{ending}\n")
    monkeypatch.setattr("subprocess.run", _no_git)
    assert changed_files(GIT, AbsPath(str(trap))) is None


def test_a_worktree_and_an_included_file_are_read(tmp_path: Path) -> None:
    top, beside = tmp_path / "top", tmp_path / "beside"
    top.mkdir()
    (top / "a.py").write_text(TEXT)
    commit_everything(top)
    (top / ".git" / "other").write_text("[user]\n\tname = a\n")
    plain_git(top, "config", "include.path", "other")
    plain_git(top, "worktree", "add", "--quiet", str(beside))
    (beside / "a.py").write_text("x = 2\n")
    assert changed_files(GIT, AbsPath(str(beside))) == (AbsPath(f"{beside}/a.py"),)
    assert committed_content(GIT, AbsPath(f"{beside}/a.py")) == TEXT.encode()


@pytest.mark.proves("A2.1")
@pytest.mark.slow
def test_a_session_that_starts_in_the_trap_runs_nothing_of_it(home: DaemonHome, tmp_path: Path, ran: Canary) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n: < {ran}\ncat\n")
    program.chmod(0o755)
    for folder in (home.root / "sub", home.root):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "a.py").write_text(TEXT)
        (folder / ".gitattributes").write_text("*.py filter=evil\n")
        commit_everything(folder)
    make_hostile(home.root / "sub", program)
    home.environment["PATH"] = f"{os.path.dirname(GIT)}:{home.environment['PATH']}"
    event = {"hook_event_name": "SessionStart", "session_id": "a", "source": "startup", "cwd": str(home.root)}
    done = home.run_hook(json.dumps(event).encode(), "claude-code")
    assert done.returncode == 0, done
    user = ShellUser(home)
    for verb in (["check", "--changed"], ["impact"]):
        user.run(*verb)
    assert not ran.was_read()
