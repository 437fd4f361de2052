"""A server that judges its whole project names every file that an edit broke; where it cannot be asked, others are
looked for as ever, and nobody says that the whole project was judged.
"""

import random
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from pilotfish.api.answers import Feedback, State
from pilotfish.api.questions import Touch
from pilotfish.model import AbsPath
from pilotfish.pool.plan import Why
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.service.diagnostics.runner import CheckRunner
from pilotfish.system.clock import WallClock
from support.servers.complaining import complaining
from support.servers.linker import linker, told, used
from support.servers.script import Script
from support.services.real import only, real_service
from support.services.several import Ground, service_on

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-11")]

STEPS, FILES, NAMES = 10, 6, 8
WAYS = {"ty": ".py", "gopls": ".go"}
"""A server that is pulled, and one that publishes after a command: as the catalogue has it."""


@pytest.fixture
def anyio_backend() -> str:
    """Files are read in threads, which virtual time does not wait for."""
    return "asyncio"


@pytest.fixture(params=WAYS)
def server(request: pytest.FixtureRequest) -> str:
    return request.param


def config(server: str, more: Mapping[str, Any] | None = None, wait: int = 2_000) -> dict[str, Any]:
    return {
        "lsp": {server: {"command": ["/bin/true"]}, **(more or {})},
        "feedback": {"onlyNew": True, "otherFilesAfter": ["edit", "write", "patch"], "maxOtherFiles": 50},
        "timing": {"diagnosticsWaitTimeoutMs": wait, "firstTouchTimeoutMs": 10 * wait},
    }


def begin(ground: Ground, server: str) -> None:
    ground.write({"ty": "pyproject.toml", "gopls": "go.mod"}[server], "")


async def edited(ground: Ground, name: str, text: str, kind: str = "edit") -> Feedback:
    before = (ground.root / name).read_text() if (ground.root / name).exists() else ""
    ground.write(name, text)
    return await ground.touched(name, kind=kind, before={name: before})


def judged(feedback: Feedback) -> str | None:
    return None if feedback.others is None else feedback.others.complete


async def test_a_file_is_named_that_no_word_tells_of_once_the_server_has_been_listened_to(
    tmp_path: Path, server: str
) -> None:
    end = WAYS[server]
    async with service_on(
        tmp_path, {server: partial(linker, judges_all=True)}, config(server), clock=WallClock()
    ) as ground:
        begin(ground, server)
        ground.write(f"lib{end}", "def name1\ndef name2\n")
        ground.write(f"far{end}", "ask 1\nask 7\n")
        first = await edited(ground, f"lib{end}", "def name1\ndef name2\ndef name3\n")
        assert told(first) == {}
        broken = await edited(ground, f"lib{end}", "def name2\ndef name3\n")
        # What it had before is not new.
        assert told(broken) == {f"far{end}": ["no name1"]}
        assert (broken.state, judged(broken)) == (State.FRESH, "project")
        mended = await edited(ground, f"lib{end}", "def name1\ndef name2\ndef name3\n")
        assert (mended.text, mended.fixed, judged(mended)) == ("", 1, "project")


async def test_what_it_says_of_a_worktree_inside_is_for_those_who_work_there(tmp_path: Path, server: str) -> None:
    end = WAYS[server]
    scenario = partial(linker, judges_all=True)
    async with service_on(tmp_path, {server: scenario}, config(server), clock=WallClock()) as ground:
        begin(ground, server)
        ground.write(f"lib{end}", "def name1\n")
        ground.write("trees/one/.git", "gitdir: /r/.git/worktrees/one\n")
        for name in (f"far{end}", f"trees/one/far{end}"):
            ground.write(name, "ask 1\n")
        await edited(ground, f"lib{end}", "def name1\ndef name2\n")
        assert told(await edited(ground, f"lib{end}", "def name2\n")) == {f"far{end}": ["no name1"]}


