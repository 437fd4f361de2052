"""`pilotfish` without a command, as somebody sees it who has just come to a project."""

import pytest

from support.daemon.users import ShellUser, named_server

pytestmark = [pytest.mark.slow, pytest.mark.proves("CLI-1")]


def told(user: ShellUser) -> list[str]:
    done = user.run()
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_missing_server_is_named_with_the_command_that_installs_it(user: ShellUser) -> None:
    user.write("a.py", "x = 1\n")
    lines = told(user)
    assert lines[0] == f"{user.root} (not trusted)"
    assert "python  1 file: basedpyright is not installed" in lines
    assert "Python packages: no environment was found" in lines
    assert lines[-2:] == ["Next: pilotfish install basedpyright", "All commands: pilotfish --help"]


def test_a_project_whose_servers_are_there_can_be_checked(user: ShellUser) -> None:
    user.install("basedpyright-langserver")
    user.write("a.py", "x = 1\n")
    user.write("README.md", "# a\n")
    lines = told(user)
    assert "python  1 file: basedpyright is ready" in lines
    assert lines[-2] == "Next: pilotfish check"


def test_an_error_of_the_configuration_comes_first(user: ShellUser) -> None:
    user.configure({"lsp": {"toy": named_server("toy", ".x")}, "unknown": 1})
    user.write("a.x", "text\n")
    lines = told(user)
    assert any("The configuration has an error:" in line and "unknown" in line for line in lines)
    assert lines[-2] == "Next: pilotfish config check"


def test_an_empty_folder_is_shown_the_demo(user: ShellUser) -> None:
    lines = told(user)
    assert "No file here has a language server." in lines
    assert lines[-2] == "Next: pilotfish demo"
