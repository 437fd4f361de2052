"""What git and other writers bring is charged to nobody: an error belongs to the edit that made it (DIAG-15)."""

import os
import shutil
import subprocess
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pilotfish.api.answers import Feedback
from pilotfish.api.questions import Moment, Touch
from pilotfish.model import AbsPath
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import WallClock
from pilotfish.system.ports import OpenWatcher
from pilotfish.system.watching.watcher import open_watcher
from support.servers.linker import linker, told
from support.services.real import only, real_service
from support.services.several import Ground, service_on

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-14"), pytest.mark.proves("DIAG-15")]

CONFIG = {
    "lsp": {"one": {"command": ["/bin/true"], "extensions": [".rb"]}},
    "feedback": {
        "onlyNew": True,
        "otherFilesAfter": ["edit", "write", "patch"],
        "maxOtherFiles": 50,
        "noVerdict": "say",
    },
}
GIT = shutil.which("git") or "git"
WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
MAIN = {"lib.rb": "def name1\ndef name2\n", "user.rb": "use name1\n", "other.rb": "use name2\n"}
BRANCH = {"lib.rb": "def name2\n", "user.rb": "use name1\nuse name9\n"}
"""There the two files are broken."""


@pytest.fixture
def anyio_backend() -> str:
    """inotify is of the real world."""
    return "asyncio"


@dataclass
class Repository:
    ground: Ground
    client: ClientSession

    def git(self, *words: str) -> None:
        command = [GIT, "-C", str(self.ground.root), *words]
        subprocess.run(command, capture_output=True, check=False, env={**os.environ, **WHO})

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            self.ground.write(name, text)

    async def edit(self, name: str, text: str, client: ClientSession | None = None, **more: Any) -> Feedback:
        """An edit by a host that says what the file was."""
        before = (self.ground.root / name).read_text() if (self.ground.root / name).exists() else ""
        self.ground.write(name, text)
        touch = Touch((name,), "edit", before={name: before}, **more)
        return await self.ground.service.touched(touch, client or self.client)

    async def reach(self, kind: Any) -> Feedback:
        return await self.ground.service.reached(Moment(kind), self.client)

    def another(self) -> ClientSession:
        return replace(self.client, id="another")


@asynccontextmanager
async def repository(folder: Path, watch: OpenWatcher | None = open_watcher) -> AsyncGenerator[Repository]:
    """`main` is right, `branch` has broken files; a conversation has begun and its server runs."""
    (folder / "bin").mkdir()
    (folder / "bin" / "git").symlink_to(GIT)
    async with service_on(folder, {"one": linker}, CONFIG, watch=watch, clock=WallClock()) as ground:
        made = Repository(ground, replace(ground.client, host="claude-code"))
        made.git("init", "-q", "-b", "main")
        made.write(MAIN)
        made.git("add", ".")
        made.git("commit", "-qm", "one")
        made.git("checkout", "-qb", "branch")
        made.write(BRANCH)
        made.git("commit", "-qam", "two")
        made.git("checkout", "-q", "main")
        ground.service.conversations.begin(made.client)
        await ground.service.touched(Touch(("lib.rb",), "read"), made.client)
        yield made


async def test_what_a_branch_switch_brought_is_not_charged_to_the_next_edit(tmp_path: Path) -> None:
    async with repository(tmp_path) as it:
        assert told(await it.edit("lib.rb", "def name1\ndef name2\ndef name3\n")) == {}
        it.git("stash")
        it.git("checkout", "-q", "branch")
        assert told(await it.edit("user.rb", "use name1\nuse name9\nuse name2\n")) == {}
        # What the edit itself breaks there is told.
        broken = await it.edit("lib.rb", "def name4\n")
        assert told(broken) == {"user.rb": ["no name2"], "other.rb": ["no name2"]}


