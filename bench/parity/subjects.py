"""Whoever is measured: all do the same work on the same workspace with the same language server, each in its own way.

A subject is opened on a workspace and asked. An answer is whatever its caller gets; it is made a text and judged by the
names in it once the clock has stopped. What a subject has no way for raises `NotOffered`, what it refuses or fails at
raises `RuntimeError`: neither is an answer.

Programs that give an agent language servers over MCP, ours among them, are rows of `peers.json`. The others are
installed from npm and PyPI into `.tools/bench`, by the versions there, and run as their own documentation says. `tools`
says which tool answers what, and its arguments; `files` are written before it starts (JSON is YAML enough), so that it
runs the same servers as the others; `no_verdict` what an answer says in which the program claims to know nothing;
`form` how its answers are written (`told/score.py`). What an upstream cannot do is what the report shows.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from harness import processes
from harness.clients import Bare, Mcp, started
from harness.servers import CLONE, filled
from harness.setting import Setting, hook, pilotfish, run, verb

import pilotfish as library
from parity.fixtures import GRAMMARS, Fixture, Place, is_definition, make
from pilotfish.api.answers import State
from pilotfish.library.workspace import Workspace, computer

FOLDER = CLONE / ".tools" / "bench"
Call = Sequence[Any]
"""A tool, and its arguments."""


class NotOffered(Exception):
    """The subject has no such thing; says what it has instead, if anything."""


@dataclass(frozen=True)
class Peer:
    name: str
    argv: list[str]
    tools: Mapping[str, Call]
    npm: Mapping[str, str] = field(default_factory=dict[str, str])
    pypi: Mapping[str, str] = field(default_factory=dict[str, str])
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, Any] = field(default_factory=dict[str, Any])
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """What it calls the server of a language."""
    no_verdict: str = ""
    form: str = ""

    @property
    def pins(self) -> dict[str, str]:
        return {**self.npm, **self.pypi}

    def install(self) -> None:
        """Once; raises `CalledProcessError` when a registry refuses."""
        folder, pins = FOLDER / self.name, json.dumps(self.pins)
        stamp = folder / ".stamp"
        if not self.pins or (stamp.exists() and stamp.read_text() == pins):
            return
        folder.mkdir(parents=True, exist_ok=True)
        print(f"installing {self.name}", flush=True)
        if self.npm:
            (folder / "package.json").write_text('{"private": true}')
            argv = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
            argv += [f"{name}@{version}" for name, version in self.npm.items()]
            subprocess.run(argv, cwd=folder, check=True, capture_output=True)
        if self.pypi:
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True)
            argv = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
            argv += [f"{name}=={version}" for name, version in self.pypi.items()]
            subprocess.run(argv, check=True, capture_output=True)
        stamp.write_text(pins)


PEERS = {
    name: Peer(name, **row) for name, row in json.loads(Path(__file__).with_name("peers.json").read_text()).items()
}


class Asked:
    """A running program, asked in the words of its row."""

    def __init__(self, mcp: Mcp, peer: Peer, places: Mapping[str, Any]) -> None:
        self.mcp, self.peer = mcp, peer
        self._places, self._opened = places, set[str]()

    async def ask(self, what: str, about: Place | str, change: int = 2) -> str:
        """About a place, or a file; `change` as LSP counts them, for what tells of one."""
        if what not in self.peer.tools:
            raise NotOffered("no such tool")
        file = about if isinstance(about, str) else about.file
        # Where a file has to be opened for that, opening it is part of the first question about it.
        if what not in {"opened", "written"} and "opened" in self.peer.tools and file not in self._opened:
            await self.ask("opened", file)
        self._opened |= {file} if what == "opened" else set[str]()
        path = Path(self._places["root"]) / file
        places = {**self._places, "file": file, "path": str(path), "uri": path.as_uri(), "change": change}
        if isinstance(about, Place):
            places |= {"line": about.line + 1, "character": about.character + 1, "name": about.name}
            places |= {"target": about.target, "target_path": str(Path(self._places["root"]) / about.target)}
        return await self.mcp.call(*filled(self.peer.tools[what], places))


@asynccontextmanager
async def program_opened(peer: Peer, language: str, setting: Setting) -> AsyncGenerator[Asked]:
    grammar = GRAMMARS[language]
    places: dict[str, Any] = {
        "python": sys.executable,
        "folder": str(FOLDER / peer.name),
        "root": str(setting.root),
        "scratch": str(setting.scratch),
        "language": language,
        "extension": grammar.suffix[1:],
        "command": list(grammar.command),
        "words": ",".join(grammar.command),
        "program": str(setting.scratch / "bin" / grammar.command[0]),
        "named": peer.names.get(language, grammar.server),
    }
    for name, content in filled(peer.files, places).items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(json.dumps(content))
    argv, variables = filled(peer.argv, places), setting.environment() | filled(peer.environment, places)
    log = setting.scratch / "stderr.txt"
    child = await started(argv, cwd=setting.root, environment=variables, framed=False, log=log)
    try:
        mcp = Mcp(child, setting.root, peer.no_verdict)
        await mcp.start()
        yield Asked(mcp, peer, places)
    finally:
        await child.close()


SMOKE_SECONDS, SMOKE_PAUSE = 60.0, 0.5
"""For each question, asked again and again: a program may not wait for a server that has just been started."""


async def smoke(peer: Peer, language: str, scratch: "Scratch", seconds: float = SMOKE_SECONDS) -> dict[str, str]:
    """What of the least does not work, and why: a definition (`definition`), an error that comes and goes (`shown`).

    A program that fails at this fails because of how we run it, until the contrary is shown.
    """
    fixture = make(language, scratch.fresh(f"smoke-{peer.name}") / "workspace", seed=1, modules=3, functions=1)
    main, place, setting = fixture.file("main"), fixture.places[0], scratch.home(peer.name, fixture)
    broken, mended = fixture.grammar.missing.format(name="missing_1"), fixture.grammar.comment.format(text="mended")
    steps: list[tuple[str, str, str, Place | str, Callable[[str], bool]]] = [
        ("definition", "a definition", broken, place, lambda said: is_definition(place, said)),
        ("shown", "an error", broken, main, lambda said: "missing_1" in said),
        ("shown", "that an error is gone", mended, main, lambda said: "missing_1" not in said),
    ]
    failed = dict[str, str]()
    try:
        async with program_opened(peer, language, setting) as program:
            for number, (what, words, text, about, right) in enumerate(steps):
                fixture.write(main, f"{text}\n")
                if number and "written" in peer.tools:
                    await program.ask("written", main)
                if what not in failed and not await _is_told(program, what, about, right, seconds):
                    failed[what] = f"smoke test: it does not tell {words}"
    except (OSError, RuntimeError, TimeoutError, NotOffered) as error:
        return dict.fromkeys(("definition", "shown"), f"smoke test: {type(error).__name__} {error}")
    finally:
        if not peer.pins:
            verb(setting, "daemon", "stop")
        processes.end(setting)
    return failed


async def _is_told(program: Asked, what: str, about: Place | str, right: Callable[[str], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while True:
        with suppress(RuntimeError, TimeoutError):
            if right(await asyncio.wait_for(program.ask(what, about), SMOKE_SECONDS)):
                return True
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(SMOKE_PAUSE)


# --- Everybody, with the same questions -----------------------------------------------------------------------------

ANSWER_SECONDS = 600.0


class Subject(Protocol):
    async def ask(self, what: str, about: Any, limit: int | None = None, /) -> object:
        """`definition`, `references` and `hover` of a place, `symbols` of a file; and of the errors of files:

        - `shown`: of one that is on disk as it is.
        - `told`: a host's tool has edited this one; what its model is shown.
        - `overwritten`: a host's tool has written the first of these; what its model is shown of it and of what it
          broke. Only the floor is told which others that may be.
        - `patched`: a host's tool has written all of these.
        - `written`: a host's tool has written this one, and nobody looks at what is said of it.

        Of a list, `limit` entries where the subject knows limits.
        """
        ...


Opening = Callable[[Fixture, Setting], AbstractAsyncContextManager[Any]]
"""A subject on the workspace of the fixture, with a home of its own."""


@dataclass(frozen=True)
class Kind:
    """A subject by name."""

    name: str
    open: Opening
    is_ours: bool = False
    languages: tuple[str, ...] = ("python", "typescript")


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

    def home(self, name: str, fixture: Fixture, *, trusted: bool = False) -> Setting:
        """Of a new user who works there."""
        return Setting(fixture.root, self.fresh(name), fixture.grammar.server, trusted).prepare()


class Floor:
    """The language server and the least client."""

    def __init__(self, client: Bare) -> None:
        self._client = client

    async def ask(self, what: str, about: Any, _limit: int | None = None) -> object:
        client = self._client
        match what:
            case "symbols":
                return await client.ask("documentSymbol", about)
            case "shown" | "told":
                return await client.shown(about)
            case "overwritten" | "patched":
                for file in about:
                    client.sync(file)
                return await asyncio.gather(*map(client.shown, about))
            case "written":
                return client.sync(about)
            case _:
                more = {"context": {"includeDeclaration": True}} if what == "references" else {}
                position = {"line": about.line, "character": about.character}
                return await client.ask(what, about.file, position=position, **more)


@asynccontextmanager
async def bare(fixture: Fixture, setting: Setting) -> AsyncGenerator[Floor]:
    variables = setting.environment()
    child = await started(fixture.grammar.command, cwd=fixture.root, environment=variables, framed=True)
    client = Bare(child, fixture.root, fixture.language)
    await client.start()
    try:
        yield Floor(client)
    finally:
        with suppress(ProcessLookupError):
            child.process.kill()
        await child.close()


# --- Pilotfish ------------------------------------------------------------------------------------------------------


class Library:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def heard_at(self) -> float:
        """When a language server said its last word, on the clock of `time.perf_counter`."""
        service = self._workspace._service  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        sessions = [entry.session for entry in service.pool.entries().values() if entry.session is not None]
        return max(session.connection.last_received for session in sessions)

    async def ask(self, what: str, about: Any, limit: int | None = None) -> object:
        workspace = self._workspace
        match what:
            case "symbols":
                return _certain(await workspace.symbols(about, limit=limit)).data
            case "shown":
                return _certain(await workspace.check(about)).data
            case "told":
                return _certain(await workspace.after_edit(about)).text
            case "overwritten":
                return _certain(await workspace.after_edit(about[0], kind="write")).text
            case "patched":
                return _certain(await workspace.after_edit(*about, kind="patch"))
            case "written":
                return await workspace.after_edit(about)
            case _:
                place, more = (
                    (about.file, about.line + 1, about.character + 1),
                    {} if limit is None else {"limit": limit},
                )
                return _certain(await getattr(workspace, what)(*place, **more)).data


def _certain(said: Any) -> Any:
    """An answer or feedback; what is not fresh counts as no answer, however right it may be."""
    about = getattr(said, "meta", said)
    if about.state is not State.FRESH:
        raise RuntimeError(f"{about.state}: {about.reason}")
    return said


@asynccontextmanager
async def in_process(fixture: Fixture, setting: Setting) -> AsyncGenerator[Library]:
    async with library.open(fixture.root, shell=computer(setting.environment())) as workspace:
        yield Library(workspace)


class CommandLine:
    """A process for each question; the servers live in the daemon."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    async def ask(self, what: str, about: Any, _limit: int | None = None) -> object:
        match what:
            case "shown":
                return await self._run("check", about)
            case "told" | "written":
                return await self._run("touched", about)
            case "overwritten":
                return await self._run("touched", about[0], "--kind", "write")
            case "patched":
                return await self._run("touched", *about, "--kind", "patch")
            case "symbols":
                return await self._run("symbols", about)
            case _:
                return await self._run(what, f"{about.file}:{about.line + 1}:{about.character + 1}")

    async def _run(self, *words: str) -> str:
        argv = [*pilotfish(), *words, "--json"]
        output, _, _ = await asyncio.to_thread(run, argv, self._setting, None, seconds=ANSWER_SECONDS)
        answer = json.loads(output or '{"state": "unavailable", "reason": "it said nothing"}')
        about = answer.get("meta", answer)
        if about["state"] != "fresh":
            raise RuntimeError(f"{about['state']}: {about.get('reason')}")
        return output


