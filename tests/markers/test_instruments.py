"""The instruments of the marker tests can fail: what a case gets wrong is found, and so is what a server gets wrong."""

from pathlib import Path

import pytest

from pilotfish.api.answers import Diagnostic, Effort, Location, answer_from
from pilotfish.api.questions import Operation
from support.markers.archive import parse, render
from support.markers.cases import Case, faults
from support.markers.comments import marked
from support.markers.expectations import Expected, diagnostics_problem, problem
from support.servers.real import require

ARCHIVE = """What it is about.
server: ty

-- a b/[id].py -- crlf bom
x = 1
-- lib.py --
y = 1
-- lib.py@2 --
y = 2
-- @outline --
variable y
"""


def case(files: str, settings: str = "server: ty") -> Case:
    return Case(Path("ty/made.txt"), parse(f"{settings}\n\n{files}"))


def test_an_archive_is_written_as_it_was_read() -> None:
    assert render(parse(ARCHIVE)) == ARCHIVE


def test_a_golden_is_replaced_where_it_stands_and_a_new_one_comes_last() -> None:
    archive = parse(ARCHIVE).with_golden("outline", "variable z\n").with_golden("hover", "int")
    assert render(archive) == ARCHIVE.replace("variable y", "variable z") + "-- @hover --\nint\n"


def test_files_are_written_with_their_line_endings_and_byte_order_mark() -> None:
    first, second = Case(Path("ty/made.txt"), parse(ARCHIVE)).steps()
    assert first.written == {"a b/[id].py": b"\xef\xbb\xbfx = 1\r\n", "lib.py": b"y = 1\n"}
    assert second.written == {"lib.py": b"y = 2\n"}
    assert second.texts == {"a b/[id].py": "x = 1\n", "lib.py": "y = 2\n"}


def test_a_step_knows_which_files_only_stay_as_they_were() -> None:
    files = '-- a.py --\nx = 1\n-- b.py --\ny = 1\n-- a.py@2 --\nx = 2\n-- b.py@2 --\ny = 1 #@ hover("y", "int")\n'
    second = list(case(files).steps())[1]
    assert second.changed == {"a.py"}
    assert [marker.file for marker in second.markers] == ["b.py"]


def test_markers_are_no_part_of_the_file_and_speak_of_their_own_line_or_the_one_above() -> None:
    found = marked("a.py", 'x = 1  #@ loc(x, "x")\n    #@ hover("x", "int")\n    #@ symbols(@outline)\ny = "#"\n')
    assert found.text == 'x = 1\ny = "#"\n'
    assert [(marker.name, marker.line) for marker in found.markers] == [("loc", 0), ("hover", 0), ("symbols", 0)]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        pytest.param("nam", 8, 11, id="where it first stands"),
        pytest.param("(«name»)", 16, 20, id="a part named by what stands around it"),
        pytest.param("name«»)", 20, 20, id="between two characters"),
    ],
)
def test_a_text_names_a_place_in_code_points(text: str, start: int, end: int) -> None:
    place = marked("a.py", 'x = "😀" names, (name)\n#@ hover("x", "x")').markers[0].place(text)
    assert (place.start, place.end) == (start, end)


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        pytest.param('x = 1\n#@ hovr("x", "int")', "unknown word", id="word"),
        pytest.param('x = 1\n#@ definition("x", y)', "label y is never made", id="label that is not made"),
        pytest.param('x = 1\n#@ loc(x, "x")', "label x is never used", id="label that is not used"),
        pytest.param('x = 1\n#@ hover("x")', "expected hover(", id="arguments"),
        pytest.param('x = 1\n#@ rename("x", @diff)', "expected rename(", id="arguments before a golden"),
        pytest.param("x = 1\n-- @old --\nint\n", "golden old is never used", id="golden"),
    ],
)
def test_a_fault_of_a_case_is_found(files: str, fault: str) -> None:
    assert fault in "\n".join(faults(case(f"-- a.py --\n{files}\n")))