async def test_the_same_for_a_host_that_does_not_say_what_the_file_was(tmp_path: Path) -> None:
    async with repository(tmp_path) as it:
        await it.edit("user.rb", "use name1\nuse name2\n")
        it.git("checkout", "-qf", "branch")
        it.ground.write("user.rb", "use name1\nuse name9\nuse name7\n")
        feedback = await it.ground.service.touched(Touch(("user.rb",), "edit"), it.client)
        assert told(feedback) == {"user.rb": ["no name7"]}


@pytest.mark.parametrize("kind", ["call", "prompt", "stop"])
async def test_what_a_command_of_git_brought_is_told_at_no_event(tmp_path: Path, kind: str) -> None:
    async with repository(tmp_path) as it:
        assert told(await it.edit("other.rb", "use name2\nuse name1\n")) == {}
        it.git("checkout", "-qf", "branch")
        assert (await it.reach(kind)).text == ""
        assert (await it.reach("stop")).text == ""


@pytest.mark.parametrize("command", [False, True], ids=["git's", "and then a command's"])
async def test_what_git_brought_is_noticed_late_on_a_busy_machine_and_still_nobodys(
    tmp_path: Path, command: bool
) -> None:
    async with repository(tmp_path, watch=None) as it:
        await it.edit("other.rb", "use name2\nuse name1\n")
        it.git("checkout", "-qf", "branch")
        assert (await it.reach("call")).text == ""
        if command:
            it.write({"user.rb": "use name9\nuse name8\n"})
        late = [PathChange(AbsPath(str(it.ground.root / name)), Change.CHANGED) for name in BRANCH]
        it.ground.service.conversations.noticed(late)
        assert told(await it.reach("call")) == ({"user.rb": ["no name8"]} if command else {})


