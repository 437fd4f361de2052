"""What was learned about a server is there again for the next run, and is written only when it is new."""

import pytest

from pilotfish.errors import Code, Unavailable
from pilotfish.feedback.settle import ENOUGH, Habits
from pilotfish.service.diagnostics.ledgers import HabitStore
from support.servers.sessions import session_on
from support.services.checks import server_with

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-3")]

LEARNED = Habits(changes=ENOUGH, slowest=0.4, widest_gap=0.2, silences=2)


class Notebook:
    """A memory that counts how often it is written."""

    def __init__(self, **kept: bytes) -> None:
        self.kept: dict[tuple[str, str], bytes] = {}
        self.writes = 0
        self.always = kept.get("always")

    def get(self, kind: str, key: str) -> bytes | None:
        return self.always or self.kept.get((kind, key))

    def put(self, kind: str, key: str, value: bytes) -> None:
        self.kept[kind, key] = value
        self.writes += 1


async def test_the_next_run_begins_with_what_this_one_learned() -> None:
    notebook = Notebook()
    async with session_on(server_with()) as (session, _):
        HabitStore(notebook).keep(session, LEARNED)
        assert HabitStore(notebook).recall(session) == LEARNED


async def test_another_root_and_another_server_have_habits_of_their_own() -> None:
    notebook = Notebook()
    async with session_on(server_with()) as (session, _), session_on(server_with(), server="other") as (other, _):
        HabitStore(notebook).keep(session, LEARNED)
        assert HabitStore(notebook).recall(other) == Habits()


async def test_more_of_the_same_is_not_written_again() -> None:
    notebook = Notebook()
    async with session_on(server_with()) as (session, _):
        remembering = HabitStore(notebook)
        for changes in range(ENOUGH, ENOUGH + 100):
            remembering.keep(session, Habits(changes=changes, slowest=0.4))
    assert notebook.writes == 1


@pytest.mark.parametrize("said", [b"{", b"[]", b'{"changes": "many"}'])
async def test_what_cannot_be_read_is_learned_again(said: bytes) -> None:
    async with session_on(server_with()) as (session, _):
        assert HabitStore(Notebook(always=said)).recall(session) == Habits()


class Ruined(Notebook):
    """A disk that is full."""

    def get(self, kind: str, key: str) -> bytes | None:
        raise Unavailable(Code.FILE_UNREADABLE, "the disk is full")

    def put(self, kind: str, key: str, value: bytes) -> None:
        raise Unavailable(Code.FILE_UNREADABLE, "the disk is full")


async def test_a_memory_that_fails_costs_what_was_learned_and_nothing_else() -> None:
    async with session_on(server_with()) as (session, _):
        remembering = HabitStore(Ruined())
        assert remembering.recall(session) == Habits()
        remembering.keep(session, LEARNED)
        assert remembering.recall(session) == LEARNED


async def test_without_a_memory_nothing_is_kept_and_nothing_fails() -> None:
    async with session_on(server_with()) as (session, _):
        remembering = HabitStore(None)
        remembering.keep(session, LEARNED)
        assert HabitStore(None).recall(session) == Habits()
