"""`pilotfish.open`: the whole service inside one process, without the daemon.

>>> import anyio, pilotfish
>>> async def main() -> None:
...     async with pilotfish.open("project") as workspace:
...         found = await workspace.definition("main.py", 3, 7)
...         for place in found.data or ():
...             print(f"{place.path}:{place.line}:{place.character}  {place.text}")
>>> anyio.run(main)
greeting.py:1:5  def greet(name: str) -> str:

A place is given by file, line and character; by file and `symbol` (`Class.method`), on a line of it where that helps;
or by `symbol` alone, which is looked up in the whole workspace.

Every answer says how much it can be believed: `answer.meta.state` is `fresh`, `partial`, `stale` or `unavailable`, and
`answer.meta.reason` says why it is not fresh. It runs on asyncio; `pilotfish.open_blocking` is the same for plain code.
"""

import itertools
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import anyio
import msgspec
from anyio.abc import TaskGroup

from pilotfish.api.answers import (
    Action,
    Answer,
    Changes,
    DiagnosticsAnswer,
    Edge,
    Exploration,
    Feedback,
    HierarchyItem,
    Hover,
    Impact,
    ItemReference,
    Location,
    Signature,
    Symbol,
    SymbolText,
    refused,
)
from pilotfish.api.questions import Moment, Operation, Question, Touch
from pilotfish.api.status import Snapshot
from pilotfish.config.places import user_places
from pilotfish.config.schema import TouchKind
from pilotfish.errors import Refused, Unavailable
from pilotfish.model import AbsPath, Position, Severity
from pilotfish.operations.names import word_at
from pilotfish.operations.rows import ROWS, OperationRow
from pilotfish.operations.tools import OPERATIONS
from pilotfish.operations.validate import question
from pilotfish.policy.boundary import admit
from pilotfish.protocol.positions import Text
from pilotfish.service.check_answer import CheckEvent, CheckRequest
from pilotfish.service.service import Service, System
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import WallClock
from pilotfish.system.files import DiskFiles
from pilotfish.system.process import spawn
from pilotfish.system.real_path import real_path
from pilotfish.system.tasks import owned_tasks
from pilotfish.system.vitals import SystemVitals
from pilotfish.system.watching.watcher import SharedWatchers

if TYPE_CHECKING:
    from pilotfish.batch.patches import Judgement, Patch

FilePath = str | os.PathLike[str]

File = FilePath | None
Number = int | None
SymbolName = str | None

Locations = tuple[Location, ...]

D = TypeVar("D")

_numbers = itertools.count(1)
"""Tells the client sessions of one process apart."""

# Whoever wants to read what happens inside adds a handler; without one, nothing is printed.
logging.getLogger("pilotfish").addHandler(logging.NullHandler())


@asynccontextmanager
async def open(  # noqa: A001 -- `pilotfish.open` is how it is called
    root: FilePath = ".", *, cwd: FilePath | None = None, host: str | None = None, shell: System | None = None
) -> AsyncGenerator["Workspace"]:
    """Open a workspace; servers start on first use, and at the end of the block none is left.

    Relative paths count from `cwd`, by default the root. `host` names the coding agent whose settings apply (`pi`,
    `opencode`, `llxprt`). `shell` replaces the computer below. Raises `Refused` when the root is no folder.
    """
    client = _client(root, cwd, host)
    shell = shell or computer(os.environ)
    async with Service(shell).running() as service, owned_tasks() as tasks:
        try:
            service.workspaces.of(client)
            yield Workspace(service, client, shell, tasks)
        finally:
            # A batch that nobody reads to its end.
            tasks.cancel_scope.cancel()
            service.end(client)


def computer(environment: Mapping[str, str]) -> System:
    """The real shell, for a user with this environment."""
    places = user_places(environment)
    return System(spawn, DiskFiles(), WallClock(), SystemVitals(), places, environment, watch=SharedWatchers().open)


def _at_place(operation: Operation, _data: type[D]):
    """A method of `Workspace` that asks about a place."""

    async def ask(
        self: "Workspace",
        file: File = None,
        line: Number = None,
        character: Number = None,
        *,
        symbol: SymbolName = None,
    ) -> Answer[D]:
        return await self.ask(operation, place(file, line, character, symbol))

    ask.__doc__ = ROWS[operation].description
    return ask


