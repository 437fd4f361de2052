"""`pilotfish demo`: what `./demo` runs."""

import click


@click.command()
def demo() -> None:
    """The main job, on a workspace made for it.

    A real language server, an edit that breaks two files, and what an agent sees.
    """
    from pilotfish.demo import shown

    click.get_current_context().exit(shown())
