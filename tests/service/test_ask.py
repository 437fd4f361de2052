"""What a question's answer says when it cannot be whole."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from pilotfish.api.answers import State, error_of
from pilotfish.api.questions import Operation, Question
from pilotfish.errors import Code, Refused
from pilotfish.service.disk_changes import CATCH_UP_SECONDS
from support.servers.complaining import silent
from support.servers.importer import importer, register
from support.servers.script import SILENCE, Script
from support.services.checks import full, server_with
from support.services.scripted import scripted_service
from support.services.several import PROGRAM, custom, service_on
from support.services.watched import MAIN, WatchedService, watched_service
from support.virtual_time import anyio_backend
from support.watching.fake import FakeWatcher

__all__ = ["anyio_backend"]


pytestmark = pytest.mark.anyio


def hovering(script: Script) -> None:
    importer(script)
    script.capabilities["hoverProvider"] = True
    script.on("textDocument/hover", lambda params: {"contents": "a module"})


@asynccontextmanager
async def watched(folder: Path, watcher: FakeWatcher) -> AsyncGenerator[WatchedService]:
    async with watched_service(folder, hovering, watch=watcher.opened) as work:
        work.write(MAIN, "import later\n")
        await work.check()
        yield work


HOVER = Question(operation=Operation.HOVER, file_path=MAIN, line=1, character=8)


@pytest.mark.proves("F60", "P1", "P2")
async def test_a_server_that_could_not_be_told_of_all_changes_answers_in_part(tmp_path: Path) -> None:
    async with watched(tmp_path, FakeWatcher(covers=False)) as work:
        answer = await work.service.ask(HOVER, work.client)
        assert answer.data is not None
        assert answer.meta.state is State.PARTIAL
        assert answer.meta.reason == "importer: it was not notified of all changes on disk"


@pytest.mark.proves("F60", "P1")
async def test_a_question_waits_for_longer_than_an_edit_until_all_is_covered(tmp_path: Path) -> None:
    watcher = FakeWatcher()
    async with watched(tmp_path, watcher) as work:
        await work.watches()
        known = len(work.session.watchers())
        watcher.cover_seconds = 2 * CATCH_UP_SECONDS
        register(work.server, {"globPattern": "**/*.more"}, identifier="more")
        while len(work.session.watchers()) == known:
            await anyio.lowlevel.checkpoint()
        before = anyio.current_time()
        answer = await work.service.ask(HOVER, work.client)
        assert anyio.current_time() - before == pytest.approx(2 * CATCH_UP_SECONDS)
        assert answer.meta.state is State.FRESH


@pytest.mark.proves("TRUST-6", "OPTA-1", "OPS-5")
async def test_a_server_that_may_not_run_is_allowed_and_not_installed(tmp_path: Path) -> None:
    async with scripted_service(tmp_path, config={"security": {}}) as ground:
        (ground.root / ".pilotfish").mkdir()
        own = '{"lsp": {"one": {"command": ["/bin/true"], "extensions": [".x"]}}}'
        ground.write(".pilotfish/lsp.json", own)
        ground.write("a.x", "greet\n")
        question = Question(operation=Operation.HOVER, file_path="a.x", line=1, character=1)
        answer = await ground.service.ask(question, ground.session())
        (error,) = answer.errors
        assert error.code is Code.UNTRUSTED
        assert f"pilotfish trust {ground.root}" in error.message
        assert r"search the text: rg -n '\bgreet\b' -g '*.x'" in error.message
        assert "Install" not in error.message


@pytest.mark.proves("OPS-5")
async def test_the_outline_of_a_text_is_asked_for_once(tmp_path: Path) -> None:
    outlines: list[str] = []

    def using(script: Script) -> None:
        silent(script)
        script.capabilities |= {"referencesProvider": True, "documentSymbolProvider": True}
        here = {"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 9}}
        script.on("textDocument/references", lambda params: [{"uri": params["textDocument"]["uri"], "range": here}])

        def outline(params: Any) -> list[dict[str, Any]]:
            outlines.append(params["textDocument"]["uri"])
            whole = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 9}}
            name = {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 8}}
            return [{"name": f"body{len(outlines)}", "kind": 12, "range": whole, "selectionRange": name}]

        script.on("textDocument/documentSymbol", outline)

    async with scripted_service(tmp_path, using) as ground:
        ground.write("a.fake", "def main\n    greet\n")
        question = Question(operation=Operation.REFERENCES, file_path="a.fake", line=2, character=5)
        session = ground.session()

        async def within() -> list[str | None]:
            return [place.within for place in (await ground.service.ask(question, session)).data or ()]

        assert await within() == await within() == ["body1"]
        ground.write("a.fake", "def other\n    greet\n")
        assert await within() == ["body2"]
        assert len(outlines) == 2


@pytest.mark.parametrize(
    ("message", "hint", "said"),
    [
        pytest.param("it is outside", "Only files inside.", "it is outside. Only files inside.", id="a clause"),
        pytest.param("It is outside.", "Only files inside.", "It is outside. Only files inside.", id="a sentence"),
        pytest.param("is it outside?", "Yes.", "is it outside? Yes.", id="a question"),
        pytest.param("it is outside", None, "it is outside", id="no advice"),
    ],
)
@pytest.mark.proves("OPS-6")
def test_what_to_do_is_a_sentence_of_its_own(message: str, hint: str | None, said: str) -> None:
    assert error_of(Refused(Code.OUTSIDE_WORKSPACE, message, hint=hint)).message == said


def analysing(script: Script) -> None:
    script.capabilities |= {"hoverProvider": True, "diagnosticProvider": {"interFileDependencies": True}}
    script.on("textDocument/hover", lambda params: {"contents": "a module"})
    script.on("textDocument/diagnostic", lambda params: full())


@pytest.mark.proves("F19")
@pytest.mark.parametrize(("server", "waits"), [("basedpyright", False), ("one", True)])
async def test_a_server_that_has_said_its_first_diagnostics_is_not_waited_for_again(
    tmp_path: Path, server: str, *, waits: bool
) -> None:
    config = {"lsp": {server: {"command": ["/bin/true"], "extensions": [".py"]}}}
    async with service_on(tmp_path, {server: analysing}, config) as ground:
        path = ground.write("a.py", "import later\n")
        asked = Question(operation=Operation.HOVER, file_path=path, line=1, character=8)
        assert (await ground.service.ask(asked, ground.client)).meta.state is State.FRESH
        begin = {"kind": "begin", "title": "199 files to analyze"}
        ground.server(server).notify("$/progress", {"token": "open documents", "value": begin})
        await anyio.wait_all_tasks_blocked()
        before = anyio.current_time()
        answer = await ground.service.ask(asked, ground.client)
        waited = anyio.current_time() - before
        checked = await ground.check("a.py")
    assert answer.data is not None
    assert (answer.meta.state is State.PARTIAL, waited > 1.0) == (waits, waits)
    assert (checked.meta.state is State.FRESH) is not waits


async def test_a_server_that_loads_is_not_said_to_lack_what_it_registers_later(tmp_path: Path) -> None:
    def loading(script: Script) -> None:
        silent(script)
        script.on("textDocument/documentSymbol", lambda _: [])

    trusted = {"trustedProjectRoots": [str(tmp_path.resolve() / "workspace")]}
    config = {"lsp": {"jdtls": {"command": [PROGRAM]}}, "security": trusted}
    async with service_on(tmp_path, {"jdtls": loading}, config) as ground:
        ground.write("pom.xml", "")
        ground.write("A.java", "class A {}\n")
        question = Question(operation=Operation.DOCUMENT_SYMBOL, file_path="A.java")
        early = await ground.service.ask(question, ground.client)
        assert early.meta.reason == "jdtls is still indexing. Ask again in a while."
        server = ground.server("jdtls")
        one = {"id": "1", "method": "textDocument/documentSymbol", "registerOptions": {"documentSelector": None}}
        server.ask("client/registerCapability", {"registrations": [one]})
        server.notify("language/status", {"type": "Starting"})
        server.notify("language/status", {"type": "ServiceReady"})
        assert (await ground.service.ask(question, ground.client)).meta.state is State.FRESH


@pytest.mark.proves("OPS-6")
@pytest.mark.parametrize(("limit", "code"), [(1200, Code.REQUEST_TIMEOUT), (10_000, Code.SERVER_HUNG)])
async def test_a_question_that_nobody_answers_in_time_is_a_time_out(limit: int, code: Code, tmp_path: Path) -> None:
    def hovering_never(script: Script) -> None:
        silent(script)
        script.capabilities["hoverProvider"] = True
        script.on("textDocument/hover", lambda _: SILENCE)
        script.ignore("$/cancelRequest")

    config = {"lsp": {"one": custom()}, "timing": {"requestTimeoutMs": limit}}
    async with service_on(tmp_path, {"one": hovering_never}, config) as ground:
        ground.write("a.x")
        question = Question(operation=Operation.HOVER, file_path="a.x", line=1, character=1)
        answer = await ground.service.ask(question, ground.client)
    assert [one.code for one in answer.errors] == [code]
    assert (answer.ok, answer.meta.timed_out) == (False, True)


@pytest.mark.proves("OPS-3")
async def test_of_a_line_the_actions_that_mend_a_diagnostic_come_first(tmp_path: Path) -> None:
    wrong = {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 8}}

    def offering(script: Script) -> None:
        server_with(diagnosticProvider={}, codeActionProvider=True)(script)
        item = {"range": wrong, "severity": 1, "message": "unknown"}
        script.on("textDocument/diagnostic", lambda _: {"kind": "full", "items": [item]})
        titles = ["import it", "ignore it"]
        script.on(
            "textDocument/codeAction",
            lambda params: [{"title": one} for one in (titles if params["range"] == wrong else titles[1:])],
        )

    async with service_on(tmp_path, {"one": offering}) as ground:
        await ground.check(ground.write("a.x", "use name\n"))
        question = Question(operation=Operation.CODE_ACTIONS, file_path="a.x", line=1)
        answer = await ground.service.ask(question, ground.client)
    assert [one.title for one in answer.data or ()] == ["import it", "ignore it"]
