"""Are answers about the whole project complete? Random exported names of real projects, judged by the checker.

    PYTHONPATH=bench .venv/bin/python bench/questions.py --project httpx,express --names 50

Of each name the definition and the references are asked for by name alone, from a cold start, beside a search for the
whole word. Where a fresh answer lacks a place that the search has, the declaration is renamed in a copy and the
checker of the language is run: a new error on that line is a true use that was missed.
"""

import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
from harness import corpus, pages
from harness.pages import head, options
from harness.setting import workplace
from told.truth import Asker, difference

import pilotfish
from pilotfish.api.answers import Answer, State
from pilotfish.library.workspace import Workspace, computer

DECLARATIONS = {
    "python": re.compile(r"^(?:async )?(?:class|def) (?P<name>[A-Za-z]\w*)", re.MULTILINE),
    "typescript": re.compile(
        r"^export (?:(?:declare|abstract|async) )*(?:const|let|function|class|interface|type|enum) (?P<name>\w+)",
        re.MULTILINE,
    ),
    "javascript": re.compile(r"^(?:exports|app|res|req|proto)\.(?P<name>\w+) = ", re.MULTILINE),
    "go": re.compile(r"^func (?:\([^)]*\) )?(?P<name>[A-Z]\w*)|^type (?P<type>[A-Z]\w*) ", re.MULTILINE),
}
"""What a project exports, by the look of it."""

MAX_ALIKE = 5
"""Things of one name in a file that are tried by their index."""

WITHOUT = {"zod-no-tsconfig": "zod", "express": "express"}
"""Projects that are asked about without their project file, and whose they are."""


@dataclass
class Score:
    names: int = 0
    states: Counter[str] = field(default_factory=Counter[str])
    """Of the references."""
    by_file: int = 0
    """Names that several things have, so that the file had to be said."""
    places: int = 0
    mentions: int = 0
    judged: int = 0
    missed: list[str] = field(default_factory=list[str])
    """True uses that a fresh answer lacks."""
    said: int = 0
    """True uses that a partial answer lacks."""
    definitions: int = 0
    """Answers that name a declaration."""
    refused: list[str] = field(default_factory=list[str])


def declared(texts: Mapping[str, str], language: str) -> dict[str, list[tuple[str, int]]]:
    """By name, the files and lines (from 1) that declare it."""
    found: dict[str, list[tuple[str, int]]] = {}
    for path, text in texts.items():
        if re.search(r"(^|/)tests?/|_test\.", path):
            continue
        for match in DECLARATIONS[language].finditer(text):
            name = next(group for group in match.groups() if group)
            found.setdefault(name, []).append((path, text.count("\n", 0, match.start()) + 1))
    return found


async def definition_of(workspace: Workspace, name: str, place: tuple[str, int]) -> tuple[str | None, str, Answer[Any]]:
    """By the name alone; where several things have it, with the file, and then with its index there as well."""
    file, refused = place[0], await workspace.definition(symbol=name)
    if refused.ok:
        return None, name, refused
    for said in (name, *(f"{name}[{index}]" for index in range(MAX_ALIKE))):
        definition = await workspace.definition(file, symbol=said)
        if definition.ok and (said == name or place in {(one.path, one.line) for one in definition.data or ()}):
            return file, said, definition
    return file, name, refused


def words(texts: Mapping[str, str], name: str) -> Iterator[tuple[str, int]]:
    pattern = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
    for path, text in texts.items():
        for number, line in enumerate(text.split("\n"), 1):
            if pattern.search(line):
                yield path, number


def renamed(texts: Mapping[str, str], name: str, places: list[tuple[str, int]]) -> dict[str, str]:
    """The texts with another name where it is declared."""
    changed, pattern = dict(texts), re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
    for path in {path for path, _ in places}:
        lines = changed[path].split("\n")
        for number in (line for other, line in places if other == path):
            lines[number - 1] = pattern.sub(f"{name}_renamed", lines[number - 1], count=1)
        changed[path] = "\n".join(lines)
    return changed


async def measured(
    workspace: Workspace,
    asker: Asker,
    texts: Mapping[str, str],
    known: Mapping[str, list[tuple[str, int]]],
    names: list[str],
) -> Score:
    score = Score()
    for name in names:
        score.names += 1
        place = known[name][0]
        file, said, definition = await definition_of(workspace, name, place)
        score.by_file += file is not None
        if not definition.ok:
            score.refused.append(f"{name}: {definition.errors[0].message[:150]}")
            continue
        defined = {(one.path, one.line) for one in definition.data or ()}
        score.definitions += not defined.isdisjoint(known[name])
        answer = await workspace.references(file, symbol=said, limit=5000)
        found = answer.data or ()
        score.states[answer.meta.state] += 1
        score.places += len(found)
        mentioned = set(words(texts, name))
        score.mentions += len(mentioned)
        lacking = mentioned - {(one.path, one.line) for one in found}
        lacking -= set(known[name])
        if not lacking:
            continue
        score.judged += 1
        # Several things may have that name: the one that was found is renamed.
        own = [one for one in known[name] if one in defined] or [place]
        before, after = asker.findings(texts), asker.findings(renamed(texts, name, own))
        new = difference(before, after)
        # A line that had an error before may have the same one in other words.
        bad = {(path, one.line) for path, found in before.items() for one in found}
        true = sorted(at for at in lacking - bad if any(one.line == at[1] for one in new.get(at[0], ())))
        if answer.meta.state is State.FRESH:
            score.missed += [f"{name}: {path}:{line}" for path, line in true]
        else:
            score.said += len(true)
    return score


def run(name: str, count: int, seed: int) -> Score:
    project = corpus.projects()[WITHOUT.get(name, name)]
    server = project.servers[0]
    with workplace(replace(project, files={}) if name in WITHOUT else project, server) as setting:
        texts = corpus.texts(setting.root, project.language)
        known = declared(texts, project.language)
        names = sorted(random.Random(seed).sample(sorted(known), min(count, len(known))))

        async def ask() -> Score:
            async with pilotfish.open(setting.root, shell=computer(setting.environment())) as workspace:
                with Asker(project, server).open() as asker:
                    return await measured(workspace, asker, texts, known, names)

        return anyio.run(ask)


def main() -> int:
    chosen = options(__doc__, project="httpx,zod,zod-no-tsconfig,rxjs,express,cobra", names=50, seed=1)
    columns = ("project", "names", "fresh / partial", "file needed", "places", "mentions", "judged", "missed")
    print(head((*columns, "definitions")))
    bad = False
    for name in chosen.project.split(","):
        score = run(name, chosen.names, chosen.seed)
        states = f"{score.states['fresh']} / {score.states['partial']}"
        missed = f"{len(score.missed)} (partial: {score.said})"
        cells = (name, score.names, states, score.by_file, score.places, score.mentions, score.judged, missed)
        print(pages.line((*cells, score.definitions)), flush=True)
        for line in (*score.missed, *score.refused):
            print(f"  {line}", file=sys.stderr, flush=True)
        bad = bad or bool(score.missed)
    return bad


if __name__ == "__main__":
    sys.exit(main())
