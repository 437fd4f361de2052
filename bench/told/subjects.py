"""Whoever is measured: told of each edit in the way of a host, and asked for what the model would read.

A subject has a folder of its own for its home and its state, and a project that nobody else has. To add one, write a
class with the methods of `Subject`, and name it in `SUBJECTS`.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from harness import processes
from harness.clients import Bare, started
from harness.servers import CLONE, SERVERS
from harness.setting import HOST_SECONDS, Setting, verb
from parity.fixtures import LANGUAGES
from parity.subjects import PEERS, Peer, Scratch, program_opened, smoke

from pilotfish.servers.catalogue import load
from told.conversation import Conversation, Told
from told.edits import Edit
from told.hosts import WIRINGS, Host

CREATED, CHANGED, DELETED = 1, 2, 3


class Subject(Protocol):
    @property
    def carries_out(self) -> bool:
        """Whether it makes the edits itself, by the tools of a real host, when it is asked what is told after them."""
        ...

    def begin(self) -> None:
        """The host starts, in the project."""
        ...

    def before(self, edit: Edit) -> None:
        """The host is about to carry this edit out: its model has read the file."""
        ...

    def after(self, edit: Edit) -> Told:
        """The edit is on disk. What is the model shown with the tool's result?"""
        ...

    def end(self) -> None:
        """The host ends; nothing stays behind."""
        ...


class Nothing:
    """No help at all: the floor."""

    carries_out = False

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def begin(self) -> None:
        """Nobody is there."""

    def before(self, edit: Edit) -> None:
        """Nobody is there."""

    def after(self, edit: Edit) -> Told:
        del edit
        return Told("", 0.0)

    def end(self) -> None:
        """Nobody is there."""


class ClaudeCodeHook(Nothing):
    """The hook program with the events of Claude Code: a file is read before it is first edited."""

    carries_out = True

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._conversation = Conversation(setting, "told")

    def begin(self) -> None:
        self._conversation.begin("Make some edits.")

    def after(self, edit: Edit) -> Told:
        heard = self._conversation.edit(edit)
        return Told(heard.text, heard.milliseconds, error=heard.error, waits=self._conversation.take_waits())

    def end(self) -> None:
        self._conversation.end()
        verb(self._setting, "daemon", "stop")


# --- Who is asked -----------------------------------------------------------------------------------------------------

Question = Callable[[], Awaitable[str]]


