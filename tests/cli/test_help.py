"""The help of every verb says what the list of verbs says, and then more."""

import sys

import click
import pytest
from click.testing import CliRunner

from pilotfish.surfaces.cli.main import VERBS, root

pytestmark = pytest.mark.proves("CLI-1")


def command(verb: str) -> click.Command:
    found = root.get_command(click.Context(root), verb)
    assert found is not None
    return found


def all_commands() -> list[tuple[str, click.Command]]:
    verbs = [(verb, command(verb)) for verb in VERBS]
    groups = [(verb, one) for verb, one in verbs if isinstance(one, click.Group)]
    return verbs + [(f"{verb} {word}", one) for verb, group in groups for word, one in group.commands.items()]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_begins_with_what_the_list_says(verb: str) -> None:
    said = command(verb).help or ""
    assert " ".join(said.partition("\n\n")[0].split()) == VERBS[verb].help


@pytest.mark.parametrize(("name", "one"), [pytest.param(*pair, id=pair[0]) for pair in all_commands()])
def test_every_option_is_explained_by_a_sentence(name: str, one: click.Command) -> None:
    for option in one.params:
        if isinstance(option, click.Option):
            assert option.help, f"{name} {option.name}"
            assert option.help.rstrip(")").endswith((".", "default")), f"{name} {option.name}: {option.help}"


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/home/me/.local/share/uv/tools/pilotfish", "uv tool install --reinstall '.[all]'"),
        ("/home/me/.local/share/pipx/venvs/pilotfish", "pipx install --force '.[all]'"),
        ("/home/me/pilotfish/.venv", "/home/me/pilotfish/.venv/bin/pip install '.[all]'"),
    ],
)
def test_a_verb_whose_package_is_not_here_names_the_way_that_we_were_installed(
    prefix: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setitem(sys.modules, "pilotfish_panel.verb", None)
    monkeypatch.setitem(sys.modules, "pilotfish_panel", None)
    done = CliRunner().invoke(root, ["panel"])
    assert done.exit_code != 0
    assert done.output.rstrip().endswith(f"in your clone of Pilotfish: {command}")
