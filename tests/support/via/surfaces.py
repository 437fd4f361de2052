"""The ways to ask: every surface of the product as the marker tests see it.

A surface takes a `Question` and gives an `Answer`, whatever lies between. Those of one case stand on one service, so
its servers start once; which of them asks first after an edit changes from step to step.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
from anyio.abc import TaskGroup

import pilotfish
from pilotfish.api import answers
from pilotfish.api.questions import Question
from pilotfish.library.workspace import computer
from pilotfish.model import AbsPath
from pilotfish.service.service import Service, System
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.tasks import owned_tasks
from support.servers.real import User

Answer = answers.Answer[Any]
Accepts = Callable[[Answer], bool]


class Surface(Protocol):
    @property
    def gives_ends(self) -> bool:
        """Whether a diagnostic says where it ends."""
        ...

    def takes(self, question: Question) -> bool:
        """Whether this can be asked this way."""
        ...

    async def ask(self, question: Question, accepts: Accepts) -> Answer:
        """The answer. Only a surface that cannot know when a server is done may wait for one that `accepts`."""
        ...


@dataclass(frozen=True)
class Ground:
    """What the surfaces of a case stand on."""

    service: Service
    shell: System
    user: User

    def client(self, name: str, host: str | None = None) -> ClientSession:
        """A client session of its own for every surface."""
        root = AbsPath(str(self.user.workspace))
        return ClientSession(f"markers {name}", root, root, host)


Way = Callable[[Ground], AbstractAsyncContextManager[Surface]]
"""How a surface is reached; the block is its lifetime."""


@asynccontextmanager
async def ground_of(user: User) -> AsyncGenerator[Ground]:
    shell = computer(user.environment)
    async with Service(shell).running() as service:
        yield Ground(service, shell, user)


def client_of(user: User) -> ClientSession:
    root = AbsPath(str(user.workspace))
    return ClientSession("markers", root, root)


def fields_of(question: Question) -> dict[str, Any]:
    """What a caller writes beside the operation."""
    return {name: value for name, value in msgspec.to_builtins(question).items() if name != "operation"}


class ViaFacade:
    """The façade in this process: what every other surface stands on."""

    gives_ends = True

    def __init__(self, ground: Ground) -> None:
        self._service = ground.service
        self._client = ground.client("facade")

    @classmethod
    @asynccontextmanager
    async def opened(cls, ground: Ground) -> AsyncGenerator[Surface]:
        yield cls(ground)

    def takes(self, question: Question) -> bool:
        return True

    async def ask(self, question: Question, accepts: Accepts) -> Answer:
        return await self._service.ask(question, self._client)


class ViaLibrary:
    """The Python library, asked with the fields that a caller writes."""

    gives_ends = True

    def __init__(self, ground: Ground, tasks: TaskGroup) -> None:
        self._workspace = pilotfish.Workspace(ground.service, ground.client("library"), ground.shell, tasks)

    @classmethod
    @asynccontextmanager
    async def opened(cls, ground: Ground) -> AsyncGenerator[Surface]:
        async with owned_tasks() as tasks:
            yield cls(ground, tasks)

    def takes(self, question: Question) -> bool:
        return True

    async def ask(self, question: Question, accepts: Accepts) -> Answer:
        return await self._workspace.ask(question.operation, fields_of(question))
