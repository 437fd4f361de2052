"""Long answers: uses of a name and outlines of a file, of ten to a thousand entries. The floor and the library alone.

What we take beyond the floor for one entry (its line of text, the symbol around it, code points) grows with the list.
"""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

from parity.fixtures import Fixture, Place
from parity.records import Bench, Record

SIZES = (10, 100, 1_000)
USES = 25
"""Of one file."""

ROUNDS, WARMING = 20, 3
KINDS = ("bare", "library")
REFERENCES, SYMBOLS = "references, {} places", "symbols, {} of one file"
ALL = tuple(measure.format(size) for measure in (REFERENCES, SYMBOLS) for size in SIZES)


async def lists(bench: Bench, language: str) -> None:
    kinds = [kind for kind in bench.kinds_for(language) if kind.name in KINDS]
    async with AsyncExitStack() as stack:
        subjects = list[tuple[str, Fixture, Any]]()
        for kind in kinds:
            fixture = bench.fixture(language, modules=2, functions=1)
            for size in SIZES:
                _write(fixture, size)
            subject = await stack.enter_async_context(bench.opened(kind, fixture))
            subjects.append((kind.name, fixture, subject))
        for size in SIZES:
            for measure, question, right in _measures(size):
                for number in range(-WARMING, ROUNDS):
                    for name, fixture, subject in bench.in_turns(number, subjects):
                        record = bench.record(measure, language, name) if number >= 0 else Record("", "", "")
                        await bench.timed(record, _asked(question, fixture, subject), right, starts=number < 0)


Question = Callable[[Fixture, Any], Awaitable[object]]


def _asked(question: Question, fixture: Fixture, subject: Any) -> Callable[[], Awaitable[object]]:
    return lambda: question(fixture, subject)


def _measures(size: int) -> list[tuple[str, Question, Callable[[str], bool]]]:
    return [
        (
            REFERENCES.format(size),
            lambda fixture, subject: subject.references(_declared(fixture, size), 2 * size),
            lambda answer: answer.count(f"uses_{size}_") >= size,
        ),
        (
            SYMBOLS.format(size),
            lambda fixture, subject: subject.symbols(fixture.file(f"outline_{size}"), 2 * size),
            lambda answer: f"entry_{size - 1}" in answer,
        ),
    ]


def _declared(fixture: Fixture, size: int) -> Place:
    """The name of the function in its declaration."""
    file, name = fixture.file(f"declares_{size}"), f"used_{size}"
    line = fixture.grammar.function.format(name=name, body="value").split("\n")[0]
    return Place(file, 0, line.index(name) + 1, name, file, 0)


def _write(fixture: Fixture, size: int) -> None:
    grammar, name = fixture.grammar, f"used_{size}"
    fixture.write(fixture.file(f"declares_{size}"), grammar.function.format(name=name, body="value") + "\n")
    entries = [grammar.function.format(name=f"entry_{number}", body="value") for number in range(size)]
    fixture.write(fixture.file(f"outline_{size}"), "\n".join(entries) + "\n")
    # The import is a use, too.
    each = min(USES, size) - 1
    for number in range(-(-size // (each + 1))):
        lines = [grammar.importing.format(module=f"declares_{size}", name=name)]
        lines += [
            grammar.function.format(name=f"user_{size}_{number}_{use}", body=grammar.call.format(name=name))
            for use in range(each)
        ]
        fixture.write(fixture.file(f"uses_{size}_{number}"), "\n".join(lines) + "\n")
