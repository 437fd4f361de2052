"""Servers that no registry carries, by their documentation: the messages that each is published to send, played to us.

What is proven of a program is in `servers/proven.json`; here it is only shown that the client does what such messages
ask for: it answers, waits for what says that a project is loaded, and calls nothing fresh before that.
"""

from typing import Any

import anyio
import pytest

from pilotfish.protocol.rpc import ResponseError
from pilotfish.servers.catalogue import load
from support.services.checks import PULLED, Bench, bench, full, later, messages

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-2", "REG-9")]

PULL = "textDocument/diagnostic"
TOKEN = "loading"


def registration(*identifiers: str) -> dict[str, Any]:
    sources = [{"id": name, "method": PULL, "registerOptions": {"identifier": name}} for name in identifiers]
    return {"registrations": sources}


def progress(ground: Bench, kind: str, title: str = "") -> None:
    value = {"kind": kind, "title": title} if title else {"kind": kind}
    ground.server.notify("$/progress", {"token": TOKEN, "value": value})


class Roslyn:
    """Its pulls judge a file alone, and find nothing, until the project is loaded."""

    def __init__(self, ground: Bench) -> None:
        self._ground, self._loaded = ground, False
        ground.answers(PULL, self._pulled)
        ground.server.ask("client/registerCapability", registration("syntax", "DocumentCompilerSemantic"))
        ground.server.notify("window/_roslyn_showToast", {"messageType": 3, "message": "Restoring", "commands": []})

    def load(self) -> None:
        self._loaded = True
        self._ground.server.notify("workspace/projectInitializationComplete", {})

    def _pulled(self, params: Any) -> Any:
        is_semantic = params.get("identifier") == "DocumentCompilerSemantic"
        return full("wrong") if self._loaded and is_semantic else full()


async def test_roslyn_is_believed_once_its_project_is_loaded_and_asked_by_each_of_its_sources() -> None:
    async with bench(load()["roslyn"].freshness) as ground:
        roslyn = Roslyn(ground)
        async with later((1.5, roslyn.load)):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.is_fresh
    assert outcome.seconds >= 1.5
    assert {pull["identifier"] for pull in ground.sent(PULL)} == {"syntax", "DocumentCompilerSemantic"}


async def test_roslyn_that_has_not_loaded_its_project_has_no_verdict() -> None:
    async with bench(load()["roslyn"].freshness) as ground:
        Roslyn(ground)
        outcome = await ground.check("x")
    assert outcome.diagnostics is None
    assert not outcome.is_fresh


async def test_roslyn_that_asks_for_a_restore_is_answered_and_goes_on() -> None:
    async with bench(load()["roslyn"].freshness) as ground:
        roslyn = Roslyn(ground)
        roslyn.load()
        restore = ground.server.ask("workspace/_roslyn_projectNeedsRestore", {"projectFilePaths": ["/w/a.csproj"]})
        answer = await ground.server.answered(restore)
        outcome = await ground.check("x")
    assert isinstance(answer, ResponseError)
    assert messages(outcome) == ["wrong"]


@pytest.mark.parametrize(
    ("server", "title"),
    [
        ("csharp-ls", "Loading workspace"),
        ("fsautocomplete", "Loading projects"),
        ("kotlin-lsp", "Importing project"),
        ("kotlin-language-server", "Resolving dependencies"),
    ],
)
async def test_a_server_that_loads_its_project_is_believed_when_it_has(server: str, title: str) -> None:
    async with bench(load()[server].freshness, **PULLED) as ground:
        found = [full()]

        def pulled(_params: Any) -> Any:
            return found[-1]

        ground.answers(PULL, pulled)
        await ground.server.answered(ground.server.ask("window/workDoneProgress/create", {"token": TOKEN}))
        progress(ground, "begin", title)

        def ready() -> None:
            found.append(full("wrong"))
            progress(ground, "end")

        async with later((1.5, ready)):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.is_fresh
    assert outcome.seconds >= 1.5


async def test_metals_is_told_to_import_nothing_and_its_errors_are_never_called_fresh() -> None:
    async with bench(load()["metals"].freshness) as ground:
        ground.server.notify("metals/status", {"text": "Indexing", "show": True})
        question = {"type": 3, "message": "New sbt workspace detected", "actions": [{"title": "Import build"}]}
        assert await ground.server.answered(ground.server.ask("window/showMessageRequest", question)) is None
        async with later((0.1, ground.publish), (2.0, lambda: ground.publish("wrong"))):
            first = await ground.check("x")
        await anyio.sleep(2)
        async with later((0.1, lambda: ground.publish("wrong"))):
            second = await ground.check("y")
        saves = ground.sent("textDocument/didSave")
    assert (first.is_fresh, second.is_fresh) == (False, False)
    assert messages(second) == ["wrong"]
    assert saves


async def test_what_sourcekit_publishes_while_it_reads_the_package_is_never_called_fresh() -> None:
    async with bench(load()["sourcekit-lsp"].freshness, **PULLED) as ground:
        ground.server.notify("window/logMessage", {"type": 4, "message": "Reading package"})
        async with later((0.1, lambda: ground.publish(version=1))):
            outcome = await ground.check("x")
    assert not ground.sent(PULL)
    assert not outcome.is_fresh


async def test_dart_that_analyses_is_waited_for() -> None:
    async with bench(load()["dart"].freshness) as ground:
        ground.server.notify("$/analyzerStatus", {"isAnalyzing": True})
        await ground.server.answered(ground.server.ask("window/workDoneProgress/create", {"token": TOKEN}))
        progress(ground, "begin", "Analyzing")
        async with later((0.8, lambda: ground.publish("wrong", version=1)), (1.0, lambda: progress(ground, "end"))):
            outcome = await ground.check("x")
    assert messages(outcome) == ["wrong"]
    assert outcome.seconds >= 1.0


async def test_of_dart_that_says_nothing_of_a_file_nothing_is_known() -> None:
    async with bench(load()["dart"].freshness) as ground:
        progress(ground, "begin", "Analyzing")
        async with later((0.5, lambda: progress(ground, "end"))):
            outcome = await ground.check("x")
    assert not outcome.is_fresh
