"""Questions of the command line that the daemon reads, asks and prints for `ipc.question_program`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import anyio
import click
import msgspec

from pilotfish.api.answers import Answer, refused
from pilotfish.api.questions import Operation
from pilotfish.errors import Code, Failure, Refused
from pilotfish.operations.rows import ROWS
from pilotfish.operations.validate import question_of
from pilotfish.service.check_answer import CheckRequest
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from pilotfish.surfaces.cli.check import check
from pilotfish.surfaces.cli.check_output import PROGRESS, CheckOutput
from pilotfish.surfaces.cli.questions import COMMANDS, answer_after, question_fields
from pilotfish.surfaces.cli.terminal.check_text import CheckOptions
from pilotfish.surfaces.cli.terminal.exit_codes import exit_code_of_question
from pilotfish.surfaces.cli.terminal.printing import Printed, printed_answer
from pilotfish.surfaces.cli.terminal.progress import ProgressBar
from pilotfish.surfaces.cli.workspace import asking_host
from pilotfish.system.clock import current_time
from pilotfish.system.ownership import top_of

CHECK = "check"

OPERATIONS: Mapping[str, Operation] = {row.verb: row.operation for row in ROWS.values()}


async def answer_words(
    words: Sequence[str],
    cwd: str,
    service: Service,
    session: Callable[[str], AbstractContextManager[ClientSession]],
    write: Callable[[bytes, bytes], None],
) -> int:
    """The exit code; `write` gets what goes to standard output and to standard error, as soon as it is known.

    `session` opens one for a workspace. Raises `Refused` for words that the command line is to explain itself.
    """

    def show(shown: Printed) -> None:
        write(*(b"" if text is None else f"{text}\n".encode() for text in (shown.output, shown.error)))

    values = dict(_values(words))
    root = values.pop("root") or top_of(cwd)
    if words[0] == CHECK:
        with session(os.path.join(cwd, root)) as client:
            return await _check(values, cwd, service, client, show)
    as_json = bool(values.pop("as_json"))
    operation, folder = OPERATIONS[words[0]], ""
    try:
        given = question_fields(operation, values, lambda path: os.path.isfile(os.path.join(cwd, path)))
        with session(os.path.join(cwd, root)) as client:
            answer = await _ask(service, client, operation, given)
            folder = client.root
    except Failure as failure:
        answer = refused(operation, failure)
    show(printed_answer(answer, folder, cwd, None, as_json=as_json))
    return exit_code_of_question(answer)


async def _ask(
    service: Service, client: ClientSession, operation: Operation, given: Mapping[str, object]
) -> Answer[Any]:
    """Raises `Refused`."""
    started, file = current_time(), given.get("filePath")
    if isinstance(file, str):
        # A server that starts answers from what it has read so far, which is not the whole workspace.
        await service.check(client, [file])
    answer = await service.ask(question_of({"operation": operation, **given}), client)
    return answer_after(answer, current_time() - started)


async def _check(
    values: Mapping[str, Any], cwd: str, service: Service, client: ClientSession, show: Callable[[Printed], None]
) -> int:
    if values["whole"] and values["paths"]:
        raise Refused(Code.INVALID_INPUT, "a file, and the whole project")
    paths = (client.root,) if values["whole"] else values["paths"] or (".",)
    options = msgspec.convert({**values, "paths": paths}, CheckOptions)
    with ProgressBar(0, PROGRESS, current_time, lambda line: show(Printed(error=line))) as progress:
        output = CheckOutput(options, client.root, cwd, None, show, progress)
        try:
            request = CheckRequest(options.paths, skip_missing=options.skip_missing)
            answer = await service.check_files(client, request, output.take)
        except anyio.get_cancelled_exc_class():
            output.interrupted()
            raise
    return output.end(answer)


def _values(words: Sequence[str]) -> Mapping[str, Any]:
    command = {**COMMANDS, CHECK: check}.get(words[0]) if words else None
    if command is None:
        raise Refused(Code.INVALID_INPUT, "no verb of a question")
    try:
        context = command.make_context(words[0], list(words[1:]))
    except (click.ClickException, click.exceptions.Exit) as error:
        raise Refused(Code.INVALID_INPUT, f"{type(error).__name__} in the words of the question") from None
    if asking_host() is not None:
        raise Refused(Code.INVALID_INPUT, "a session of another host")
    return context.params
