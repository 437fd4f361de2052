"""`pilotfish completion SHELL`: what a shell needs in order to complete our words. click does the completing."""

from __future__ import annotations

import click

VARIABLE = "_PILOTFISH_COMPLETE"
"""What click looks for, by the name of the program."""


@click.command()
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Completion for bash, zsh and fish.

    Prints what the shell needs to complete verbs, options, hosts, servers and files. SHELL is bash, zsh or fish. For
    bash, put the output into ~/.local/share/bash-completion/completions/pilotfish; for zsh, into a file _pilotfish in a
    folder of $fpath; for fish, into ~/.config/fish/completions/pilotfish.fish.
    """
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    from pilotfish.surfaces.cli.main import root

    classes = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
    # The class of bash starts a shell to look at its version before it prints anything; the script works from 4.4 on.
    made = classes[shell](root, {}, "pilotfish", VARIABLE)
    click.echo(made.source_template % made.source_vars())