class Hook:
    """What Claude Code runs after its Edit and Write tools.

    It says nothing of a clean file, nor of one that nobody could look at: that silence is right is judged only together
    with the answers about broken files, before and after it.
    Nor does it say twice what the write of another file was answered with: what a model knows of a file is that too.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._writes: list[str] = []
        """What the writes since the last `shown` were answered with."""

    async def ask(self, what: str, about: Any, _limit: int | None = None) -> object:
        match what:
            case "told":
                return await self._event("Edit", about)
            case "written":
                return self._writes.append(await self._event("Edit", about))
            case "shown":
                before, self._writes = self._writes, []
                return "\n".join([*before, await self._event("Edit", about)])
            case "overwritten":
                return await self._event("Write", about[0])
            case "patched":
                return "\n".join(await asyncio.gather(*(self._event("Edit", file) for file in about)))
            case _:
                raise NotOffered("a hook follows edits, nobody asks it")

    async def _event(self, tool: str, file: str) -> str:
        about = {"tool_input": {"file_path": str(self._setting.root / file)}, "tool_response": {"success": True}}
        event = {"session_id": "bench", "hook_event_name": "PostToolUse", "tool_name": tool, **about}
        return (await asyncio.to_thread(hook, self._setting, "claude-code", event, 30_000))[0]


def with_daemon(subject: Callable[[Setting], Subject]) -> Opening:
    """The daemon that the subject starts ends with it, and is what counts as its process."""

    @asynccontextmanager
    async def opened(_fixture: Fixture, setting: Setting) -> AsyncGenerator[Subject]:
        try:
            if subject is Hook:
                verb(setting, "daemon", "start")
            yield subject(setting)
        finally:
            verb(setting, "daemon", "stop")

    return opened


# --- Through MCP ----------------------------------------------------------------------------------------------------


class ThroughMcp:
    """A model that has only tools must ask."""

    def __init__(self, program: Asked) -> None:
        self.listed = program.mcp.listed
        self._program = program

    async def ask(self, what: str, about: Any, _limit: int | None = None) -> object:
        match what:
            case "told":
                return await self._program.ask("shown", about)
            case "overwritten":
                raise NotOffered("a tool tells of the file that it is asked about")
            case "patched":
                return "\n".join(await asyncio.gather(*(self._program.ask("shown", file) for file in about)))
            case "written":
                # Where there is no tool to tell it, its server knows of nothing that is not asked about.
                return await self._program.ask(what, about) if what in self._program.peer.tools else ""
            case _:
                return await self._program.ask(what, about)


def through_mcp(peer: Peer) -> Opening:
    @asynccontextmanager
    async def opened(fixture: Fixture, setting: Setting) -> AsyncGenerator[ThroughMcp]:
        try:
            async with program_opened(peer, fixture.language, setting) as program:
                yield ThroughMcp(program)
        finally:
            if not peer.pins:
                verb(setting, "daemon", "stop")

    return opened


KINDS = {
    kind.name: kind
    for kind in (
        Kind("bare", bare),
        Kind("library", in_process, is_ours=True),
        Kind("cli", with_daemon(CommandLine), is_ours=True),
        Kind("hook", with_daemon(Hook), is_ours=True),
        *(Kind(name, through_mcp(peer), is_ours=not peer.pins) for name, peer in PEERS.items()),
    )
}
