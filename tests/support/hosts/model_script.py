"""What a scripted model does, whatever API it is asked through: its turns, and what it has heard so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """The model calls a tool of the host; arguments that are a text are those of a tool that takes no JSON."""

    tool: str
    arguments: Mapping[str, Any] | str
    said: str = ""
    """What it says first, in the same answer; by the APIs `Messages` and `Chat` only."""


@dataclass(frozen=True, slots=True)
class Say:
    """The model says something, which ends its turn."""

    text: str


Turn = Call | Say | Sequence[Call]
"""One answer of the model; several calls in one answer are made side by side."""

Answer = Say | tuple[Call, ...]
"""A turn as every API writes it."""

DONE = Say("Done.")
"""What the model says when the script is over, or when somebody asks who cannot be meant (a title, a summary)."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A request, read: which tools it offers, what tools have answered, what the model has said before."""

    tools: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    said: tuple[str, ...] = ()


class Wire(Protocol):
    """One API of models."""

    def heard(self, body: Json) -> Heard: ...

    def whole(self, answer: Answer, number: int) -> Json:
        """The answer in one piece; `number` tells the calls of one answer from those of another."""
        ...

    def events(self, answer: Answer, number: int) -> list[Json]:
        """The answer as a stream; an event is named after its `type`, where it has one."""
        ...


class Script:
    """Which turn comes next is read from the request alone, so that titles and retries use none up."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.answers = tuple(_answer(turn) for turn in turns)

    def position(self, heard: Heard) -> int:
        """How many turns are behind the one who asks: every call has had its result, every text has been said."""
        texts = {answer.text.strip() for answer in self.answers if isinstance(answer, Say)}
        done = len(heard.results) + sum(text.strip() in texts for text in heard.said)
        for position, answer in enumerate(self.answers):
            if done <= 0:
                return position
            done -= 1 if isinstance(answer, Say) else len(answer)
        return len(self.answers)

    def answer(self, heard: Heard) -> Answer:
        position = self.position(heard)
        answer = self.answers[position] if position < len(self.answers) else DONE
        return answer if isinstance(answer, Say) or heard.tools else DONE


def _answer(turn: Turn) -> Answer:
    if isinstance(turn, Say):
        return turn
    return (turn,) if isinstance(turn, Call) else tuple(turn)
