"""One file that cannot be read costs nothing of what is known about the others, whoever asks."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pilotfish.api.answers import State
from pilotfish.errors import Code
from pilotfish.surfaces.cli.workspace import NO_DAEMON
from support.clients.mcp import client_on
from support.files.repositories import commit_everything, offer_git
from support.servers.complaining import complaining
from support.servers.real import User, make_user, require
from support.services.scripted import ScriptedService, scripted_service

pytestmark = pytest.mark.proves("DOC-6", "PATH-4", "F54")

LATIN_1 = b"# caf\xe9\nuse alpha\n"


# --- As a user: the program and a real server ------------------------------------------------------------------------


@pytest.fixture
def user(tmp_path: Path) -> User:
    """`main.py` and the Latin-1 `legacy.py` import `greeting.py`, of which the argument has become a number."""
    require(["basedpyright"])
    made = make_user(tmp_path, ["basedpyright"], {"timing": {"diagnosticsWaitTimeoutMs": 60_000}}, trusted=False)
    (made.workspace / "greeting.py").write_text("def greet(name: str) -> str:\n    return name\n")
    (made.workspace / "main.py").write_text('from greeting import greet\n\nprint(greet("x"))\n')
    (made.workspace / "legacy.py").write_bytes(b"# caf\xe9\nfrom greeting import greet\n")
    offer_git(Path(made.environment["PATH"]))
    commit_everything(made.workspace)
    (made.workspace / "greeting.py").write_text("def greet(times: int) -> int:\n    return times\n")
    return made


def pilotfish(user: User, *words: str, given: str | None = None) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "pilotfish", *words, "--json"],
        cwd=user.workspace,
        env={"PATH": os.environ["PATH"], **user.environment, NO_DAEMON: "1"},
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(done.stdout)


@pytest.mark.server("basedpyright")
@pytest.mark.proves("FMT-8", "HOOK-1", "F101")
def test_touched_tells_what_broke_and_names_the_file_that_it_could_not_read(user: User) -> None:
    feedback = pilotfish(user, "touched", "--kind", "write", "greeting.py")
    assert 'file="main.py"' in feedback["text"], feedback
    assert feedback["state"] == "partial"
    assert "legacy.py" in feedback["reason"]
    assert "not UTF-8" in feedback["reason"]


@pytest.mark.server("basedpyright")
@pytest.mark.proves("DIAG-9")
def test_a_preview_tells_what_would_break_and_names_the_file_that_it_could_not_read(user: User) -> None:
    (user.workspace / "greeting.py").write_text("def greet(name: str) -> str:\n    return name\n")
    proposed = "def greet(times: int) -> int:\n    return times\n"
    answer = pilotfish(user, "check", "--stdin", "greeting.py", given=proposed)
    assert [one["introduced"] for one in answer["data"]["main.py"]] == [True], answer
    assert answer["meta"]["state"] == "partial"
    assert "legacy.py" in answer["meta"]["reason"]


@pytest.mark.server("basedpyright")
@pytest.mark.proves("CLI-1", "F101")
def test_check_of_several_files_keeps_the_others(user: User) -> None:
    answer = pilotfish(user, "check", "legacy.py", "main.py", "missing.py")
    assert [one["severity"] for one in answer["data"]["main.py"]] == ["error"], answer
    assert answer["meta"]["state"] == "partial"
    assert {error["code"] for error in answer["errors"]} == {Code.UNSUPPORTED, Code.FILE_MISSING}
    for name in ("legacy.py", "missing.py"):
        assert name in answer["meta"]["reason"]


# --- On a scripted server --------------------------------------------------------------------------------------------


@pytest.fixture
def anyio_backend() -> str:
    """Real time: related files are looked for in a worker thread, which a clock that jumps does not wait for."""
    return "trio"


def with_latin_1(scripted: ScriptedService) -> None:
    scripted.write("alpha.fake", "wrong a\n")
    scripted.write("b.fake", "wrong b, use alpha\n")
    (scripted.root / "c.fake").write_bytes(LATIN_1)


@pytest.mark.anyio
@pytest.mark.proves("DIAG-6", "MCP-1")
async def test_diagnostics_of_all_files_are_those_of_the_readable_ones(tmp_path: Path) -> None:
    async with scripted_service(tmp_path, complaining) as scripted:
        for name in ("alpha.fake", "b.fake"):
            scripted.write(name, f"wrong {name}\n")
        async with client_on(scripted) as client:
            for name in ("alpha.fake", "b.fake"):
                await client.call_tool("lsp_diagnostics", {"filePath": name})
            (scripted.root / "b.fake").write_bytes(LATIN_1)
            result = await client.call_tool("lsp_diagnostics", {})
    answer = result.structured_content
    assert list(answer["data"]) == ["alpha.fake"]
    assert answer["meta"]["state"] == "partial"
    assert "b.fake" in answer["meta"]["reason"]
    assert not result.is_error


@pytest.mark.anyio
@pytest.mark.proves("DIAG-9")
async def test_a_text_proposed_for_a_file_that_is_not_utf_8_is_judged_and_compared_with_nothing(tmp_path: Path) -> None:
    async with scripted_service(tmp_path, complaining) as scripted:
        with_latin_1(scripted)
        texts = {"c.fake": "wrong c\n", "../outside.fake": "wrong\n"}
        answer = await scripted.service.check(scripted.session(), ("alpha.fake", "missing.fake"), texts=texts)
    assert answer.meta.state is State.PARTIAL
    assert {path: [one.introduced for one in found] for path, found in (answer.data or {}).items()} == {
        "alpha.fake": [False],
        "c.fake": [None],
    }
    assert {error.code for error in answer.errors} == {Code.OUTSIDE_WORKSPACE, Code.FILE_MISSING}


@pytest.mark.proves("A14.8")
@pytest.mark.anyio
async def test_few_of_many_unreadable_related_files_are_named_without_control_characters(tmp_path: Path) -> None:
    async with scripted_service(tmp_path, complaining) as scripted:
        with_latin_1(scripted)
        for number in range(6):
            (scripted.root / f"x\n{number}.fake").write_bytes(LATIN_1)
        answer = await scripted.service.preview(scripted.session(), (), {"alpha.fake": "wrong\n"})
    reason = answer.meta.reason or ""
    assert answer.meta.state is State.PARTIAL
    assert "\n" not in reason
    assert reason.count("not UTF-8") == 3
    assert "4 more files" in reason
