"""What a shared pool promises, with real language servers that are killed, frozen and shared."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from pilotfish.api.answers import Feedback, State
from pilotfish.api.questions import Touch
from pilotfish.errors import Code
from pilotfish.service.workspaces import ClientSession
from support.services.real import RealService, real_service

pytestmark = [pytest.mark.anyio, pytest.mark.server("basedpyright")]

BROKEN = "def greet(name: str) -> str:\n    return 1\n"
FINE = "def greet(name: str) -> str:\n    return name\n"

CHAIN = {
    "pyproject.toml": "",
    "lib.py": "class Symbol:\n    size = 1\n",
    "middle.py": "from lib import Symbol\n\nANY = Symbol()\n\n\ndef made():\n    return ANY.size\n",
    "top.py": "import middle\n\nvalue = middle.made()\nother = middle.ANY\n",
}

ONLY_BASEDPYRIGHT = {"lsp": {"ruff": {"disabled": True}}}
PATIENT = {
    "timing": {"diagnosticsWaitTimeoutMs": 30_000, "firstTouchTimeoutMs": 60_000},
    **ONLY_BASEDPYRIGHT,
}


async def feedback(running: RealService, text: str, client: ClientSession | None = None) -> Feedback:
    name = running.write("app.py", text)
    return await running.service.touched(Touch((name,), "edit"), client or running.client)


@pytest.mark.proves("POOL-6", "A15.7")
async def test_two_client_sessions_on_one_root_share_one_process(tmp_path: Path) -> None:
    async with real_service(tmp_path, PATIENT) as running:
        first = await feedback(running, BROKEN)
        second = await feedback(running, FINE, running.another_client())
        assert (first.state, second.state) == (State.FRESH, State.FRESH)
        assert "reportReturnType" in first.text
        assert second.text == ""
        assert running.entry("basedpyright").starts == 1


@pytest.mark.proves("F6", "F9", "POOL-2", "A15.5")
async def test_after_kill_nine_the_next_answer_is_right_without_anyone_acting(tmp_path: Path) -> None:
    async with real_service(tmp_path, PATIENT) as running:
        await feedback(running, FINE)
        session = running.entry("basedpyright").session
        assert session is not None
        os.kill(session.pid, signal.SIGKILL)
        after = await feedback(running, BROKEN)
        assert after.state is State.FRESH
        assert "reportReturnType" in after.text
        assert running.entry("basedpyright").starts == 2


@pytest.mark.proves("F18", "POOL-5", "A15.6")
async def test_a_frozen_server_is_found_hung_and_replaced_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    async with real_service(tmp_path, PATIENT) as running:
        await feedback(running, FINE)
        session = running.entry("basedpyright").session
        assert session is not None
        tree = [psutil.Process(session.pid), *psutil.Process(session.pid).children(recursive=True)]
        for process in tree:
            process.suspend()
        after = await feedback(running, BROKEN)
        assert "reportReturnType" in after.text
        assert running.service.pool.counters.failures["basedpyright", Code.SERVER_HUNG] == 1
        psutil.wait_procs(tree, timeout=5)
        assert not [process for process in tree if process.is_running()]


@pytest.mark.proves("F4", "P4", "C34")
async def test_a_start_that_hangs_is_no_verdict_in_time_and_leaves_no_process(tmp_path: Path) -> None:
    hanging = ["/bin/sh", "-c", "exec sleep 1000 # pilotfish-hanging"]
    config = {
        "lsp": {"hanging": {"command": hanging, "extensions": [".hang"], "timeouts": {"initializeTimeoutMs": 300}}}
    }
    async with real_service(tmp_path, config) as running:
        name = running.write("a.hang", "x")
        answer = await running.service.check(running.client, [name])
        assert answer.meta.state is State.UNAVAILABLE
        assert [error.code for error in answer.errors] == [Code.INIT_TIMEOUT]
        assert not [one for one in psutil.process_iter(["cmdline"]) if hanging[2] in (one.info["cmdline"] or ())]


@pytest.mark.proves("REG-5", "F1", "FMT-8")
async def test_a_program_that_is_not_there_is_said_once_after_an_edit_and_is_the_reason_when_asked(
    tmp_path: Path,
) -> None:
    config = {"lsp": {"absent": {"command": ["no-such-program-anywhere"], "extensions": [".absent"]}}}
    async with real_service(tmp_path, config) as running:
        name = running.write("a.absent", "x")
        first = await running.service.touched(Touch((name,), "edit"), running.client)
        assert first.text == (
            '.absent files are not checked by absent: LSP server "no-such-program-anywhere" is not available.'
        )
        quiet = await running.service.touched(Touch((name,), "edit"), running.client)
        assert (quiet.text, first.state, quiet.state) == ("", State.UNAVAILABLE, State.UNAVAILABLE)
        answer = await running.service.check(running.client, [name])
        assert not answer.ok
        assert answer.errors[0].code is Code.SERVER_MISSING
        assert "no-such-program-anywhere" in answer.errors[0].message


GREETER = "class Greeter:\n    name = 'a'\n    def bye(self) -> None:\n        pass\n"
MODE = "from typing import Literal\n\nMode = Literal['ab']\n"
PATTERN = "export const end = /\\/*$/;\nexport const name: string = 'a';\n/* more */\n"


@pytest.mark.proves("DIAG-11", "A15.8")
@pytest.mark.parametrize(
    ("ending", "before", "after", "user"),
    [
        pytest.param(
            "py",
            GREETER,
            GREETER.replace("    def", "def").replace("        pass", "    pass"),
            "from lib import Greeter\n\nGreeter().bye()\n",
            id="a method that is one no more",
        ),
        pytest.param(
            "py", MODE, MODE.replace("ab", "a b"), "from lib import Mode\n\nx: Mode = 'ab'\n", id="a blank in a text"
        ),
        pytest.param(
            "ts",
            PATTERN,
            PATTERN.replace("string = 'a'", "number = 1"),
            "import { name } from './lib';\nexport const x: string = name;\n",
            id="behind a pattern that looks like a comment",
            marks=pytest.mark.server("typescript"),
        ),
    ],
)
async def test_an_edit_that_seems_to_change_nothing_is_told_in_other_files(
    ending: str, before: str, after: str, user: str, tmp_path: Path
) -> None:
    async with real_service(tmp_path, PATIENT) as running:
        running.write("tsconfig.json", "{}")
        names = [running.write(f"lib.{ending}", before), running.write(f"user.{ending}", user)]
        assert (await running.service.check(running.client, names)).meta.state is State.FRESH
        running.write(names[0], after)
        told = await running.service.touched(Touch((names[0],), "edit"), running.client)
    assert f"user.{ending}" in told.text, told


@pytest.mark.proves("DIAG-2", "DIAG-3")
async def test_what_was_found_on_the_way_to_another_file_is_not_told_once_it_is_mended(tmp_path: Path) -> None:
    async with real_service(tmp_path, PATIENT) as running:
        for name, text in CHAIN.items():
            running.write(name, text)
        # The middle is looked into for the top while it is wrong, and asked about when it is right again.
        for turn, (name, expected) in enumerate((("top.py", None), ("middle.py", 0)) * 3):
            running.write("lib.py", CHAIN["lib.py"].replace("Symbol", "Symbol" if turn % 2 else f"Other{turn}"))
            answer = await running.service.check(running.client, (name,))
            assert answer.meta.state is State.FRESH
            found: Mapping[str, tuple[object, ...]] = answer.data or {}
            assert expected is None or not found[name]
        running.write("lib.py", "")
        answer = await running.service.check(running.client, ("middle.py",))
        assert [getattr(one, "message", "") for one in (answer.data or {})["middle.py"]] == [
            '"Symbol" is unknown import symbol'
        ]