@pytest.mark.parametrize("settings", ["sever: ty", "server: ty\nspeed: 3"])
def test_an_unknown_setting_is_a_fault(settings: str) -> None:
    assert "unknown setting" in "\n".join(faults(case("-- a.py --\nx = 1\n", settings)))


def _diagnostic(character: int, end: int, message: str = "bad", **fields: object) -> Diagnostic:
    place = {"line": 1, "character": character, "end_line": 1, "end_character": end}
    return Diagnostic(**{**place, "severity": "error", "message": message, "server": "ty", **fields})  # pyright: ignore[reportArgumentType] -- rows of tests


NAME = _diagnostic(5, 9)


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        pytest.param((NAME,), None, id="right"),
        pytest.param((), "missing", id="nothing found"),
        pytest.param((NAME, NAME), "unexpected", id="one too many"),
        pytest.param((_diagnostic(4, 8),), "missing", id="a character off"),
        pytest.param((_diagnostic(5, 8),), "missing", id="too short"),
        pytest.param((_diagnostic(5, 9, "good"),), "missing", id="another message"),
        pytest.param((_diagnostic(5, 9, severity="warning"),), "missing", id="another severity"),
        pytest.param((NAME, _diagnostic(1, 2, severity="hint")), None, id="below the severity that counts"),
    ],
)
def test_diagnostics_and_markers_match_one_to_one(found: tuple[Diagnostic, ...], wrong: str | None) -> None:
    file = marked("a.py", 'x = name\n#@ diagnostic("name", "^bad")')
    answer = answer_from(Operation.DIAGNOSTICS, {"a.py": found}, Effort(server_hits=1))
    expected = Expected({}, {}, {"a.py": file.text}, "warning")
    said = diagnostics_problem("a.py", file.markers, answer, expected)
    assert said is None if wrong is None else wrong in str(said)


@pytest.mark.parametrize(
    ("effort", "may_be_partial"),
    [
        pytest.param(Effort(server_hits=1, caveats=("indexing",)), False, id="partial"),
        pytest.param(Effort(server_hits=1, stale="an older text"), True, id="stale"),
        pytest.param(Effort(timed_out=True), True, id="unavailable"),
    ],
)
def test_an_answer_that_is_not_fresh_is_wrong_even_when_it_matches(effort: Effort, may_be_partial: bool) -> None:
    answer = answer_from(Operation.DIAGNOSTICS, {"a.py": ()}, effort)
    expected = Expected({}, {}, {"a.py": "x\n"}, "hint")
    assert "the answer is" in str(diagnostics_problem("a.py", (), answer, expected, may_be_partial=may_be_partial))


@pytest.mark.parametrize(
    ("character", "right"), [pytest.param(1, True, id="the place"), pytest.param(2, False, id="a character off")]
)
def test_places_must_be_exactly_those_of_the_labels(character: int, right: bool) -> None:
    file = marked("a.py", 'x = 1\n#@ loc(x, "x"), definition("x", x)')
    place = Location(path="a.py", line=1, character=character, end_line=1, end_character=character + 1)
    answer = answer_from(Operation.DEFINITION, (place,), Effort(server_hits=1))
    expected = Expected({"x": file.markers[0].place("x")}, {}, {"a.py": file.text}, "hint")
    assert (problem(file.markers[1], answer, expected) is None) is right


@pytest.mark.parametrize(
    ("ci", "outcome"),
    [pytest.param("", pytest.skip.Exception, id="locally"), pytest.param("true", pytest.fail.Exception, id="in CI")],
)
def test_a_missing_server_skips_locally_and_fails_in_ci(
    ci: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr("support.servers.real.PYPI", tmp_path)
    monkeypatch.setattr("support.servers.real.NPM", tmp_path)
    with pytest.raises(outcome, match="not installed: ty"):
        require(["ty"])
