"""Random schedules of edits, commands, late verdicts, events, restarts and stops, against an oracle.

`pytest tests/feedback/test_conversation_model.py --examples 20000` plays that many. The oracle knows the texts only:
an error is a bad line. What must hold, in the words of DIAG-12:

- nothing is told that is not there at that moment, or was there before the conversation changed the file: the old
  text is always known here, so nothing may be called possibly older either;
- each event at which the server is prompt tells everything that was introduced and has not been told;
- nothing is told twice by edits and calls; a stop may repeat it, once per turn.

Two things are left open, because no verdict can settle them:

- What was told, went away and came back while no verdict was had of the file without it. Nobody has seen that it was
  gone: to the conversation it is the same error still. An edit may bring it back on its own account: then it is a new
  one. Both are true, and it may be told again or not. What commands alone take away and bring back between two events
  was there at both, and is not told again.
- What was there when a conversation ended, or what a person wrote between two turns, is not of the agent's making; it
  may hear of it with an edit or not.
"""

import re
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio.testing
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pilotfish.service.workspaces import ClientSession
from support.services.conversing import Talk, talking

OLD = frozenset({"bad old"})
EXAMPLES = 2_000
"""What `--examples` is unless somebody wants more."""
GATE = 150
"""Some 6 s on one core."""
LINES = ("good", "bad 1", "bad 2", "bad 3")
FILES = ("a.x", "b.x")
ALL_BAD = "bad old\nbad 1\nbad 2\nbad 3\n"
BROUGHT_BACK: list[tuple[Any, ...]] = [
    ("edit", "a.x", ALL_BAD),
    ("command", "a.x", "bad old\nbad 1\n"),
    ("edit", "a.x", ALL_BAD),
]
"""A command mends what an edit told, and the next edit breaks it again."""

texts = st.lists(st.sampled_from(LINES), max_size=4, unique=True).map(
    lambda lines: "".join(f"{x}\n" for x in ["bad old", *lines])
)
files = st.sampled_from(FILES)
steps = st.one_of(
    st.tuples(st.just("edit"), files, texts),
    st.tuples(st.just("edit"), files, texts),
    st.tuples(st.just("command"), files, texts),
    st.tuples(st.just("call")),
    st.tuples(st.just("prompt")),
    st.tuples(st.just("stop")),
    st.tuples(st.just("slow")),
    st.tuples(st.just("answer")),
    st.tuples(st.just("restart")),
)
TOLD = re.compile(r'<diagnostics file="(?P<file>[^"]+)">\n(?P<lines>.*?)</diagnostics>', re.DOTALL)
ERROR = re.compile(r"^ERROR \[\d+:\d+\] (.+)$", re.MULTILINE)

Errors = set[tuple[str, str]]


def told_in(text: str) -> list[tuple[str, str]]:
    return [(block["file"], error) for block in TOLD.finditer(text) for error in ERROR.findall(block["lines"])]


class Oracle:
    """What is on disk, what was there before, and what the conversation has heard of."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = dict.fromkeys(map(str, FILES), "bad old\n")
        self.known: Errors = set()
        """Told, and there at each event since."""
        self.doubtful: Errors = set()
        """Told, and gone for a while that no verdict saw: if it comes back, nobody can say whether it is the same."""
        self.forgotten: Errors = set()
        """There when a conversation ended: not of the next one's making, which hears of it with an edit or not."""
        self.stopped: bool = False
        self.idle: bool = True
        """No tool has run since the last turn: what is written now is a person's work if a prompt comes next."""
        self.persons: set[str] = set()
        """Files that were written since."""

    @property
    def present(self) -> Errors:
        lines = ((name, line) for name, text in self.texts.items() for line in text.splitlines())
        return {(name, line) for name, line in lines if line.startswith("bad")}

    @property
    def own(self) -> Errors:
        return {(name, line) for name, line in self.present if line not in OLD}

    def write(self, name: str, text: str) -> None:
        self.texts[name] = text
        self.forgotten &= self.present

    def grant(self) -> None:
        """What a person wrote between two turns is what the next one starts from."""
        written = {one for one in self.known | self.doubtful | self.own if one[0] in self.persons}
        self.forgotten |= (written & self.own) - self.known
        self.known &= self.present | self.known - written
        self.doubtful -= written

    def look(self) -> None:
        """Something happens now that may see what is gone, or may not."""
        self.doubtful |= self.known - self.present
        self.known &= self.present

    def hear(self, text: str, *, certain: bool, stop: bool = False) -> None:
        """The text of an event; `certain`: the server was prompt, so that everything is known by now."""
        self.look()
        self.idle = stop and not text
        self.persons.clear()
        told = told_in(text)
        assert len(told) == len(set(told)), f"told twice at once: {told}"
        assert set(told) <= self.own, f"not there, or not its own: {set(told) - self.own}"
        again = set[tuple[str, str]]() if stop else set(told) & self.known
        assert not again, f"told before: {again}"
        self.known |= set(told)
        self.doubtful -= set(told)
        if certain:
            self.doubtful &= self.present
            untold = self.own - self.known - self.doubtful - self.forgotten
            assert not untold, f"not told: {untold}"
            self.known |= self.doubtful
            self.doubtful.clear()


