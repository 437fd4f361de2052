"""The command line as the marker tests see it: a verb for every question, and the envelope that `--json` prints.

In this process, on the service that the other surfaces have; or as a program of its own, with the daemon behind it.
"""

import io
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, redirect_stdout
from functools import partial

import anyio.to_thread
from anyio.abc import TaskGroup
from anyio.from_thread import BlockingPortal

import pilotfish
from pilotfish.api.questions import Operation, Question
from pilotfish.library.blocking import BlockingWorkspace
from pilotfish.operations.rows import ROWS
from pilotfish.surfaces.cli.main import run
from pilotfish.surfaces.cli.workspace import Opening, OpenWorkspace
from pilotfish.system.tasks import owned_tasks
from support.daemon.homes import no_daemon_left
from support.servers.real import User
from support.values.answers import read_answer
from support.via.mcp import is_shown_whole
from support.via.surfaces import Accepts, Answer, Ground, Surface


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
    """Each command runs in a thread, and asks the service in this one."""

    gives_ends = True

    def __init__(self, ground: Ground, portal: BlockingPortal, tasks: TaskGroup) -> None:
        library = pilotfish.Workspace(ground.service, ground.client("cli"), ground.shell, tasks)
        self._workspace = ground.user.workspace
        self._blocking = BlockingWorkspace(library, portal)

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
        @contextmanager
        def opened(root: str, cwd: str) -> Generator[OpenWorkspace]:
            yield self._blocking

        with redirect_stdout(io.StringIO()) as printed:
            run(words, Opening(opened))
        return printed.getvalue().encode()


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
