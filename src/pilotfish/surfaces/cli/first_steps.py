"""`pilotfish` alone: what the project has, and what it lacks done at once when a person or `--yes` says so."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import click
from msgspec import Struct

from pilotfish.errors import Failure
from pilotfish.surfaces.cli.workspace import root_of
from pilotfish.surfaces.doctor.overview import INSTALL, Overview, overview_lines, overview_of


class Offer(Struct, frozen=True):
    """What could be done here and now."""

    servers: tuple[str, ...]
    agents: tuple[str, ...]

    def question(self) -> str:
        parts = [f"install {_listed(self.servers)} for this project"] if self.servers else []
        parts += [f"wire {_listed(self.agents)}"] if self.agents else []
        sentence = ", ".join(parts)
        return f"{sentence[:1].upper()}{sentence[1:]}?"


def offered(overview: Overview) -> Offer:
    """Servers for code that we can install, and agents that are there and not wired; nothing with a broken file."""
    if overview.problems or not overview.enabled:
        return Offer((), ())
    code = [one for language in overview.languages for one in language.servers if not one.optional]
    steps = [step for one in code for step in one.advice[:1] if step.startswith(INSTALL)]
    servers = dict.fromkeys(name for step in steps for name in step.removeprefix(INSTALL).split())
    return Offer(tuple(servers), tuple(agent.subject for agent in overview.agents if agent.advice))


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def begin(context: click.Context, *, yes: bool) -> None:
    """Show the project around the current folder, and do what it lacks when a person or `--yes` says so."""
    overview = overview_of(os.path.abspath(root_of(None)))
    offer = offered(overview)
    asks = bool(offer.servers or offer.agents) and sys.stdin.isatty() and sys.stdout.isatty()
    lines = list(overview_lines(overview))
    click.echo("\n".join(lines[:-2] if asks or yes else lines))
    if not yes and not (asks and click.confirm(offer.question(), default=True)):
        return
    for server in offer.servers:
        _install(context, server)
    if offer.agents:
        from pilotfish.surfaces.cli.setup import setup

        with suppress(click.exceptions.Exit):  # it has said what it could not do
            context.invoke(setup, every=True, yes=True)
    if overview.languages:
        from pilotfish.surfaces.cli.check import check

        context.invoke(check)


def _install(context: click.Context, server: str) -> None:
    """One that cannot be installed does not keep the others from it."""
    from pilotfish.surfaces.install.verb import install

    try:
        context.invoke(install, servers=(server,))
    except Failure as failure:
        click.echo(f"{server}: {failure.message} {failure.hint or ''}".rstrip(), err=True)
