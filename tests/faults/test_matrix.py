"""Every fault of a server as a real process, through the library and through the daemon.

Nobody is told an empty success, the edit is never said to have failed, and the server beside it works on.
"""

from pathlib import Path
from typing import Any

import anyio
import pytest

from faults.matrix import SURFACES, Fault, Surface

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

INITIALIZE, REQUEST = ("initializeTimeoutMs",), ("requestTimeoutMs",)

FAULTS = (
    Fault("ends_at_once", "server_start_failed"),
    Fault("half_a_header", "server_start_failed"),
    Fault("hangs", "init_timeout", timeouts=INITIALIZE),
    Fault("answers_too_late", "init_timeout", timeouts=INITIALIZE),
    Fault("dies_of_a_fault", "server_crashed"),
    Fault("is_killed", "server_crashed"),
    Fault("dies_in_its_answer", "server_crashed"),
    Fault("closes_its_output", "server_crashed"),
    Fault("closes_its_input", "ETIMEDOUT", timeouts=REQUEST),
    Fault("freezes", "ETIMEDOUT", timeouts=REQUEST),
    Fault("says_nothing", "ETIMEDOUT", timeouts=REQUEST),
    Fault("lies_about_the_length", "ETIMEDOUT", timeouts=REQUEST),
    Fault("announces_a_terabyte", "limit_exceeded"),
    Fault("never_ends_its_header", "limit_exceeded"),
    Fault("talks_without_end", "limit_exceeded"),
    Fault("breaks_its_json", "ETIMEDOUT", timeouts=REQUEST),
    Fault("answers_in_the_wrong_shape", "protocol_error"),
    Fault("writes_crumbs"),
    Fault("prints_on_its_output"),
    Fault("floods_its_errors"),
    Fault("closes_its_errors"),
    Fault("asks_without_reading"),
    Fault("answers_twice"),
    Fault("uses_our_ids"),
    Fault("floods_diagnostics"),
)

IN_INITIALIZE = {"server_start_failed", "init_timeout"}
LONGEST_MESSAGE = 4096
AT_ONCE = 5
"""Faults side by side: each has a Python interpreter to start."""


@pytest.mark.proves(
    "F2", "F3", "F4", "F5", "F6", "F9", "F15", "F16", "F17", "F18", "F21", "F22", "F23", "F25", "F26", "F28", "F30",
    "F31", "F32", "F33", "F34", "F36", "F38", "F39", "F40", "FMT-8", "OPS-6", "P5", "P34",
    "POOL-3", "POOL-5", "T36", "T38", "A16.7",
)  # fmt: skip
@pytest.mark.parametrize("surface", SURFACES)
async def test_every_fault_is_told_as_what_it_is_and_harms_nobody_else(surface: str, tmp_path: Path) -> None:
    async with SURFACES[surface](tmp_path, FAULTS) as user:
        wrong, few = list[str](), anyio.CapacityLimiter(AT_ONCE)

        async def look(fault: Fault) -> None:
            async with few:
                wrong.extend(f"{fault.scenario}: {what}" for what in await _judged(fault, user))

        async with anyio.create_task_group() as tasks:
            for fault in FAULTS:
                tasks.start_soon(look, fault)
        assert wrong == []
        assert "bad word" in (await user.touched("good.x"))["text"]


async def _judged(fault: Fault, user: Surface) -> list[str]:
    """What is wrong with what the user is told; the server beside is asked in between."""
    feedback = await user.touched(fault.file)
    answer = await user.hover(fault.file)
    good = await user.hover("good.x")
    return [
        *_edit(fault, feedback),
        *(_right(answer) if fault.code is None else _failure(fault, answer)),
        *(f"the good one: {what}" for what in _right(good)),
    ]


def _edit(fault: Fault, feedback: dict[str, Any]) -> list[str]:
    if fault.code in IN_INITIALIZE:
        # Nothing is found, and silence would mean that the edit is clean: the server that failed is named instead.
        text, named = feedback["text"], f"{fault.server} does not check files: {fault.server} "
        told = text.startswith(named) and "bad word" not in text
        fine = told and feedback["state"] == "unavailable" and feedback["reason"]
    else:
        fine = "bad word" in feedback["text"]
    return [] if fine else [f"the edit was told {feedback}"]


def _right(answer: dict[str, Any]) -> list[str]:
    return [] if answer["meta"]["state"] == "fresh" and answer["data"] else [f"answered {answer}"]


def _failure(fault: Fault, answer: dict[str, Any]) -> list[str]:
    errors = answer.get("errors", [])
    if answer["meta"]["state"] != "unavailable" or [error["code"] for error in errors] != [fault.code]:
        return [f"answered {answer}"]
    message = errors[0]["message"]
    plain = all(character.isprintable() or character == "\n" for character in message)
    return [] if plain and 0 < len(message) <= LONGEST_MESSAGE else [f"said {message!r}"]