async def test_what_only_the_server_of_another_language_judges_is_looked_at_beside_an_account_of_the_project(
    tmp_path: Path,
) -> None:
    """Robot Framework calls a function of Python by another spelling."""
    scenarios = {"ty": partial(linker, judges_all=True, own=".py"), "robotcode": partial(linker, publishes=True)}
    trusted = {"security": {"trustedProjectRoots": [str(tmp_path.resolve() / "workspace")]}}
    settings = config("ty", {"robotcode": {"command": ["/bin/true"]}}) | trusted
    async with service_on(tmp_path, scenarios, settings, clock=WallClock()) as ground:
        begin(ground, "ty")
        ground.write("lib.py", "def name1\n")
        ground.write("far.robot", "Library lib.py\nask 1\n")
        await edited(ground, "lib.py", "def name1\ndef name2\n")
        broken = await edited(ground, "lib.py", "def name2\n")
    assert (told(broken), broken.state) == ({"far.robot": ["no name1"]}, State.FRESH)


@pytest.mark.proves("C92")
async def test_a_server_that_does_not_answer_in_time_is_not_said_to_have_judged_its_project(
    tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_an_old_server(*_: object) -> float:
        return 0.0

    monkeypatch.setattr(CheckRunner, "seconds_of_loading", of_an_old_server)
    end, silent = WAYS[server], False
    scenario = partial(linker, judges_all=True, holds_back=lambda: silent)
    async with service_on(tmp_path, {server: scenario}, config(server), clock=WallClock()) as ground:
        begin(ground, server)
        ground.write(f"lib{end}", "def name1\n")
        ground.write(f"far{end}", "ask 1\n")
        await edited(ground, f"lib{end}", "def name1\ndef name2\n")
        silent = True
        late = await edited(ground, f"lib{end}", "def name2\n")
        assert judged(late) != "project"
        silent = False
        # What was not told is owed.
        after = await edited(ground, f"lib{end}", "def name2\ndef name3\n")
        assert (told(after), judged(after)) == ({f"far{end}": ["no name1"]}, "project")


async def test_an_account_that_was_given_after_an_edit_says_nothing_of_what_that_broke(
    tmp_path: Path, server: str
) -> None:
    """Also when the first question about the edit was cut off: its effect is in all that the server says since."""
    end, silent = WAYS[server], False
    scenario = partial(linker, judges_all=True, holds_back=lambda: silent)
    async with service_on(tmp_path, {server: scenario}, config(server), clock=WallClock()) as ground:
        begin(ground, server)
        ground.write(f"lib{end}", "def name1\n")
        ground.write(f"near{end}", "import lib\nuse name1\n")
        before = {f"lib{end}": "def name1\n"}
        ground.write(f"lib{end}", "def name2\n")
        ground.write(f"other{end}", "def name9\n")
        await ground.touched(f"other{end}", before={f"other{end}": "def name8\n"})
        silent = True
        with anyio.move_on_after(0.5):
            await ground.touched(f"lib{end}", before=before)
        silent = False
        told_late = await ground.touched(f"lib{end}", before=before)
        assert told(told_late) == {f"near{end}": ["no name1"]}


async def test_what_a_deletion_broke_is_told_also_when_others_wrote_before_the_file_was_read(
    tmp_path: Path, server: str
) -> None:
    end = WAYS[server]
    async with service_on(
        tmp_path, {server: partial(linker, judges_all=True)}, config(server), clock=WallClock()
    ) as ground:
        begin(ground, server)
        ground.write(f"lib{end}", "def name1\n")
        ground.write(f"far{end}", "ask 1\nask 7\n")
        await edited(ground, f"other{end}", "def name9\n")
        states = ground.service.states
        states.note(ground.client.root, [PathChange(AbsPath(str(ground.root / "written")), Change.CHANGED)])
        await ground.touched(f"lib{end}", kind="read")
        (entry,) = ground.service.pool.entries().values()
        assert entry.session is not None
        account = ground.service.patch_checks.reports.accounts.get((entry.session.server, entry.session.root))
        assert account is not None
        with anyio.move_on_after(20):
            while account.world < states.world:
                with anyio.move_on_after(0.1):
                    await entry.session.changed.wait()
        (ground.root / f"lib{end}").unlink()
        gone = await ground.touched(f"lib{end}", kind="patch", before={f"lib{end}": "def name1\n"})
        assert told(gone) == {f"far{end}": ["no name1"]}


async def test_what_a_deletion_broke_is_told_by_the_next_process_too_and_after_an_edit_that_mattered_to_nobody(
    tmp_path: Path,
) -> None:
    """A file that is moved may end a server, and comments are written all the time."""
    async with service_on(
        tmp_path, {"ty": partial(linker, judges_all=True)}, config("ty"), clock=WallClock()
    ) as ground:
        begin(ground, "ty")
        ground.write("lib.py", "def name1\n")
        ground.write("far.py", "ask 1\nask 7\n")
        await edited(ground, "other.py", "def name9\n")
        await edited(ground, "other.py", "def name9\ndef name8\n")
        assert told(await edited(ground, "other.py", "def name9\ndef name8  # of old\n")) == {}
        (entry,) = ground.service.pool.entries().values()
        assert entry.session is not None
        before = entry.session
        entry.stop(Why.INPUTS)
        (ground.root / "lib.py").unlink()
        gone = await ground.touched("lib.py", kind="patch", before={"lib.py": "def name1\n"})
        assert told(gone) == {"far.py": ["no name1"]}
        (entry,) = ground.service.pool.entries().values()
        assert entry.session is not before


@pytest.mark.proves("DIAG-8", "DIAG-14")
async def test_what_the_last_process_was_too_slow_to_say_is_not_charged_to_an_edit_by_the_next_one(
    tmp_path: Path,
) -> None:
    async with service_on(
        tmp_path, {"ty": partial(linker, judges_all=True)}, config("ty"), clock=WallClock()
    ) as ground:
        begin(ground, "ty")
        ground.write("lib.py", "def name1\n")
        ground.write("far.py", "ask 1\n")
        await edited(ground, "other.py", "def name9\n")
        await edited(ground, "other.py", "def name9\ndef name8\n")
        (entry,) = ground.service.pool.entries().values()
        assert entry.session is not None
        account = ground.service.patch_checks.reports.accounts.get((entry.session.server, entry.session.root))
        assert account is not None
        account.seconds = 9.0
        # Somebody else breaks a file, and the server is not asked about its project any more.
        ground.write("lib.py", "def name5\n")
        lib = AbsPath(str(ground.root / "lib.py"))
        ground.service.states.note(ground.client.root, [PathChange(lib, Change.CHANGED)])
        await edited(ground, "other.py", "def name9\ndef name7\n")
        entry.stop(Why.INPUTS)
        assert told(await edited(ground, "other.py", "def name9\ndef name6\n")) == {}


@pytest.mark.proves("DIAG-8")
async def test_what_was_told_of_an_edited_file_is_not_told_again_with_the_next_edit(
    tmp_path: Path, server: str
) -> None:
    end = WAYS[server]
    async with service_on(
        tmp_path, {server: partial(linker, judges_all=True)}, config(server), clock=WallClock()
    ) as ground:
        begin(ground, server)
        ground.write(f"lib{end}", "def name1\n")
        await edited(ground, f"near{end}", "def name2\n")
        broken = await edited(ground, f"near{end}", "def name3\nask 7\n")
        assert told(broken) == {f"near{end}": ["no name7"]}
        # Of the states of many files, the least recently used ones go.
        ground.service.states.drop(lambda path: path.endswith(f"near{end}"))
        after = await edited(ground, f"lib{end}", "def name4\n")
        assert told(after) == {}


async def test_with_a_second_server_of_the_files_nobody_says_that_the_project_was_judged(tmp_path: Path) -> None:
    servers = {"ty": partial(linker, judges_all=True), "one": complaining}
    more = {"one": {"command": ["/bin/true"], "extensions": [".py"]}}
    async with service_on(tmp_path, servers, config("ty", more), clock=WallClock()) as ground:
        begin(ground, "ty")
        ground.write("lib.py", "def name1\n")
        ground.write("near.py", "import lib\nuse name1\n")
        await edited(ground, "lib.py", "def name1\ndef name2\n")
        broken = await edited(ground, "lib.py", "def name2\n")
        assert set(told(broken)) == {"near.py"}
        assert judged(broken) == "candidates"


# --- A model ---------------------------------------------------------------------------------------------------------

Broken = set[tuple[str, str]]
"""A file and the name that it misses."""


def broken(texts: Mapping[str, str]) -> Broken:
    defined = {line.split()[1] for text in texts.values() for line in text.splitlines() if line.startswith("def ")}
    return {(name, one) for name, text in texts.items() for one in used(text) if one not in defined}


def line(chance: random.Random) -> str:
    number = chance.randrange(NAMES)
    return chance.choice((f"def name{number}", f"use name{number}", f"ask {number}"))


def unreliable(script: Script, chance: random.Random, trouble: float) -> None:
    """Answers late, which is never, now and then, and dies once in a while."""

    def is_silent() -> bool:
        luck = chance.random()
        if luck < trouble / 4:
            script.leave(1)
        return luck < trouble

    linker(script, judges_all=True, is_silent=is_silent)


@pytest.mark.parametrize("trouble", [0.0, 0.03])
@pytest.mark.parametrize("seed", range(3))
async def test_no_file_is_left_out_that_is_broken_once_the_project_is_said_to_be_judged(
    tmp_path: Path, server: str, seed: int, trouble: float
) -> None:
    chance, end = random.Random(seed), WAYS[server]
    scenario = partial(unreliable, chance=random.Random(seed), trouble=trouble)
    # An answer that never comes is waited for to the end.
    settings = config(server, wait=300 if trouble else 2_000)
    async with service_on(tmp_path, {server: scenario}, settings, clock=WallClock()) as ground:
        begin(ground, server)
        texts = {f"f{number}{end}": "".join(f"{line(chance)}\n" for _ in range(3)) for number in range(FILES)}
        for name, text in texts.items():
            ground.write(name, text)
        claims, known = 0, Broken()
        for step in range(STEPS):
            before, name = broken(texts), chance.choice(sorted(texts))
            lines = texts[name].splitlines()
            lines[chance.randrange(len(lines))] = line(chance)
            texts[name] = "".join(f"{one}\n" for one in lines)
            feedback = await edited(ground, name, texts[name])
            now = broken(texts)
            said = {(file, message.removeprefix("no ")) for file, found in told(feedback).items() for message in found}
            assert said <= now, f"step {step}: {sorted(said - now)} is not there"
            known |= said
            if feedback.state is State.FRESH and judged(feedback) == "project":
                claims += 1
                missing = now - before - known
                assert not missing, f"step {step}: {sorted(missing)} is missing\n{feedback}"
            known &= now
        assert trouble or claims >= STEPS // 2


# --- A real server ---------------------------------------------------------------------------------------------------


@pytest.mark.server("pyrefly")
@pytest.mark.proves("DIAG-8")
async def test_what_a_server_says_of_other_files_after_the_first_save_is_no_news(tmp_path: Path) -> None:
    settings = {**only("pyrefly"), "timing": {"diagnosticsWaitTimeoutMs": 30_000, "firstTouchTimeoutMs": 60_000}}
    async with real_service(tmp_path, settings) as ground:
        ground.write("pyproject.toml", "")
        ground.write("lib.py", "def total() -> int:\n    return 1\n")
        ground.write("other.py", "import lib\n\nlib.total()\n(1).left_over\n")
        await ground.service.touched(Touch(("lib.py",), "read"), ground.client)
        session = ground.entry("pyrefly").session
        assert session is not None
        accounts, key = ground.service.patch_checks.reports.accounts, (session.server, session.root)
        with anyio.move_on_after(10):
            # What it says of the project before the edit is learnt in the background.
            while (account := accounts.get(key)) is None or account.at < 0:
                with anyio.move_on_after(0.1):
                    await session.changed.wait()
        ground.write("lib.py", "def total() -> int:\n    return 1\n\n\ndef added() -> int:\n    return 2\n")
        feedback = await ground.service.touched(Touch(("lib.py",), "edit", only_new=True), ground.client)
        # Before the server has spoken of that file, its errors "may be older".
        assert "left_over" not in feedback.text
        ground.write("lib.py", "def sum() -> int:\n    return 1\n")
        broken = await ground.service.touched(Touch(("lib.py",), "edit", only_new=True), ground.client)
        for _ in range(5):
            if broken.state is not State.PARTIAL:
                break
            # On a busy machine the other file follows.
            broken = await ground.service.touched(Touch(("lib.py",), "edit", only_new=True), ground.client)
        assert "total" in broken.text
        assert "left_over" not in broken.text