def _along(operation: Operation, item_field: str, _data: type[D]):
    """A method of `Workspace` that follows a hierarchy, from a place or from an item of an earlier answer."""

    async def ask(
        self: "Workspace",
        file: File = None,
        line: Number = None,
        character: Number = None,
        *,
        symbol: SymbolName = None,
        item: ItemReference | None = None,
        limit: Number = None,
        offset: Number = None,
    ) -> Answer[D]:
        handed_back = None if item is None else msgspec.to_builtins(item)
        more = {item_field: handed_back, "limit": limit, "offset": offset}
        return await self.ask(operation, place(file, line, character, symbol) | more)

    ask.__doc__ = ROWS[operation].description
    return ask


def place(
    file: File = None, line: Number = None, character: Number = None, symbol: SymbolName = None
) -> dict[str, object]:
    """The fields of a place."""
    path = None if file is None else os.fspath(file)
    return {"filePath": path, "line": line, "character": character, "symbol": symbol}


class Workspace:
    """A folder with its language servers. Questions may be asked side by side."""

    def __init__(self, service: Service, client: ClientSession, shell: System, tasks: TaskGroup) -> None:
        self._service = service
        self._client = client
        self._shell = shell
        self._tasks = tasks

    @property
    def root(self) -> AbsPath:
        """The folder itself, symbolic links resolved."""
        return self._service.workspaces.of(self._client).root

    @property
    def offers_tools(self) -> bool:
        """Whether the configuration wants models to have tools for questions."""
        config = self._service.workspaces.of(self._client).config
        return config.enabled and config.navigation_tools

    async def offered(self) -> tuple[OperationRow, ...]:
        """The operations that a server of this workspace may answer. Nothing is started."""
        return await self._service.offered(self._client)

    async def ask(self, operation: Operation, arguments: Mapping[str, object]) -> Answer[Any]:
        """Any operation, its fields named as on the wire (`filePath`, `newName`); what is None counts as absent."""
        try:
            asked = question(OPERATIONS[operation], arguments)
        except Refused as refusal:
            return refused(operation, refusal)
        return await self.answer(asked)

    async def answer(self, question: Question) -> Answer[Any]:
        """The answer to a question that some tool has checked already."""
        return await self._service.ask(question, self._client)

    async def after_edit(
        self, *paths: FilePath, kind: TouchKind = "edit", texts: Mapping[str, str] | None = None, only_new: bool = False
    ) -> Feedback:
        """What to append to the result of the tool that changed these files: often nothing.

        `texts` has the new text of files by path as given; of the others, the disk is read. `kind` says what was done;
        other files that it broke are shown after the kinds that `feedback.otherFilesAfter` lists, by default all.
        """
        touch = Touch(_spelled(paths), kind, dict(texts) if texts else None, only_new)
        return await self._service.touched(touch, self._client)

    async def before_stop(self) -> Feedback:
        """What to say to a model that is about to stop: the errors that its edits have left. It is said once."""
        return await self._service.reached(Moment("stop"), self._client)

    async def check(self, *paths: FilePath, texts: Mapping[str, str] | None = None) -> DiagnosticsAnswer:
        """The verdict on files, on those below folders, and without any on the whole workspace.

        A text in `texts` is judged instead of what is on disk.
        """
        files = _spelled(paths) or tuple(texts or (self.root,))
        if texts or not self._has_folder(files):
            return await self._service.check(self._client, files, texts=texts)
        return await self.check_files(CheckRequest(files), lambda _: None)

    async def check_files(self, request: CheckRequest, heard: Callable[[CheckEvent], None]) -> DiagnosticsAnswer:
        """The verdict on files and folders; `heard` is told which files, and of each as soon as it is known."""
        return await self._service.check_files(self._client, request, heard)

    async def batch(
        self, patches: "Iterable[Patch] | AsyncIterable[Patch]", *, jobs: int = 1, worst: Severity = Severity.ERROR
    ) -> "AsyncGenerator[Judgement]":
        """What each of these patches would introduce, in any order, each as soon as it is known.

        Nothing is written here: `jobs` copies of the workspace have servers of their own. `worst` is the least severity
        that counts.
        """
        from pilotfish.batch.engine import LocalEngine
        from pilotfish.batch.judge import JudgeSettings
        from pilotfish.batch.patches import each

        workspace = self._service.workspaces.of(self._client)
        settings = JudgeSettings(self.root, worst, self._client.host, workspace.program("git"))
        engine, scope = LocalEngine(settings, self._shell, jobs), anyio.CancelScope()
        told, judged = anyio.create_memory_object_stream["Judgement"](0)

        async def run() -> None:
            # Here and not around the `yield`: whoever reads may end in another task.
            with scope:
                async with told:
                    await engine.judge_all(each(patches), told.send)

        self._tasks.start_soon(run)
        try:
            async with judged:
                async for judgement in judged:
                    yield judgement
        finally:
            scope.cancel()

    def _has_folder(self, paths: tuple[str, ...]) -> bool:
        return any(os.path.isdir(os.path.join(self._client.cwd, path)) for path in paths)

    async def warm(self, *paths: FilePath) -> None:
        """Start the servers of these files and wait until each has answered once, whatever it says."""
        await self.check(*paths)

    def serves(self, path: FilePath) -> bool:
        """Whether some server is for files like this one, installed or not."""
        return self._service.workspaces.of(self._client).serves(AbsPath(os.path.join(self._client.cwd, path)))

    def is_served(self, path: FilePath) -> bool:
        """Whether a server that is here checks this file."""
        workspace = self._service.workspaces.of(self._client)
        real = AbsPath(real_path(os.path.join(self._client.cwd, path)))
        return bool(workspace.servers_for(real).servers)

    def missing(self, path: FilePath) -> Unavailable | None:
        """Why the server for a file is not there, and what to do; None when somebody serves it, or nobody would."""
        workspace = self._service.workspaces.of(self._client)
        choice = workspace.servers_for(AbsPath(real_path(os.path.join(self._client.cwd, path))))
        if choice.servers or choice.missing is None:
            return None
        return workspace.why_unavailable(choice.missing)

    async def word(self, question: Question) -> str | None:
        """The identifier at the place that a question gives in numbers, if its file may be read."""
        if question.file_path is None or question.line is None or question.character is None:
            return None
        try:
            admitted = admit(question.file_path, self._service.workspaces.of(self._client).boundary)
            text = Text((await self._shell.files.read_text(admitted.path)).text)
        except Refused:
            return None
        return word_at(text, Position(question.line - 1, question.character - 1))

    def status(self) -> Snapshot:
        """Every server of this workspace at this moment, those in trouble first."""
        return self._service.status(self._client)

    # --- Questions --------------------------------------------------------------------------------------------------
    # Lines and characters count from 1, and a character is a Unicode code point. No method raises for an error of the
    # caller, a file or a server: it is in the answer.

    definition = _at_place(Operation.DEFINITION, Locations)
    """Where a symbol is defined."""
    declaration = _at_place(Operation.DECLARATION, Locations)
    """Where a symbol is declared."""
    type_definition = _at_place(Operation.TYPE_DEFINITION, Locations)
    """Where the type of a symbol is defined."""
    hover = _at_place(Operation.HOVER, Hover)
    """Type and documentation of a symbol."""
    signature = _at_place(Operation.SIGNATURE, tuple[Signature, ...])
    """Signatures of the call around a position."""
    source = _at_place(Operation.SOURCE, tuple[SymbolText, ...])
    """The whole text of a symbol, or of several: `symbol="load, Class.method"`."""
    explore = _at_place(Operation.EXPLORE, Exploration)
    """All about a symbol: type, documentation, text, who uses it."""
    impact = _at_place(Operation.IMPACT, Impact)
    """What the uncommitted changes, or a symbol, touch: changed symbols, their users, what is broken now."""
    incoming_calls = _along(Operation.INCOMING_CALLS, "callHierarchyItem", tuple[Edge, ...])
    """Who calls a function, and where; `item` is one of an earlier answer."""
    outgoing_calls = _along(Operation.OUTGOING_CALLS, "callHierarchyItem", tuple[Edge, ...])
    """What a function calls, and where; `item` is one of an earlier answer."""
    supertypes = _along(Operation.SUPERTYPES, "typeHierarchyItem", tuple[HierarchyItem, ...])
    """What a type is derived from; `item` is one of an earlier answer."""
    subtypes = _along(Operation.SUBTYPES, "typeHierarchyItem", tuple[HierarchyItem, ...])
    """What is derived from a type; `item` is one of an earlier answer."""

    async def implementation(
        self,
        file: File = None,
        line: Number = None,
        character: Number = None,
        *,
        symbol: SymbolName = None,
        limit: Number = None,
        offset: Number = None,
    ) -> Answer[Locations]:
        """What implements an interface or method."""
        more = {"limit": limit, "offset": offset}
        return await self.ask(Operation.IMPLEMENTATION, place(file, line, character, symbol) | more)

    async def references(
        self,
        file: File = None,
        line: Number = None,
        character: Number = None,
        *,
        symbol: SymbolName = None,
        include_declaration: bool = True,
        limit: Number = None,
        offset: Number = None,
    ) -> Answer[Locations]:
        """Every use of a symbol in the workspace; `meta.total` says how many there are."""
        more = {"includeDeclaration": include_declaration, "limit": limit, "offset": offset}
        return await self.ask(Operation.REFERENCES, place(file, line, character, symbol) | more)

    async def symbols(
        self,
        file: FilePath,
        *,
        depth: Number = None,
        kinds: str | None = None,
        limit: Number = None,
        offset: Number = None,
    ) -> Answer[tuple[Symbol, ...]]:
        """Outline of a file without what is local to functions; `kinds` chooses (`class,method`), `all` has locals."""
        more = {"depth": depth, "kinds": kinds, "limit": limit, "offset": offset}
        return await self.ask(Operation.DOCUMENT_SYMBOL, place(file) | more)

    async def workspace_symbols(
        self, query: str, file: File = None, *, kinds: str | None = None, limit: Number = None, offset: Number = None
    ) -> Answer[tuple[Symbol, ...]]:
        """Symbols by name in the whole workspace, exact matches first; with a file, at its servers alone."""
        more = {"query": query, "kinds": kinds, "limit": limit, "offset": offset}
        return await self.ask(Operation.WORKSPACE_SYMBOL, place(file) | more)

    async def rename(
        self,
        file: File = None,
        line: Number = None,
        character: Number = None,
        *,
        new_name: str,
        symbol: SymbolName = None,
        apply: bool = False,
    ) -> Answer[Changes]:
        """Rename a symbol everywhere: a diff, unless `apply` says to write it."""
        more = {"newName": new_name, "apply": apply}
        return await self.ask(Operation.RENAME, place(file, line, character, symbol) | more)

    async def rename_file(self, file: FilePath, new_path: FilePath, *, apply: bool = False) -> Answer[Changes]:
        """Move a file and let imports follow: a diff, unless `apply` says to do it."""
        return await self.ask(Operation.RENAME_FILE, place(file) | {"newPath": os.fspath(new_path), "apply": apply})

    async def edit_symbol(
        self,
        file: File = None,
        line: Number = None,
        character: Number = None,
        *,
        edit: Literal["replace", "before", "after", "delete"],
        symbol: SymbolName = None,
        text: str | None = None,
        digest: str | None = None,
        apply: bool = False,
    ) -> Answer[Changes]:
        """Replace or delete a symbol, or insert before or after it: a diff, unless `apply` says to write it."""
        more = {"edit": edit, "text": text, "digest": digest, "apply": apply}
        return await self.ask(Operation.EDIT_SYMBOL, place(file, line, character, symbol) | more)

    async def actions(
        self,
        file: FilePath,
        line: int,
        character: Number = None,
        *,
        kind: str | None = None,
        action: int | str | None = None,
        apply: bool = False,
    ) -> Answer[tuple[Action, ...]]:
        """Quick fixes and refactorings on a line; `action` picks one by number or title and shows what it would do."""
        more = {"kind": kind, "action": action, "apply": apply}
        return await self.ask(Operation.CODE_ACTIONS, place(file, line, character) | more)


def _client(root: FilePath, cwd: FilePath | None, host: str | None) -> ClientSession:
    folder = AbsPath(os.path.abspath(root))
    here = folder if cwd is None else AbsPath(os.path.abspath(cwd))
    return ClientSession(f"library {os.getpid()}.{next(_numbers)}", folder, here, host)


def _spelled(paths: Iterable[FilePath]) -> tuple[str, ...]:
    return tuple(os.fspath(path) for path in paths)
