"""What we add to a warm question: `python bench/latency.py [ROUNDS]` prints a table and asserts nothing.

A bare client and the library ask the same definitions in the same files of the same language server (basedpyright), a
process each, in turns. The bare client is the least that can ask: a frame out, a frame in, JSON by the standard
library, no timeouts, no freshness, no places in code points. What differs is what the library costs.
"""

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pilotfish
from pilotfish.library.workspace import Workspace, computer

MODULES = 12
FUNCTIONS = 40
WARM_UP = 60
"""Rounds that are not counted: the server fills its caches in them."""

SERVER = "basedpyright-langserver"

Ask = Callable[[str, int, int], Awaitable[object]]


# --- What is asked ------------------------------------------------------------------------------------------------


def make_project(root: Path) -> list[tuple[str, int, int]]:
    """Modules whose functions call each other; returns the places of the calls, from 0."""
    places: list[tuple[str, int, int]] = []
    for module in range(MODULES):
        target = (module + 1) % MODULES
        lines = [f"import module_{target}", ""]
        for number in range(FUNCTIONS):
            lines += [
                f"def function_{number}(value: int) -> int:",
                f'    """Function {number} — of module {module}."""',
            ]
            places.append((f"module_{module}.py", len(lines), 21))
            lines += [f"    return module_{target}.function_{number}(value)", "", ""]
        (root / f"module_{module}.py").write_text("\n".join(lines))
    return places


# --- The bare client ----------------------------------------------------------------------------------------------


class BareClient:
    """JSON-RPC over a child's pipes, one question at a time."""

    def __init__(self, process: asyncio.subprocess.Process, root: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout
        self._root = root
        self._number = 0

    async def start(self) -> None:
        folder = {"uri": self._root.as_uri(), "name": "project"}
        capabilities: dict[str, Any] = {
            "general": {"positionEncodings": ["utf-16"]},
            "textDocument": {"definition": {}},
        }
        params: dict[str, Any] = {"processId": os.getpid(), "rootUri": folder["uri"], "capabilities": capabilities}
        await self.request("initialize", {**params, "workspaceFolders": [folder]})
        self.send({"method": "initialized", "params": {}})
        for file in sorted(self._root.glob("*.py")):
            document = {"uri": file.as_uri(), "languageId": "python", "version": 1, "text": file.read_text()}
            self.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})

    async def definition(self, file: str, line: int, character: int) -> object:
        uri = f"file://{self._root}/{file}"
        position = {"line": line, "character": character}
        return await self.request("textDocument/definition", {"textDocument": {"uri": uri}, "position": position})

    async def request(self, method: str, params: object) -> object:
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})
        while True:
            message = await self.receive()
            if "method" in message and "id" in message:
                wanted = message["params"]["items"] if message["method"] == "workspace/configuration" else None
                self.send({"id": message["id"], "result": None if wanted is None else [None for _ in wanted]})
            elif message.get("id") == self._number:
                return message["result"]

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._input.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async def receive(self) -> dict[str, Any]:
        length = 0
        while (line := await self._output.readline()) != b"\r\n":
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return json.loads(await self._output.readexactly(length))


# --- The race -----------------------------------------------------------------------------------------------------


async def measured(ask: Ask, place: tuple[str, int, int]) -> float:
    started = time.perf_counter()
    found = await ask(*place)
    spent = time.perf_counter() - started
    assert found, place
    return spent * 1000


async def race(bare: BareClient, workspace: Workspace, places: list[tuple[str, int, int]], rounds: int) -> None:
    async def through_library(file: str, line: int, character: int) -> object:
        return (await workspace.definition(file, line + 1, character + 1)).data

    times: dict[str, list[float]] = {"bare client": [], "library": []}
    for number in range(WARM_UP + rounds):
        place = places[(number * 7) % len(places)]
        turns = [("bare client", bare.definition), ("library", through_library)]
        for name, ask in turns if number % 2 else reversed(turns):
            spent = await measured(ask, place)
            if number >= WARM_UP:
                times[name].append(spent)
    print_table(times)


def print_table(times: dict[str, list[float]]) -> None:
    rows = {name: (statistics.median(spent), statistics.quantiles(spent, n=20)[-1]) for name, spent in times.items()}
    base = rows["bare client"]
    print(f"{'warm definition, ms':24}{'p50':>9}{'p95':>9}{'p50 over bare':>16}{'ratio p50':>11}{'ratio p95':>11}")
    for name, (p50, p95) in rows.items():
        over = f"{p50 - base[0]:+.3f}"
        print(f"{name:24}{p50:9.3f}{p95:9.3f}{over:>16}{p50 / base[0]:11.2f}{p95 / base[1]:11.2f}")
    print(f"{len(times['library'])} rounds in turns; target: at most 1 ms and 1.2 times the bare client at p50")


def environment(home: Path) -> dict[str, str]:
    """A user with one server and no settings."""
    tools = home / "bin"
    tools.mkdir(parents=True)
    (tools / SERVER).symlink_to(Path(sys.executable).parent / SERVER)
    return {"HOME": str(home), "PATH": str(tools), "PILOTFISH_HOME": str(home / "state"), "LANG": "C.UTF-8"}


async def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root, home = Path(folder).resolve() / "project", Path(folder).resolve() / "home"
        root.mkdir()
        places = make_project(root)
        variables = environment(home)
        process = await asyncio.create_subprocess_exec(
            str(home / "bin" / SERVER),
            "--stdio",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=root,
            env=variables,
            limit=2**24,
        )
        try:
            bare = BareClient(process, root)
            await bare.start()
            async with pilotfish.open(root, shell=computer(variables)) as workspace:
                await workspace.warm(*(f"module_{module}.py" for module in range(MODULES)))
                await race(bare, workspace, places, rounds)
        finally:
            process.kill()
            await process.wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
