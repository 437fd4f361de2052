"""The benchmark beside other programs: fixtures whose truth is known, figures, targets, and a small run for real."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parity import measures, ours, report
from parity.fixtures import GRAMMARS, make
from parity.measures import QUICK, Bench, Record, is_definition
from parity.numbers import interval, median, percentile
from parity.subjects import Kind, Scratch, bare
from parity.targets import TARGETS, verdicts

pytestmark = pytest.mark.proves("BENCH-1")

LANGUAGES = pytest.mark.parametrize("language", GRAMMARS)


@LANGUAGES
def test_the_same_seed_makes_the_same_bytes_and_another_one_others(tmp_path: Path, language: str) -> None:
    def texts(name: str, seed: int) -> dict[str, str]:
        fixture = make(language, tmp_path / name, seed=seed, modules=6, functions=3)
        return {path.name: path.read_text() for path in fixture.root.iterdir()}

    assert texts("first", 7) == texts("second", 7)
    assert texts("first", 7) != texts("third", 8)


@LANGUAGES
def test_every_place_is_a_call_of_a_function_that_is_defined_where_it_says(tmp_path: Path, language: str) -> None:
    fixture = make(language, tmp_path, seed=3, modules=8, functions=4)
    assert len(fixture.places) == 7 * 4
    for place in fixture.places:
        call = (fixture.root / place.file).read_text().split("\n")[place.line]
        assert call[place.character - 1 :].startswith(place.name)
        defined = (fixture.root / place.target).read_text().split("\n")[place.target_line]
        assert f" {place.name}(" in defined


def test_a_definition_is_right_only_with_its_file_and_its_line(tmp_path: Path) -> None:
    place = make("python", tmp_path, seed=3, modules=8, functions=4).places[0]
    assert is_definition(place, f"{place.target}:{place.target_line + 1}:5")
    assert is_definition(place, json.dumps({"uri": place.target, "line": place.target_line}))
    assert not is_definition(place, f"{place.target}:{place.target_line + 7}00:1")
    assert not is_definition(place, f"other.py:{place.target_line}")


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=60))
def test_the_median_lies_in_its_interval_and_between_the_extremes(values: list[float]) -> None:
    low, high = interval(values)
    assert min(values) <= low <= median(values) <= high <= max(values)
    assert median(values) <= percentile(values, 0.95) <= max(values)


def test_a_target_that_nobody_measured_is_not_passed() -> None:
    assert {verdict.word for verdict in verdicts([])} - {"not measured"} <= {"pass"}
    assert [one.word for one in verdicts([]) if one.target.name.startswith("warm definition")] == ["not measured"] * 3


@pytest.mark.parametrize(("ours_ms", "word"), [(10.9, "pass"), (11.1, "MISSED")])
def test_a_target_is_held_against_the_floor_of_the_same_run(ours_ms: float, word: str) -> None:
    records = [
        Record("warm definition", "python", "bare", [10.0] * 9),
        Record("warm definition", "python", "library", [ours_ms] * 9),
    ]
    assert verdicts(records)[0].word == word


def test_a_wrong_answer_of_ours_misses_a_target_and_one_of_a_peer_does_not() -> None:
    def word(subject: str) -> str:
        said = verdicts([Record("edit: fix", "python", subject, [1.0], wrong=1)])
        return next(one.word for one in said if one.target.name == "wrong or missing answers of ours")

    assert (word("hook"), word("cclsp")) == ("MISSED", "pass")


def test_a_report_shows_every_target_and_can_be_compared(tmp_path: Path) -> None:
    def run(folder: str, value: float) -> Path:
        records = [Record("warm definition", "python", "bare", [value] * 5, wrong=2, failure="slow")]
        written = report.written(tmp_path / folder, QUICK, records, "bench/run --quick")
        text = written.read_text()
        assert all(f"| {target.name} |" in text for target in TARGETS)
        assert "| 2 | 0 | slow |" in text
        assert (tmp_path / folder / "warm-definition.svg").read_text().startswith("<svg")
        return tmp_path / folder / "report.json"

    assert "| warm definition | python | bare | 2.00 | 3.00 | 1.50 |" in report.compared(run("a", 2.0), run("b", 3.0))


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.server("basedpyright")
async def test_a_small_run_for_real_finds_no_wrong_answer(tmp_path: Path) -> None:
    plan = replace(QUICK, modules=4, functions=2, warm=2, edits=1, patience=60.0)
    kinds = [Kind("bare", bare), Kind("library", ours.library, is_ours=True)]
    bench = Bench(plan, kinds, Scratch(tmp_path.resolve()))
    await measures.warm(bench, "python")
    library = {one.measure: one for one in bench.records if one.subject == "library"}
    assert set(library) >= {"warm definition", "edit: introduce", "edit: cross-file", "edit: deleted"}
    assert all(one.milliseconds and not one.wrong and not one.unanswered for one in library.values())
