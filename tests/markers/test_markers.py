"""Real language servers on small workspaces whose comments say what must be found (see `support.markers.expectations`).

Each case runs through every surface. `pytest tests/markers --update` rewrites the goldens.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import anyio
import pytest

from pilotfish.api.questions import Operation, Question
from pilotfish.config.merge import overlaid
from pilotfish.model import AbsPath
from pilotfish.service.workspaces import Workspaces
from support.markers.archive import render
from support.markers.cases import Case, Step, faults, read_case
from support.markers.comments import Marker
from support.markers.expectations import (
    DIAGNOSTIC,
    NO_VERDICT,
    WORDS,
    Expected,
    diagnostics_problem,
    golden_of,
    problem,
    visible,
)
from support.servers.real import User, make_user
from support.via.cli import ViaCli, ViaProgram
from support.via.llxprt import ViaService
from support.via.mcp import ViaMcp
from support.via.session import ViaSession
from support.via.surfaces import Answer, Surface, ViaFacade, ViaLibrary, Way, client_of, ground_of

PARTIAL_SECONDS = 20.0
"""How long a partial answer is asked for again: a busy machine needs one."""

CASES = [read_case(path) for path in sorted(Path(__file__).parent.glob("cases/*/*.txt"))]

PATIENT: dict[str, Any] = {
    "feedback": {"includeSeverities": ["error", "warning", "info", "hint"]},
    "timing": {"firstTouchTimeoutMs": 60_000, "diagnosticsWaitTimeoutMs": 30_000, "requestTimeoutMs": 60_000},
}
"""For the surface that speaks of errors alone, and does not wait for ever, unless the user wants it so."""

SURFACES: Mapping[str, Way] = {
    "facade": ViaFacade.opened,
    "library": ViaLibrary.opened,
    "mcp": ViaMcp.opened,
    "service": ViaService.opened,
    "cli": ViaCli.opened,
}

PROGRAM_CASES = {"basedpyright/questions", "several/python", "typescript/edits"}
"""Those that are asked about by processes, too: one of questions, one of several servers, one of edits."""


@asynccontextmanager
async def all_surfaces(user: User, file: str) -> AsyncGenerator[dict[str, Surface]]:
    """All that can stand on one service, whose servers start once."""
    async with ground_of(user) as ground, AsyncExitStack() as stack:
        yield {name: await stack.enter_async_context(way(ground)) for name, way in SURFACES.items()}


@asynccontextmanager
async def bare_session(user: User, file: str) -> AsyncGenerator[dict[str, Surface]]:
    async with ViaSession.opened(user, file) as surface:
        yield {"session": surface}


@asynccontextmanager
async def program(user: User, file: str) -> AsyncGenerator[dict[str, Surface]]:
    async with ViaProgram.opened(user, file) as surface:
        yield {"program": surface}


Ways = Callable[[User, str], AbstractAsyncContextManager[dict[str, Surface]]]


def runs(case: Case) -> dict[str, Ways]:
    found: dict[str, Ways] = {"surfaces": all_surfaces}
    if case.fits_a_session:
        found["session"] = bare_session
    if case.name in PROGRAM_CASES:
        found["program"] = program
    return found


RUNS = [
    pytest.param(case, ways, id=f"{case.name}-{name}", marks=pytest.mark.server(*case.servers))
    for case in CASES
    for name, ways in runs(case).items()
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_names_only_what_exists_and_uses_all_that_it_names(case: Case) -> None:
    assert not faults(case)


@pytest.mark.anyio
@pytest.mark.proves("OPS-1", "OPS-2", "OPS-3", "PATH-5", "REG-2", "C99", "C113", "C114", "P28")
@pytest.mark.proves("CLI-1", "LIB-1", "MCP-1", "SVC-1")
@pytest.mark.parametrize(("case", "ways"), RUNS)
async def test_every_marker_holds(case: Case, ways: Ways, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    update = bool(pytestconfig.getoption("--update"))
    if update and ways is not all_surfaces:
        pytest.skip("goldens are made from the answers of the service")
    user = make_user(tmp_path, case.servers, overlaid(PATIENT, case.config), trusted=case.trusted)
    wrong: list[str | None] = []
    updated = case.archive
    steps = list(case.steps())
    _write(user, steps[0])
    async with ways(user, _served(user, steps[0])[0]) as surfaces:
        for step in steps:
            _write(user, step)
            names = ["facade"] if update else _in_turn(case, step, surfaces)
            asking = [_Asking(name, case, step, surfaces[name]) for name in names]
            # File by file and marker by marker: every surface meets the servers in the same state.
            wrong += [await one.checked(file) for file in _served(user, step) for one in asking]
            wrong += [await one.asked(marker, update=update) for marker in step.markers for one in asking]
            for golden, text in asking[0].goldens.items():
                updated = updated.with_golden(golden, text)
    if updated != case.archive:
        case.path.write_text(render(updated))
    assert not any(wrong), "\n".join(filter(None, wrong))


def _in_turn(case: Case, step: Step, surfaces: Mapping[str, Surface]) -> list[str]:
    """Whoever asks first after an edit has the hardest question: each surface has it somewhere."""
    names = list(surfaces)
    first = (crc32(case.name.encode()) + step.number) % len(names)
    return names[first:] + names[:first]


class _Asking:
    """One step held against one surface. What is wrong is told; None when nothing is."""

    def __init__(self, name: str, case: Case, step: Step, surface: Surface) -> None:
        self.goldens: dict[str, str] = {}
        self._name = name
        self._case = case
        self._step = step
        self._surface = surface
        self._expected = Expected(step.labels, case.archive.goldens, step.texts, case.severity, ends=surface.gives_ends)

    async def asked(self, marker: Marker, *, update: bool) -> str | None:
        """The answer to the question of a marker; to be made a golden, it is kept."""
        word = WORDS.get(marker.name)
        if word is None or not self._surface.takes(question := word.question(marker)):
            return None
        answer = await self._surface.ask(question, lambda answer: problem(marker, answer, self._expected) is None)
        golden = golden_of(marker)
        if update and golden is not None and answer.data is not None:
            self.goldens[golden.name] = visible(word.shown(answer.data))
            return None
        return self._told(str(marker), problem(marker, answer, self._expected))

    async def checked(self, file: str) -> str | None:
        """The diagnostics of a file."""
        about = [marker for marker in self._step.markers if marker.file == file]
        markers = [marker for marker in about if marker.name in {DIAGNOSTIC, NO_VERDICT}]

        may_be_partial = self._case.partial_dependents and file not in self._step.changed

        def wrong(answer: Answer) -> str | None:
            return diagnostics_problem(file, markers, answer, self._expected, may_be_partial=may_be_partial)

        def accepts(answer: Answer) -> bool:
            return wrong(answer) is None

        question = Question(operation=Operation.DIAGNOSTICS, file_path=file)
        answer = await self._surface.ask(question, accepts)
        with anyio.move_on_after(PARTIAL_SECONDS):
            while may_be_partial and answer.meta.partial and not accepts(answer):
                answer = await self._surface.ask(question, accepts)
        return self._told(file, wrong(answer))

    def _told(self, where: str, what: str | None) -> str | None:
        return None if what is None else f"by {self._name}, step {self._step.number}, {where}: {what}"


def _write(user: User, step: Step) -> None:
    for name, content in step.written.items():
        path = user.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _served(user: User, step: Step) -> list[str]:
    """The files that this step asks about and that a server is for, there or not."""
    workspace = Workspaces(user.places, user.environment).of(client_of(user))
    choices = {name: workspace.servers_for(AbsPath(str(user.workspace / name))) for name in step.asked}
    return [name for name, choice in choices.items() if choice.servers or choice.expected]
