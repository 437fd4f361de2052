"""`pilotfish completion SHELL`, and what a shell may offer for each argument."""

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ZshComplete

VARIABLE = "_PILOTFISH_COMPLETE"
"""The variable that click reads, made from the program's name."""


@click.command()
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a completion script for bash, zsh or fish.

    It completes verbs, options, hosts, servers and files. Save the output as
    ~/.local/share/bash-completion/completions/pilotfish (bash), as _pilotfish in a folder of $fpath (zsh), or as
    ~/.config/fish/completions/pilotfish.fish (fish).
    """
    root = click.get_current_context().find_root().command
    classes = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
    # Not `source()`: bash's class starts a shell to check its version first; the script works from 4.4 on.
    made = classes[shell](root, {}, "pilotfish", VARIABLE)
    click.echo(made.source_template % made.source_vars())


def files(_context: click.Context, _argument: click.Parameter, begun: str) -> list[CompletionItem]:
    return [CompletionItem(begun, type="file")]


def folders(_context: click.Context, _argument: click.Parameter, begun: str) -> list[CompletionItem]:
    return [CompletionItem(begun, type="dir")]


def servers(_context: click.Context, _argument: click.Parameter, begun: str) -> list[str]:
    from pilotfish.servers.catalogue import load

    return [name for name in load() if name.startswith(begun)]


def hosts(_context: click.Context, _argument: click.Parameter, begun: str) -> list[str]:
    from pilotfish.hosts.registry import host_names

    return [name for name in host_names() if name.startswith(begun)]
