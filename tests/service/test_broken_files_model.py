"""Random projects, edits, late answers and crashes, against an oracle: what is told is new, and "complete" is."""

import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pilotfish.api.answers import Feedback, State
from pilotfish.system.clock import WallClock
from support.servers.linker import linker, told
from support.servers.script import Script
from support.services.several import Ground, service_on

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-11")]

FILES, NAMES, STEPS = 8, 10, 14
CONFIG: dict[str, Any] = {
    "lsp": {"one": {"command": ["/bin/true"], "extensions": [".rb"]}},
    "feedback": {"onlyNew": True, "otherFilesAfter": ["edit", "write", "patch"], "maxOtherFiles": 50},
    "timing": {"diagnosticsWaitTimeoutMs": 2_000, "firstTouchTimeoutMs": 20_000},
}

Broken = set[tuple[str, str]]
"""A file and the name that it misses."""


@pytest.fixture
def anyio_backend() -> str:
    """Files are read in threads, which virtual time does not wait for."""
    return "asyncio"


class Project:
    """The files, and what is wrong with them by definition."""

    def __init__(self, ground: Ground, chance: random.Random) -> None:
        self._ground = ground
        self._chance = chance
        self._texts: dict[str, str] = {}
        for number in range(FILES):
            self._put(f"f{number}.rb", self._line(), self._line(), self._line())

    def _line(self) -> str:
        return f"{self._chance.choice(('def', 'use', 'use'))} name{self._chance.randrange(NAMES)}"

    def _put(self, name: str, *lines: str) -> None:
        self._texts[name] = "".join(f"{line}\n" for line in lines)
        self._ground.write(name, self._texts[name])

    def broken(self) -> Broken:
        lines = [(name, line.split()) for name, text in self._texts.items() for line in text.splitlines()]
        defined = {words[1] for _, words in lines if words[0] == "def"}
        return {(name, words[1]) for name, words in lines if words[0] == "use" and words[1] not in defined}

    async def step(self) -> Feedback:
        """Change, delete or create one file, as a host would tell it."""
        name = self._chance.choice(sorted(self._texts))
        before, what = self._texts[name], self._chance.random()
        if what < 0.1 and len(self._texts) > 3:
            del self._texts[name]
            (self._ground.root / name).unlink()
            return await self._ground.touched(name, kind="patch", before={name: before})
        if what < 0.2:
            name, before = f"new{self._chance.randrange(10_000)}.rb", ""
            self._put(name, self._line(), self._line())
            return await self._ground.touched(name, kind="write", before={name: before})
        lines = before.splitlines()
        lines[self._chance.randrange(len(lines))] = self._line()
        self._put(name, *lines)
        return await self._ground.touched(name, kind="edit", before={name: before})


def unreliable(script: Script, chance: random.Random, trouble: float) -> None:
    """Answers late, which is never, about some file now and then, and dies once in a while."""

    def is_silent() -> bool:
        luck = chance.random()
        if luck < trouble / 4:
            script.leave(1)
        return luck < trouble

    linker(script, is_silent=is_silent)


def pairs(feedback: Feedback) -> Broken:
    """What is called new; of a file whose state before could not be had in time, nothing is."""
    if "possibly older than this edit" in feedback.text:
        return Broken()
    return {(name, message.removeprefix("no ")) for name, messages in told(feedback).items() for message in messages}


def is_complete(feedback: Feedback) -> bool:
    return feedback.state is State.FRESH and (feedback.others is None or feedback.others.complete != "no")


@pytest.mark.parametrize("trouble", [0.0, 0.02])
@pytest.mark.parametrize("seed", range(4))
async def test_what_is_told_is_new_and_nothing_is_missing_where_the_answer_is_complete(
    tmp_path: Path, seed: int, trouble: float
) -> None:
    chance = random.Random(seed)
    scenario = partial(unreliable, chance=random.Random(seed), trouble=trouble)
    # An answer that never comes is waited for to the end.
    timing = CONFIG["timing"] | ({"diagnosticsWaitTimeoutMs": 300, "firstTouchTimeoutMs": 3_000} if trouble else {})
    async with service_on(tmp_path, {"one": scenario}, CONFIG | {"timing": timing}, clock=WallClock()) as ground:
        project = Project(ground, chance)
        owed, unmended, claims = Broken(), Broken(), 0
        for step in range(STEPS):
            before = project.broken()
            feedback = await project.step()
            now, said = project.broken(), pairs(feedback)
            assert said <= (now - before) | (owed & now), f"step {step}: {sorted(said - (now - before))} is not new"
            if is_complete(feedback):
                claims += 1
                missing = now - before - said - unmended
                assert not missing, f"step {step}: {sorted(missing)} is missing\n{feedback}"
            else:
                # Mended while nobody looked: whoever was told of it before is not told of it again.
                unmended |= before - now
            owed = ((owed | (now - before)) - said) & now
        assert trouble or claims >= STEPS // 2
