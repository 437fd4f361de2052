"""A check of a whole project: every file of it, warm, and never called complete when it is not."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from pilotfish.api.answers import Answer, Diagnostic, State
from pilotfish.api.questions import Operation, Question
from pilotfish.errors import Code
from pilotfish.service.check_answer import CheckRequest
from support.servers.linker import linker
from support.services.real import RealService, real_service
from support.services.several import service_on

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-13")]

LINKED = {"lsp": {"one": {"command": ["/bin/true"], "extensions": [".rb"]}}}
OTHERS = ("ruff", "basedpyright", "pyrefly", "pyright", "pylsp", "jedi", "typos")


@pytest.fixture
def anyio_backend() -> str:
    """Files are read in threads, which virtual time does not wait for."""
    return "asyncio"


def lines(answer: Answer[Any]) -> dict[str, list[int]]:
    data: Mapping[str, tuple[Diagnostic, ...]] = answer.data or {}
    return {path: [one.line for one in found] for path, found in data.items()}


async def test_a_question_without_a_file_is_about_the_project(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": linker}, LINKED) as ground:
        ground.write("lib.rb", "def total\n")
        ground.write("deep/er/a.rb", "use total\nuse nothing\n")
        ground.write("notes.txt", "use nothing\n")
        answer = await ground.service.ask(Question(operation=Operation.DIAGNOSTICS), ground.client)
        assert (answer.meta.state, lines(answer)) == (State.FRESH, {"deep/er/a.rb": [1]})
        assert answer.meta.warnings == ("the whole project was checked: 2 files",)


async def test_a_folder_is_asked_about_like_the_project(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": linker}, LINKED) as ground:
        ground.write("lib.rb", "use nothing\n")
        ground.write("deep/er/a.rb", "use nothing\n")
        question = Question(operation=Operation.DIAGNOSTICS, file_path="deep", severity="error")
        answer = await ground.service.ask(question, ground.client)
        assert (answer.meta.state, lines(answer)) == (State.FRESH, {"deep/er/a.rb": [1]})
        assert answer.meta.warnings == ("the whole folder was checked: 1 file",)
        outside = await ground.service.ask(replace(question, file_path="/etc"), ground.client)
        assert outside.errors[0].code is Code.OUTSIDE_WORKSPACE


async def test_it_is_told_how_far_it_has_come(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    async with service_on(tmp_path, {"one": linker}, LINKED) as ground:
        for name in "abc":
            ground.write(f"{name}.rb", "def x\n")
        await ground.service.check_project(ground.client, done=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]


async def test_what_is_done_when_the_time_is_over_is_told_and_the_rest_is_counted(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": partial(linker, silent_about="late.rb")}, LINKED) as ground:
        ground.write("a.rb", "use nothing\n")
        ground.write("late.rb", "use nothing\n")
        answer = await ground.service.check_project(ground.client, seconds=3.0)
        assert (answer.meta.state, lines(answer)) == (State.PARTIAL, {"a.rb": [1]})
        assert "1 of 2 files were not checked yet" in (answer.meta.reason or "")
        assert answer.meta.warnings == ()


async def test_files_whose_server_is_missing_are_counted_and_the_answer_is_not_fresh(tmp_path: Path) -> None:
    absent = {"command": ["no-such-program"], "extensions": [".gone"]}
    config = {"lsp": {**LINKED["lsp"], "absent": absent}}
    async with service_on(tmp_path, {"one": linker}, config) as ground:
        ground.write("a.rb", "def x\n")
        ground.write("a.gone")
        answer = await ground.service.check_project(ground.client)
        assert answer.meta.state is State.PARTIAL
        assert [error.message.partition(":")[0] for error in answer.errors] == ["1 file was not checked"]


async def test_servers_for_the_rest_of_a_project_are_one_note_without_the_way_to_get_each(tmp_path: Path) -> None:
    """As beside C code with CMake, where every check ended with two lines about a server for CMakeLists.txt."""
    async with service_on(tmp_path, {"one": linker}, LINKED) as ground:
        ground.write("a.rb", "def x\n")
        for name in ("CMakeLists.txt", "lib/CMakeLists.txt", "a.css"):
            ground.write(name)
        answer = await ground.service.check_project(ground.client)
        assert answer.meta.state is State.FRESH
        (note,) = [one for one in answer.meta.warnings if "for want of a server" in one]
        assert note.startswith("3 files beside the code were not checked, for want of a server (")
        assert note.endswith("): pilotfish doctor")
        assert "Install it with" not in str(answer.meta.warnings)


async def test_a_file_that_is_deleted_meanwhile_is_no_file_of_the_project(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": linker}, LINKED) as ground:
        for name in "ab":
            ground.write(f"{name}.rb", "def x\n")

        def delete(_done: int, _total: int) -> None:
            (ground.root / "b.rb").unlink(missing_ok=True)

        answer = await ground.service.check_project(ground.client, done=delete)
        assert (answer.meta.state, lines(answer)) == (State.FRESH, {})


async def test_nothing_changed_and_nobody_is_asked(tmp_path: Path) -> None:
    config = {"lsp": {one: {"disabled": True} for one in OTHERS}}
    async with real_service(tmp_path, config) as ground:
        ground.write("pyproject.toml", "")
        ground.write("lib.py", "def total() -> int:\n    return 1\n")
        ground.write("user.py", "from lib import total\n\nanswer: str = total()\n")
        # The watcher of a root begins with its first server.
        await ground.service.check_project(ground.client)
        with anyio.fail_after(30):
            while not ground.service.disk_changes.follows(ground.client.root):
                await anyio.lowlevel.checkpoint()
        first = await ground.service.check_project(ground.client)
        asked = _asked(ground)
        again = await ground.service.check_project(ground.client)
        assert (again.meta.state, lines(again)) == (State.FRESH, {"user.py": [3]})
        assert lines(again) == lines(first)
        assert _asked(ground) == asked
        ground.write("lib.py", "def total() -> str:\n    return ''\n")
        assert lines(await ground.service.check_project(ground.client)) == {}
        assert _asked(ground) == asked + 2


def _asked(ground: RealService) -> int:
    """How many files the server has checked."""
    return ground.service.pool.counters.checks["ty"]


async def test_an_error_of_the_configuration_is_said_as_of_one_file(tmp_path: Path) -> None:
    config = {**LINKED, "timing": {"diagnosticsWaitTimeoutMs": "soon"}}
    async with service_on(tmp_path, {"one": linker}, config) as ground:
        ground.write("a.rb", "def total\n")
        for question in (
            Question(operation=Operation.DIAGNOSTICS),
            Question(operation=Operation.DIAGNOSTICS, file_path="a.rb"),
        ):
            answer = await ground.service.ask(question, ground.client)
            assert any(note.startswith("the configuration has an error: ") for note in answer.meta.warnings)


async def test_where_nothing_can_be_checked_it_answers_and_does_not_raise(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": linker}, {"lsp": False}) as ground:
        ground.write("a.rb", "def total\n")
        answer = await ground.service.check_project(ground.client)
        assert (answer.meta.state, answer.errors[0].message) == (State.UNAVAILABLE, "LSP disabled by configuration")
        files = await ground.service.check_files(ground.client, CheckRequest(("/",)))
        assert files.errors[0].code is Code.UNSUPPORTED
    (tmp_path / "other").mkdir()
    async with service_on(tmp_path / "other", {"one": linker}, LINKED) as ground:
        whole = await ground.service.check_files(ground.client, CheckRequest(("/",)))
        assert whole.errors[0].code is Code.INVALID_INPUT
