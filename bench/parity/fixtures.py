"""Workspaces that are the same for the same seed, and whose truth is known because we made them.

Every module has functions that call one of another module, so each call is a place whose definition is known. An edit
puts a name into a file that nothing defines, or takes it out: an answer is right if it names just what is missing now.
"""

import random
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Grammar:
    """How one language says the few things that fixtures need: a row of `grammars.toml`."""

    server: str
    command: Sequence[str]
    suffix: str
    files: Mapping[str, str]
    importing: str
    """One line; `{module}` and `{name}`."""
    function: str
    """Two lines and a blank one; `{name}`, `{body}`."""
    call: str
    missing: str
    """A line with an error that names `{name}`."""
    comment: str


GRAMMARS = {
    language: Grammar(**row)
    for language, row in tomllib.loads(Path(__file__).with_name("grammars.toml").read_text()).items()
}
LANGUAGES = {grammar.server: language for language, grammar in GRAMMARS.items()}


@dataclass(frozen=True)
class Place:
    """A call, counted from 0, and where the function is defined."""

    file: str
    line: int
    character: int
    name: str
    target: str
    target_line: int


@dataclass(frozen=True)
class Fixture:
    language: str
    root: Path
    places: tuple[Place, ...]

    @property
    def grammar(self) -> Grammar:
        return GRAMMARS[self.language]

    def file(self, name: str) -> str:
        return f"{name}{self.grammar.suffix}"

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)


def make(language: str, root: Path, *, seed: int, modules: int, functions: int) -> Fixture:
    """A workspace of `modules` files; the same arguments make the same bytes."""
    grammar, chance = GRAMMARS[language], random.Random(f"{seed} {language} {modules} {functions}")
    root.mkdir(parents=True, exist_ok=True)
    for name, text in grammar.files.items():
        (root / name).write_text(text)
    definitions: dict[str, tuple[str, int]] = {}
    calls: list[tuple[str, int, int, str]] = []
    for number in range(modules):
        # Only later modules are imported, so there is no cycle.
        later = range(number + 1, modules)
        called = [f"f{chance.choice(later)}_{place}" if later else None for place in range(functions)]
        file = f"module_{number}{grammar.suffix}"
        lines = [grammar.importing.format(module=f"module_{one[1:].split('_')[0]}", name=one) for one in called if one]
        for place, one in enumerate(called):
            name, body = f"f{number}_{place}", grammar.call.format(name=one) if one else "value"
            definitions[name] = (file, len(lines))
            lines += grammar.function.format(name=name, body=body).split("\n")
            if one:
                line = definitions[name][1] + 1
                calls.append((file, line, lines[line].index(one) + 1, one))
        (root / file).write_text("\n".join(lines) + "\n")
    places = tuple(Place(file, line, character, name, *definitions[name]) for file, line, character, name in calls)
    return Fixture(language, root, places)


# --- What is right ----------------------------------------------------------------------------------------------------

MISSING = re.compile(r"\b(?:missing|shared)_\d+")
"""Names that edits use and that nothing defines."""


def is_right(operation: str, place: Place, answer: str) -> bool:
    """References name the file of the call, the others the function itself."""
    match operation:
        case "definition":
            return is_definition(place, answer)
        case "references":
            return place.file in answer
        case "symbols":
            return f"f{place.file.removeprefix('module_').split('.')[0]}_0" in answer
        case _:
            return place.name in answer


def is_definition(place: Place, answer: str) -> bool:
    """The file, and its line counted from 0 or from 1."""
    return (
        place.target in answer
        and re.search(rf"\b(?:{place.target_line}|{place.target_line + 1})\b", answer) is not None
    )
