"""Pilotfish through its library, its MCP server, its command line and its hook program."""

import asyncio
import json
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pilotfish
from parity.fixtures import Fixture, Place
from parity.subjects import CLONE, McpKind, NotOffered, Opening, environment, python, through_mcp
from pilotfish.api.answers import Answer, Feedback, State
from pilotfish.library.workspace import Workspace, computer


class Library:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def heard_at(self) -> float:
        """When a language server said its last word, on the clock of `time.perf_counter`."""
        service = self._workspace._service  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        sessions = [entry.session for entry in service.pool.entries().values() if entry.session is not None]
        return max(session.last_received for session in sessions)

    async def definition(self, place: Place) -> object:
        return _fresh(await self._workspace.definition(place.file, place.line + 1, place.character + 1))

    async def references(self, place: Place, limit: int | None = None) -> object:
        answer = await self._workspace.references(place.file, place.line + 1, place.character + 1, limit=limit)
        return _fresh(answer)

    async def hover(self, place: Place) -> object:
        return _fresh(await self._workspace.hover(place.file, place.line + 1, place.character + 1))

    async def symbols(self, file: str, limit: int | None = None) -> object:
        return _fresh(await self._workspace.symbols(file, limit=limit))

    async def shown(self, file: str) -> object:
        return _fresh(await self._workspace.check(file))

    async def told(self, file: str) -> object:
        return _certain(await self._workspace.after_edit(file)).text

    async def overwritten(self, file: str, _others: Sequence[str]) -> object:
        return _certain(await self._workspace.after_edit(file, kind="write")).text

    async def patched(self, files: Sequence[str]) -> object:
        return _certain(await self._workspace.after_edit(*files, kind="patch"))

    async def written(self, file: str) -> None:
        await self._workspace.after_edit(file)


def _fresh(answer: Answer[Any]) -> object:
    """What is not fresh counts as no answer, however right it may be."""
    if answer.meta.state is not State.FRESH:
        raise RuntimeError(f"{answer.meta.state}: {answer.meta.reason}")
    return answer.data


def _certain(feedback: Feedback) -> Feedback:
    if feedback.state is not State.FRESH:
        raise RuntimeError(f"{feedback.state}: {feedback.reason}")
    return feedback


@asynccontextmanager
async def library(fixture: Fixture, scratch: Path) -> AsyncGenerator[Library]:
    async with pilotfish.open(fixture.root, shell=computer(environment(scratch))) as workspace:
        yield Library(workspace)


def _place(_fixture: Fixture, place: Place) -> dict[str, object]:
    return {"filePath": place.file, "line": place.line + 1, "character": place.character + 1}


MCP = McpKind(
    argv=lambda _fixture: [python(), "-m", "pilotfish", "mcp"],
    tools={
        "definition": ("lsp_goto_definition", _place),
        "references": ("lsp_find_references", _place),
        "hover": ("lsp_hover", _place),
        "symbols": ("lsp_document_symbols", lambda _fixture, file: {"filePath": file}),
        "diagnostics": ("lsp_diagnostics", lambda _fixture, file: {"filePath": file}),
    },
)


def with_daemon(opening: Opening) -> Opening:
    """The daemon that the subject starts ends with it, and is what counts as its process."""

    @asynccontextmanager
    async def opened(fixture: Fixture, scratch: Path) -> AsyncGenerator[object]:
        try:
            async with opening(fixture, scratch) as subject:
                yield subject
        finally:
            run([python(), "-m", "pilotfish", "daemon", "stop"], scratch)

    return opened


class CommandLine:
    """A process for each question; the servers live in the daemon."""

    def __init__(self, fixture: Fixture, scratch: Path) -> None:
        self._fixture = fixture
        self._environment = environment(scratch)

    async def definition(self, place: Place) -> object:
        return await self._run("definition", _spelled(place))

    async def references(self, place: Place) -> object:
        return await self._run("references", _spelled(place))

    async def hover(self, place: Place) -> object:
        return await self._run("hover", _spelled(place))

    async def symbols(self, file: str) -> object:
        return await self._run("symbols", file)

    async def shown(self, file: str) -> object:
        return await self._run("check", file)

    async def told(self, file: str) -> object:
        return await self._run("touched", file)

    async def overwritten(self, file: str, _others: Sequence[str]) -> object:
        return await self._run("touched", file, "--kind", "write")

    async def patched(self, files: Sequence[str]) -> object:
        return await self._run("touched", *files, "--kind", "patch")

    async def written(self, file: str) -> None:
        await self._run("touched", file)

    async def _run(self, *words: str) -> str:
        argv = [python(), "-m", "pilotfish", *words, "--json"]
        output = await said(argv, self._fixture.root, self._environment)
        answer = json.loads(output or '{"state": "unavailable", "reason": "it said nothing"}')
        about = answer.get("meta", answer)
        if about["state"] != "fresh":
            raise RuntimeError(f"{about['state']}: {about.get('reason')}")
        return output


@asynccontextmanager
async def command_line(fixture: Fixture, scratch: Path) -> AsyncGenerator[CommandLine]:
    yield CommandLine(fixture, scratch)


class Hook:
    """What Claude Code runs after its Edit and Write tools.

    It says nothing of a clean file, nor of one that nobody could look at: that silence is right is judged only together
    with the answers about broken files, before and after it.
    Nor does it say twice what the write of another file was answered with: what a model knows of a file is that too.
    """

    PROGRAM = CLONE / "src" / "pilotfish" / "surfaces" / "hook.py"

    def __init__(self, fixture: Fixture, scratch: Path) -> None:
        self._fixture = fixture
        self._environment = environment(scratch)
        self._writes: list[str] = []
        """What the writes since the last `shown` were answered with."""

    async def told(self, file: str) -> object:
        return await self._event("Edit", file)

    async def shown(self, file: str) -> object:
        before, self._writes = self._writes, []
        return "\n".join([*before, await self._event("Edit", file)])

    async def overwritten(self, file: str, _others: Sequence[str]) -> object:
        return await self._event("Write", file)

    async def _event(self, tool: str, file: str) -> str:
        event = {
            "session_id": "bench",
            "cwd": str(self._fixture.root),
            "hook_event_name": "PostToolUse",
            "tool_name": tool,
            "tool_input": {"file_path": str(self._fixture.root / file)},
            "tool_response": {"success": True},
        }
        argv = [python(), "-I", "-S", str(self.PROGRAM), "claude-code", "--deadline-ms", "30000"]
        return await said(argv, self._fixture.root, self._environment, json.dumps(event).encode())

    async def patched(self, files: Sequence[str]) -> object:
        return "\n".join(map(str, await asyncio.gather(*map(self.told, files))))

    async def written(self, file: str) -> None:
        self._writes.append(await self._event("Edit", file))

    async def definition(self, _about: object) -> object:
        raise NotOffered("a hook follows edits, nobody asks it")

    references = hover = symbols = definition


@asynccontextmanager
async def hook(fixture: Fixture, scratch: Path) -> AsyncGenerator[Hook]:
    run([python(), "-m", "pilotfish", "daemon", "start"], scratch)
    yield Hook(fixture, scratch)


def _spelled(place: Place) -> str:
    return f"{place.file}:{place.line + 1}:{place.character + 1}"


async def said(argv: list[str], cwd: Path, variables: dict[str, str], given: bytes = b"") -> str:
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        env=variables,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    output, _ = await process.communicate(given)
    return output.decode()


def run(argv: list[str], scratch: Path) -> str:
    done = subprocess.run(argv, env=environment(scratch), capture_output=True, text=True, check=False)
    return done.stdout


mcp = through_mcp(MCP)
