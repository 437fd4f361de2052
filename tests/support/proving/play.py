"""Proves one server: an error that comes and goes, a question of each kind, a violent death, a clean end.

What does not hold raises `NotProven`, and a fresh answer that is wrong `FreshAndWrong`.
"""

import os
import platform
import re
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import anyio
from msgspec import Struct

from pilotfish.api.answers import Answer, Changes, Hover, Location, State, Symbol
from pilotfish.api.questions import Operation, Question, Touch
from pilotfish.client.session import Session
from pilotfish.errors import Code
from pilotfish.library.workspace import computer
from pilotfish.model import AbsPath
from pilotfish.operations.rows import ROWS
from pilotfish.protocol.diagnostics import Push
from pilotfish.servers.catalogue import Proof, load
from pilotfish.servers.spec import PullSupport, ScopeKind, ServerSpec
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from support.process_tree import below, ends
from support.proving.rows import Place, ProofRow, replaced
from support.servers.real import User

MAX_TRIES = 3
"""Of the first answer of a server that has just been started: what it says before it is loaded is not fresh."""

MAX_WORDS = 200

RIGHT, ANSWERED = "right", "answered"

AT_DEFINITION = frozenset({Operation.REFERENCES, Operation.RENAME, Operation.INCOMING_CALLS, Operation.OUTGOING_CALLS})
"""Asked where the thing is defined, the others where it is used."""


class NotProven(Exception):
    """What did not hold, in words."""


class FreshAndWrong(NotProven):
    """An answer that calls itself fresh, and is wrong."""


class Verdict(Struct, frozen=True):
    """What was said of a file."""

    state: State
    said: str
    reason: str


class Stage(Struct, frozen=True):
    """A server at work on its row."""

    row: ProofRow
    service: Service
    client: ClientSession
    root: Path

    @property
    def spec(self) -> ServerSpec:
        return load()[self.row.server]

    @property
    def path(self) -> AbsPath:
        return AbsPath(str(self.root / self.row.file))

    @property
    def session(self) -> Session:
        entries = self.service.pool.entries().items()
        found = [one.session for key, one in entries if key.server == self.row.server and one.session is not None]
        if not found:
            raise NotProven("it does not run")
        return found[0]

    def is_whole(self, verdict: Verdict) -> bool:
        """Whether it is all that can be said: fresh, or partial for what the catalogue says that it never checks."""
        limit = self.spec.freshness.not_checked
        return verdict.state is State.FRESH or (limit is not None and limit in verdict.reason)

    def write(self, text: str) -> None:
        (self.root / self.row.file).write_text(text)


async def prove(row: ProofRow, user: User, version: str) -> Proof:
    """What was shown of one server, which is on the `PATH` of the user."""
    for name, text in {**row.files, row.file: row.fine, **_elsewhere(row)}.items():
        place = user.workspace / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    root = AbsPath(str(user.workspace))
    began = time.monotonic()
    async with Service(computer(user.environment)).running() as service:
        stage = Stage(row, service, ClientSession("proof", root, root), user.workspace)
        await _judged(stage, row.fine, broken=False, tries=MAX_TRIES)
        start = time.monotonic() - began
        await _comes_and_goes(stage)
        way, reach = _way(stage), await _reach(stage)
        questions = await _questions(stage)
        memory = await _memory(stage)
        version = version or stage.session.info.version or ""
        await _dies_and_returns(stage)
        processes = [one.pid for one in below(os.getpid())]
    left = [pid for pid in processes if not ends(pid)]
    if left:
        raise NotProven(f"processes are left after its end: {left}")
    return Proof(
        version=version,
        date=time.strftime("%Y-%m-%d", time.gmtime()),
        machine=f"{platform.system()} {platform.machine()}",
        freshness=way,
        reach=reach,
        start_ms=round(start * 1000),
        memory_mib=memory,
        questions=questions,
        exceptions=dict(row.exceptions),
        not_checked=load()[row.server].freshness.not_checked,
    )


def _elsewhere(row: ProofRow) -> Mapping[str, str]:
    return {row.elsewhere.file: row.elsewhere.text} if row.elsewhere is not None else {}


# --- Errors ----------------------------------------------------------------------------------------------------------


