"""The benchmark beside other programs: fixtures whose truth is known, figures, targets, and a small run for real."""

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from harness import processes
from harness.clients import started
from harness.numbers import interval, median, percentile, quotient, spread
from harness.setting import Setting
from hypothesis import given, settings
from hypothesis import strategies as st
from parity import __main__ as program
from parity import measures, report
from parity.fixtures import GRAMMARS, is_definition, is_right, make
from parity.records import QUICK, Bench, Record, plain
from parity.report import TARGETS, verdicts
from parity.subjects import KINDS, Peer, Scratch, smoke

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


@settings(max_examples=25)
@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=60))
def test_the_median_lies_in_its_interval_and_between_the_extremes(values: list[float]) -> None:
    low, high = interval(values)
    assert min(values) <= low <= median(values) <= high <= max(values)
    assert median(values) <= percentile(values, 0.95) <= max(values)


@settings(max_examples=25)
@given(st.lists(st.floats(0.1, 1e4), min_size=1, max_size=30), st.floats(0.1, 10))
def test_a_ratio_of_the_same_times_made_longer_lies_in_its_interval(values: list[float], factor: float) -> None:
    longer = [value * factor for value in values]
    low, high = spread(longer, values, quotient)
    assert low <= factor * (1 + 1e-9)
    assert factor <= high * (1 + 1e-9)


def test_a_target_that_nobody_measured_is_not_passed() -> None:
    assert {verdict.word for verdict in verdicts([])} == {"not measured"}


def test_a_failure_is_told_in_one_line_without_a_path_of_the_machine(tmp_path: Path) -> None:
    said = plain(RuntimeError(f"{tmp_path}/state/log.txt:\nno /usr/lib/x/y.so | gone"), tmp_path)
    assert said == "…/state/log.txt: no …/y.so / gone"


def test_symbols_are_those_of_the_file_and_references_name_the_file_of_the_call(tmp_path: Path) -> None:
    place = make("python", tmp_path, seed=3, modules=8, functions=4).places[0]
    assert is_right("symbols", place, "f0_0 f0_1")
    assert not is_right("symbols", place, "f1_0")
    assert is_right("references", place, f"x/{place.file}:3")
    assert not is_right("references", place, place.target.replace(place.file, "other"))


@pytest.mark.parametrize(("ours_ms", "word"), [(10.9, "pass"), (11.1, "MISSED")])
def test_a_target_is_held_against_the_floor_of_the_same_run(ours_ms: float, word: str) -> None:
    records = [
        Record("warm definition", "python", "bare", [10.0] * 9),
        Record("warm definition", "python", "library", [ours_ms] * 9),
    ]
    (said,) = [one for one in verdicts(records) if one.target.name.endswith("library over bare, among all")]
    assert said.word == word


def test_a_wrong_answer_of_ours_misses_a_target_and_one_of_a_peer_does_not() -> None:
    def word(subject: str) -> str:
        said = verdicts([Record("edit: fix", "python", subject, [1.0], wrong=1)])
        return next(one.word for one in said if one.target.name == "wrong or missing answers of ours")

    assert (word("hook"), word("cclsp")) == ("MISSED", "not measured")


def test_a_report_shows_every_target_and_can_be_compared(tmp_path: Path) -> None:
    def run(folder: str, value: float) -> Path:
        bench = Bench(QUICK, [], Scratch(tmp_path))
        bench.records = [Record("warm definition", "python", "bare", [value] * 5, wrong=2, failure="slow")]
        bench.records.append(Record("memory of the bridge", "python", "mcp", [40.0]))
        text = report.written(tmp_path / folder, bench, "bench/run --quick").read_text()
        assert all(f"| {target.name} |" in text for target in TARGETS)
        assert "| 2 | 0 | slow |" in text
        assert "| mcp | python | 40 MB |" in text
        assert (tmp_path / folder / "plots" / "warm-definition.svg").read_text().startswith("<svg")
        return tmp_path / folder / "report.json"

    compared = report.compared(run("a", 2.0), run("b", 3.0))
    assert "| warm definition | python | bare | 2.00 | 3.00 | 1.50 (1.50 … 1.50) |" in compared


