"""`pilotfish mcp` as a host runs it: a real process, its standard streams, real language servers below it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from support.clients.raw_mcp import initialize, request
from support.process_tree import below, ends
from support.servers.real import User, make_user

MCP = "from pilotfish.surfaces.mcp.verb import mcp; mcp()"
ALONE = "--in-process"
NOISY = """
import os, subprocess, sys
from pilotfish.surfaces.mcp.proxy import in_process, run

async def noisily(wire):
    print("printed", flush=True)
    os.write(1, b"written\\n")
    subprocess.run([sys.executable, "-c", "print('of a child')"])
    await in_process(None, wire)

run(noisily)
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def user(tmp_path: Path) -> User:
    user = make_user(tmp_path, ["basedpyright"], {}, trusted=True)
    (user.workspace / "greeting.py").write_text("def greet(name: str) -> str:\n    return name\n")
    (user.workspace / "main.py").write_text("from greeting import greet\n\ngreet(1)\n")
    return user


@contextmanager
def started(user: User, code: str = MCP, *arguments: str) -> Generator["subprocess.Popen[bytes]"]:
    """The program with its three streams; it must have ended by itself when the block does."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=user.workspace,
        env=dict(user.environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def talk(process: "subprocess.Popen[bytes]", *messages: Any) -> list[Any]:
    """Say these, each once the last was answered; return the answers."""
    assert process.stdin is not None
    assert process.stdout is not None
    answers: list[Any] = []
    for message in messages:
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        if "id" in message:
            answers.append(json.loads(process.stdout.readline()))
    return answers


def errors_in(checked: Any) -> list[int]:
    """The lines of `main.py` with an error in them."""
    found = checked.structured_content["data"]["main.py"]
    return [one["line"] for one in found if one["severity"] == "error"]


@pytest.mark.anyio
@pytest.mark.server("basedpyright")
@pytest.mark.proves("MCP-1", "POOL-5")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_sdk_client_gets_real_answers(user: User, mode: str) -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=["-c", MCP, ALONE, "--structured"], env=dict(user.environment), cwd=user.workspace
    )
    async with Client(parameters, mode=mode) as client:
        found = await client.call_tool("lsp_goto_definition", {"filePath": "main.py", "line": 3, "character": 2})
        assert found.structured_content["meta"]["state"] == "fresh"
        assert [(place["path"], place["line"]) for place in found.structured_content["data"]] == [("greeting.py", 1)]
        wrong = await client.call_tool("lsp_diagnostics", {"filePath": "main.py"})
        assert errors_in(wrong) == [3]
        (user.workspace / "main.py").write_text('from greeting import greet\n\ngreet("you")\n')
        right = await client.call_tool("lsp_diagnostics", {"filePath": "main.py"})
        assert errors_in(right) == []
        assert right.structured_content["meta"]["state"] == "fresh"


@pytest.mark.proves("MCP-1")
def test_the_tools_are_chosen_on_the_command_line(user: User) -> None:
    with started(user, MCP, ALONE, "--tools", "lsp") as process:
        _, listed = talk(process, initialize(), request(1, "tools/list"))
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["lsp"]


@pytest.mark.proves("MCP-1", "CLI-1")
@pytest.mark.parametrize("tools", ["named", "lsp"])
def test_the_verb_prints_the_tools_to_the_byte_as_they_are_listed(user: User, tools: str) -> None:
    with started(user, MCP, ALONE, "--tools", tools) as process:
        talk(process, initialize())
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request(1, "tools/list")).encode() + b"\n")
        process.stdin.flush()
        listed = process.stdout.readline()
    printed = subprocess.run(
        [sys.executable, "-m", "pilotfish", "tools", "--format", "mcp", "--tools", tools],
        cwd=user.workspace,
        env=dict(user.environment),
        capture_output=True,
        check=True,
    ).stdout
    assert {tool["name"] for tool in json.loads(printed)}
    assert b'"tools":' + printed.rstrip(b"\n") in listed


@pytest.mark.proves("F83")
def test_nothing_but_messages_comes_out_of_standard_output(user: User) -> None:
    with started(user, NOISY) as process:
        first, second = talk(process, initialize(), request(1, "ping"))
        assert (first["id"], second["id"]) == ("init", 1)
        output, errors = process.communicate()
    assert output == b""
    assert errors.splitlines() == [b"printed", b"written", b"of a child"]
    assert process.returncode == 0


@pytest.mark.proves("F83")
def test_no_child_holds_the_wire(user: User) -> None:
    call = {"name": "lsp_document_symbols", "arguments": {"filePath": "main.py"}}
    with started(user, MCP, ALONE) as process:
        talk(process, initialize(), request(1, "tools/call", call))
        wires = {os.readlink(f"/proc/{process.pid}/fd/{number}") for number in (10, 11)}
        children = below(process.pid)
        assert children
        for child in children:
            held = {os.readlink(f"/proc/{child.pid}/fd/{name}") for name in os.listdir(f"/proc/{child.pid}/fd")}
            assert not wires & held


@pytest.mark.server("basedpyright")
@pytest.mark.proves("POOL-5", "F66")
@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGINT", "SIGKILL"])
def test_it_ends_with_its_host_and_takes_its_servers_with_it(user: User, how: str) -> None:
    call = {"name": "lsp_document_symbols", "arguments": {"filePath": "main.py"}}
    with started(user, MCP, ALONE) as process:
        _, answer = talk(process, initialize(), request(1, "tools/call", call))
        assert answer["result"]["content"][0]["text"] == "No results found."
        assert not answer["result"]["isError"]
        children = [child.pid for child in below(process.pid)]
        assert children
        if how == "end of input":
            assert process.stdin is not None
            process.stdin.close()
        else:
            process.send_signal(getattr(signal, how))
        assert ends(process.pid)
        assert all(ends(child) for child in children)
        assert process.wait() == (-signal.SIGKILL if how == "SIGKILL" else 0)


@pytest.mark.proves("MCP-1")
def test_input_that_is_no_pipe_is_read_to_its_end(user: User) -> None:
    messages = user.workspace.parent / "messages"
    messages.write_bytes(json.dumps(initialize()).encode() + b"\n")
    for file in (messages, Path("/dev/null")):
        with file.open("rb") as source:
            done = subprocess.run(
                [sys.executable, "-c", MCP, ALONE],
                cwd=user.workspace,
                env=dict(user.environment),
                stdin=source,
                capture_output=True,
                timeout=30,
                check=False,
            )
        assert (done.returncode, done.stderr) == (0, b"")
