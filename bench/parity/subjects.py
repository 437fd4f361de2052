"""Whoever is measured: all do the same work on the same workspace with the same language server, each in its own way.

A subject is opened on a workspace and asked. An answer is whatever its caller gets; it is made a text and judged by the
names in it once the clock has stopped. What a subject has no way for raises `NotOffered`, what
it refuses or fails at raises `RuntimeError`: neither is an answer.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from parity.fixtures import Fixture, Place
from parity.lines import Child, started
from pilotfish.servers.catalogue import load


class NotOffered(Exception):
    """The subject has no such thing; says what it has instead, if anything."""


class Subject(Protocol):
    async def definition(self, place: Place) -> object: ...

    async def references(self, place: Place) -> object: ...

    async def hover(self, place: Place) -> object: ...

    async def symbols(self, file: str) -> object: ...

    async def shown(self, file: str) -> object:
        """The errors of a file that is on disk as it is."""
        ...

    async def told(self, file: str) -> object:
        """A host's tool has edited this file: what its model is shown."""
        ...

    async def overwritten(self, file: str, others: Sequence[str], /) -> object:
        """A host's tool has written the whole file: what its model is shown of it and of what it broke.

        Only the floor is told which `others` that may be.
        """
        ...

    async def patched(self, files: Sequence[str]) -> object:
        """A host's tool has written all of these."""
        ...

    async def written(self, file: str) -> None:
        """A host's tool has written this file, and nobody looks at what is said of it."""


Opening = Callable[[Fixture, Path], Any]
"""An async context manager: a subject on the workspace of the fixture, with a scratch folder of its own."""


@dataclass(frozen=True)
class Kind:
    """A subject by name."""

    name: str
    open: Opening
    is_ours: bool = False
    languages: tuple[str, ...] = ("python", "typescript")


# --- Through MCP ---------------------------------------------------------------------------------------------------

Arguments = dict[str, Any]
Tool = tuple[str, Callable[[Fixture, Any], Arguments]]
"""The tool's name, and its arguments for a place or a file."""


@dataclass(frozen=True)
class McpKind:
    """How a program that speaks MCP over stdio is asked."""

    argv: Callable[[Fixture], list[str]]
    tools: Mapping[str, Tool]
    before: tuple[Tool, ...] = ()
    no_verdict: str = ""
    """What an answer says in which the program itself claims to know nothing."""
    environment: Callable[[Fixture, Path], dict[str, str]] = lambda _fixture, _scratch: {}


class ThroughMcp:
    def __init__(self, child: Child, fixture: Fixture, kind: McpKind) -> None:
        self.listed = ""
        self._child = child
        self._fixture = fixture
        self._kind = kind
        self._seen: set[str] = set()

    async def start(self) -> None:
        roots = [{"uri": self._fixture.root.as_uri(), "name": "workspace"}]
        self._child.replies["roots/list"] = lambda _params: {"roots": roots}
        about = {"name": "bench", "version": "1"}
        hello: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}, "clientInfo": about}
        await self._child.request("initialize", hello)
        self._child.notify("notifications/initialized", {})
        self.listed = json.dumps(await self._child.request("tools/list", {}), separators=(",", ":"))
        for name, arguments in self._kind.before:
            await self._call(name, arguments(self._fixture, ""))

    async def definition(self, place: Place) -> object:
        return await self._ask("definition", place)

    async def references(self, place: Place) -> object:
        return await self._ask("references", place)

    async def hover(self, place: Place) -> object:
        return await self._ask("hover", place)

    async def symbols(self, file: str) -> object:
        return await self._ask("symbols", file)

    async def shown(self, file: str) -> object:
        """Where a file has to be opened for that, opening it is part of the first question about it."""
        if "opened" in self._kind.tools and file not in self._seen:
            self._seen.add(file)
            await self._ask("opened", file)
        return await self._ask("diagnostics", file)

    async def told(self, file: str) -> object:
        """A model that has only tools must ask."""
        return await self.shown(file)

    async def overwritten(self, _file: str, _others: Sequence[str]) -> object:
        raise NotOffered("a tool tells of the file that it is asked about")

    async def patched(self, files: Sequence[str]) -> object:
        return "\n".join(map(str, await asyncio.gather(*map(self.shown, files))))

    async def written(self, file: str) -> None:
        """Where there is no tool to tell it, its server knows of nothing that is not asked about."""
        if "written" in self._kind.tools:
            await self._ask("written", file)

    async def _ask(self, what: str, about: Place | str) -> str:
        if what not in self._kind.tools:
            raise NotOffered("no such tool")
        name, arguments = self._kind.tools[what]
        return await self._call(name, arguments(self._fixture, about))

    async def _call(self, name: str, arguments: Arguments) -> str:
        result = await self._child.request("tools/call", {"name": name, "arguments": arguments})
        said = "\n".join(part.get("text", "") for part in result.get("content", []))
        if result.get("isError") or (self._kind.no_verdict and self._kind.no_verdict in said):
            raise RuntimeError(said)
        return said


def through_mcp(kind: McpKind) -> Opening:
    @asynccontextmanager
    async def opened(fixture: Fixture, scratch: Path) -> AsyncGenerator[ThroughMcp]:
        variables = environment(scratch) | kind.environment(fixture, scratch)
        log = scratch / "stderr.txt"
        child = await started(kind.argv(fixture), cwd=fixture.root, environment=variables, framed=False, log=log)
        try:
            subject = ThroughMcp(child, fixture, kind)
            await subject.start()
            yield subject
        finally:
            await child.close()

    return opened


# --- The machine that all see --------------------------------------------------------------------------------------

CLONE = Path(__file__).resolve().parents[2]
PROGRAMS = (CLONE / ".venv" / "bin", CLONE / ".tools" / "npm" / "node_modules" / ".bin")


MARK = "PARITY_SUBJECT"
"""In the environment of every process that a subject starts; its scratch folder."""


ALONE = ("basedpyright", "typescript")
"""The servers that everybody uses; no other one of ours may help."""


def environment(scratch: Path) -> dict[str, str]:
    """A home of its own, and a `PATH` with the language servers of this clone first."""
    home = scratch / "home"
    config = home / "config" / "pilotfish" / "lsp.json"
    if not config.exists():
        config.parent.mkdir(parents=True)
        config.write_text(json.dumps({"lsp": {one: {"disabled": True} for one in load() if one not in ALONE}}))
    return {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        MARK: str(scratch),
        "PATH": os.pathsep.join([*map(str, PROGRAMS), os.environ["PATH"]]),
        "PILOTFISH_HOME": str(scratch / "state"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CACHE_HOME": str(home / "cache"),
    }


def python() -> str:
    return sys.executable


@dataclass
class Scratch:
    """Folders that nobody else has."""

    root: Path
    _count: int = field(default=0)

    def fresh(self, name: str) -> Path:
        self._count += 1
        folder = self.root / f"{name}-{self._count}"
        folder.mkdir(parents=True)
        return folder
