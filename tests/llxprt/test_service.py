"""Every method of the LLxprt service, driven by hand over a wire in memory, with scripted servers and virtual time."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from pilotfish.errors import Refused
from pilotfish.model import AbsPath
from pilotfish.surfaces.host_channel import MAX_AT_ONCE
from pilotfish_llxprt.service import serve_host
from support.clients.frames import framed
from support.clients.raw_llxprt import ServiceHost, service_host
from support.clients.wires import MemoryWire
from support.servers.complaining import complaining, silent
from support.servers.script import SILENCE, Script
from support.services.scripted import SERVER, Scripted, scripted
from support.services.several import BY_LINE

pytestmark = pytest.mark.anyio

Made = Callable[..., Scripted]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    def make(*scenarios: Callable[[Script], None], **settings: Any) -> Scripted:
        return scripted(tmp_path, *scenarios, **settings)

    return make


async def lines(host: ServiceHost, path: object, text: str | None = None) -> list[int]:
    """The lines of a file with something to show."""
    params = {"filePath": str(path), **({} if text is None else {"text": text})}
    return [one["line"] for one in await host.ask("lsp/checkFile", params)]


async def test_the_host_hears_first_that_we_are_ready_byte_for_byte(made: Made) -> None:
    wire = MemoryWire()
    computer = made()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve_host, AbsPath(str(computer.root)), computer.system, wire)
        assert await wire.peer.hear() == b'Content-Length: 38\r\n\r\n{"jsonrpc":"2.0","method":"lsp/ready"}'
        wire.peer.hang_up()
    wire.close()


# --- Checking --------------------------------------------------------------------------------------------------------


@pytest.mark.proves("SVC-1", "DIAG-2")
async def test_a_file_is_checked_as_it_is_on_disk(made: Made) -> None:
    computer = made(complaining)
    computer.write("a.fake", "fine\nwrong <b> & so\nodd\n")
    async with service_host(computer) as host:
        assert await host.ask("lsp/checkFile", {"filePath": str(computer.root / "a.fake")}) == [
            {
                "file": "a.fake",
                "line": 2,
                "column": 1,
                "character": 1,
                "severity": "error",
                "message": "wrong &lt;b&gt; &amp; so",
                "code": "E1",
            }
        ]
        computer.write("a.fake", "fine\nfine by now, too\n")
        assert await lines(host, computer.root / "a.fake") == []
        assert host.notifications == []


@pytest.mark.proves("SVC-1", "DOC-2")
async def test_a_text_that_comes_along_counts_and_not_the_disk(made: Made) -> None:
    computer = made(complaining)
    path = computer.root / computer.write("a.fake", "wrong\n")
    async with service_host(computer) as host:
        assert await lines(host, path, "fine\nfine\nwrong\n") == [3]
        assert await lines(host, path, "") == []
        assert await lines(host, path) == [1]


@pytest.mark.proves("SVC-1", "DOC-2")
async def test_a_text_that_came_along_stands_in_all_diagnostics_until_the_disk_changes(made: Made) -> None:
    computer = made(complaining)
    path = computer.root / computer.write("a.fake", "fine\n")
    async with service_host(computer) as host:
        assert await lines(host, path, "wrong\nwrong\n") == [1, 2]
        found = await host.ask("lsp/diagnostics")
        assert [one["line"] for one in found["a.fake"]] == [1, 2]
        computer.write("a.fake", "fine\nfine\nwrong\n")
        found = await host.ask("lsp/diagnostics")
        assert [one["line"] for one in found["a.fake"]] == [3]


@pytest.mark.proves("SVC-1", "DOC-2")
async def test_a_text_with_a_nul_is_binary_as_a_file_with_one_is(made: Made) -> None:
    computer = made(complaining)
    path = computer.root / computer.write("a.fake", "fine\n")
    async with service_host(computer) as host:
        assert await lines(host, path, "wrong\0\n") == []
        (verdict,) = host.notifications
        assert "binary file" in verdict["params"]["reason"]


@pytest.mark.proves("SVC-1")
@pytest.mark.parametrize(
    "params",
    [
        pytest.param('{"filePath": "ROOT/a.fake"}', id="by name"),
        pytest.param('{"filePath": "file://ROOT/a.fake"}', id="as a URI"),
        pytest.param('{"filePath": "a.fake", "text": null}', id="relative, and a text of null"),
        pytest.param('["ROOT/a.fake"]', id="by position"),
    ],
)
async def test_a_file_may_be_named_in_several_ways(made: Made, params: str) -> None:
    computer = made(complaining)
    computer.write("a.fake", "wrong\n")
    async with service_host(computer) as host:
        assert len(await host.ask("lsp/checkFile", json.loads(params.replace("ROOT", str(computer.root))))) == 1


@pytest.mark.proves("CFG-6", "SVC-1")
async def test_severities_are_those_of_the_configuration(made: Made) -> None:
    computer = made(complaining, config={"feedback": {"includeSeverities": ["error", "warning"]}})
    computer.write("a.fake", "odd\nwrong\n")
    async with service_host(computer) as host:
        assert await lines(host, "a.fake") == [1, 2]
        assert [one["severity"] for one in (await host.ask("lsp/diagnostics"))["a.fake"]] == ["warning", "error"]


@pytest.mark.proves("SVC-1", "FMT-8", "PATH-2")
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        pytest.param("notes.unheard", "No LSP server configured", id="a kind of file that nobody serves"),
        pytest.param("../outside.fake", "outside the workspace", id="a file outside"),
        pytest.param("none.fake", "none.fake", id="a file that is not there"),
    ],
)
async def test_without_a_verdict_there_are_no_diagnostics_and_the_host_can_hear_why(
    made: Made, path: str, reason: str
) -> None:
    computer = made(complaining)
    computer.write("notes.unheard", "wrong\n")
    async with service_host(computer) as host:
        assert await lines(host, path) == []
        (verdict,) = host.notifications
        assert verdict["method"] == "lsp/verdict"
        assert verdict["params"]["filePath"] == path
        assert verdict["params"]["state"] == "unavailable"
        assert reason in verdict["params"]["reason"]


@pytest.mark.proves("SVC-1", "DIAG-5", "FMT-8")
async def test_a_server_that_says_nothing_costs_the_configured_time_and_no_more(made: Made) -> None:
    def mute(script: Script) -> None:
        complaining(script)
        script.on("textDocument/diagnostic", lambda params: SILENCE)

    computer = made(mute, config={"timing": {"firstTouchTimeoutMs": 4000, "diagnosticsWaitTimeoutMs": 2000}})
    computer.write("a.fake", "wrong\n")
    async with service_host(computer) as host:
        for limit in (4.0, 2.0):
            before = anyio.current_time()
            assert await lines(host, "a.fake") == []
            assert limit <= anyio.current_time() - before < limit + 1
        assert [note["params"]["state"] for note in host.notifications] == ["unavailable"] * 2


@pytest.mark.proves("OBS-1")
async def test_every_check_leaves_a_line_in_the_debug_log(made: Made, caplog: pytest.LogCaptureFixture) -> None:
    computer = made(complaining)
    computer.write("a.fake", "wrong\n")
    with caplog.at_level("DEBUG", "pilotfish_llxprt.methods"):
        async with service_host(computer) as host:
            await lines(host, "a.fake")
    (line,) = [record.getMessage() for record in caplog.records if record.name.endswith("llxprt.methods")]
    assert re.fullmatch(r"checked path=a\.fake state=fresh ms=\d+ found=1 timed_out=False", line)


@pytest.mark.proves("SVC-1", "CFG-3")
async def test_when_it_is_turned_off_nothing_starts_and_status_says_so(made: Made) -> None:
    computer = made(complaining, config={"lsp": False})
    computer.write("a.fake", "wrong\n")
    async with service_host(computer) as host:
        assert await lines(host, "a.fake") == []
        assert host.notifications[0]["params"]["reason"] == "LSP disabled by configuration"
        assert await host.ask("lsp/diagnostics") == {}
        assert {one["status"] for one in await host.ask("lsp/status")} <= {"disabled"}
    assert computer.servers == []


@pytest.mark.proves("SVC-1")
async def test_what_the_host_hands_over_counts_and_the_files_of_the_user_count_more(made: Made) -> None:
    handed = {"feedback": {"includeSeverities": ["error", "warning"]}, "timing": {"requestTimeoutMs": 1}}
    computer = made(complaining, config={"feedback": {"includeSeverities": ["warning"]}})
    computer.system = replace(computer.system, handed_over=handed)
    computer.write("a.fake", "odd\nwrong\n")
    async with service_host(computer) as host:
        assert await lines(host, "a.fake") == [1]
        computer.configure({})
        assert await lines(host, "a.fake") == [1, 2]


# --- Known files and the epoch ---------------------------------------------------------------------------------------


@pytest.mark.proves("SVC-1", "DIAG-6")
async def test_known_files_are_those_with_diagnostics_by_path_and_fresh(made: Made) -> None:
    computer = made(complaining)
    for name, text in {"c.fake": "wrong\n", "a.fake": "fine\nwrong\n", "b.fake": "fine\n"}.items():
        computer.write(name, text)
    async with service_host(computer) as host:
        assert await host.ask("lsp/diagnostics") == {}
        for name in ("c.fake", "a.fake", "b.fake"):
            await lines(host, name)
        known = await host.ask("lsp/diagnostics")
        assert [(path, [one["line"] for one in found]) for path, found in known.items()] == [
            ("a.fake", [2]),
            ("c.fake", [1]),
        ]
        computer.write("c.fake", "fine by now\n")
        computer.write("a.fake", "wrong\n")
        known = await host.ask("lsp/diagnostics")
        assert [(path, [one["line"] for one in found]) for path, found in known.items()] == [("a.fake", [1])]
        (computer.root / "a.fake").unlink()
        assert await host.ask("lsp/diagnostics") == {}


@pytest.mark.proves("SVC-1", "DIAG-1")
async def test_a_file_is_known_for_as_long_as_any_of_its_servers_finds_something(made: Made) -> None:
    both = {name: {"command": [sys.executable], "extensions": [".fake"]} for name in (SERVER, "second")}
    computer = made(complaining, BY_LINE, config={"lsp": both})
    async with service_host(computer) as host:
        for text, found in (("wrong\nbad\n", [1, 1]), ("bad\n", [1]), ("wrong\n", [1]), ("fine\n", None)):
            computer.write("a.fake", text)
            await lines(host, "a.fake")
            known = await host.ask("lsp/diagnostics")
            assert ([one["line"] for one in known["a.fake"]] if known else None) == found


@pytest.mark.proves("SVC-1", "DIAG-7")
async def test_the_epoch_counts_every_check_whatever_came_of_it(made: Made) -> None:
    computer = made(complaining)
    computer.write("a.fake", "wrong\n")
    async with service_host(computer) as host:
        epochs = [await host.ask("lsp/getDiagnosticEpoch")]
        for path in ("a.fake", "a.fake", "none.fake", "../outside.fake"):
            await lines(host, path)
            epochs.append(await host.ask("lsp/getDiagnosticEpoch"))
        assert epochs == [0, 1, 2, 3, 4]


@pytest.mark.proves("SVC-1", "DIAG-7")
async def test_diagnostics_after_an_epoch_wait_for_the_check_that_ends_it(made: Made) -> None:
    computer = made(complaining)
    computer.write("a.fake", "wrong\n")
    async with service_host(computer) as host:
        waiting = host.send("lsp/getAllDiagnosticsAfter", {"afterEpoch": 0, "waitMs": 60_000})
        checking = host.send("lsp/checkFile", {"filePath": "a.fake"})
        assert len((await host.answer(checking))["result"]) == 1
        assert list((await host.answer(waiting))["result"]) == ["a.fake"]
        before = anyio.current_time()
        assert list(await host.ask("lsp/getAllDiagnosticsAfter", [0, 60_000])) == ["a.fake"]
        assert anyio.current_time() == before
        assert list(await host.ask("lsp/getAllDiagnosticsAfter", {"afterEpoch": 1, "waitMs": 2_000})) == ["a.fake"]
        assert 2 <= anyio.current_time() - before < 3


# --- Status and the end ----------------------------------------------------------------------------------------------


async def status_of(host: ServiceHost, server: str = SERVER) -> dict[str, Any]:
    rows = await host.ask("lsp/status")
    assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)
    (row,) = [row for row in rows if row["id"] == server]
    return row


@pytest.mark.proves("SVC-1", "TUI-2")
async def test_status_tells_every_server_and_how_it_stands(made: Made) -> None:
    computer = made(complaining)
    computer.configure(
        {
            "lsp": {
                SERVER: {"command": ["/bin/sh"], "extensions": [".fake"]},
                "missing": {"command": ["/no/such/program"], "extensions": [".gone"]},
                "off": {"command": ["/bin/sh"], "extensions": [".off"], "disabled": True},
            }
        }
    )
    computer.write("a.fake", "fine\n")
    async with service_host(computer) as host:
        assert (await status_of(host))["status"] == "idle"
        assert (await status_of(host, "missing"))["status"] == "unavailable"
        assert (await status_of(host, "off"))["status"] == "disabled"
        await lines(host, "a.fake")
        running = await status_of(host)
        assert (running["status"], running["state"], running["healthy"]) == ("active", "ok", True)
        assert running["serverPid"] == computer.servers[0].pid


@pytest.mark.proves("SVC-1", "POOL-2")
async def test_a_server_that_crashed_is_not_started_again(made: Made) -> None:
    computer = made(complaining)
    computer.write("a.fake", "wrong\n")
    async with service_host(computer) as host:
        assert await lines(host, "a.fake") == [1]
        computer.servers[0].leave(1)
        # Until its end is noticed, what it said about this very text still holds.
        await anyio.wait_all_tasks_blocked()
        assert await lines(host, "a.fake") == []
        assert await lines(host, "a.fake") == []
        assert len(computer.servers) == 1
        row = await status_of(host)
        assert (row["status"], row["healthy"]) == ("broken", False)


@pytest.mark.proves("SVC-1", "POOL-4")
async def test_shutdown_stops_the_servers_then_answers_then_ends(made: Made) -> None:
    computer = made(complaining)
    computer.write("a.fake", "wrong\n")
    async with service_host(computer) as host:
        await lines(host, "a.fake")
        identifier = host.send("lsp/shutdown")
        assert await host.answer(identifier) == {"jsonrpc": "2.0", "id": identifier, "result": None}
        assert computer.servers[0].gone
        assert [message.method for message in computer.servers[0].received][-2:] == ["shutdown", "exit"]


@pytest.mark.proves("SVC-1")
async def test_a_workspace_that_is_no_folder_is_refused(made: Made) -> None:
    wire = MemoryWire()
    with pytest.raises(Refused, match="cannot be opened"):
        await serve_host(AbsPath("/no/such/folder"), made().system, wire)
    wire.close()


# --- The wire --------------------------------------------------------------------------------------------------------


@pytest.mark.proves("SVC-1", "F84")
@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        pytest.param("lsp/makeCoffee", None, -32601, id="an unknown method"),
        pytest.param("lsp/checkFile", None, -32602, id="a check of nothing"),
        pytest.param("lsp/checkFile", {"filePath": 5}, -32602, id="a path that is a number"),
        pytest.param("lsp/checkFile", {"filePath": "a", "text": []}, -32602, id="a text that is a list"),
        pytest.param("lsp/getAllDiagnosticsAfter", {"afterEpoch": "x"}, -32602, id="an epoch that is a text"),
    ],
)
async def test_a_wrong_request_gets_its_error_and_the_service_goes_on(
    made: Made, method: str, params: Any, code: int
) -> None:
    async with service_host(made()) as host:
        assert (await host.answer(host.send(method, params)))["error"]["code"] == code
        assert await host.ask("lsp/getDiagnosticEpoch") == 0


@pytest.mark.proves("SVC-1", "F84")
async def test_what_is_no_request_is_passed_over(made: Made) -> None:
    async with service_host(made()) as host:
        for message in (b"nonsense", b"[]", {}, {"jsonrpc": "2.0", "method": "unheard/of"}, {"id": 7, "result": 5}):
            host.say(message)
        host.say({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 99}})
        assert await host.ask("lsp/getDiagnosticEpoch") == 0


@pytest.mark.proves("SVC-1", "RPC-3")
async def test_a_request_may_be_cancelled_down_to_the_language_server(made: Made) -> None:
    asked = anyio.Event()

    def mute(script: Script) -> None:
        complaining(script)

        def diagnostics(params: Any) -> Any:
            asked.set()
            return SILENCE

        script.on("textDocument/diagnostic", diagnostics)

    computer = made(mute)
    computer.write("a.fake", "wrong\n")
    async with service_host(computer) as host:
        checking = host.send("lsp/checkFile", {"filePath": "a.fake"})
        await asked.wait()
        host.say({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": checking}})
        assert (await host.answer(checking))["error"]["code"] == -32800
        assert await host.ask("lsp/getDiagnosticEpoch") == 1
        await computer.servers[0].until("textDocument/diagnostic")
    assert len(computer.servers[0].cancelled) == 1


@pytest.mark.proves("SVC-1", "F75")
async def test_one_request_too_many_is_refused_at_once(made: Made) -> None:
    async with service_host(made()) as host:
        for _ in range(MAX_AT_ONCE):
            host.send("lsp/getAllDiagnosticsAfter", {"afterEpoch": 0, "waitMs": 5_000})
        crowded = await host.answer(host.send("lsp/getDiagnosticEpoch"))
        assert "overloaded" in crowded["error"]["message"]
        assert [(await host.hear())["result"] for _ in range(MAX_AT_ONCE)] == [{}] * MAX_AT_ONCE


@pytest.mark.proves("SVC-1")
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="the end"),
        pytest.param(framed({"jsonrpc": "2.0", "id": 1, "method": "lsp/status"})[:-5], id="the end within a message"),
        pytest.param(b"Content-Length: many\r\n\r\n", id="a header that lies"),
    ],
)
async def test_it_ends_with_what_the_host_says(made: Made, data: bytes) -> None:
    computer = made(complaining)
    computer.write("a.fake", "wrong\n")
    async with service_host(computer) as host:
        await lines(host, "a.fake")
        host.peer.say(data or b"\n")
    assert computer.servers[0].gone


async def test_a_server_that_offers_nothing_gives_no_verdict(made: Made) -> None:
    computer = made(silent)
    computer.write("a.fake", "wrong\n")
    async with service_host(computer) as host:
        assert await lines(host, "a.fake") == []