class Asked(Nothing):
    """Nobody tells these of an edit but the model. It reads a file before it edits it for the first time."""

    form = ""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._runner, self._stack = asyncio.Runner(), AsyncExitStack()
        self._seen: set[str] = set()

    def begin(self) -> None:
        self._runner.run(self._start())

    def before(self, edit: Edit) -> None:
        for change in edit.changes:
            if change.before is not None and change.path not in self._seen:
                self._seen.add(change.path)
                self._runner.run(self._answered(self._when_read(change.path)))

    def after(self, edit: Edit) -> Told:
        return self._runner.run(self._answered(self._when_edited(edit)))

    def end(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()

    async def _start(self) -> None: ...

    def _when_read(self, _path: str) -> Iterable[Question]: ...

    def _when_edited(self, _edit: Edit) -> Iterable[Question]: ...

    async def _answered(self, questions: Iterable[Question]) -> Told:
        """All answers together are what the model is told."""
        clock = asyncio.get_running_loop().time
        began, texts, error = clock(), list[str](), ""
        for ask in questions:
            try:
                texts.append(await asyncio.wait_for(ask(), HOST_SECONDS))
            except (TimeoutError, RuntimeError) as trouble:
                error = error or f"{type(trouble).__name__} {trouble}".strip()
        return Told("\n".join(texts), (clock() - began) * 1000, error=error, form=self.form)


async def _silently(work: Awaitable[object]) -> str:
    """What is no answer for the model."""
    await work
    return ""


class BareServer(Asked):
    """The same server and the least client that can ask it for the edited file: the time that nobody can go below.

    Its model reads nothing: only how long the server takes counts.
    """

    async def _start(self) -> None:
        setting, server = self._setting, self._setting.server
        spec, language = SERVERS[server], {**LANGUAGES, "gopls": "go"}[server]
        variables = {**setting.environment(), **spec.filled(spec.options).get("env", {})}
        child = await started(load()[server].command, cwd=setting.root, environment=variables, framed=True)
        self._stack.push_async_callback(child.close)
        self._client = Bare(child, setting.root, language)
        await self._client.start()

    def _when_read(self, path: str) -> Iterable[Question]:
        return [lambda: _silently(self._client.shown(path))]

    def _when_edited(self, edit: Edit) -> Iterable[Question]:
        return [question for path in _there(edit) for question in self._when_read(path)]


class Library(Asked):
    """Pilotfish as a library in a program of its own (`library.py`), which is told of files that are read, too."""

    async def _start(self) -> None:
        argv, root = [sys.executable, "-m", "told.library", str(self._setting.root)], self._setting.root
        variables = self._setting.environment() | {"PYTHONPATH": str(CLONE / "bench")}
        self._child = await started(argv, cwd=root, environment=variables, framed=False)
        self._stack.push_async_callback(self._child.close)

    def _when_read(self, path: str) -> Iterable[Question]:
        yield lambda: _silently(self._child.request("after_edit", {"files": [path], "kind": "read"}))
        yield lambda: _silently(asyncio.sleep(self._setting.pause))

    def after(self, edit: Edit) -> Told:
        asked = self._child.request("after_edit", {"files": list(edit.paths), "kind": edit.tool})
        return Told(**self._runner.run(asked))


class ToolUser(Asked):
    """A program that speaks MCP, as a model would use it: it edits with its host's tools, then asks what is wrong now.

    With a file that it reads it does what the program's own instructions want done with a file first; ours want the
    impact looked at before a change is called finished.
    """

    def __init__(self, setting: Setting, peer: Peer) -> None:
        super().__init__(setting)
        self._peer, self.form = peer, peer.form

    def begin(self) -> None:
        self._peer.install()
        with tempfile.TemporaryDirectory(prefix="smoke-") as folder:
            scratch = Scratch(Path(os.path.realpath(folder)))
            failed = self._runner.run(smoke(self._peer, LANGUAGES[self._setting.server], scratch))
            if "shown" in failed:
                raise RuntimeError(failed["shown"])
        super().begin()

    def end(self) -> None:
        super().end()
        if not self._peer.pins:
            verb(self._setting, "daemon", "stop")

    async def _start(self) -> None:
        language = LANGUAGES[self._setting.server]
        self._program = await self._stack.enter_async_context(program_opened(self._peer, language, self._setting))

    def _when_read(self, path: str) -> Iterable[Question]:
        return [partial(self._program.ask, "opened", path)] if "opened" in self._peer.tools else []

    def _when_edited(self, edit: Edit) -> Iterable[Question]:
        program, tools = self._program, self._peer.tools
        for one in edit.changes if "written" in tools else ():
            kind = CREATED if one.before is None else DELETED if one.after is None else CHANGED
            yield lambda one=one, kind=kind: _silently(program.ask("written", one.path, kind))
        for path in _there(edit):
            yield partial(program.ask, "shown", path)
        if "finished" in tools:
            yield partial(program.ask, "finished", edit.paths[0])


def _there(edit: Edit) -> list[str]:
    return [change.path for change in edit.changes if change.after is not None]


# --- All of them ------------------------------------------------------------------------------------------------------

SUBJECTS: Mapping[str, Callable[[Setting], Subject]] = {
    "claude-code": ClaudeCodeHook,
    "library": Library,
    "nothing": Nothing,
    "bare": BareServer,
    **{name: partial(ToolUser, peer=peer) for name, peer in PEERS.items() if peer.form},
    **{name: partial(Host, wiring=wiring) for name, wiring in WIRINGS.items()},
}

ABSENT: Mapping[str, str] = {
    "crush": "its npm package has no program: it fetches one from GitHub when it is installed, and no registry has it",
}
"""Hosts that should be measured and cannot be here, each with the reason."""


@dataclass(frozen=True)
class Cost:
    """What all processes of a subject took together."""

    cpu_seconds: float = 0.0
    megabytes: float = 0.0


@contextmanager
def opened(name: str, setting: Setting) -> Generator[Subject]:
    """The subject, from begin to end; whatever of it is left after that is said, and ended by its number."""
    subject = SUBJECTS[name](setting.prepare())
    try:
        subject.begin()
        yield subject
    finally:
        subject.end()
        if left := processes.left(setting):
            print(f"{left} processes were left behind", flush=True)
            processes.end(setting)


def cost(setting: Setting) -> Cost:
    """Of the processes that are there now."""
    found = processes.of(setting)
    return Cost(round(processes.cpu_seconds(found), 1), round(processes.memory(found)))
