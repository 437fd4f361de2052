"""The kinds of feedback that the agent works under. All but two of them are the real program with real servers."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.setting import Setting, verb
from replay.play import is_open
from told import score
from told.conversation import Conversation, carry_out
from told.edits import Edit, Texts
from told.truth import Findings, Problem, difference

Judge = Callable[[Mapping[str, str]], Findings]
"""The checker's own command line, on these texts."""


STOP_MS, STOPS = 4500.0, 9
"""A stop that took longer may have been cut off by a busy machine."""

BETWEEN = 10.0
"""Seconds until the next one: what was cut off goes on in the meantime."""


@dataclass(frozen=True)
class Place:
    problem: Problem
    is_error: bool = True
    """Worded as an error, and not as open."""
    source: str = ""
    """The line of the file, where it was told."""


@dataclass(frozen=True)
class Told:
    places: tuple[Place, ...] = ()
    text: str = ""

    @property
    def size(self) -> int:
        return len(self.text.encode())


class Feedback(Protocol):
    def edited(self, made: Sequence[Edit], state: Mapping[str, str]) -> Told:
        """Carry out edits that were made at once; what the agent reads with their results."""
        ...

    def stopping(self) -> Told: ...


class Hooks:
    """Pilotfish in Claude Code, by its hook events."""

    def __init__(self, setting: Setting, judge: Judge, texts: Texts, *, sources: bool = True) -> None:
        del judge, texts
        self._root, self._sources = str(setting.root), sources
        self._agent = Conversation(setting, "agent")
        self._agent.begin("Make the change.")

    def edited(self, made: Sequence[Edit], state: Mapping[str, str]) -> Told:
        del state
        return self._read(self._agent.edit(*made).text)

    def stopping(self) -> Told:
        heard = [self._agent.stop()]
        # Before a stop there are five seconds, whatever is configured. A busy machine must not cost an arm anything.
        while heard[-1].milliseconds > STOP_MS and len(heard) < STOPS:
            time.sleep(BETWEEN)
            # What the stop had no time for is told now, or at the next stop.
            heard += [self._agent.prompt("Go on."), self._agent.stop()]
        return self._read("\n".join(one.text for one in heard if one.text))

    def _read(self, text: str) -> Told:
        if not self._sources:
            text = "\n".join(line for line in text.splitlines() if not line.startswith("| "))
        found = score.said(text, self._root).findings
        places = [Place(one, not is_open(text, one), source) for one, source in zip(found, _sources(text), strict=True)]
        return Told(tuple(places), text)


def _sources(text: str) -> list[str]:
    """The source line of each finding, which stands below the last one about it."""
    found, waiting = list[str](), 0
    for line in text.splitlines():
        if re.match(r"(?:ERROR|WARNING|INFO|HINT|OPEN) \[", line):
            found.append("")
            waiting += 1
        elif waiting:
            found[-waiting:] = [line.removeprefix("| ") if line.startswith("| ") else ""] * waiting
            waiting = 0
    return found


class Silence:
    """Nothing is told."""

    def __init__(self, setting: Setting, judge: Judge, texts: Texts) -> None:
        self._setting, self._judge, self._texts = setting, judge, texts

    def edited(self, made: Sequence[Edit], state: Mapping[str, str]) -> Told:
        del state
        for change in (change for edit in made for change in edit.changes):
            (self._setting.root / change.path).parent.mkdir(parents=True, exist_ok=True)
            carry_out(self._setting.root, change)
        return Told()

    def stopping(self) -> Told:
        return Told()


class OwnServer(Silence):
    """What recordings of Claude Code with a language server of its own show: the new errors of the edited file alone,
    with the turn after the edit. Told here by the checker, so that no server of a host has to be installed."""

    _late = Told()

    def edited(self, made: Sequence[Edit], state: Mapping[str, str]) -> Told:
        super().edited(made, state)
        new = difference(self._judge(self._texts), self._judge(state))
        self._texts = dict(state)
        found = [one for edit in made for path in edit.paths for one in new.get(path, ()) if one.severity == "error"]
        told, self._late = self._late, Told(tuple(map(Place, found)), "".join(f"{one}\n" for one in found))
        return told


class Asking(Silence):
    """The agent asks once, at the end: `pilotfish check --changed`."""

    def stopping(self) -> Told:
        text = verb(self._setting, "check", "--changed")
        found = score.read(text, str(self._setting.root), "lines").findings
        return Told(tuple(map(Place, found)), text)


@dataclass(frozen=True)
class Arm:
    feedback: Callable[[Setting, Judge, Texts], Feedback]
    config: Mapping[str, Any]


def _without_sources(setting: Setting, judge: Judge, texts: Texts) -> Feedback:
    return Hooks(setting, judge, texts, sources=False)


ARMS: Mapping[str, Arm] = {
    "nothing": Arm(Silence, {}),
    "the host's own LSP": Arm(OwnServer, {}),
    "asks at the end": Arm(Asking, {}),
    "stop only": Arm(Hooks, {"after": "stop"}),
    "each edit (please fix)": Arm(Hooks, {"after": "edit", "wording": "report"}),
    "each edit": Arm(Hooks, {"after": "edit"}),
    "each batch": Arm(Hooks, {}),
    "each batch (no source lines)": Arm(_without_sources, {}),
}