async def play(folder: Path, schedule: list[tuple[Any, ...]]) -> None:
    oracle = Oracle()
    async with talking(folder) as it:
        for name, text in oracle.texts.items():
            it.write(text, name)
        await it.ground.touched(*FILES, kind="read")
        it.ground.service.conversations.begin(it.ground.client)
        for number, step in enumerate(schedule):
            await take(it, oracle, step, number)
        await it.server.answer()
        await anyio.wait_all_tasks_blocked()
        oracle.hear(await it.reach("call"), certain=True)
        assert await it.reach("call") == ""


async def take(it: Talk, oracle: Oracle, step: tuple[Any, ...], number: int) -> None:
    match step:
        case ("edit", name, text):
            before = oracle.texts[name]
            oracle.look()
            oracle.write(name, text)
            oracle.hear(await it.edit(text, name, before), certain=not it.server.slow)
        case ("command", name, text):
            oracle.write(name, text)
            it.command(text, name)
            oracle.persons.add(name)
        case ("call",):
            oracle.hear(await it.reach("call"), certain=not it.server.slow)
        case ("prompt",):
            if oracle.idle:
                oracle.grant()
            oracle.hear(await it.reach("prompt"), certain=not it.server.slow)
        case ("stop",):
            text = await it.reach("stop")
            assert not (text and oracle.stopped), "told at two stops in a row"
            certain = not it.server.slow and not oracle.stopped
            oracle.stopped = bool(text)
            oracle.hear(text, stop=True, certain=certain)
        case ("slow",):
            it.server.slow = True
        case ("answer",):
            oracle.look()
            await it.server.answer()
        case ("restart",):
            # Nothing of what the conversation was owed is told to the next one.
            client = it.ground.client
            it.ground.service.end(client)
            it.ground.client = ClientSession(f"test {number}", client.root, client.cwd, client.host)
            it.ground.service.conversations.begin(it.ground.client)
            await anyio.wait_all_tasks_blocked()
            oracle.grant()
            oracle.forgotten |= oracle.own
            oracle.stopped, oracle.idle = False, True
            oracle.persons.clear()
        case _:
            raise AssertionError(step)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.proves("DIAG-12")
def test_each_error_is_told_once_while_it_is_there(tmp_path_factory: pytest.TempPathFactory, examples: int) -> None:
    # The gate plays the same ones each time, and a longer run others.
    @settings(
        max_examples=examples if examples > EXAMPLES else GATE,
        derandomize=examples <= EXAMPLES,
        deadline=None,
        suppress_health_check=(HealthCheck.too_slow,),
        print_blob=True,
    )
    @example(schedule=BROUGHT_BACK)
    @example(schedule=[*BROUGHT_BACK[:2], ("slow",), *BROUGHT_BACK[2:]])
    @example(schedule=[*BROUGHT_BACK[:2], ("restart",), *BROUGHT_BACK[2:]])
    @example(schedule=[("command", "a.x", ALL_BAD), ("slow",), ("edit", "a.x", "bad old\n")])
    @given(schedule=st.lists(steps, min_size=1, max_size=12))
    def property_(schedule: list[tuple[Any, ...]]) -> None:
        folder = tmp_path_factory.mktemp("schedule")
        clock = trio.testing.MockClock(autojump_threshold=0)
        anyio.run(play, folder, schedule, backend="trio", backend_options={"clock": clock})

    property_()
