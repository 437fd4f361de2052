"""A check of everything is warm: what cannot have changed is not asked about again, and whatever has is."""

import os
import signal
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import cast

import anyio
import pytest

from pilotfish.api.answers import Diagnostic, State
from pilotfish.api.questions import Operation, Question
from pilotfish.system.watching.watcher import open_watcher
from support.servers.script import Script
from support.services.checks import full
from support.services.real import RealService, real_service
from support.services.several import BY_LINE, PROGRAM, WallClock, service_on

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-13")]

OTHERS = ("ruff", "basedpyright", "pyrefly", "pyright", "pylsp", "jedi", "typos")
FILES = {
    "pyproject.toml": "",
    "lib.py": "def total() -> int:\n    return 1\n",
    "middle.py": "from typing import Final\n\nfrom lib import total\n\nvalue: Final = total()\n",
    "top.py": "from middle import value\n\nanswer: int = value\n",
    "alone.py": "missing\n",
}


@pytest.fixture
def anyio_backend() -> str:
    """Real processes have no virtual time."""
    return "asyncio"


@pytest.fixture
async def project(tmp_path: Path) -> AsyncGenerator[RealService]:
    async with real_service(tmp_path, {"lsp": {one: {"disabled": True} for one in OTHERS}}) as ground:
        for name, text in FILES.items():
            ground.write(name, text)
        # The watcher of a root begins with its first server.
        await found(ground)
        with anyio.fail_after(30):
            while not ground.service.disk_changes.follows(ground.client.root):
                await anyio.lowlevel.checkpoint()
        await found(ground)
        yield ground


async def found(ground: RealService) -> dict[str, list[str]]:
    """The messages of every file, each checked by a call of its own, as the command line does."""
    everything: dict[str, list[str]] = {}
    for name in sorted(path.name for path in ground.root.glob("*.py")):
        answer = await ground.service.check(ground.client, (name,))
        assert answer.meta.state is State.FRESH
        data: Mapping[str, tuple[object, ...]] = answer.data or {}
        everything[name] = [getattr(one, "code", "") for one in data[name]]
    return everything


def asked(ground: RealService) -> int:
    """How many files the server has checked."""
    return ground.service.pool.counters.checks["ty"]


async def test_nothing_changed_and_nobody_is_asked(project: RealService) -> None:
    before = asked(project)
    assert await found(project) == {
        "alone.py": ["unresolved-reference"], "lib.py": [], "middle.py": [], "top.py": []
    }  # fmt: skip
    assert asked(project) == before


async def test_a_change_reaches_whom_it_concerns_and_nobody_else(project: RealService) -> None:
    before = asked(project)
    project.write("lib.py", "def total() -> str:\n    return ''\n")
    now = await found(project)
    # `middle` is as right as before; its value is not what `top` says.
    assert now["top.py"] == ["invalid-assignment"]
    assert asked(project) - before == len(("lib", "middle", "top"))
    project.write("lib.py", FILES["lib.py"])
    assert (await found(project))["top.py"] == []


async def test_a_deleted_file_is_missed_by_its_importers(project: RealService) -> None:
    (project.root / "lib.py").unlink()
    assert (await found(project))["middle.py"] == ["import-not-found"]


async def test_what_nobody_has_judged_may_concern_everybody(project: RealService) -> None:
    project.write("alone.py", "import new\n\nnew.missing\n")
    assert (await found(project))["alone.py"] == ["import-not-found"]
    project.write("new.py", "missing = 1\n")
    assert (await found(project))["alone.py"] == []


@pytest.mark.parametrize(("server", "asked"), [("basedpyright", 0), ("ty", 1)])
async def test_a_refresh_for_an_opened_document_is_no_reason_to_ask_again(
    server: str, asked: int, tmp_path: Path
) -> None:
    """basedpyright sends one whenever a document is opened; what others do it for is not known."""

    def refreshing(script: Script) -> None:
        BY_LINE(script)
        script.on("textDocument/didOpen", lambda _: script.ask("workspace/diagnostic/refresh"))
        script.on("textDocument/diagnostic", lambda _: full())

    config = {"lsp": {server: {"command": [PROGRAM]}}}
    async with service_on(tmp_path, {server: refreshing}, config, watch=open_watcher, clock=WallClock()) as ground:
        for name in ("pyproject.toml", "a.py", "b.py", "c.py"):
            ground.write(name, "")
        await ground.check("c.py")
        with anyio.fail_after(30):
            while not ground.service.disk_changes.follows(ground.client.root):
                await anyio.lowlevel.checkpoint()
        for name in ("a.py", "b.py"):
            await ground.check(name)
        before = ground.service.pool.counters.checks[server]
        await ground.check("a.py")
        assert ground.service.pool.counters.checks[server] - before == asked


# --- Texts that are not on disk ---------------------------------------------------------------------------------------

WORSE = "value: str = ''\n"
BETTER = "value: int = 2\n"


async def broken_by(ground: RealService, text: str) -> set[str]:
    """The files with an error that a text of `middle.py` would bring."""
    answer = await ground.service.check(ground.client, ("middle.py",), texts={"middle.py": text})
    assert answer.meta.state is State.FRESH
    data = cast("Mapping[str, tuple[Diagnostic, ...]]", answer.data)
    return {name for name, items in data.items() if any(one.introduced for one in items)}


@pytest.mark.proves("DIAG-9")
async def test_of_many_proposed_texts_the_disk_is_asked_about_once(project: RealService) -> None:
    before = asked(project)
    for text, broken in ((WORSE, {"top.py"}), (BETTER, set[str]()), (WORSE, {"top.py"})):
        assert await broken_by(project, text) == broken
    assert asked(project) == before
    # What was known of the disk stands, and is not what the texts made of it.
    assert (await found(project))["top.py"] == []
    assert asked(project) == before


@pytest.mark.proves("DIAG-9")
async def test_an_edit_between_two_proposed_texts_is_seen_by_the_next(project: RealService) -> None:
    assert await broken_by(project, WORSE) == {"top.py"}
    project.write("top.py", "from middle import value\n\nanswer: str = value\n")
    assert (await found(project))["top.py"] == ["invalid-assignment"]
    assert await broken_by(project, WORSE) == set[str]()
    assert (await found(project))["top.py"] == ["invalid-assignment"]


@pytest.mark.proves("DIAG-9")
async def test_a_question_after_a_proposed_text_is_answered_from_the_disk(project: RealService) -> None:
    assert await broken_by(project, WORSE) == {"top.py"}
    question = Question(operation=Operation.HOVER, file_path="middle.py", line=5, character=1)
    answer = await project.service.ask(question, project.client)
    assert "int" in str(answer.data)


@pytest.mark.proves("DIAG-9", "POOL-2")
async def test_a_server_that_dies_between_two_proposed_texts_is_asked_about_the_disk_again(
    project: RealService,
) -> None:
    assert await broken_by(project, WORSE) == {"top.py"}
    (entry,) = project.service.pool.entries().values()
    assert entry.session is not None
    os.kill(entry.session.pid, signal.SIGKILL)
    with anyio.fail_after(30):
        await entry.session.ended()
    before = asked(project)
    assert await broken_by(project, BETTER) == set[str]()
    assert await broken_by(project, WORSE) == {"top.py"}
    assert asked(project) > before
    assert (await found(project))["top.py"] == []
