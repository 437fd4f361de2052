"""A workspace at the daemon, by one blocking connection: to import an event loop takes longer than a warm answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

import click
import msgspec

from pilotfish.api.answers import Answer, Feedback
from pilotfish.api.status import Snapshot
from pilotfish.errors import Code, Failure
from pilotfish.ipc.client import Introduction, Link, Terms, open_link
from pilotfish.operations.rows import answer_of
from pilotfish.sanitise import sanitised
from pilotfish.system.real_path import real_path

if TYPE_CHECKING:
    from pilotfish.api.answers import DiagnosticsAnswer
    from pilotfish.api.questions import Operation
    from pilotfish.config.schema import TouchKind
    from pilotfish.service.check_answer import CheckEvent, CheckRequest

WRONG_USE = frozenset({Code.INVALID_INPUT, Code.ROOT_GONE})
"""The daemon refused what we asked for: without a daemon the same would be refused."""

STATUS_SECONDS = 5.0
"""For a look at the servers, which nobody has asked for."""

MAX_REASON = 500
"""Characters of the reason why there is no daemon."""


def maybe_connect(root: str, cwd: str, host: str | None = None) -> DaemonWorkspace | None:
    """Connect to the daemon, starting it if need be; None, with a line on standard error, when that fails.

    Raises `Refused` when the root is not a folder.
    """
    try:
        return DaemonWorkspace(Introduction(os.path.abspath(cwd), os.path.abspath(root), host))
    except Failure as failure:
        if failure.code in WRONG_USE:
            raise
        why = sanitised(failure.message, MAX_REASON)
        click.echo(f"Continuing without the daemon (servers start cold): {why}", err=True)
        return None


class DaemonWorkspace:
    """An `OpenWorkspace`; leaving its block ends the session."""

    def __init__(self, introduction: Introduction, terms: Terms | None = None) -> None:
        self._introduction = introduction
        self._terms = terms
        self._link: Link = open_link(introduction, terms)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._link.close()

    @property
    def root(self) -> str:
        return real_path(str(self._link.welcome["root"]))

    def ask(self, operation: Operation, arguments: Mapping[str, object]) -> Answer[Any]:
        return answer_of(self._link.request("ask", {"operation": operation, **arguments}))

    def warm(self, *paths: str) -> None:
        self.check(*paths)

    def check(self, *paths: str, texts: Mapping[str, str] | None = None) -> DiagnosticsAnswer:
        return answer_of(self._link.request("check", {"paths": paths, "texts": texts or {}}))

    def check_files(self, request: CheckRequest, heard: Callable[[CheckEvent], None]) -> DiagnosticsAnswer:
        from pilotfish.service.check_answer import CheckedFile, FilesToCheck

        def take(method: str, params: Mapping[str, Any]) -> None:
            if method == "checking":
                heard(msgspec.convert(params, FilesToCheck))
            elif method == "checked":
                heard(CheckedFile(params["path"], answer_of(params["answer"])))

        params = {**msgspec.to_builtins(request), "stream": True}
        return answer_of(self._link.request("check", params, heard=take))

    def after_edit(self, *paths: str, kind: TouchKind, only_new: bool) -> Feedback:
        touch = {"paths": paths, "kind": kind, "onlyNew": only_new}
        return msgspec.convert(self._link.request("touched", touch), Feedback)

    def status(self) -> Snapshot:
        # By a connection of its own: this one waits for an answer.
        environment = (self._terms or Terms()).environment
        with open_link(self._introduction, Terms(environment, start=False, seconds=STATUS_SECONDS)) as link:
            return msgspec.convert(link.request("status", None, STATUS_SECONDS), Snapshot)
