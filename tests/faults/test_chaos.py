"""Slow pipes, split writes, floods and storms in both directions at once: everything is answered, and rightly.

A deadlock would be a question that is never answered: each has a limit far above what chaos costs, and running into
it is the failure.
"""

import json
import sys
from pathlib import Path

import anyio
import pytest

from pilotfish.api.answers import Feedback, State
from pilotfish.api.questions import Operation, Question, Touch
from support.daemon.homes import FAKELS, TESTS
from support.services.real import RealService, real_service

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

STUCK_MS = 60_000
AT_ONCE = 4
EDITS = 6
LARGE = "x" * 300_000
"""More than any pipe holds, so that both sides write while neither reads."""


@pytest.mark.proves("P17", "F29", "F30", "F38", "F39", "C21", "T36")
async def test_no_schedule_of_slow_and_flooded_pipes_stops_anything(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    schedules = int(str(pytestconfig.getoption("--schedules")))
    limits = {"diagnosticsWaitTimeoutMs": STUCK_MS, "firstTouchTimeoutMs": STUCK_MS, "requestTimeoutMs": STUCK_MS}
    servers = {f"chaos-{number}": _entry(number) for number in range(schedules)}
    async with real_service(tmp_path, {"lsp": servers, "timing": limits}) as running:
        few = anyio.CapacityLimiter(AT_ONCE)
        wrong: list[str] = []

        async def schedule(number: int) -> None:
            async with few:
                wrong.extend(await _lived_through(running, number))

        async with anyio.create_task_group() as tasks:
            for number in range(schedules):
                tasks.start_soon(schedule, number)
        assert wrong == []


def _entry(number: int) -> dict[str, object]:
    command = [sys.executable, "-I", "-c", FAKELS, str(TESTS), "support.servers.faults:chaotic"]
    return {"command": command, "extensions": [f".c{number}"], "env": {"CHAOS": str(number)}}


async def _lived_through(running: RealService, number: int) -> list[str]:
    """Edits and questions side by side; what was not answered as it should be."""
    wrong: list[str] = []
    name = f"a.c{number}"
    hover = Question(operation=Operation.HOVER, file_path=name, line=1, character=1)

    async def ask() -> None:
        answer = await running.service.ask(hover, running.client)
        if answer.meta.state is not State.FRESH or not answer.data:
            wrong.append(f"{number}: {answer.meta.reason}")

    for edit in range(EDITS):
        bad = edit % 2 == 0
        running.write(name, f"{'bad' if bad else 'good'} {edit} {LARGE if edit % 3 == 0 else ''}\n")
        feedback = Feedback("", State.UNAVAILABLE, 0)
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(ask)
            feedback = await running.service.touched(Touch((name,), "edit"), running.client)
        if feedback.state is not State.FRESH or ("bad word" in feedback.text) is not bad:
            wrong.append(
                f"{number}: edit {edit} was told {json.dumps(feedback.text)} {feedback.state} {feedback.reason}"
            )
    return wrong
