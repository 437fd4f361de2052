"""Real language servers on small workspaces whose comments say what must be found (see `support.expectations`).

Each case runs through every surface. `pytest tests/markers --update` rewrites the goldens.
"""

from pathlib import Path

import anyio
import pytest

from pilotfish.api import Operation, Question
from pilotfish.model import AbsPath
from pilotfish.service.workspaces import Workspaces
from support.archive import render
from support.cases import Case, Step, faults, read_case
from support.expectations import (
    DIAGNOSTIC,
    NO_VERDICT,
    WORDS,
    Expected,
    diagnostics_problem,
    golden_of,
    problem,
    visible,
)
from support.real_servers import User, make_user
from support.via import SURFACES, Answer, Surface, client_of

PARTIAL_SECONDS = 20.0
"""How long a partial answer is asked for again: a busy machine needs one."""

CASES = [read_case(path) for path in sorted(Path(__file__).parent.glob("cases/*/*.txt"))]

RUNS = [
    pytest.param(case, via, id=f"{case.name}-{via}", marks=pytest.mark.server(*case.servers))
    for case in CASES
    for via in SURFACES
    if via != "session" or case.fits_a_session
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_names_only_what_exists_and_uses_all_that_it_names(case: Case) -> None:
    assert not faults(case)


@pytest.mark.anyio
@pytest.mark.proves("OPS-1", "OPS-2", "OPS-3", "PATH-5", "REG-2", "C99", "C113", "C114")
@pytest.mark.parametrize(("case", "via"), RUNS)
async def test_every_marker_holds(case: Case, via: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--update") and via != "service":
        pytest.skip("goldens are made from the answers of the service")
    user = make_user(tmp_path, case.servers, case.config, trusted=case.trusted)
    wrong: list[str] = []
    updated = case.archive
    steps = list(case.steps())
    _write(user, steps[0])
    async with SURFACES[via].opened(user, _served(user, steps[0])[0]) as surface:
        for step in steps:
            _write(user, step)
            found = _Found(case, step, surface)
            wrong += await found.problems(_served(user, step), update=bool(pytestconfig.getoption("--update")))
            for name, text in found.goldens.items():
                updated = updated.with_golden(name, text)
    if updated != case.archive:
        case.path.write_text(render(updated))
    assert not wrong, "\n".join(wrong)


class _Found:
    """One step held against one surface."""

    def __init__(self, case: Case, step: Step, surface: Surface) -> None:
        self.goldens: dict[str, str] = {}
        self._case = case
        self._step = step
        self._surface = surface
        self._expected = Expected(step.labels, case.archive.goldens, step.texts, case.severity)

    async def problems(self, files: list[str], *, update: bool) -> list[str]:
        """All that is wrong: first the diagnostics of each file, then the answers to questions."""
        said = [(file, await self._diagnostics(file)) for file in files]
        for marker in self._step.markers:
            word = WORDS.get(marker.name)
            if word is None or not self._surface.takes(question := word.question(marker)):
                continue
            answer = await self._surface.ask(
                question, lambda answer, marker=marker: problem(marker, answer, self._expected) is None
            )
            golden = golden_of(marker)
            if update and golden is not None and answer.data is not None:
                self.goldens[golden.name] = visible(word.shown(answer.data))
            else:
                said.append((str(marker), problem(marker, answer, self._expected)))
        return [f"step {self._step.number}, {where}: {what}" for where, what in said if what is not None]

    async def _diagnostics(self, file: str) -> str | None:
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
        return wrong(answer)


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
