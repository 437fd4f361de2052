"""A case of the marker tests: a workspace, its expectations, and the edits that it goes through.

Settings: `server` names the one server that is enabled, `servers` several; `severity` is the least bad that counts
(`hint` unless said); `config` is JSON laid over the user's `lsp.json`; `trust: no` leaves the workspace untrusted.
`dependents: partial` is for a server that does not say when it has thought again about a file whose own text stays as
it was: the answer about such a file may be partial, and is then asked for again. A fresh one must be right at once.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from support.markers.archive import Archive, Section, parse
from support.markers.comments import Golden, Label, Marker, Place, labels_of, marked
from support.markers.expectations import DIAGNOSTIC, EXTERNAL, LOC, NO_VERDICT, WORDS

SETTINGS = frozenset({"server", "servers", "severity", "config", "trust", "dependents"})


@dataclass(frozen=True)
class Step:
    """The workspace after an edit; the first step is its beginning."""

    number: int
    written: dict[str, bytes]
    """The files that this step writes."""
    asked: tuple[str, ...]
    """Those of them that are asked about."""
    changed: frozenset[str]
    """Those of them whose text is another than before."""
    texts: dict[str, str]
    """All files as they are then, with plain line endings."""
    markers: tuple[Marker, ...]
    """Those of the files that this step asks about."""
    all_markers: tuple[Marker, ...]

    @cached_property
    def labels(self) -> dict[str, Place]:
        return labels_of(self.all_markers)


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
    def partial_dependents(self) -> bool:
        return self.archive.settings.get("dependents") == "partial"

    @property
    def config(self) -> dict[str, Any]:
        return json.loads(self.archive.settings.get("config", "{}"))

    @property
    def fits_a_session(self) -> bool:
        """A bare session is one server, knows no reason why it would not check, and watches no files."""
        unasked = any("unasked" in section.flags for section in self.archive.files if section.version > 1)
        refused = any(marker.name == NO_VERDICT for step in self.steps() for marker in step.markers)
        return len(self.servers) == 1 and not unasked and not refused

    def steps(self) -> Iterator[Step]:
        current: dict[str, Section] = {}
        before: dict[str, str] = {}
        for number in sorted({section.version for section in self.archive.files}):
            now = {section.name: section for section in self.archive.files if section.version == number}
            current |= now
            files = {name: marked(name, section.body) for name, section in current.items()}
            texts = {name: file.text for name, file in files.items()}
            yield Step(
                number,
                {name: section.written(texts[name]) for name, section in now.items()},
                tuple(name for name, section in now.items() if "unasked" not in section.flags),
                frozenset(name for name in now if texts[name] != before.get(name)),
                texts,
                tuple(marker for name in now for marker in files[name].markers),
                tuple(marker for file in files.values() for marker in file.markers),
            )
            before = texts


def read_case(path: Path) -> Case:
    return Case(path, parse(path.read_text()))


def faults(case: Case) -> list[str]:
    """What is wrong with the case itself, whatever a server says."""
    found = [f"unknown setting {name}" for name in case.archive.settings if name not in SETTINGS]
    if not case.archive.settings.keys() & {"server", "servers"}:
        found.append("no server is named")
    made: set[str] = set()
    used: set[str | Label | Golden] = set()
    for step in case.steps():
        found += _step_faults(step)
        made |= step.labels.keys()
        used |= {argument for marker in step.markers if marker.name != LOC for argument in marker.arguments}
    found += [f"the label {name} is never used" for name in made if Label(name) not in used]
    return found + [f"the golden {name} is never used" for name in case.archive.goldens if Golden(name) not in used]


def _step_faults(step: Step) -> list[str]:
    words = WORDS.keys() | {LOC, DIAGNOSTIC, NO_VERDICT}
    found = [f"{marker}: unknown word" for marker in step.markers if marker.name not in words]
    found += [
        f"{marker}: expected {marker.name}{WORDS[marker.name].usage}"
        for marker in step.markers
        if marker.name in WORDS and not WORDS[marker.name].fits(marker)
    ]
    return found + [
        f"{marker}: the label {argument.name} is never made"
        for marker in step.markers
        for argument in marker.arguments
        if isinstance(argument, Label) and marker.name in WORDS and argument.name not in {*step.labels, EXTERNAL}
    ]
