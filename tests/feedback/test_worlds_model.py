"""Random worlds against an oracle: a state that an edit is compared with is the one right before it, or none (DIAG-14).

The oracle has files that depend on each other. What a file "has" follows from its own text, the texts of all that it
depends on, and the process that judged it. `pytest tests/feedback/test_worlds_model.py --examples N` plays N schedules.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pilotfish.model import AbsPath, Diagnostic, Position, Range, Severity
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.service.diagnostics.file_states import FileStates
from pilotfish.service.diagnostics.verdicts import FileVerdict, Outcome

ROOT = AbsPath("/srv/project")
DEPENDS = {"a": "", "b": "a", "c": "b", "d": "", "e": "ad"}
"""Each file, and those that it imports."""
START = dict.fromkeys(DEPENDS, "0")
GATE = 400
HERE = Range(Position(0, 0), Position(0, 1))

names = st.sampled_from(sorted(DEPENDS))
texts = st.sampled_from(["0", "1", "2", ""])
steps = st.one_of(
    st.tuples(st.just("edit"), names, texts, st.just(False)),
    st.tuples(st.just("edit"), names, texts, st.booleans()),
    st.tuples(st.just("somebody writes"), names, texts),
    st.tuples(st.just("git checkout"), texts),
    st.tuples(st.just("check"), names),
    st.tuples(st.just("begin a check"), names),
    st.tuples(st.just("end it")),
    st.tuples(st.just("look"), names),
    st.tuples(st.just("restart")),
    st.tuples(st.just("explain since"), names, texts),
)


GONE_AND_BACK: list[tuple[Any, ...]] = [
    ("look", "a"),
    ("edit", "a", "", False),
    ("check", "b"),
    ("somebody writes", "a", "0"),
    ("explain since", "a", "0"),
]
"""Since it was there before nobody is affected, and since it was gone everybody who needs it is."""


def path_of(name: str) -> AbsPath:
    return AbsPath(f"{ROOT}/{name}")


def reach(name: str) -> set[str]:
    """A file and all that it depends on."""
    return {name}.union(*(reach(other) for other in DEPENDS[name]))


@dataclass
class World:
    states: FileStates = field(default_factory=FileStates)
    texts: dict[str, str] = field(default_factory=lambda: dict(START))
    process: float = 1.0
    under_way: tuple[FileVerdict, int] | None = None
    earlier: dict[str, set[str]] = field(default_factory=lambda: {name: set[str]() for name in DEPENDS})
    """Texts that each file had before its last change."""
    used: int = 0
    computed: int = 0
    """How often a state was known, and how often one was that had been computed."""

    def verdict(self, name: str, texts: dict[str, str] | None = None) -> FileVerdict:
        known = texts or self.texts
        seen = ",".join(f"{one}={known[one]}" for one in sorted(reach(name)))
        found = (Diagnostic(HERE, Severity.ERROR, f"{seen} by {self.process}", "one"),)
        return FileVerdict(path_of(name), known[name], (Outcome("one", found, incarnation=self.process),))

    def write(self, **texts: str) -> None:
        """The watcher notices each change of a batch."""
        changed = {name: text for name, text in texts.items() if self.texts[name] != text}
        kinds = {name: _kind(self.texts[name], text) for name, text in changed.items()}
        for name in changed:
            self.earlier[name].add(self.texts[name])
        self.texts |= changed
        self.states.note(ROOT, [PathChange(path_of(name), kind) for name, kind in kinds.items()])

    def edit(self, name: str, text: str, *, is_seen: bool) -> None:
        """`is_seen`: the server of a check that is under way reads it, before the edit is judged."""
        before = dict(self.texts)
        self.write(**{name: text})
        if is_seen and self.under_way is not None:
            checked = self.under_way[0].path.rpartition("/")[2]
            self.under_way = (self.verdict(checked), self.under_way[1]) if self.texts[checked] else None
            self.end_check()
        own: dict[AbsPath, str | None] = {path_of(name): before[name]}
        world = self.states.world
        for other in DEPENDS:
            # A new file was not there, and one that is gone has no verdict.
            if self.texts[other] and before[other]:
                found = self.states.before(self.verdict(other), own)
                expected = self.verdict(other, before)
                assert found is None or found.diagnostics == expected.diagnostics, f"{other} after {name} -> {text!r}"
                self.used += found is not None
                if found is None and not is_seen:
                    # Somebody had it judged with the old texts.
                    self.states.put_before(expected, own)
                    found = self.states.before(self.verdict(other), own)
                    assert found is None or found.diagnostics == expected.diagnostics, f"{other} before {name}"
                    self.computed += found is not None
        if text:
            self.states.put(self.verdict(name), world)
        affected = [path_of(other) for other in DEPENDS if name in reach(other) and other != name]
        self.states.explain(own, affected, world)

    def take(self, step: tuple[Any, ...]) -> None:
        match step:
            case ("edit", name, text, is_seen):
                self.edit(name, text, is_seen=is_seen)
            case ("somebody writes", name, text):
                self.write(**{name: text})
            case ("git checkout", text):
                self.write(**{name: str(text) for name in DEPENDS})
            case ("check", name) if self.texts[name]:
                self.states.put(self.verdict(name), self.states.world)
            case ("begin a check", name) if self.texts[name]:
                self.under_way = self.verdict(name), self.states.world
            case ("end it",):
                self.end_check()
            case ("look", name):
                self.states.saw(path_of(name), self.texts[name])
            case ("restart",):
                self.process += 1
            case ("explain since", name, text) if text in self.earlier[name]:
                # A file that has the text again that it had affects nobody, whatever was in between.
                affected = [path_of(other) for other in DEPENDS if name in reach(other) and other != name]
                unchanged = text == self.texts[name]
                self.states.explain({path_of(name): text}, [] if unchanged else affected, self.states.world)
            case _:
                pass

    def look_at_what_stands(self) -> None:
        for name, text in self.texts.items():
            now = self.verdict(name)
            known = self.states.standing(path_of(name), text, (("one", self.process),)) if text else None
            assert known is None or known.checked.diagnostics == now.diagnostics, name

    def end_check(self) -> None:
        if self.under_way is not None:
            verdict, world = self.under_way
            self.under_way = None
            if self.is_as_read(verdict):
                self.states.put(verdict, world)

    def is_as_read(self, verdict: FileVerdict) -> bool:
        """A check ends with the text that the file has: a newer one would have been sent."""
        return self.texts[verdict.path.rpartition("/")[2]] == verdict.text


def _kind(before: str, after: str) -> Change:
    if not before:
        return Change.CREATED
    return Change.CHANGED if after else Change.DELETED


@pytest.mark.timeout(0)
@pytest.mark.proves("DIAG-14")
def test_the_state_before_an_edit_is_the_right_one_or_none(examples: int) -> None:
    used = computed = 0

    @settings(max_examples=examples if examples > 2_000 else GATE, derandomize=examples <= 2_000, deadline=None)
    @given(schedule=st.lists(steps, min_size=1, max_size=25))
    @example(schedule=GONE_AND_BACK)
    def play(schedule: list[tuple[Any, ...]]) -> None:
        nonlocal used, computed
        world = World()
        for step in schedule:
            world.take(step)
            world.look_at_what_stands()
        used += world.used
        computed += world.computed

    play()
    assert used > GATE // 4, "the store knows something, and is not only careful"
    assert computed > GATE // 4, "nor is what was computed lost"


@pytest.mark.proves("DIAG-14")
def test_a_file_that_came_back_unseen_had_the_text_that_somebody_saw_before_it_was_deleted_again() -> None:
    world = World()
    world.states.saw(path_of("a"), "0")
    world.write(a="")
    world.write(a="0")
    world.states.put(world.verdict("b"), world.states.world)
    known = world.verdict("b").diagnostics
    world.write(a="")
    world.states.had(path_of("a"), "0")
    found = world.states.before(world.verdict("b"), {path_of("a"): "0"})
    assert found is not None
    assert found.diagnostics == known


@pytest.mark.proves("DIAG-14")
def test_a_check_during_which_a_file_was_deleted_says_nothing_of_the_time_before() -> None:
    world = World()
    world.states.saw(path_of("a"), "0")
    world.take(("begin a check", "b"))
    world.take(("edit", "a", "", True))
    assert world.states.knows(path_of("b")), "its verdict is kept"
