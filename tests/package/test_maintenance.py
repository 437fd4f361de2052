"""What a maintainer and a package index look for at the top of the repository."""

import json
import re
import shlex
import subprocess

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


def test_the_container_and_the_feature_run_what_exists() -> None:
    feature = REPOSITORY / "packaging" / "devcontainer" / "src" / "pilotfish"
    about = json.loads((feature / "devcontainer-feature.json").read_text())
    script = (feature / "install.sh").read_text()
    assert about["id"] == feature.name
    assert {name.upper() for name in about["options"]} <= set(re.findall(r"\$\{(\w+):-", script))
    subprocess.run(["/bin/sh", "-n", feature / "install.sh"], check=True)
    commands = [about["postCreateCommand"], *re.findall(r"RUN (pilotfish [^&]+)", container())]
    for verb, *words in (shlex.split(command)[1:] for command in commands):
        found = root.get_command(click.Context(root), verb)
        assert found is not None
        assert {word for word in words if word.startswith("--")} <= {name for one in found.params for name in one.opts}


def container() -> str:
    return (REPOSITORY / "packaging" / "Dockerfile").read_text()


def test_what_the_workflows_run_is_here() -> None:
    for file in (REPOSITORY / ".github" / "workflows").glob("*.yml"):
        named = re.findall(r"(?<![\w./])(\./check|tests/[\w/.]+)", file.read_text())
        assert [path for path in named if not (REPOSITORY / path).exists()] == []
