r"""`pilotfish.open_blocking`: the library for code without an event loop. The loop runs in a thread of its own.

>>> import pilotfish
>>> with pilotfish.open_blocking("project") as workspace:
...     checked = workspace.check("main.py", texts={"main.py": "from greeting import greet\n\nprint(greet(1))\n"})
...     for found in (checked.data or {})["main.py"]:
...         print(f"{found.line}:{found.character} {found.severity} ({found.code})")
3:13 error (reportArgumentType)

Its methods are those of `Workspace`, with the same arguments and answers. Threads may share one: each call waits for
its own answer only.
"""

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from functools import partial, wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from pilotfish.api.status import Snapshot
from pilotfish.errors import Unavailable
from pilotfish.library.workspace import FilePath, Workspace
from pilotfish.library.workspace import open as open_workspace
from pilotfish.model import AbsPath, Severity
from pilotfish.service.service import System

if TYPE_CHECKING:
    from pilotfish.batch.patches import Judgement, Patch

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def open_blocking(
    root: FilePath = ".", *, cwd: FilePath | None = None, host: str | None = None, shell: System | None = None
) -> Generator["BlockingWorkspace"]:
    """Open a workspace as `pilotfish.open` does, and wait for every answer."""
    opening = open_workspace(root, cwd=cwd, host=host, shell=shell)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opening) as workspace:
        yield BlockingWorkspace(workspace, portal)


def _waiting(
    method: Callable[Concatenate[Workspace, P], Awaitable[T]],
) -> Callable[Concatenate["BlockingWorkspace", P], T]:
    """A method of `Workspace` that waits for its answer."""

    @wraps(method)
    def wait(self: "BlockingWorkspace", /, *args: P.args, **kwargs: P.kwargs) -> T:
        future = self.portal.start_task_soon(partial(method, self.workspace, *args, **kwargs))
        try:
            return future.result()
        finally:
            # An interrupted caller gives the question up before the workspace is closed.
            future.cancel()

    return wait


async def _next(judgements: "AsyncGenerator[Judgement]") -> "Judgement | None":
    return await anext(judgements, None)


class BlockingWorkspace:
    """A folder with its language servers. `workspace` is the one that answers, in the loop of `portal`."""

    def __init__(self, workspace: Workspace, portal: BlockingPortal) -> None:
        self.workspace = workspace
        self.portal = portal

    ask = _waiting(Workspace.ask)
    after_edit = _waiting(Workspace.after_edit)
    before_stop = _waiting(Workspace.before_stop)
    check = _waiting(Workspace.check)
    check_files = _waiting(Workspace.check_files)
    warm = _waiting(Workspace.warm)

    definition = _waiting(Workspace.definition)
    declaration = _waiting(Workspace.declaration)
    type_definition = _waiting(Workspace.type_definition)
    implementation = _waiting(Workspace.implementation)
    references = _waiting(Workspace.references)
    hover = _waiting(Workspace.hover)
    signature = _waiting(Workspace.signature)
    symbols = _waiting(Workspace.symbols)
    workspace_symbols = _waiting(Workspace.workspace_symbols)
    incoming_calls = _waiting(Workspace.incoming_calls)
    outgoing_calls = _waiting(Workspace.outgoing_calls)
    supertypes = _waiting(Workspace.supertypes)
    subtypes = _waiting(Workspace.subtypes)
    rename = _waiting(Workspace.rename)
    rename_file = _waiting(Workspace.rename_file)
    actions = _waiting(Workspace.actions)
    source = _waiting(Workspace.source)
    explore = _waiting(Workspace.explore)
    impact = _waiting(Workspace.impact)
    edit_symbol = _waiting(Workspace.edit_symbol)
    offered = _waiting(Workspace.offered)

    def batch(
        self, patches: "Iterable[Patch] | AsyncIterable[Patch]", *, jobs: int = 1, worst: Severity = Severity.ERROR
    ) -> "Generator[Judgement]":
        """What each of these patches would introduce, in any order, each as soon as it is known."""
        judgements = self.workspace.batch(patches, jobs=jobs, worst=worst)
        try:
            while (judgement := self.portal.call(_next, judgements)) is not None:
                yield judgement
        finally:
            self.portal.call(judgements.aclose)

    @property
    def root(self) -> AbsPath:
        """The folder itself, symbolic links resolved."""
        return self.workspace.root

    @property
    def offers_tools(self) -> bool:
        """Whether the configuration wants models to have tools for questions."""
        return self.workspace.offers_tools

    def serves(self, path: FilePath) -> bool:
        """Whether some server is for files like this one, installed or not."""
        return self.workspace.serves(path)

    def is_served(self, path: FilePath) -> bool:
        """Whether a server that is here checks this file."""
        return self.workspace.is_served(path)

    def missing(self, path: FilePath) -> Unavailable | None:
        """Why the server for a file is not there, and what to do; None when somebody serves it, or nobody would."""
        return self.workspace.missing(path)

    def status(self) -> Snapshot:
        """Every server of this workspace at this moment, those in trouble first."""
        return self.portal.call(self.workspace.status)
