"""The command line as the marker tests see it: a verb for every question, and the envelope that `--json` prints.

In this process, on the service that the other surfaces have; or as a program of its own, with the daemon behind it.
"""

import io
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, redirect_stdout
from functools import partial
from typing import Any

import anyio.to_thread
from anyio.abc import TaskGroup
from anyio.from_thread import BlockingPortal

import pilotfish
from pilotfish.api import answers
from pilotfish.api.answers import Diagnostic, Error, Feedback
from pilotfish.api.questions import Operation, Question
from pilotfish.api.status import Snapshot
from pilotfish.config.schema import TouchKind
from pilotfish.operations.answers import read_answer
from pilotfish.operations.rows import ROWS
from pilotfish.surfaces.cli.in_process import InProcessWorkspace
from pilotfish.surfaces.cli.main import run
from pilotfish.surfaces.cli.open_workspace import Opening
from pilotfish.surfaces.cli.workspace import OpenWorkspace
from pilotfish.system.tasks import owned_tasks
from support.daemon.homes import no_daemon_left
from support.servers.real import User
from support.via.mcp import is_shown_whole
from support.via.surfaces import Accepts, Answer, Ground, Surface

Diagnostics = answers.Answer[Mapping[str, tuple[Diagnostic, ...]]]


def words_of(question: Question, root: str) -> list[str]:
    """The command line that asks a question about a workspace, from wherever."""
    verb = ROWS[question.operation].verb.split()
    file = "" if question.file_path is None else os.path.join(root, question.file_path)
    place = [f"{file}:{question.line}:{question.character}"] if question.line else [file, question.symbol or ""]
    match question.operation:
        case Operation.DIAGNOSTICS | Operation.DOCUMENT_SYMBOL:
            words = [file]
        case Operation.WORKSPACE_SYMBOL:
            words = [question.query or "", "--file", file]
        case Operation.RENAME:
            words = [*place, question.new_name or ""]
        case Operation.RENAME_FILE:
            words = [file, os.path.join(root, question.new_path or "")]
        case _:
            words = place
    return [*verb, *words, "--root", root, "--json"]


class ViaCli:
    """Each command runs in a thread, with a loop of its own, and asks the service in this one."""

    gives_ends = True

    def __init__(self, ground: Ground, portal: BlockingPortal, tasks: TaskGroup) -> None:
        library = pilotfish.Workspace(ground.service, ground.client("cli"), ground.shell, tasks)
        self._workspace = ground.user.workspace
        self._bridged = Bridged(InProcessWorkspace(library), portal)

    @classmethod
    @asynccontextmanager
    async def opened(cls, ground: Ground) -> AsyncGenerator[Surface]:
        async with BlockingPortal() as portal, owned_tasks() as tasks:
            yield cls(ground, portal, tasks)

    def takes(self, question: Question) -> bool:
        return is_shown_whole(question, self._workspace)

    async def ask(self, question: Question, accepts: Accepts) -> Answer:
        return read_answer(await anyio.to_thread.run_sync(self._run, words_of(question, str(self._workspace))))

    def _run(self, words: Sequence[str]) -> bytes:
        @asynccontextmanager
        async def opened(root: str, cwd: str) -> AsyncGenerator[OpenWorkspace]:
            yield self._bridged

        with redirect_stdout(io.StringIO()) as printed:
            run(words, Opening(opened))
        return printed.getvalue().encode()


class Bridged:
    """A workspace of one loop, for another one in another thread."""

    def __init__(self, inner: InProcessWorkspace, portal: BlockingPortal) -> None:
        self._inner = inner
        self._portal = portal

    @property
    def root(self) -> str:
        return self._inner.root

    async def ask(self, operation: Operation, arguments: Mapping[str, object]) -> answers.Answer[Any]:
        return self._portal.call(self._inner.ask, operation, arguments)

    async def check(self, *paths: str, texts: Mapping[str, str] | None = None) -> Diagnostics:
        return self._portal.call(partial(self._inner.check, *paths, texts=texts))

    async def warm(self, *paths: str) -> None:
        self._portal.call(partial(self._inner.warm, *paths))

    async def after_edit(self, *paths: str, kind: TouchKind, only_new: bool) -> Feedback:
        return self._portal.call(partial(self._inner.after_edit, *paths, kind=kind, only_new=only_new))

    async def unserved(self, paths: Sequence[str]) -> Mapping[str, Error | None]:
        return self._portal.call(self._inner.unserved, paths)

    async def snapshot(self) -> Snapshot:
        return self._portal.call(self._inner.snapshot)


class ViaProgram:
    """A process for every question, and a daemon behind all of them. It asks each operation once: processes cost."""

    gives_ends = True

    def __init__(self, user: User) -> None:
        self._user = user
        self._asked: set[Operation] = set()

    @classmethod
    @asynccontextmanager
    async def opened(cls, user: User, file: str) -> AsyncGenerator[Surface]:
        with no_daemon_left(user.environment["PILOTFISH_HOME"]):
            yield cls(user)

    def takes(self, question: Question) -> bool:
        return question.operation not in self._asked and is_shown_whole(question, self._user.workspace)

    async def ask(self, question: Question, accepts: Accepts) -> Answer:
        self._asked.add(question.operation)
        argv = [sys.executable, "-m", "pilotfish", *words_of(question, str(self._user.workspace))]
        done = await anyio.to_thread.run_sync(
            partial(subprocess.run, argv, capture_output=True, check=False, env=dict(self._user.environment))
        )
        assert not done.stderr, done.stderr
        return read_answer(done.stdout)
