"""From nothing to the first squiggle: `pilotfish` alone asks one question at most, and does all of it."""

import os

import pytest

from support.daemon.users import ShellUser

pytestmark = [pytest.mark.slow, pytest.mark.proves("CLI-1", "PLAT-2")]

FOUND = "a.py:1:1  error: basedpyright-langserver found a bad word"


@pytest.fixture
def newcomer(user: ShellUser) -> ShellUser:
    """Somebody with Claude Code, and a server for Python."""
    user.install("basedpyright-langserver")
    user.write("a.py", "x = 1\n")
    os.makedirs(os.path.join(user.environment["HOME"], ".claude"))
    return user


def is_wired(user: ShellUser) -> bool:
    return os.path.exists(os.path.join(user.environment["HOME"], ".claude", "settings.json"))


def test_a_person_is_asked_once_and_a_no_changes_nothing(newcomer: ShellUser) -> None:
    seen = newcomer.at_a_terminal(answer="n")
    assert seen.count("[Y/n]") == 1
    assert "Wire Claude Code? [Y/n]" in seen
    assert not is_wired(newcomer)


def test_a_yes_does_all_of_it_up_to_the_first_squiggle(newcomer: ShellUser) -> None:
    seen = newcomer.at_a_terminal(answer="")
    assert seen.count("[Y/n]") == 1
    assert is_wired(newcomer)
    assert "Wired: Claude Code." in seen
    assert "basedpyright-langserver found a bad word" in seen
    assert "^^^" in seen, "the squiggle"


@pytest.mark.parametrize(("answer", "wired"), [("s", False), ("a", True)], ids=["servers", "agents"])
def test_servers_and_agents_are_one_question_and_either_can_be_had_alone(
    answer: str, *, wired: bool, user: ShellUser
) -> None:
    user.write("a.py", "x = 1\n")
    os.makedirs(os.path.join(user.environment["HOME"], ".claude"))
    user.home.environment["PIP_NO_INDEX"] = "1"
    seen = user.at_a_terminal(answer=answer)
    assert "Install basedpyright for this project and wire Claude Code? [Y/n/s/a]" in seen
    assert seen.count("[Y/n") == 1, "the check at the end asks nothing"
    assert is_wired(user) == wired
    assert ("\nbasedpyright: " in seen.replace("\r", "")) != wired, "it cannot be installed here"


def test_a_script_says_yes_beforehand_and_without_it_nothing_happens(newcomer: ShellUser) -> None:
    assert newcomer.run().returncode == 0
    assert not is_wired(newcomer)
    done = newcomer.run("--yes")
    assert (done.returncode, is_wired(newcomer)) == (1, True), done.stderr
    assert FOUND in done.stdout


def test_a_server_that_cannot_be_installed_keeps_nobody_from_the_rest(user: ShellUser) -> None:
    user.write("a.py", "x = 1\n")
    os.makedirs(os.path.join(user.environment["HOME"], ".claude"))
    user.home.environment["PIP_NO_INDEX"] = "1"
    done = user.run("--yes")
    assert is_wired(user)
    assert "basedpyright: " in done.stderr
    assert done.returncode == 2, "no verdict"