@pytest.mark.parametrize("command", [("checkout", "HEAD", "--"), ("restore",), ("stash", "push")])
async def test_what_the_edits_of_a_conversation_break_in_a_file_that_git_put_back_is_told(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    async with repository(tmp_path) as it:
        await it.edit("lib.rb", "def name2\ndef name3\n")
        assert told(await it.edit("user.rb", "use name3\n")) == {}
        it.git(*command, "user.rb")
        await it.reach("call")
        left = (await it.reach("stop")).text
        assert [left.count(name) for name in ("no name1", "no name2")] == [1, 0]


def restore(it: Repository) -> None:
    it.git("checkout", "--", ".")


def stash(it: Repository) -> None:
    it.git("stash")


def stash_and_pop(it: Repository) -> None:
    it.git("stash")
    it.git("stash", "pop")


def reset(it: Repository) -> None:
    it.git("reset", "--hard", "-q", "branch")


def merge(it: Repository) -> None:
    it.git("commit", "-qam", "mine")
    it.git("merge", "-q", "-X", "theirs", "branch")


@pytest.mark.proves("A15.9")
@pytest.mark.parametrize("operation", [restore, stash, stash_and_pop, reset, merge])
async def test_no_operation_of_git_is_an_edit(tmp_path: Path, operation: Callable[[Repository], None]) -> None:
    async with repository(tmp_path) as it:
        it.git("checkout", "-q", "branch" if operation in (restore, stash, stash_and_pop) else "main")
        mended = {"lib.rb": "def name1\ndef name2\n"} if operation in (restore, stash) else {"extra.rb": "def name8\n"}
        for name, text in mended.items():
            assert told(await it.edit(name, text)) == {}
        operation(it)
        assert (await it.reach("call")).text == ""
        assert (await it.reach("stop")).text == ""


async def test_what_was_told_is_not_told_again_after_a_stash_and_its_pop(tmp_path: Path) -> None:
    async with repository(tmp_path) as it:
        assert told(await it.edit("lib.rb", "def name2\n")) == {"user.rb": ["no name1"]}
        assert told(await it.edit("other.rb", "use name6\n")) == {"other.rb": ["no name6"]}
        it.git("stash", "-q", "-u")
        it.git("stash", "pop", "-q")
        assert (await it.reach("call")).text == ""
        assert told(await it.edit("extra.rb", "# nothing\n")) == {}
        assert told(await it.reach("stop")) == {"user.rb": ["no name1"], "other.rb": ["no name6"]}


def shelve(it: Repository) -> None:
    it.git("stash", "-q")


def unshelve(it: Repository) -> None:
    it.git("stash", "pop", "-q")


def commit_and_leave(it: Repository) -> None:
    it.git("checkout", "-qb", "mine")
    it.git("commit", "-qam", "mine")
    it.git("checkout", "-q", "main")


def come_back(it: Repository) -> None:
    it.git("checkout", "-q", "mine")


@pytest.mark.parametrize(("away", "back"), [(shelve, unshelve), (commit_and_leave, come_back)])
@pytest.mark.parametrize("kind", ["call", "stop"])
@pytest.mark.parametrize("between", [("call",), ("call", "stop", "prompt")], ids=["one turn", "two turns"])
async def test_work_of_a_conversation_that_git_takes_away_and_brings_back_is_its_own_again(
    tmp_path: Path,
    away: Callable[[Repository], None],
    back: Callable[[Repository], None],
    kind: str,
    between: tuple[str, ...],
) -> None:
    async with repository(tmp_path) as it:
        assert told(await it.edit("lib.rb", "def name2\n")) == {"user.rb": ["no name1"]}
        assert told(await it.edit("other.rb", "use name6\n")) == {"other.rb": ["no name6"]}
        away(it)
        for event in between:
            assert (await it.reach(event)).text == ""
        back(it)
        assert told(await it.reach(kind)) == {"user.rb": ["no name1"], "other.rb": ["no name6"]}
        assert told(await it.edit("extra.rb", "# nothing\n")) == {}
        # And it is told once.
        away(it)
        back(it)
        assert (await it.reach("call")).text == ""


async def test_what_another_conversation_left_on_a_branch_is_not_this_ones(tmp_path: Path) -> None:
    async with repository(tmp_path) as it:
        assert told(await it.edit("lib.rb", "def name2\n")) == {"user.rb": ["no name1"]}
        commit_and_leave(it)
        assert (await it.reach("stop")).text == ""
        # The same text of the broken file, and the same error, with another text of what the conversation wrote.
        it.git("checkout", "-qb", "theirs")
        it.write({"lib.rb": "def name2\ndef name8\n"})
        it.git("commit", "-qam", "theirs")
        it.git("checkout", "-q", "main")
        assert (await it.reach("prompt")).text == ""
        it.git("checkout", "-q", "theirs")
        assert (await it.reach("call")).text == ""
        assert (await it.reach("stop")).text == ""


async def test_what_a_command_breaks_beside_a_branch_switch_is_told(tmp_path: Path) -> None:
    async with repository(tmp_path) as it:
        await it.edit("other.rb", "use name2\nuse name1\n")
        it.git("checkout", "-qf", "branch")
        it.write({"other.rb": "use name2\nuse name5\n"})
        assert told(await it.reach("call")) == {"other.rb": ["no name5"]}


@pytest.mark.parametrize("branch", [False, True], ids=["there", "on a branch that began there"])
async def test_what_a_command_broke_and_committed_is_told(tmp_path: Path, branch: bool) -> None:
    async with repository(tmp_path) as it:
        await it.edit("other.rb", "use name2\nuse name1\n")
        if branch:
            it.git("checkout", "-qb", "new")
        it.write({"user.rb": "use name6\n"})
        it.git("commit", "-qam", "broken")
        assert told(await it.reach("call")) == {"user.rb": ["no name6"]}


@pytest.mark.parametrize("by_git", [True, False])
async def test_a_moved_file_takes_its_errors_with_it(tmp_path: Path, by_git: bool) -> None:
    async with repository(tmp_path) as it:
        it.git("checkout", "-q", "branch")
        await it.edit("other.rb", "use name2\n# note\n")
        if by_git:
            it.git("mv", "user.rb", "moved.rb")
        else:
            (it.ground.root / "user.rb").rename(it.ground.root / "moved.rb")
        assert (await it.reach("call")).text == ""
        assert (await it.reach("stop")).text == ""
        # What is wrong since the move is told.
        assert told(await it.edit("moved.rb", "use name1\nuse name9\nuse name6\n")) == {"moved.rb": ["no name6"]}


async def test_in_the_middle_of_a_merge_nothing_is_told_but_that_it_is_so_and_once(tmp_path: Path) -> None:
    async with repository(tmp_path) as it:
        await it.edit("user.rb", "use name1\nuse name2\n")
        it.git("commit", "-qam", "mine")
        it.git("merge", "branch")
        first = await it.edit("user.rb", "use name1\nuse name9\nuse name7\n")
        assert (told(first), first.text) == (
            {},
            "git is in the middle of a merge: errors are told again when that is finished.",
        )
        assert (await it.edit("user.rb", "use name1\nuse name6\n")).text == ""
        assert (await it.reach("stop")).text == ""
        it.write({"lib.rb": "def name1\ndef name2\n"})
        it.git("add", ".")
        it.git("commit", "-qm", "merged")
        assert told(await it.edit("other.rb", "use name5\n")) == {"other.rb": ["no name5"]}


@pytest.mark.proves("A11.1")
@pytest.mark.parametrize("before", ["use name1\n", None], ids=["the host says what was there", "it does not"])
@pytest.mark.parametrize("begun", [True, False], ids=["a start was seen", "no start was seen"])
@pytest.mark.parametrize("name", ["user.rb", "untracked.rb"])
async def test_an_error_that_somebody_else_saw_first_is_told_to_whoever_made_it(
    tmp_path: Path, before: str | None, begun: bool, name: str
) -> None:
    async with repository(tmp_path) as it:
        for text in ("use name1\n", "use name6\n"):
            it.ground.write(name, text)
            await it.ground.service.check(it.another(), [name])
        touch = Touch((name,), "edit", before={} if before is None else {name: before})
        client = it.client if begun else replace(it.client, id="third")
        assert told(await it.ground.service.touched(touch, client)) == {name: ["no name6"]}


@pytest.mark.proves("A11.2")
async def test_what_another_conversation_broke_is_not_told_to_this_one(tmp_path: Path) -> None:
    async with repository(tmp_path) as it:
        assert told(await it.edit("lib.rb", "def name2\n", it.another())) == {"user.rb": ["no name1"]}
        assert told(await it.edit("user.rb", "use name1\nuse name2\n")) == {}
        assert (await it.reach("stop")).text == ""


async def test_an_undo_that_was_never_judged_is_not_the_state_before_the_next_edit(tmp_path: Path) -> None:
    async with repository(tmp_path) as it:
        broken, right = "def name2\n", "def name1\ndef name2\n"
        for _ in range(3):
            assert told(await it.edit("lib.rb", broken)) == {"user.rb": ["no name1"]}
            # The host told nothing of the undo: somebody else wrote it.
            it.ground.write("lib.rb", right)


async def test_a_file_that_is_written_anew_in_another_world_is_all_new(tmp_path: Path) -> None:
    async with repository(tmp_path) as it:
        assert told(await it.edit("new.rb", "use name5\n")) == {"new.rb": ["no name5"]}
        assert told(await it.edit("lib.rb", "def name1\ndef name2\ndef name5\n")) == {}
        it.git("add", ".")
        it.git("commit", "-qm", "three")
        it.git("checkout", "-q", "branch")
        assert (await it.reach("prompt")).text == ""
        assert told(await it.edit("new.rb", "use name5\n")) == {"new.rb": ["no name5"]}


async def test_a_file_that_git_brought_back_unseen_is_missed_when_a_command_deletes_it_again(tmp_path: Path) -> None:
    async with repository(tmp_path) as it:
        await it.edit("other.rb", "use name2\n# note\n")
        (it.ground.root / "lib.rb").unlink()
        assert told(await it.reach("call")) == {"user.rb": ["no name1"], "other.rb": ["no name2"]}
        it.git("checkout", "-q", "--", "lib.rb")
        assert (await it.reach("call")).text == ""
        (it.ground.root / "lib.rb").unlink()
        assert told(await it.reach("call")) == {"user.rb": ["no name1"], "other.rb": ["no name2"]}


async def test_a_formatter_is_not_blamed_for_what_a_branch_had_that_nobody_has_looked_at(tmp_path: Path) -> None:
    async with repository(tmp_path) as it:
        await it.edit("user.rb", "use name1\nuse name2\n")
        it.ground.service.end(it.client)
        it.git("checkout", "-qf", "branch")
        await it.ground.service.disk_changes.catch_up(lambda _root: True)
        it.client = it.another()
        it.ground.service.conversations.begin(it.client)
        await it.ground.service.touched(Touch(("other.rb",), "read"), it.client)
        it.write({"user.rb": "use name1\n\nuse name9\n"})
        assert (await it.reach("call")).text == ""
        assert (await it.reach("stop")).text == ""


@pytest.mark.parametrize(
    ("last", "expected"), [("def name2\n", {}), ("def name2\ndef name4\n", {"user.rb": ["no name1"]})]
)
async def test_an_edit_that_takes_back_one_s_own_is_not_told_what_was_so_before(
    tmp_path: Path, last: str, expected: dict[str, list[str]]
) -> None:
    """What was mended for good, and is broken once more in another way, is told."""
    async with repository(tmp_path) as it:
        assert (await it.reach("stop")).text == ""
        it.write({"lib.rb": "def name2\n"})
        assert (await it.reach("prompt")).text == ""
        assert told(await it.edit("lib.rb", "def name1\ndef name2\n")) == {}
        assert told(await it.edit("lib.rb", last)) == expected
        assert told(await it.reach("stop")) == expected


LIB = "def greet(name: str) -> str:\n    return name\n\n\ndef size(x: int) -> int:\n    return x\n"
CALLER = 'from lib import greet, size\n\nprint(greet("x"), size(1))\n'
BROKEN_CALLER = CALLER.replace('"x"', "1")
BROKEN_LIB = LIB.replace("name: str", "name: str, title: str")
RENAMED, UNDONE = ("def greet(", "def hello("), ("def hello(", "def greet(")


@pytest.mark.parametrize(
    "edits",
    [
        (RENAMED, UNDONE),
        (RENAMED, ("def size", "def big"), ("def big", "def size"), UNDONE),
        (RENAMED, ("def hello(", "def greet( ")),
    ],
    ids=["taken back", "with another between", "but for the layout"],
)
@pytest.mark.parametrize(("lib", "caller"), [(LIB, BROKEN_CALLER), (BROKEN_LIB, CALLER)], ids=["call", "signature"])
async def test_what_one_s_own_edit_had_covered_is_older_when_it_is_seen_again(
    tmp_path: Path, lib: str, caller: str, edits: tuple[tuple[str, str], ...]
) -> None:
    """Of a name that is not there, no checker says how it is called."""
    async with real_service(tmp_path, only("basedpyright")) as it:
        it.write("lib.py", lib)
        it.write("caller.py", caller)
        texts = list[str]()
        for old, new in edits:
            before = (it.root / "lib.py").read_text()
            it.write("lib.py", before.replace(old, new))
            touch = Touch(("lib.py",), "edit", before={"lib.py": before})
            texts.append((await it.service.touched(touch, it.client)).text)
        assert '"greet" is unknown import symbol' in texts[0]
        assert texts[-1] == ""
        assert (await it.service.reached(Moment("stop"), it.client)).text == ""
