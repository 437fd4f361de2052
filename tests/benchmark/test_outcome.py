"""The scripted agent: it edits only what it has planned or was told of, and reads what it must."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest
from replay.history import RealChange
from replay.plan import edits
from scripted_agent import pages
from scripted_agent.__main__ import main
from scripted_agent.agent import Agent, Outcome, scored
from scripted_agent.arms import Place, Told
from scripted_agent.model import ModelAgent, estimate, is_wanted
from told.edits import Change, Edit
from told.truth import Problem

from benchmark.test_replay import a_repository
from support.hosts.model_server import Call, ModelServer, Say
from support.servers.real import require

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

    def stopping(self) -> Told:
        told, self._stop = self._stop, Told()
        return told


def worked(*told: Told, stop: Told | None = None) -> tuple[Outcome, list[list[str]], Mapping[str, str]]:
    arm = Scripted(told, stop or Told())
    outcome = Outcome("project", "change", "diff", "arm")
    end = Agent().work(edits(CHANGE, "diff"), TEXTS, arm, outcome)
    return outcome, arm.batches, end


def test_what_it_was_not_told_of_stays_undone() -> None:
    outcome, batches, end = worked()
    assert batches == [["a.py"], ["b.py"]]
    assert (outcome.turns, outcome.reads, outcome.found, outcome.unplanned) == (2, 0, 0, 2)
    assert end["c.py"] == TEXTS["c.py"]


def test_what_it_is_told_of_is_repaired_at_once_and_read_where_the_source_line_is_missing() -> None:
    places = [Place(problem("c.py"), is_error=False, source="call()"), Place(problem("d.py"), is_error=False)]
    outcome, batches, end = worked(Told(tuple(places), "x" * 100))
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


def test_a_model_works_under_the_same_arms_and_its_edits_of_one_turn_are_one_batch() -> None:
    chosen = Namespace(model="any", endpoint="", key="")
    patch = {"path": "a.py", "old": "# a.py\n", "new": "# a.py\nnew\n"}
    gone = {**patch, "old": "nothing"}
    turns = [
        Call("read_file", {"path": "c.py"}),
        [
            Call("edit_file", patch),
            Call("edit_file", {"path": "e.py", "old": "", "new": "e\n"}),
            Call("edit_file", gone),
        ],
        Say("done"),
        Call("edit_file", {"path": "d.py", "old": "# d.py", "new": "# d"}),
        Say("done"),
    ]
    outcome = Outcome("project", "change", "diff", "arm")
    arm = Scripted([Told((), "after the batch")], Told((Place(problem("d.py")),), "before the stop"))
    with ModelServer(turns) as server:
        chosen.endpoint = f"{server.url}/v1"
        end = ModelAgent(chosen).work(edits(CHANGE, "diff"), TEXTS, arm, outcome)
    assert arm.batches == [["a.py", "e.py"], ["d.py"]]
    assert end == {
        "a.py": "# a.py\nnew\n",
        "b.py": TEXTS["b.py"],
        "c.py": TEXTS["c.py"],
        "d.py": "# d\n",
        "e.py": "e\n",
    }
    assert (outcome.turns, outcome.reads, outcome.found, outcome.told) == (5, 1, 1, 1)
    assert outcome.tokens
    prompt, *_ = (request.text for request in server.requests)
    assert "+++ b/b.py\n" in prompt
    assert "b/c.py" not in prompt
    results = server.requests[-1].heard.results
    assert results[:2] == (TEXTS["c.py"], "Done.")
    assert results[3] == "What is to be replaced must be in the file once.\n\nafter the batch"
    assert "before the stop" in server.requests[-1].text


def test_what_a_model_costs_is_told_before_it_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    measured = [Outcome("p", "c", "callee", "nothing", turns=10, bytes_read=3_000, written=1_000)]
    assert estimate(measured, ["nothing", "each batch"], 3, "2,10") == (
        "6 runs: about 60,000 tokens read and 1,500 written, 0.14 dollars. "
        "A model that reads more than the script costs more."
    )

    def nobody(_question: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", nobody)
    assert main(["--model", "any", "--prices", "3,15", "--keep", str(tmp_path / "kept")]) == 1
    assert "dollars" in capsys.readouterr().out

    def somebody(_question: str) -> str:
        return "y"

    monkeypatch.setattr("builtins.input", somebody)
    chosen = Namespace(repo="", projects="a,b", changes=1, orders="callee", prices="0,0", yes=False)
    assert is_wanted(chosen, ["nothing"])


def test_the_pages_are_those_of_the_kept_outcomes() -> None:
    outcomes = pages.kept(pages.KEPT)
    report = pages.REPORT.read_text()
    assert report.endswith(f"- {pages.counted(outcomes)}\n\n{pages.tables(outcomes)}\n")
    assert pages.README.read_text() == pages.readme(outcomes)
    assert not any(one.tokens for one in outcomes)


@pytest.mark.slow
@pytest.mark.server("ty")
def test_of_a_small_change_what_is_told_is_repaired_and_a_run_goes_on_where_it_was_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require(["ty"])
    a_repository(tmp_path / "project")
    kept, report = tmp_path / "kept.jsonl", tmp_path / "report.md"
    given = ["--repo", tmp_path / "project", "--server", "ty", "--orders", "callee", "--arms", "nothing,each batch"]
    command = [str(one) for one in (*given, "--changes", "1", "--keep", kept, "--report", report)]
    assert main(command) == 0
    nothing, batch = pages.kept(kept)
    assert (nothing.left, nothing.found, batch.left, batch.found, batch.reads) == (1, 0, 0, 1, 0)
    kept.write_text(kept.read_text().splitlines(keepends=True)[1])
    capsys.readouterr()
    assert main(command) == 0
    assert "each batch: " not in capsys.readouterr().out
    assert [asdict(one) for one in pages.kept(kept)] == [asdict(batch), asdict(nothing)]
    assert "| each batch | 3 |" in report.read_text()
