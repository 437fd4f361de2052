"""`pilotfish` alone: what the project has, and what it lacks done at once when a person or `--yes` says so.

A person is asked once. Whoever wants servers and no wired agents, or the other way round, answers by a letter.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import click
from msgspec import Struct

from pilotfish.errors import Failure
from pilotfish.surfaces.cli.check import WAS_ASKED, check
from pilotfish.surfaces.cli.setup import setup
from pilotfish.surfaces.cli.workspace import root_of
from pilotfish.surfaces.doctor.overview import INSTALL, Overview, overview_lines, overview_of
from pilotfish.surfaces.install import install


class Offer(Struct, frozen=True):
    """What could be done here and now."""

    servers: tuple[str, ...]
    agents: tuple[str, ...]

    def question(self) -> str:
        parts = [f"install {_listed(self.servers)} for this project"] if self.servers else []
        parts += [f"wire {_listed(self.agents)}"] if self.agents else []
        sentence = " and ".join(parts)
        return f"{sentence[:1].upper()}{sentence[1:]}?"

    def ask(self) -> "Offer":
        """What of it a person wants."""
        nothing = Offer((), ())
        if not (self.servers and self.agents):
            return self if click.confirm(self.question(), default=True) else nothing
        answers = {"y": self, "n": nothing, "s": Offer(self.servers, ()), "a": Offer((), self.agents)}
        question = f"{self.question()} [Y/n/s/a] (s: only the servers, a: only the agents)"
        letters = click.Choice([*answers], case_sensitive=False)
        return answers[click.prompt(question, default="y", show_default=False, show_choices=False, type=letters)]

    def __bool__(self) -> bool:
        return bool(self.servers or self.agents)


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
    asks = bool(offer) and sys.stdin.isatty() and sys.stdout.isatty()
    lines = list(overview_lines(overview))
    click.echo("\n".join(lines[:-2] if asks or yes else lines))
    wanted = offer.ask() if asks and not yes else offer
    if not (yes or (asks and wanted)):
        return
    for server in wanted.servers:
        try:
            context.invoke(install, servers=(server,))
        except Failure as failure:
            # One that cannot be installed does not keep the others from it.
            click.echo(f"{server}: {failure.message} {failure.hint or ''}".rstrip(), err=True)
    if wanted.agents:
        with suppress(click.exceptions.Exit):  # it has said what it could not do
            context.invoke(setup, every=True, yes=True)
    if overview.languages:
        context.meta[WAS_ASKED] = True
        context.invoke(check)
