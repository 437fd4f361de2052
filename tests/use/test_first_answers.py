"""The first answer in ten kinds of projects, on a machine without any server: it names the right next step."""

from pathlib import Path

import pytest

from support.daemon.users import ShellUser
from support.first_projects import PROJECTS, Project

pytestmark = [pytest.mark.slow, pytest.mark.proves("CLI-1", "REG-6")]


@pytest.mark.parametrize("project", [pytest.param(one, id=name) for name, one in PROJECTS.items()])
def test_the_first_answer_names_the_right_next_step(project: Project, user: ShellUser) -> None:
    project.make(user.root, Path(user.home.environment["HOME"]))
    first = user.run().stdout
    assert f"\nNext: {project.step}" in first
    assert project.told in first
    if project.files and project.step:
        asked = user.run("definition", "Main")
        assert asked.returncode == 2
        assert (project.server or project.step) in asked.stdout
