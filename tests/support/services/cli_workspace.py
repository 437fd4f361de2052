"""A workspace that answers as a test says, for tests of the command line."""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from pilotfish.api import answers
from pilotfish.api.answers import Diagnostic, Effort, Error, Feedback, Location, State, answer_from, error_of
from pilotfish.api.questions import Operation, Question
from pilotfish.api.status import Snapshot
from pilotfish.errors import Refused, Unavailable
from pilotfish.model import AbsPath
from pilotfish.operations.tools import OPERATIONS
from pilotfish.operations.validate import question
from pilotfish.service.check_answer import CheckedFile, CheckEvent, CheckRequest, merged
from pilotfish.service.whole_project import select
from pilotfish.surfaces.cli.main import run
from pilotfish.surfaces.cli.workspace import Opening, OpenWorkspace
from support.values.answers import read_answer

Answer = answers.Answer[Any]

NOTHING_TO_SAY = Feedback("", State.FRESH, 1)


def data_of(printed: str) -> Any:
    """The data of an envelope that was printed."""
    return read_answer(printed.encode()).data


def fresh(operation: str, data: object) -> Answer:
    return answer_from(operation, data, Effort(duration_ms=12, server_hits=1))


def place(path: str = "a.py", line: int = 1, character: int = 5, **more: Any) -> Location:
    end = more.pop("end_character", character + 5)
    return Location(path=path, line=line, character=character, end_line=line, end_character=end, **more)


def diagnostic(line: int = 1, character: int = 1, **more: Any) -> Diagnostic:
    values: dict[str, Any] = {"severity": "error", "message": "wrong", "server": "fakels", **more}
    end = values.pop("end_character", character + 3)
    return Diagnostic(line=line, character=character, end_line=line, end_character=end, **values)


@dataclass
class ScriptedWorkspace:
    """`reply` answers questions, `verdicts` checks, by path as named; everything that was asked is kept."""

    root: AbsPath
    reply: Callable[[Question], Answer] = lambda asked: fresh(asked.operation, None)
    verdicts: Mapping[str, Answer] = field(default_factory=dict[str, Answer])
    feedback: Feedback = NOTHING_TO_SAY
    lacking: Mapping[str, Unavailable] = field(default_factory=dict[str, Unavailable])
    """Why a server is not there, by extension."""
    asked: list[Question] = field(default_factory=list[Question])
    checked: list[tuple[str, str | None]] = field(default_factory=list[tuple[str, str | None]])
    warmed: list[str] = field(default_factory=list[str])
    touched: list[tuple[tuple[str, ...], str, bool]] = field(default_factory=list[tuple[tuple[str, ...], str, bool]])

    def ask(self, operation: Operation, arguments: Mapping[str, object]) -> Answer:
        try:
            asked = question(OPERATIONS[operation], arguments)
        except Refused as refusal:
            return answer_from(operation, None, Effort(errors=(error_of(refusal),)))
        self.asked.append(asked)
        return self.reply(asked)

    def check(self, *paths: str, texts: Mapping[str, str] | None = None) -> Answer:
        (path,) = paths
        self.checked.append((path, (texts or {}).get(path)))
        relative = os.path.relpath(os.path.realpath(path), self.root)
        return self.verdicts.get(relative) or fresh(Operation.DIAGNOSTICS, {relative: ()})

    def check_files(self, request: CheckRequest, heard: Callable[[CheckEvent], None]) -> Answer:
        """As the service does, with these verdicts."""
        try:
            chosen = anyio.run(select, self.root, os.getcwd(), self._unserved, request.paths, request.changed)
        except Refused as refusal:
            return answer_from(Operation.DIAGNOSTICS, None, Effort(errors=(error_of(refusal),)))
        heard(chosen)
        answers: dict[str, Answer] = {}
        for path in chosen.files:
            answers[path] = self.check(path)
            heard(CheckedFile(path, answers[path]))
        return merged(chosen, answers, self.root, duration_ms=1, skip_missing=request.skip_missing)

    async def _unserved(self, paths: Sequence[str]) -> Mapping[str, Error | None]:
        kinds = {path: os.path.splitext(path)[1] for path in paths if not path.endswith(".py")}
        return {path: error_of(self.lacking[kind]) if kind in self.lacking else None for path, kind in kinds.items()}

    def warm(self, *paths: str) -> None:
        self.warmed += paths

    def after_edit(self, *paths: str, kind: str, only_new: bool) -> Feedback:
        self.touched.append((paths, kind, only_new))
        return self.feedback

    def status(self) -> Snapshot:
        raise NotImplementedError

    def opening(self) -> Opening:
        @contextmanager
        def opened(root: str, cwd: str) -> Generator[OpenWorkspace]:
            yield self

        return Opening(opened)

    def run(self, *arguments: str | Path) -> int:
        """One command line on this workspace; returns its exit code."""
        return run([str(argument) for argument in arguments], self.opening())
