"""Bytes that no library would send: each is answered as the protocol says, and the connection goes on."""

import json
import random
from pathlib import Path
from typing import Any

import anyio
import pytest

from pilotfish.operations.tools import Format, McpOptions, ToolSet, tool_schemas
from pilotfish.protocol.codec import encode
from pilotfish.surfaces.mcp.server import serve
from pilotfish.surfaces.mcp.streams import MAX_LINE, MAX_OWED
from support.clients.raw_mcp import VERSIONS, RawClient, initialize, raw_client, request
from support.clients.wires import MemoryWire
from support.services.scripted import scripted_service

LISTED = len(tool_schemas(Format.MCP, ToolSet.NAMED))

pytestmark = pytest.mark.anyio

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def error_of(answer: dict[str, Any]) -> tuple[object, int]:
    return answer["id"], answer["error"]["code"]


def call(identifier: int, arguments: Any, name: str = "lsp_hover") -> dict[str, Any]:
    return request(identifier, "tools/call", {"name": name, "arguments": arguments})


# --- Versions --------------------------------------------------------------------------------------------------------


@pytest.mark.proves("MCP-1")
@pytest.mark.parametrize("version", VERSIONS)
async def test_every_version_with_a_handshake_is_spoken(tmp_path: Path, version: str) -> None:
    async with scripted_service(tmp_path) as scripted, raw_client(scripted) as client:
        begun = await client.shake_hands(version)
        assert begun["protocolVersion"] == version
        assert begun["serverInfo"]["name"] == "pilotfish"
        listed = await client.ask(request(1, "tools/list"))
        assert len(listed["result"]["tools"]) == LISTED
        called = (await client.ask(call(2, {})))["result"]
        assert called["isError"] is True
        assert called["content"][0]["text"].startswith("symbol is missing")
        assert called["structuredContent"]["errors"][0]["code"] == "invalid_input"


@pytest.mark.proves("MCP-1")
@pytest.mark.parametrize("is_patient", [True, False])
async def test_a_client_may_fall_back_to_a_handshake_on_the_same_connection(tmp_path: Path, is_patient: bool) -> None:
    """GitHub Copilot CLI tries the newest protocol, and does not wait long for an answer."""
    async with scripted_service(tmp_path) as scripted, raw_client(scripted) as client:
        probe = request(0, "server/discover", {"_meta": ENVELOPE})
        if is_patient:
            assert (await client.ask(probe))["id"] == 0
        else:
            client.say(probe)
        client.say(initialize("2025-06-18"))
        answer = await client.hear()
        while answer["id"] == 0:
            answer = await client.hear()
        assert answer["result"]["protocolVersion"] == "2025-06-18"
        client.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert len((await client.ask(request(1, "tools/list")))["result"]["tools"]) == LISTED
        assert (await client.ask(call(2, {})))["result"]["isError"] is True


@pytest.mark.proves("MCP-1")
@pytest.mark.parametrize(("tools", "most"), [(ToolSet.NAMED, 8 * 1024), (ToolSet.ONE, 3 * 1024)])
async def test_the_list_of_tools_is_small_on_the_wire(tmp_path: Path, tools: ToolSet, most: int) -> None:
    async with (
        scripted_service(tmp_path) as scripted,
        raw_client(scripted, McpOptions(tools)) as client,
    ):
        client.say(request(1, "tools/list", {"_meta": ENVELOPE}))
        line = await client.peer.hear()
        # The newest version has other members around the list, and another order in it.
        assert json.loads(line)["result"]["tools"] == json.loads(encode(tool_schemas(Format.MCP, tools)))
        assert len(line) <= most


@pytest.mark.proves("MCP-1")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("tools", [ToolSet.NAMED, ToolSet.ONE])
async def test_the_list_of_tools_is_what_the_command_line_prints(tmp_path: Path, tools: ToolSet, version: str) -> None:
    async with scripted_service(tmp_path) as scripted, raw_client(scripted, McpOptions(tools)) as client:
        await client.shake_hands(version)
        client.say(request(1, "tools/list"))
        assert b'"result":{"tools":' + encode(tool_schemas(Format.MCP, tools)) in await client.peer.hear()


