"""The tables of negations, `tests/feedback/negations/*.txt`: what is in them, and what a checker says of them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from pilotfish.model import AbsPath
from pilotfish.service.diagnostics.affected import EditedText

TABLES = Path(__file__).parents[2] / "feedback" / "negations"

_FILE = re.compile(r"--- (?P<path>\S+)(?: \((?P<how>edited|deleted)\))?")

Findings = set[tuple[str, str]]
"""Paths, and what is wrong there."""


class Negation(Struct):
    """A project before and after an edit, and the other files that it breaks."""

    name: str
    language: str
    broken: frozenset[str] = frozenset()
    before: dict[str, str] = field(default_factory=dict[str, str])
    changed: dict[str, str | None] = field(default_factory=dict[str, str | None])

    @property
    def after(self) -> dict[str, str]:
        files = {**self.before, **self.changed}
        return {path: text for path, text in files.items() if text is not None}

    def edits(self, root: Path) -> list[EditedText]:
        return [
            EditedText(AbsPath(str(root / path)), self.before.get(path), text) for path, text in self.changed.items()
        ]


def negations(language: str) -> list[Negation]:
    found = list[Negation]()
    for part in (TABLES / f"{language}.txt").read_text().split("\n=== ")[1:]:
        name, broken, *lines = part.split("\n")
        one = Negation(name, language, frozenset(broken.removeprefix("broken: ").split(", ")))
        for head, text in _files(lines):
            if head["how"]:
                one.changed[head["path"]] = None if head["how"] == "deleted" else text
            else:
                one.before[head["path"]] = text
        found.append(one)
    return found


def _files(lines: Sequence[str]) -> Iterator[tuple[re.Match[str], str]]:
    heads = [(number, head) for number, line in enumerate(lines) if (head := _FILE.fullmatch(line))]
    ends = [*(number for number, _ in heads[1:]), len(lines)]
    for (number, head), end in zip(heads, ends, strict=True):
        text = "\n".join(lines[number + 1 : end]).rstrip("\n")
        yield head, f"{text}\n" if text else ""


def written(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def newly_broken(cases: Sequence[Negation], folder: Path, check: Callable[[Path], Findings]) -> dict[str, set[str]]:
    """By case, the files that are not edited in which a checker finds something after the edit and not before."""
    for number, case in enumerate(cases):
        written(folder / f"{number}" / "before", case.before)
        written(folder / f"{number}" / "after", case.after)
    found = check(folder)
    broken = dict[str, set[str]]()
    for number, case in enumerate(cases):
        old, new = set(_below(found, f"{number}/before/")), set(_below(found, f"{number}/after/"))
        broken[case.name] = {path for path, _ in new - old} - case.changed.keys()
    return broken


def _below(found: Findings, folder: str) -> Iterator[tuple[str, str]]:
    return ((path.removeprefix(folder), what) for path, what in found if path.startswith(folder))


def basedpyright(folder: Path) -> Findings:
    """Every project of the folder in one run: a module is looked for beside the file that imports it."""
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    output = _output([sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(folder)])
    return {
        (os.path.relpath(one["file"], folder), one["message"])
        for one in json.loads(output)["generalDiagnostics"]
        if one["severity"] == "error"
    }


def _output(argv: Sequence[str], folder: Path | None = None) -> str:
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False).stdout
