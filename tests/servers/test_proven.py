"""A server is proven, with version, date and machine, or listed. The proof itself can fail, and is played here once."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from pilotfish.servers.catalogue import load, proofs, why_listed
from prove import make_user
from support.proving.others import show_others
from support.proving.play import FreshAndWrong, NotProven, prove
from support.proving.programs import ENTRANCES, OWN, SYSTEM, Installed
from support.proving.rows import Others, ProofRow, others_of, replaced, rows, shown_cases
from support.proving.switches import searched, switches, undecided
from support.proving.untrusted import AS_IT_IS, RESTRICTED, WITHHELD, untrusted
from support.servers.real import NPM, PYPI, require

pytestmark = pytest.mark.proves("REG-9")

ENOUGH = 60
ENOUGH_OTHERS = 20


@pytest.mark.parametrize("row", rows().values(), ids=rows())
def test_a_row_is_about_a_server_and_its_edit_brings_something(row: ProofRow) -> None:
    assert row.server in load()
    assert row.broken != row.fine
    re.compile(row.error)
    assert not (row.use and not row.definition), "a use of what?"


CASES = [(row.server, case) for row in rows().values() for case in (others_of(row), *row.also) if case is not None]


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[server for server, _ in CASES])
def test_a_case_of_other_files_names_its_files_and_its_edits_change_the_first(case: Others) -> None:
    assert {case.first, case.second, *filter(None, [case.third])} <= case.files.keys()
    for edit in filter(None, (case.edit, case.through)):
        assert replaced(case.files[case.first], edit) != case.files[case.first]
    assert case.through is None or case.third
    assert case.edit is None or re.compile(case.error).pattern
    assert case.edit is not None or re.compile(case.gone).pattern


def test_of_a_server_whose_verdicts_are_all_partial_no_other_files_are_shown() -> None:
    counts = {server: len(shown_cases(rows()[server])) for server in ("astro", "svelte", "ty", "yaml")}
    assert counts == {"astro": 0, "svelte": 4, "ty": 1, "yaml": 0}


def test_what_is_told_of_other_files_was_shown_with_many_servers() -> None:
    shown = {server: proof.others for server, proof in proofs().items() if proof.others}
    assert shown.keys() <= {row.server for row in rows().values() if row.others}
    assert len(shown) >= ENOUGH_OTHERS
    assert all(others[0] == "edit" for others in shown.values())


def test_what_is_proven_has_a_row_a_version_and_a_day() -> None:
    assert proofs().keys() <= rows().keys()
    for server, proof in proofs().items():
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", proof.date), server
        assert re.search(r"\d", proof.version), server
        assert proof.machine.split()[0] == "Linux"
        assert proof.exceptions == rows()[server].exceptions, f"{server}: the row has changed since it was proven"


def test_every_other_server_says_why_it_is_only_listed() -> None:
    assert len(proofs()) >= ENOUGH
    for server, spec in load().items():
        assert (server in proofs()) or why_listed(spec)
        assert spec.unproven is None or server not in proofs(), f"{server} is proven now"


@pytest.mark.anyio
@pytest.mark.server("ty")
async def test_a_real_server_is_proven_and_leaves_nothing(tmp_path: Path) -> None:
    require(["ty"])
    row = rows()["ty"]
    proof = await prove(row, make_user(tmp_path, row.server, Installed((str(PYPI), *SYSTEM)), row=row), "1")
    assert (proof.freshness, proof.reach) == ("it is asked", "project")
    assert proof.questions["goToDefinition"] == "right"
    assert proof.questions["codeActions"] == "answered"


@pytest.mark.anyio
@pytest.mark.server("ty")
async def test_a_server_that_overlooks_the_error_is_fresh_and_wrong(tmp_path: Path) -> None:
    require(["ty"])
    row = replace(rows()["ty"], edit=("add(1, 2)", "add(1, 3)"))
    with pytest.raises(FreshAndWrong, match="after an edit that breaks"):
        await prove(row, make_user(tmp_path, row.server, Installed((str(PYPI), *SYSTEM)), row=row), "1")


@pytest.mark.anyio
@pytest.mark.server("ty")
async def test_an_exception_that_no_longer_holds_is_no_proof(tmp_path: Path) -> None:
    require(["ty"])
    row = replace(rows()["ty"], exceptions={"hover": "it says nothing"})
    with pytest.raises(NotProven, match="is answered rightly"):
        await prove(row, make_user(tmp_path, row.server, Installed((str(PYPI), *SYSTEM)), row=row), "1")


@pytest.mark.anyio
@pytest.mark.server("ty")
@pytest.mark.proves("DIAG-11")
async def test_other_files_are_shown_with_a_real_server(tmp_path: Path) -> None:
    require(["ty"])
    row = rows()["ty"]
    case = others_of(row)
    assert case is not None
    there = Installed((str(PYPI), *SYSTEM))
    user = make_user(tmp_path, row.server, there, row=row)
    assert await show_others(row, case, user) == ("edit", "through", "deletion", "move")


@pytest.mark.anyio
@pytest.mark.server("ty")
async def test_a_file_that_is_not_told_of_is_no_proof(tmp_path: Path) -> None:
    require(["ty"])
    row = rows()["ty"]
    case = others_of(row)
    assert case is not None
    user = make_user(tmp_path, row.server, Installed((str(PYPI), *SYSTEM)), row=row)
    with pytest.raises(FreshAndWrong, match="other files after edit"):
        await show_others(row, replace(case, edit=("return 1", "return 2")), user)


@pytest.mark.proves("TRUST-8")
def test_of_every_proven_server_a_run_has_shown_that_nothing_of_an_untrusted_project_runs() -> None:
    assert {proof.untrusted for proof in proofs().values()} == {WITHHELD, RESTRICTED, AS_IT_IS}


@pytest.mark.proves("TRUST-8")
def test_every_switch_for_untrusted_projects_that_was_found_is_set_or_needless() -> None:
    """What is proven was searched; a newer release is searched with its proof."""
    known, specs = searched(), load()
    assert {server for server, one in known.items() if undecided(specs[server], {*one.found})} == set()
    assert proofs().keys() <= known.keys()


@pytest.mark.proves("TRUST-8")
@pytest.mark.parametrize("server", ["basedpyright", "bash", "eslint", "json", "ruff", "ty", "typescript", "yaml"])
def test_a_switch_of_an_installed_server_is_decided_on(server: str) -> None:
    require([server])
    spec = load()[server]
    program = next(folder / spec.command[0] for folder in (PYPI, NPM) if (folder / spec.command[0]).exists())
    assert not undecided(spec, switches(program))


@pytest.mark.proves("TRUST-8")
@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("event.initializationOptions?.isTrusted ?? true", {"initializationoptionsistrusted"}),
        ("options.untrustedWorkspace", {"untrustedworkspace"}),
        ("'--untrusted-workspace'", {"untrustedworkspace"}),
        ("capabilities: {untrustedWorkspaces: 1}", {"untrustedworkspace"}),
        ("isTrustedType", set[str]()),
    ],
)
def test_a_switch_that_nobody_has_decided_on_is_found(tmp_path: Path, code: str, found: set[str]) -> None:
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / "cli.js").write_text("")
    (tmp_path / "lib.js").write_text(code)
    assert switches(tmp_path / "cli.js") == found
    assert undecided(load()["json"], found) == found
    assert not undecided(load()["svelte"], found - {"untrustedworkspace"})


@pytest.mark.proves("TRUST-8")
def test_of_a_server_of_debian_its_package_is_searched(tmp_path: Path) -> None:
    entrance, library = tmp_path / ENTRANCES / "server", tmp_path / "usr" / "lib" / "server.rb"
    for file, text in ((entrance, "#!/bin/sh"), (library, "params[:untrustedWorkspace]")):
        file.parent.mkdir(parents=True)
        file.write_text(text)
    (entrance.parent / OWN).write_text(str(library))
    assert switches(entrance) == {"untrustedworkspace"}


@pytest.mark.proves("TRUST-8")
def test_nobody_lets_ruff_format() -> None:
    """From 0.17 on, uv may be its formatter: a program that is not for where nobody trusts the project."""
    shown = load()["ruff"].shown
    assert shown is not None
    assert "ruff.applyFormat" not in shown.commands


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.proves("TRUST-8")
@pytest.mark.server("json")
async def test_a_server_springs_no_trap_of_an_untrusted_project(tmp_path: Path) -> None:
    require(["json"])
    user = make_user(tmp_path, "json", Installed((str(NPM), *SYSTEM)), row=rows()["json"], trusted=False)
    assert await untrusted("json", user) == AS_IT_IS


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.proves("TRUST-8")
@pytest.mark.server("typescript")
async def test_a_server_that_springs_a_trap_is_not_proven(tmp_path: Path) -> None:
    require(["typescript"])
    user = make_user(tmp_path, "typescript", Installed((str(NPM), *SYSTEM)), trusted=True)
    with pytest.raises(NotProven, match=r"it ran .*own-tsserver"):
        await untrusted("typescript", user)


@pytest.mark.anyio
async def test_a_server_that_is_not_there_is_not_proven(tmp_path: Path) -> None:
    row = rows()["ty"]
    with pytest.raises(NotProven, match="not available"):
        await prove(row, make_user(tmp_path, row.server, Installed(()), row=row), "1")
