"""`setup --advice`: a skill, or a section of AGENTS.md, small, true to the tools that it names, and taken out again."""

import re

import pytest

from pilotfish.hosts.edits.edit import MarkdownSection
from pilotfish.hosts.registry import host_names, load_hosts
from pilotfish.hosts.shared.hook_settings import SKILLS, read_packaged
from pilotfish.operations.tools import NAMED
from pilotfish.surfaces.cli.main import run
from support.hosts.users import User

pytestmark = pytest.mark.proves("HOOK-3")

MINE = "# Mine\n\nNo tabs."
MAX_SKILL, MAX_DESCRIPTION, MAX_SECTION = 1200, 220, 500
"""Bytes: of the skill when it is read, of what every conversation has of it, and of the section."""


def test_a_host_with_skills_gets_one_and_loses_it_with_the_rest(user: User) -> None:
    before = user.files()
    assert run(["setup", "claude-code", "--advice"]) == 0
    skill = user.home / ".claude" / "skills" / "pilotfish" / "SKILL.md"
    assert skill.read_text() == read_packaged("advice/SKILL.md")
    assert run(["setup", "claude-code", "--remove"]) == 0
    assert user.files() == before


def test_without_the_option_no_advice_is_written(user: User) -> None:
    assert run(["setup", "claude-code"]) == 0
    assert run(["setup", "junie", "--project"]) == 0
    assert not (user.home / ".claude" / "skills").exists()
    assert not (user.project / "AGENTS.md").exists()


@pytest.mark.parametrize("mine", [None, MINE, f"{MINE}\n", f"{MINE}\n\n"])
def test_a_host_without_skills_gets_a_section_of_agents_md_and_every_other_byte_stays(
    mine: str | None, user: User
) -> None:
    file = user.project / "AGENTS.md"
    if mine is not None:
        file.write_text(mine)
    before = user.files()
    assert run(["setup", "junie", "--project", "--advice"]) == 0
    assert file.read_text().startswith(mine or "<!-- pilotfish -->")
    assert "`lsp_find_references` instead of grep" in file.read_text()
    wired = user.files()
    assert run(["setup", "junie", "--project", "--advice"]) == 0
    assert user.files() == wired
    assert run(["setup", "junie", "--project", "--remove"]) == 0
    assert user.files() == before


def test_what_was_written_around_the_section_since_stays_when_it_goes(user: User) -> None:
    file = user.project / "AGENTS.md"
    file.write_text(f"{MINE}\n")
    assert run(["setup", "junie", "--project", "--advice"]) == 0
    file.write_text("# First\n\n" + file.read_text() + "\nLast.\n")
    assert run(["setup", "junie", "--project", "--remove"]) == 0
    assert file.read_text() == f"# First\n\n{MINE}\n\nLast.\n"


def test_a_section_that_is_not_there_is_not_taken_out() -> None:
    assert MarkdownSection("x\n").removed("<!-- pilotfish -->\nopen", None) == "<!-- pilotfish -->\nopen"


@pytest.mark.parametrize(("name", "most"), [("SKILL.md", MAX_SKILL), ("AGENTS.md", MAX_SECTION)])
def test_advice_is_short_and_names_tools_that_exist(name: str, most: int) -> None:
    text = read_packaged(f"advice/{name}")
    assert len(text.encode()) <= most
    named = set(re.findall(r"\blsp_\w+", text))
    assert {"lsp_goto_definition", "lsp_find_references", "lsp_rename", "lsp_impact"} <= named <= set(NAMED)


def test_what_every_conversation_has_of_the_skill_is_a_sentence_or_two() -> None:
    described = re.search(r"^description: (.+)$", read_packaged("advice/SKILL.md"), re.MULTILINE)
    assert described is not None
    assert len(described[1].encode()) <= MAX_DESCRIPTION


def test_only_hosts_that_exist_and_offer_tools_have_skills() -> None:
    assert set(SKILLS) <= set(host_names())
    assert all({"mcp", "daemon"} & set(load_hosts()[host].probes) for host in SKILLS)
