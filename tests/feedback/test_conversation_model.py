"""Random schedules of edits, commands, late verdicts, events, restarts and stops, against an oracle.

`pytest tests/feedback/test_conversation_model.py --examples 20000` plays that many. The oracle knows the texts only:
an error is a bad line. What must hold, in the words of DIAG-12:

- nothing is told that is not there at that moment;
- nothing is told that was there before the conversation changed the file, unless it is said to be possibly older;
- nothing is told twice by edits and calls, unless it went away in between, or a command has rewritten the file since;
  a stop may repeat it, once per turn;
- once the server is prompt, one further event tells everything that was introduced and never told.
"""

import re
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio.testing
from hypothesis import HealthCheck, given, settings
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

texts = st.lists(st.sampled_from(LINES), max_size=4, unique=True).map(
    lambda lines: "".join(f"{x}\n" for x in ["bad old", *lines])
)
files = st.sampled_from(FILES)
steps = st.one_of(
    st.tuples(st.just("edit"), files, texts),
    st.tuples(st.just("edit"), files, texts),
    st.tuples(st.just("command"), files, texts),
    st.tuples(st.just("call")),
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
        """Told, and there ever since."""
        self.ever: Errors = set()
        """Told, and not seen to be gone since: what goes and comes back between two events may be told again or not."""
        self.forgotten: Errors = set()
        """Owed to a conversation that has ended: the next one may hear of it, with an edit of the file, or not."""
        self.rewritten: Errors = set()
        """Told, and in a file that a command has written since: the next edit of it may tell them again."""
        self.stopped: bool = False

    @property
    def present(self) -> Errors:
        lines = ((name, line) for name, text in self.texts.items() for line in text.splitlines())
        return {(name, line) for name, line in lines if line.startswith("bad")}

    @property
    def own(self) -> Errors:
        return {(name, line) for name, line in self.present if line not in OLD}

    def write(self, name: str, text: str) -> None:
        self.texts[name] = text
        self.known &= self.present
        self.forgotten &= self.present

    def hear(self, text: str, *, stop: bool, certain: bool) -> None:
        if certain:
            self.ever &= self.present
        told = told_in(text)
        assert len(told) == len(set(told)), f"told twice at once: {told}"
        allowed = self.present if "possibly older than this edit" in text else self.own
        assert set(told) <= allowed, f"not there, or not its own: {set(told) - allowed}"
        told = [one for one in told if one in self.own]
        if not stop:
            again = set(told) & self.known - self.rewritten
            assert not again, f"told before: {again}"
        self.rewritten -= set(told)
        self.known |= set(told)
        self.ever |= set(told)


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
        oracle.hear(await it.reach("call"), stop=False, certain=False)
        assert oracle.own <= oracle.ever | oracle.forgotten, f"never told: {oracle.own - oracle.ever}"
        assert await it.reach("call") == ""


async def take(it: Talk, oracle: Oracle, step: tuple[Any, ...], number: int) -> None:
    match step:
        case ("edit", name, text):
            before = oracle.texts[name]
            oracle.write(name, text)
            oracle.hear(await it.edit(text, name, before), stop=False, certain=not it.server.slow)
        case ("command", name, text):
            oracle.write(name, text)
            oracle.rewritten |= {one for one in oracle.known if one[0] == name}
            it.command(text, name)
        case ("call",):
            oracle.hear(await it.reach("call"), stop=False, certain=not it.server.slow)
        case ("stop",):
            text = await it.reach("stop")
            assert not (text and oracle.stopped), "told at two stops in a row"
            oracle.stopped = bool(text)
            oracle.hear(text, stop=True, certain=False)
        case ("slow",):
            it.server.slow = True
        case ("answer",):
            await it.server.answer()
        case ("restart",):
            # Nothing of what the conversation was owed is told to the next one.
            client = it.ground.client
            it.ground.service.end(client)
            it.ground.client = ClientSession(f"test {number}", client.root, client.cwd, client.host)
            it.ground.service.conversations.begin(it.ground.client)
            oracle.forgotten |= oracle.own
            oracle.stopped = False
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
    @given(schedule=st.lists(steps, min_size=1, max_size=12))
    def property_(schedule: list[tuple[Any, ...]]) -> None:
        folder = tmp_path_factory.mktemp("schedule")
        clock = trio.testing.MockClock(autojump_threshold=0)
        anyio.run(play, folder, schedule, backend="trio", backend_options={"clock": clock})

    property_()
