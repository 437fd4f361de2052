"""What a verb needs of a workspace, the options that choose one, and how it is opened.

The workspace of a verb is `--root`, else the git worktree around the current folder, else the current folder. Paths in
arguments are relative to the current folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from pilotfish.errors import Code, Unavailable
from pilotfish.surfaces.cli.completion import folders, hosts
from pilotfish.system.ownership import top_of

if TYPE_CHECKING:
    from pilotfish.api.answers import Answer, DiagnosticsAnswer, Feedback
    from pilotfish.api.questions import Operation
    from pilotfish.api.status import Snapshot
    from pilotfish.config.load import ConfigRequest
    from pilotfish.config.schema import TouchKind
    from pilotfish.ipc.client import Introduction, Link, Terms
    from pilotfish.service.check_answer import CheckEvent, CheckRequest

T = TypeVar("T")

NO_DAEMON = "PILOTFISH_NO_DAEMON"
"""The variable that does what `--no-daemon` does; also the key under which a click context remembers that option."""


def _remember(context: click.Context, _option: click.Parameter, given: bool) -> None:  # noqa: FBT001 -- click's signature
    context.meta[NO_DAEMON] = given


root_option = click.option(
    "--root",
    metavar="DIR",
    help="The workspace. Default: the git worktree around the current folder, else that folder.",
    shell_complete=folders,
)
_asking_host: ContextVar[str | None] = ContextVar("--host", default=None)


def _remember_host(_context: click.Context, _option: click.Parameter, given: str | None) -> None:
    from pilotfish.hosts.registry import host_names, unknown_host

    if given is not None and given not in host_names():
        raise unknown_host(given)
    _asking_host.set(given)


def asking_host() -> str | None:
    """The host with whose eyes the verb looks, in its threads, too: the servers of its files are configured then."""
    return _asking_host.get()


host_option = click.option(
    "--host",
    metavar="NAME",
    expose_value=False,
    callback=_remember_host,
    shell_complete=hosts,
    help="As this host sees it, with the servers of its own files (pi, opencode, llxprt).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
daemon_option = click.option(
    "--no-daemon",
    is_flag=True,
    expose_value=False,
    callback=_remember,
    help=f"Run the servers in this process and stop them at the end (also: {NO_DAEMON}=1).",
)


class OpenWorkspace(Protocol):
    """A workspace whose servers run in the daemon or in this process: each call waits for its answer."""

    @property
    def root(self) -> str: ...

    def ask(self, operation: Operation, arguments: Mapping[str, object]) -> Answer[Any]:
        """Any operation; fields have their wire names (`filePath`, `newName`), None means absent."""
        ...

    def warm(self, *paths: str) -> None:
        """Start the servers of these files and wait until each has answered once."""

    def check(self, *paths: str, texts: Mapping[str, str] | None = None) -> DiagnosticsAnswer:
        """Diagnostics by path; a text in `texts` is checked instead of the file on disk."""
        ...

    def check_files(self, request: CheckRequest, heard: Callable[[CheckEvent], None]) -> DiagnosticsAnswer:
        """Diagnostics of files and folders; `heard` is told which files, and of each as soon as it is known."""
        ...

    def after_edit(self, *paths: str, kind: TouchKind, only_new: bool) -> Feedback:
        """The text to append to the result of the tool that changed these files; often empty."""
        ...

    def status(self) -> Snapshot:
        """All servers of this workspace now, those in trouble first; another thread may ask while a call waits."""
        ...


@dataclass(frozen=True, slots=True)
class Opening:
    """How a workspace is opened, given its root and the current folder."""

    open: Callable[[str, str], AbstractContextManager[OpenWorkspace]]


def with_workspace(root: str | None, work: Callable[[OpenWorkspace], T]) -> T:
    """Open the workspace of a verb, do `work` in it, close it. Raises `Refused` when the root is not a folder.

    It is opened at the daemon; in this process with `--no-daemon`, or when no daemon can be had.
    """
    with _open(root_of(root), os.getcwd()) as workspace:
        return work(workspace)


def _open(root: str, cwd: str) -> AbstractContextManager[OpenWorkspace]:
    context = click.get_current_context()
    given = context.find_object(Opening)
    if given is not None:
        return given.open(root, cwd)
    if not context.meta.get(NO_DAEMON) and os.environ.get(NO_DAEMON, "0") in {"", "0"}:
        from pilotfish.surfaces.cli.daemon_workspace import maybe_connect

        connected = maybe_connect(root, cwd, asking_host())
        if connected is not None:
            return connected
    from pilotfish.library.blocking import open_blocking

    return open_blocking(root, cwd=cwd, host=asking_host())


def config_request(root: str, environment: Mapping[str, str] = os.environ) -> ConfigRequest:
    """How the configuration of a workspace is read: for this user, and as the asking host sees it."""
    from pilotfish.config.load import Catalogue, ConfigRequest
    from pilotfish.config.places import user_places
    from pilotfish.servers.catalogue import builtin_layer, canonical_id

    return ConfigRequest(root, user_places(environment), Catalogue(builtin_layer(), canonical_id), asking_host())


def root_of(root: str | None) -> str:
    """The workspace that `--root` names, or the one around the current folder."""
    return root or top_of(os.getcwd())


def find_git(root: str) -> str | None:
    """Never one that the project brings along."""
    import shutil

    from pilotfish.model import AbsPath
    from pilotfish.servers.environment import search_path

    path = search_path(os.environ.get("PATH", ""), (AbsPath(root),), trusted=False)
    return shutil.which("git", path=os.pathsep.join(path))


NOT_RUNNING = "No daemon is running: servers start with the first edit or question."


def connect(introduction: Introduction | None = None, terms: Terms | None = None) -> Link | None:
    """A connection to the daemon; None when none runs: looking starts none."""
    from pilotfish.ipc.client import Terms, open_link

    try:
        return open_link(introduction, terms or Terms(start=False))
    except Unavailable as unavailable:
        if unavailable.code is Code.NOT_FOUND:
            return None
        raise


def running_daemon(root: str | None, terms: Terms | None = None) -> Link | None:
    """A session for the workspace at the daemon; None when no daemon runs."""
    from pilotfish.ipc.client import Introduction

    return connect(Introduction(os.getcwd(), os.path.abspath(root_of(root)), asking_host()), terms)


def ask_daemon(root: str | None, method: str, shape: type[T], terms: Terms | None = None, **params: object) -> T | None:
    """What the daemon says about the workspace; None when no daemon runs."""
    import msgspec

    link = running_daemon(root, terms)
    if link is None:
        return None
    with link:
        return msgspec.convert(link.request(method, params), shape)