@pytest.mark.proves("MCP-1")
async def test_a_version_that_nobody_knows_is_answered_with_the_newest(tmp_path: Path) -> None:
    async with scripted_service(tmp_path) as scripted, raw_client(scripted) as client:
        assert (await client.shake_hands("1999-12-31"))["protocolVersion"] == VERSIONS[-1]


@pytest.mark.proves("MCP-1")
async def test_a_probe_for_the_newest_version_is_answered(tmp_path: Path) -> None:
    async with scripted_service(tmp_path) as scripted, raw_client(scripted) as client:
        found = await client.ask(request(0, "server/discover", {"_meta": ENVELOPE}))
        assert found["result"]["supportedVersions"] == ["2026-07-28"]
        listed = await client.ask(request(1, "tools/list", {"_meta": ENVELOPE}))
        assert len(listed["result"]["tools"]) == LISTED


@pytest.mark.proves("MCP-1")
async def test_a_probe_without_a_version_is_refused_and_a_handshake_may_follow(tmp_path: Path) -> None:
    async with scripted_service(tmp_path) as scripted, raw_client(scripted) as client:
        assert error_of(await client.ask(request(0, "server/discover"))) == (0, -32601)
        assert (await client.shake_hands())["protocolVersion"] == VERSIONS[-1]
        assert await client.is_well()


# --- What is no message ----------------------------------------------------------------------------------------------


@pytest.mark.proves("F84")
@pytest.mark.parametrize(
    ("line", "error"),
    [
        pytest.param(b"hello", (None, -32700), id="no JSON"),
        pytest.param(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"', (None, -32700), id="half an object"),
        pytest.param(b'{"jsonrpc": "2.0", "id": 1, "method": "\xff\xfe"}', (None, -32700), id="no UTF-8"),
        pytest.param(b"[" * 100_000, (None, -32700), id="endless nesting of lists"),
        pytest.param(b'{"a":' * 100_000, (None, -32700), id="endless nesting of objects"),
        pytest.param(b"5", (None, -32600), id="a number"),
        pytest.param(b"{}", (None, -32600), id="an empty object"),
        pytest.param(b'{"jsonrpc":"1.0","id":3,"method":"ping"}', (3, -32600), id="another version of JSON-RPC"),
        pytest.param(b'{"jsonrpc":"2.0","id":"x","method":7}', ("x", -32600), id="a method that is no text"),
        pytest.param(b'{"jsonrpc":"2.0","id":true,"method":"ping"}', (None, -32600), id="an id that is no id"),
        pytest.param(b'{"jsonrpc":"2.0","id":4,"method":"ping","params":[1]}', (4, -32600), id="params as a list"),
        pytest.param(b"[]", (None, -32600), id="a list of nothing"),
        pytest.param(json.dumps([call(9, {})]).encode(), (None, -32600), id="a batch"),
        pytest.param(json.dumps(call(9, {"text": "x" * MAX_LINE})).encode(), (None, -32600), id="huge arguments"),
    ],
)
async def test_what_is_no_message_is_an_error_and_nothing_else(
    tmp_path: Path, line: bytes, error: tuple[object, int]
) -> None:
    async with scripted_service(tmp_path) as scripted, raw_client(scripted) as client:
        await client.shake_hands()
        assert error_of(await client.ask(line)) == error
        assert await client.is_well()


@pytest.mark.proves("F84")
async def test_random_bytes_never_end_the_connection(tmp_path: Path) -> None:
    chance = random.Random(7)
    alphabet = [
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b":",
        b",",
        b"id",
        b"jsonrpc",
        b"2.0",
        b"method",
        b"\x00",
        b"\xff",
        b"1e9",
    ]
    async with scripted_service(tmp_path) as scripted, raw_client(scripted) as client:
        await client.shake_hands()
        for _ in range(300):
            line = b"".join(chance.choices(alphabet, k=chance.randint(1, 12)))
            answer = await client.ask(line)
            assert answer["error"]["code"] in {-32700, -32600}, line
        assert await client.is_well()


@pytest.mark.proves("F73")
async def test_a_message_may_come_in_any_pieces_and_half_of_one_disturbs_nobody(tmp_path: Path) -> None:
    async with scripted_service(tmp_path) as scripted, raw_client(scripted) as client, raw_client(scripted) as other:
        await other.shake_hands()
        whole = json.dumps(initialize()).encode()
        for byte in whole[:-1]:
            client.peer.say(bytes([byte]))
        assert await other.is_well()
        client.peer.say(whole[-1:] + b"\r\n\n\n")
        assert (await client.hear())["result"]["protocolVersion"] == VERSIONS[-1]
        client.peer.say(b'{"jsonrpc": "2.0", "id": 5, "met')


# --- What is a message, and wrong ------------------------------------------------------------------------------------


@pytest.mark.proves("F84")
@pytest.mark.parametrize(
    ("message", "code"),
    [
        pytest.param(request(1, "no/such/method"), -32601, id="an unknown method"),
        pytest.param(request(1, "resources/list"), -32601, id="a method that we do not offer"),
        pytest.param(request(1, "tools/call", {"name": 7}), -32602, id="a tool whose name is a number"),
        pytest.param(request(1, "tools/call"), -32602, id="a call without anything"),
        pytest.param(call(1, {}, "none"), -32602, id="an unknown tool"),
    ],
)
async def test_a_request_that_cannot_be_served_gets_its_own_error(
    tmp_path: Path, message: dict[str, Any], code: int
) -> None:
    async with scripted_service(tmp_path) as scripted, raw_client(scripted) as client:
        await client.shake_hands()
        assert error_of(await client.ask(message)) == (1, code)
        assert await client.is_well()


@pytest.mark.proves("OPS-5")
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(["a.fake"], '"arguments" is not a field here', id="a list"),
        pytest.param("a.fake", '"arguments" is not a field here', id="a text"),
        pytest.param(5, '"arguments" is not a field here', id="a number"),
        pytest.param('{"filePath": "a.fake", "line": 0, "character": 1}', "line must be", id="an object as text"),
        pytest.param(None, "symbol is missing", id="null"),
    ],
)
async def test_arguments_that_are_no_object_are_told_in_the_envelope(
    tmp_path: Path, arguments: Any, complaint: str
) -> None:
    async with scripted_service(tmp_path) as scripted, raw_client(scripted) as client:
        await client.shake_hands()
        result = (await client.ask(call(1, arguments)))["result"]
        assert result["isError"] is True
        assert complaint in result["structuredContent"]["errors"][0]["message"]


