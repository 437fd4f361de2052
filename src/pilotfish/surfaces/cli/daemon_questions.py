"""Questions of the command line that the daemon reads, asks and prints for `ipc.question_program`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import click

from pilotfish.api.answers import Answer
from pilotfish.api.questions import Operation
from pilotfish.errors import Code, Failure, Refused
from pilotfish.operations.rows import ROWS
from pilotfish.operations.validate import question_of
from pilotfish.service.diagnostics.effort import milliseconds_since
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from pilotfish.surfaces.cli.check import check
from pilotfish.surfaces.cli.check_output import exit_code, printed_report
from pilotfish.surfaces.cli.check_request import CheckRequest
from pilotfish.surfaces.cli.check_run import one_answer
from pilotfish.surfaces.cli.questions import COMMANDS, ask_at, question_fields
from pilotfish.surfaces.cli.terminal.exit_codes import exit_code_of_question, refusal
from pilotfish.surfaces.cli.terminal.printing import Printed, printed_answer
from pilotfish.system.clock import current_time
from pilotfish.system.worktree import top_of

CHECK = "check"

OPERATIONS: Mapping[str, Operation] = {row.verb: row.operation for row in ROWS.values()}


async def answer_words(
    words: Sequence[str],
    cwd: str,
    service: Service,
    session: Callable[[str], AbstractContextManager[ClientSession]],
) -> bytes:
    """The exit code, the length of the output, the output, what goes to standard error.

    `session` opens one for a workspace. Raises `Refused` for words that the command line is to explain itself.
    """
    values = dict(_values(words))
    root, as_json = values.pop("root") or top_of(cwd), bool(values.pop("as_json"))
    if words[0] == CHECK:
        with session(os.path.join(cwd, root)) as client:
            return await _check(values, cwd, service, client, as_json=as_json)
    operation, folder = OPERATIONS[words[0]], ""
    try:
        given = question_fields(operation, values, lambda path: os.path.isfile(os.path.join(cwd, path)))
        with session(os.path.join(cwd, root)) as client:
            answer = await ask_at(_Asking(service, client), operation, given)
            folder = client.root
    except Failure as failure:
        answer = refusal(operation, failure)
    return _packed(exit_code_of_question(answer), printed_answer(answer, folder, cwd, None, as_json=as_json))


async def _check(
    values: Mapping[str, Any], cwd: str, service: Service, client: ClientSession, *, as_json: bool
) -> bytes:
    """The verdict where it is known of every file; where one is to be checked, the command line shows how far it is."""
    if values["whole"] and values["paths"]:
        raise Refused(Code.INVALID_INPUT, "a file, and the whole project")
    started = current_time()
    given = [client.root] if values["whole"] else [os.path.join(cwd, path) for path in values["paths"] or (".",)]
    request = CheckRequest(
        paths=tuple(given),
        text=None,
        changed=False,
        only_new=values["only_new"],
        severity=values["severity"],
        everything=values["everything"],
        skip_missing=values["skip_missing"],
        format="json" if as_json else values["form"],
    )
    known = await service.known(client, given)
    if known is None:
        raise Refused(Code.INVALID_INPUT, "not known of every file")
    chosen, found = known
    answer = one_answer(chosen, [found], duration_ms=milliseconds_since(started), skip_missing=request.skip_missing)
    return _packed(exit_code(answer, request), printed_report(answer, client.root, cwd, request, None, None))


def _packed(code: int, shown: Printed) -> bytes:
    output, error = (b"" if text is None else f"{text}\n".encode() for text in (shown.output, shown.error))
    return b"%d\n%d\n" % (code, len(output)) + output + error


def _values(words: Sequence[str]) -> Mapping[str, Any]:
    command = {**COMMANDS, CHECK: check}.get(words[0]) if words else None
    if command is None:
        raise Refused(Code.INVALID_INPUT, "no verb of a question")
    try:
        return command.make_context(words[0], list(words[1:])).params
    except (click.ClickException, click.exceptions.Exit) as error:
        raise Refused(Code.INVALID_INPUT, f"{type(error).__name__} in the words of the question") from None


class _Asking:
    """The part of an `OpenWorkspace` that a question needs."""

    def __init__(self, service: Service, client: ClientSession) -> None:
        self._service = service
        self._client = client

    async def ask(self, operation: Operation, arguments: Mapping[str, object]) -> Answer[Any]:
        try:
            return await self._service.ask(question_of({"operation": operation, **arguments}), self._client)
        except Refused as refused:
            return refusal(operation, refused)

    async def warm(self, *paths: str) -> None:
        await self._service.check(self._client, paths)