async def _comes_and_goes(stage: Stage) -> None:
    """Twice by `check`, twice by the hook: the first answer after each edit is fresh and right."""
    row = stage.row
    for _ in range(2):
        await _judged(stage, row.broken, broken=True)
        await _judged(stage, row.fine, broken=False)
    for _ in range(2):
        await _felt(stage, row.broken, broken=True)
        await _felt(stage, row.fine, broken=False)


async def _judged(stage: Stage, text: str, *, broken: bool, tries: int = 1, file: str | None = None) -> None:
    stage.write(text)
    verdict = Verdict(State.UNAVAILABLE, "", "")
    for _ in range(tries):
        answer = await stage.service.check(stage.client, (file or stage.row.file,))
        found = [one.message for items in (answer.data or {}).values() for one in items]
        verdict = Verdict(answer.meta.state, "; ".join(found), answer.meta.reason or "")
        if stage.is_whole(verdict):
            break
    pattern = stage.row.error if file is None or stage.row.elsewhere is None else stage.row.elsewhere.error
    _hold(stage, "check", verdict, pattern, broken=broken)


async def _felt(stage: Stage, text: str, *, broken: bool) -> None:
    stage.write(text)
    feedback = await stage.service.touched(Touch((stage.row.file,), "edit"), stage.client)
    verdict = Verdict(feedback.state, feedback.text, feedback.reason or "")
    _hold(stage, "hook", verdict, stage.row.error, broken=broken)


def _hold(stage: Stage, way: str, verdict: Verdict, pattern: str, *, broken: bool) -> None:
    words = " ".join((verdict.said or verdict.reason).split())[:MAX_WORDS] or "nothing"
    after = "an edit that breaks" if broken else "the file without errors"
    if not stage.is_whole(verdict):
        raise NotProven(f"{way} after {after}: {verdict.state}: {words}")
    if bool(re.search(pattern, verdict.said)) is not broken:
        raise FreshAndWrong(f"{way} after {after}: {verdict.state} and wrong: {words}")


# --- What is known of it ---------------------------------------------------------------------------------------------


def _way(stage: Stage) -> str:
    """How a fresh answer of this server is told from an old one; the best way that it offers, as `inquiry` has it."""
    session, freshness, path = stage.session, stage.spec.freshness, stage.path
    if session.supports("textDocument/diagnostic", path) and freshness.pull is not PullSupport.EMPTY:
        return "it is asked"
    if freshness.on_demand is not None:
        return "it is asked by a command"
    if freshness.barrier is not None and session.supports(freshness.barrier, path):
        return f"what it publishes before it answers {freshness.barrier}"
    push = session.reports.of(path).get(Push())
    if push is not None and push.version is not None:
        return "the version that it publishes"
    return "what it publishes after the edit, and does not replace"


async def _reach(stage: Stage) -> str:
    """How far it sees; other files are asked about only where the row has one."""
    if stage.spec.scope.kind in {ScopeKind.PROJECT_PULL, ScopeKind.PROJECT_COMMAND, ScopeKind.PROJECT_PUSH}:
        seen = "project"
    else:
        seen = "open files"
    other = stage.row.elsewhere
    if other is None:
        return "one file"
    try:
        await _judged(stage, stage.row.fine, broken=False, tries=MAX_TRIES, file=other.file)
        await _judged(stage, replaced(stage.row.fine, other.edit), broken=True, file=other.file)
        await _judged(stage, stage.row.fine, broken=False, file=other.file)
    except FreshAndWrong:
        raise
    except NotProven:
        return "one file"  # what it says of others is not fresh, and says so
    return seen


async def _memory(stage: Stage) -> int | None:
    """In MiB, of the whole tree of processes."""
    snapshot = await stage.service.inspect(stage.client)
    instances = [one for row in snapshot.rows if row.server_id == stage.row.server for one in row.instances]
    sizes = [one.memory_mib for one in instances if one.memory_mib is not None]
    return round(sum(sizes)) if sizes else None


# --- Questions -------------------------------------------------------------------------------------------------------


async def _questions(stage: Stage) -> Mapping[str, str]:
    """Every kind that it offers, and whether the answer was right or only came."""
    await _judged(stage, stage.row.fine, broken=False)
    outcomes: dict[str, str] = {}
    for operation, row in ROWS.items():
        if row.request is None or operation is Operation.RENAME_FILE:
            continue
        method = row.request.prepare or row.request.method
        if not stage.session.supports(method, stage.path):
            continue
        why = stage.row.exceptions.get(operation)
        try:
            outcome = await _asked(stage, operation)
        except NotProven:
            if why is None:
                raise
            continue
        if why is None:
            outcomes[operation] = outcome
        elif not stage.row.beside:  # who is beside it may have answered in its place
            raise NotProven(f"{operation} is answered rightly, and the row says: {why}")
    return outcomes