@pytest.mark.proves("F84")
async def test_a_request_before_the_handshake_is_refused(tmp_path: Path) -> None:
    async with scripted_service(tmp_path) as scripted, raw_client(scripted) as client:
        assert error_of(await client.ask(request(1, "tools/list"))) == (1, -32602)
        await client.shake_hands()
        assert len((await client.ask(request(2, "tools/list")))["result"]["tools"]) == LISTED


@pytest.mark.proves("F84")
async def test_a_flood_of_cancellations_and_unknown_notifications_changes_nothing(tmp_path: Path) -> None:
    async with scripted_service(tmp_path) as scripted, raw_client(scripted) as client:
        await client.shake_hands()
        for number in range(2_000):
            client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
            client.say({"jsonrpc": "2.0", "method": f"notifications/{number}"})
        client.say({"jsonrpc": "2.0", "id": 123_456, "result": {}})
        client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {"a": 1}}})
        assert await client.is_well()


@pytest.mark.proves("F74", "F84")
async def test_a_client_that_does_not_read_is_held_back_and_loses_nothing(tmp_path: Path) -> None:
    asked = 3 * MAX_OWED
    async with scripted_service(tmp_path) as scripted, raw_client(scripted) as client:
        await client.shake_hands()
        client.peer.reading = anyio.Event()
        for number in range(asked):
            client.say(request(number, "ping"))
        await anyio.wait_all_tasks_blocked()
        assert asked - client.peer.unread <= MAX_OWED + 10
        client.peer.reading.set()
        assert sorted([(await client.hear())["id"] for _ in range(asked)]) == list(range(asked))
        assert await client.is_well()


@pytest.mark.proves("F72", "F74")
async def test_a_client_that_is_gone_ends_the_connection(tmp_path: Path) -> None:
    async with scripted_service(tmp_path) as scripted:
        wire = MemoryWire()
        client = RawClient(wire.peer)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve, wire, scripted.service, scripted.session, McpOptions())
            await client.shake_hands()
            wire.peer.stop_listening()
            client.say(request(1, "ping"))
        wire.close()
