"""What a maintainer and a package index look for at the top of the repository."""

import re
import shlex

import click
import pytest

from pilotfish.surfaces.cli.main import root
from support.servers.real import REPOSITORY

PAGES = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_there_and_its_links_lead_somewhere(page: str) -> None:
    text = (REPOSITORY / page).read_text()
    assert text.startswith("# ")
    assert [link for link in re.findall(r"\]\(([^)#]+)\)", text) if not (REPOSITORY / link).is_file()] == []


def test_the_hook_of_pre_commit_is_a_command_line_that_exists() -> None:
    hooks = (REPOSITORY / ".pre-commit-hooks.yaml").read_text()
    (entry,) = re.findall(r"entry: pilotfish (.+)", hooks)
    verb, *words = shlex.split(entry)
    command = root.get_command(click.Context(root), verb)
    assert command is not None
    known = {option for one in command.params for option in one.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_what_the_workflows_run_is_here() -> None:
    for file in (REPOSITORY / ".github" / "workflows").glob("*.yml"):
        named = re.findall(r"(?<![\w./])(\./check|tests/[\w/.]+)", file.read_text())
        assert [path for path in named if not (REPOSITORY / path).exists()] == []
