"""The scripted agent: it edits only what it has planned or was told of, and reads what it must."""

from collections.abc import Mapping, Sequence

from replay.history import RealChange
from scripted_agent.agent import Agent, Outcome, scored
from scripted_agent.arms import Place, Told
from told.edits import Change, Edit
from told.truth import Problem

TEXTS = {name: f"# {name}\n" for name in ("a.py", "b.py", "c.py", "d.py")}
CHANGE = RealChange("change", "1", "2", tuple(Change(name, text, f"{text}new\n") for name, text in TEXTS.items()))


def problem(file: str) -> Problem:
    return Problem(file, 1, 1, "error", "rule", f"something of {file}")


class Scripted:
    """Feedback by the number of the edit that it follows; the last one is that of the stop."""

    def __init__(self, told: Sequence[Told], stop: Told) -> None:
        self._told, self._stop = list(told), stop
        self.batches: list[list[str]] = []

    def edited(self, made: Sequence[Edit], state: Mapping[str, str]) -> Told:
        del state
        self.batches.append([path for edit in made for path in edit.paths])
        return self._told.pop(0) if self._told else Told()

    def stopping(self, state: Mapping[str, str]) -> Told:
        del state
        told, self._stop = self._stop, Told()
        return told


def worked(*told: Told, stop: Told | None = None) -> tuple[Outcome, list[list[str]], Mapping[str, str]]:
    arm = Scripted(told, stop or Told())
    outcome = Outcome("project", "change", "diff", "arm")
    end = Agent(CHANGE, "diff", TEXTS, arm).work(outcome)
    return outcome, arm.batches, end


def test_what_it_was_not_told_of_stays_undone() -> None:
    outcome, batches, end = worked()
    assert batches == [["a.py"], ["b.py"]]
    assert (outcome.turns, outcome.reads, outcome.found, outcome.unplanned) == (2, 0, 0, 2)
    assert end["c.py"] == TEXTS["c.py"]


def test_what_it_is_told_of_is_repaired_at_once_and_read_where_the_source_line_is_missing() -> None:
    places = [Place(problem("c.py"), is_error=False, source="call()"), Place(problem("d.py"), is_error=False)]
    outcome, batches, end = worked(Told(tuple(places), size=100))
    assert batches == [["a.py"], ["c.py", "d.py"], ["b.py"]]
    assert (outcome.reads, outcome.bytes_read, outcome.found) == (1, 100 + len(TEXTS["d.py"]), 2)
    assert end == {name: f"{text}new\n" for name, text in TEXTS.items()}


def test_what_is_left_is_taken_up_before_the_stop() -> None:
    outcome, batches, _ = worked(stop=Told((Place(problem("c.py")),)))
    assert batches[-1] == ["c.py"]
    assert outcome.found == 1


def test_it_turns_aside_for_an_error_and_not_for_what_is_open() -> None:
    error, opened = (Told((Place(problem("a.py"), is_error=is_error),)) for is_error in (True, False))
    assert (worked(opened)[0].turns, worked(error)[0].turns) == (2, 3)
    outcome, _, _ = worked(error)
    scored(outcome, {"c.py": (problem("c.py"),)}, {name: (problem(name),) for name in ("b.py", "c.py")}, {})
    assert (outcome.premature, outcome.left) == (1, 1)
    outcome, _, _ = worked(error)
    scored(outcome, {}, {"a.py": (problem("a.py"),)}, {"a.py": (problem("a.py"),)})
    assert (outcome.premature, outcome.left) == (0, 0)


def test_a_line_that_names_a_file_leads_to_it() -> None:
    opened = Place(problem("a.py"), is_error=False, source="from c import something")
    outcome, batches, _ = worked(Told((opened,)))
    assert batches[1] == ["c.py"]
    assert outcome.reads == 0
