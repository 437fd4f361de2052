"""A sample of the matrix of `bench/clean.py`: a change that a server notices late, and a question at once."""

from pathlib import Path

import pytest
from msgspec.structs import fields

from pilotfish.servers.catalogue import load
from pilotfish.servers.spec import Inputs
from support.servers.real import require
from support.services.clean import CASES, RIGHT, WAYS, WRONG, Case, Way, play
from support.services.clean_pairs import INPUTS, NOT_PLAYED, pairs
from support.services.real import CLONE

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]

SAMPLE: dict[str, Way] = {
    "basedpyright: configuration": "hook",
    "basedpyright: package upgraded": "check",
    "basedpyright: inside of a package": "hook",
    "basedpyright: generated, ignored": "hook",
    "basedpyright: memory mapping": "hook",
    "basedpyright: switched link inside": "check",
    "basedpyright: configuration: baseline deleted": "hook",
    "clangd: configuration": "check",
    "clangd: configuration at home": "check",
    "clangd: linked database": "hook",
    "clangd: .clangd above": "check",
    "gopls: another file, same size and time": "check",
    "gopls: embedded file deleted": "check",
    "ruff: module made in .": "check",
    "ruff: package without __init__.py": "check",
    "ty: configuration above": "check",
    "ty: switched link": "hook",
    "zuban: configuration above": "check",
    "zuban: configuration in .mypy.ini": "check",
    "zuban: memory mapping": "check",
    "zuban: outside folder": "check",
    "zuban: switched link inside": "hook",
    "typescript: extended configuration": "check",
    "typescript: inside of a package, same size and time": "check",
    "typescript: link inside": "hook",
}


@pytest.mark.proves(
    "F95",
    "F96",
    "P7",
    "A6.1",
    "A6.2",
    "A7.1",
    "A7.2",
    "A12.3",
    "A12.5",
    "A12.6",
    "A12.7",
    "A12.8",
    "A14.3",
    "A14.4",
    "A14.7",
    "A15.1",
    "A15.2",
    "A15.3",
    "A15.4",
)
@pytest.mark.parametrize("case", [case for case in CASES if str(case) in SAMPLE], ids=str)
async def test_an_error_is_never_called_clean(case: Case, tmp_path: Path) -> None:
    require([case.server])
    assert await play(case, SAMPLE[str(case)], tmp_path.resolve()) == RIGHT


UNCHECKED = {
    "eslint: library missing": "eslint reports that it cannot check",
    "gopls: cgo only, untrusted": 'it does not check what needs import "C"',
}


@pytest.mark.proves("F94", "P7", "A12.1", "A12.2", "A14.2", "A14.6")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", [case for case in CASES if str(case) in UNCHECKED], ids=str)
async def test_what_a_server_cannot_check_is_never_called_clean(case: Case, way: Way, tmp_path: Path) -> None:
    require([case.server])
    said = await play(case, way, tmp_path.resolve())
    assert said.partition(":")[0] in {"partial", "unavailable"}
    assert UNCHECKED[str(case)] in said


@pytest.mark.proves("F94", "P7")
async def test_a_linter_whose_configuration_throws_is_never_called_clean(tmp_path: Path) -> None:
    (case,) = [case for case in CASES if str(case) == "eslint: configuration throws"]
    require([case.server])
    said = await play(case, "check", tmp_path.resolve())
    assert said.startswith("unavailable: eslint reports that it cannot check: ")
    assert "Error: on purpose" in said


@pytest.mark.proves("P7")
def test_every_input_that_a_server_reads_is_covered_or_makes_its_answers_partial() -> None:
    assert {*INPUTS} == {field.name for field in fields(Inputs)} - {"written"}, "what it writes itself is none"
    found = {(pair.server, pair.input): pair for pair in pairs()}
    assert {server for server, _ in found} == load().keys()
    assert [key for key, pair in found.items() if pair.state not in {"covered", "partial"}] == []
    assert NOT_PLAYED.keys() == {key for key, pair in found.items() if pair.shown == NOT_PLAYED.get(key)}


@pytest.mark.proves("P7", "A14.1", "A14.6", "A15.1", "A15.2", "A15.4")
def test_the_page_has_what_came_of_every_case_and_no_false_clean() -> None:
    page = (CLONE / "docs" / "RELIABILITY.md").read_text()
    table = page.partition("<!-- begin of the matrix -->")[2].partition("<!-- end of the matrix -->")[0]
    rows = {tuple(line.strip("| ").split(" | ")[:2]) for line in table.splitlines() if line.startswith("| ")}
    assert [str(case) for case in CASES if (case.server, case.name) not in rows] == []
    assert WRONG not in table
