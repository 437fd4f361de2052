"""A case of the marker tests: a workspace, its expectations, and the edits that it goes through.

Settings: `server` names the one server that is enabled, `servers` several; `severity` is the least bad that counts
(`hint` unless said); `config` is JSON laid over the user's `lsp.json`; `trust: no` leaves the workspace untrusted.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from support.archive import Archive, Section, parse
from support.expectations import DIAGNOSTIC, LOC, WORDS
from support.markers import Golden, Label, Marker, Place, labels_of, marked

SETTINGS = frozenset({"server", "servers", "severity", "config", "trust"})


@dataclass(frozen=True)
class Step:
    """The workspace after an edit; the first step is its beginning."""

    number: int
    written: dict[str, bytes]
    """The files that this step writes."""
    texts: dict[str, str]
    """All files as they are then, with plain line endings."""
    markers: tuple[Marker, ...]

    @cached_property
    def labels(self) -> dict[str, Place]:
        return labels_of(self.markers)


@dataclass(frozen=True)
class Case:
    path: Path
    archive: Archive

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def servers(self) -> tuple[str, ...]:
        settings = self.archive.settings
        return tuple(settings["servers"].split()) if "servers" in settings else (settings["server"],)

    @property
    def severity(self) -> str:
        return self.archive.settings.get("severity", "hint")

    @property
    def trusted(self) -> bool:
        return self.archive.settings.get("trust", "yes") != "no"

    @property
    def config(self) -> dict[str, Any]:
        return json.loads(self.archive.settings.get("config", "{}"))

    def steps(self) -> Iterator[Step]:
        current: dict[str, Section] = {}
        for number in sorted({section.version for section in self.archive.files}):
            now = {section.name: section for section in self.archive.files if section.version == number}
            current |= now
            files = {name: marked(name, section.body) for name, section in current.items()}
            yield Step(
                number,
                {name: section.written(files[name].text) for name, section in now.items()},
                {name: file.text for name, file in files.items()},
                tuple(marker for file in files.values() for marker in file.markers),
            )


def read_case(path: Path) -> Case:
    return Case(path, parse(path.read_text()))


def faults(case: Case) -> list[str]:
    """What is wrong with the case itself, whatever a server says."""
    found = [f"unknown setting {name}" for name in case.archive.settings if name not in SETTINGS]
    if not case.archive.settings.keys() & {"server", "servers"}:
        found.append("no server is named")
    goldens: set[str] = set()
    for step in case.steps():
        found += _step_faults(step)
        goldens |= {argument.name for _, argument in _arguments(step) if isinstance(argument, Golden)}
    found += [f"the golden {name} is never used" for name in case.archive.goldens.keys() - goldens]
    return found


def _step_faults(step: Step) -> list[str]:
    words = WORDS.keys() | {LOC, DIAGNOSTIC}
    found = [f"{marker}: unknown word" for marker in step.markers if marker.name not in words]
    found += [
        f"{marker}: expected {marker.name}{WORDS[marker.name].usage}"
        for marker in step.markers
        if marker.name in WORDS and not WORDS[marker.name].fits(marker)
    ]
    used = {
        argument.name
        for marker, argument in _arguments(step)
        if isinstance(argument, Label) and marker.name not in {LOC, DIAGNOSTIC}
    }
    found += [f"the label {name} is never made" for name in used - step.labels.keys() - {"external"}]
    return found + [f"the label {name} is never used" for name in step.labels.keys() - used]


def _arguments(step: Step) -> Iterator[tuple[Marker, str | Label | Golden]]:
    for marker in step.markers:
        for argument in marker.arguments:
            yield marker, argument