async def _asked(stage: Stage, operation: Operation) -> str:
    asked = _question(stage.row, operation)
    answer = await stage.service.ask(asked, stage.client)
    if any(error.code is not Code.NOT_FOUND for error in answer.errors):
        raise NotProven(f"{operation}: {answer.errors[0].message[:MAX_WORDS]}")
    expects = EXPECTED.get(operation)
    if expects is None or stage.row.definition is None or (stage.row.use is None and operation in NEEDS_USE):
        return ANSWERED
    if not expects(stage.row, answer):
        raise NotProven(f"{operation}: {answer.meta.state}: {str(answer.data)[:MAX_WORDS]}")
    return RIGHT


def _question(row: ProofRow, operation: Operation) -> Question:
    if operation is Operation.WORKSPACE_SYMBOL:
        return Question(operation=operation, query=row.name or "main")
    if operation is Operation.DOCUMENT_SYMBOL:
        return Question(operation=operation, file_path=row.file)
    place = (row.definition if operation in AT_DEFINITION else row.use) or row.use or row.definition or Place(1, 1)
    new_name = "renamed" if operation is Operation.RENAME else None
    return Question(
        operation=operation, file_path=row.file, line=place.line, character=place.character, new_name=new_name
    )


def _leads_to_definition(row: ProofRow, answer: Answer[Any]) -> bool:
    return row.definition is not None and _has_line(row, answer, row.definition.line)


def _leads_to_use(row: ProofRow, answer: Answer[Any]) -> bool:
    return row.use is not None and _has_line(row, answer, row.use.line)


def _has_line(row: ProofRow, answer: Answer[Any], line: int) -> bool:
    return any(isinstance(one, Location) and one.path == row.file and one.line == line for one in _items(answer))


def _items(answer: Answer[Any]) -> tuple[object, ...]:
    return cast("tuple[object, ...]", answer.data) if isinstance(answer.data, tuple) else ()


def _has_words(_row: ProofRow, answer: Answer[Any]) -> bool:
    return isinstance(answer.data, Hover) and any(part.strip() for part in answer.data.contents)


def _has_symbol(row: ProofRow, answer: Answer[Any]) -> bool:
    return any(isinstance(one, Symbol) and (row.symbol or row.name) in one.name for one in _items(answer))


def _renames(row: ProofRow, answer: Answer[Any]) -> bool:
    changes = answer.data
    if not isinstance(changes, Changes) or row.definition is None:
        return False
    lines = [line for file in changes.files for line in (file.diff or "").splitlines()]
    renamed = [line for line in lines if line.startswith("+") and "renamed" in line]
    places = {row.definition.line, *([row.use.line] if row.use is not None else [])}
    return len(renamed) >= len(places)


Expects = Callable[[ProofRow, Answer[Any]], bool]

EXPECTED: Mapping[Operation, Expects] = {
    Operation.DEFINITION: _leads_to_definition,
    Operation.DECLARATION: _leads_to_definition,
    Operation.REFERENCES: _leads_to_use,
    Operation.HOVER: _has_words,
    Operation.DOCUMENT_SYMBOL: _has_symbol,
    Operation.WORKSPACE_SYMBOL: _has_symbol,
    Operation.RENAME: _renames,
}
"""Of the other kinds it is shown that they are answered."""

NEEDS_USE = frozenset({Operation.DEFINITION, Operation.DECLARATION, Operation.REFERENCES})


# --- Death -----------------------------------------------------------------------------------------------------------


async def _dies_and_returns(stage: Stage) -> None:
    """Killed, it is started again by the next question, which is answered rightly."""
    killed = stage.session
    before = killed.pid
    os.kill(before, signal.SIGKILL)
    with anyio.fail_after(30):
        await anyio.to_thread.run_sync(ends, before)
        # Where a child of it does the work, that may answer once more before its end is noticed.
        await killed.ended()
    await _judged(stage, stage.row.broken, broken=True, tries=MAX_TRIES)
    await _judged(stage, stage.row.fine, broken=False)
    if stage.session.pid == before:
        raise NotProven("it was killed, and has the same process")