def test_remarks_stand_apart_from_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "REMARKS", tmp_path / "remarks.md")
    bench = Bench(QUICK, [], Scratch(tmp_path))
    assert "## Remarks" not in report.written(tmp_path / "a", bench, "").read_text()
    (tmp_path / "remarks.md").write_text("It is the loop.\n")
    assert "## Remarks" in report.written(tmp_path / "b", bench, "").read_text()


ECHO = """
import json, sys
asked = [json.loads(sys.stdin.readline()) for _ in range(2)]
for one in asked:
    print(json.dumps({"id": one["id"], "result": one["params"]}), flush=True)
sys.stdin.read()
"""


@pytest.mark.anyio
async def test_an_answer_does_not_take_away_the_question_that_was_asked_after_it(tmp_path: Path) -> None:
    child = await started([sys.executable, "-c", ECHO], cwd=tmp_path, environment={}, framed=False)
    async with asyncio.timeout(60):
        assert await asyncio.gather(child.request("ask", 1), child.request("ask", 2)) == [1, 2]
    await child.close()


PEER = """
import json, sys
def answer(name, given):
    lines = open(given["path"]).read().splitlines()
    if name == "definition":
        return next(f"{given['file']}:{at}" for at, line in enumerate(lines) if f"def {given['name']}(" in line)
    return "".join(lines) if sys.argv[1] == "tells" else "all is well"
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        given = asked["params"]
        text = answer(given["name"], given["arguments"]) if asked["method"] == "tools/call" else ""
        print(json.dumps({"id": asked["id"], "result": {"content": [{"text": text}]}}), flush=True)
"""


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("word", "why"), [("tells", {}), ("tells not", {"shown": "smoke test: it does not tell an error"})]
)
async def test_a_peer_that_does_not_tell_of_an_error_fails_its_smoke_test(
    tmp_path: Path, word: str, why: dict[str, str]
) -> None:
    tools = {
        "definition": ["definition", {"path": "{target_path}", "file": "{target}", "name": "{name}"}],
        "shown": ["errors", {"path": "{path}"}],
    }
    (tmp_path / "peer.py").write_text(PEER)
    peer = Peer("peer", ["{python}", str(tmp_path / "peer.py"), word], tools, pypi={"peer": "1"})
    assert await smoke(peer, "python", Scratch(tmp_path.resolve()), seconds=0.0) == why


def test_a_process_that_inherits_nothing_is_known_by_its_workspace_and_ended(tmp_path: Path) -> None:
    workspace = tmp_path.resolve() / "workspace"
    workspace.mkdir()
    with subprocess.Popen(["/bin/sleep", "600"], cwd=workspace, env={}) as process:
        setting = Setting(workspace, tmp_path / "subject", "ty")
        known = processes.of(setting)
        assert [one.pid for one in known] == [process.pid]
        processes.end(setting)
        assert processes.left(setting, known) == 0


@pytest.mark.anyio
async def test_a_part_that_breaks_is_told_of_and_takes_nothing_else_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_bench: Bench, language: str) -> None:
        raise LookupError(f"no {language} to be had")

    async def whole(bench: Bench, language: str) -> None:
        bench.figure("warm definition", language, "bare", 1.0)

    monkeypatch.setattr(program, "PARTS", {"first": broken, "second": whole})
    bench = await program.measured(replace(QUICK, languages=("python",)), {"first", "second"}, set())
    told = report.written(tmp_path, bench, "bench/run").read_text()
    assert "## Parts that broke\n\n- first, python: LookupError: no python to be had\n" in told
    assert [one.milliseconds for one in bench.records] == [[1.0]]


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.server("basedpyright")
async def test_a_small_run_for_real_finds_no_wrong_answer(tmp_path: Path) -> None:
    plan = replace(QUICK, modules=4, functions=2, warm=2, edits=1, patience=60.0)
    bench = Bench(plan, [KINDS["bare"], KINDS["library"]], Scratch(tmp_path.resolve()))
    await measures.warm(bench, "python")
    library = {one.measure: one for one in bench.records if one.subject == "library"}
    assert set(library) >= {"warm definition", "edit: introduce", "edit: cross-file", "edit: deleted"}
    assert all(one.milliseconds and not one.wrong and not one.unanswered for one in library.values())
