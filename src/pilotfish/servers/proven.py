"""Which servers were proven, and with what. The others are listed: their entry was written from what is known of them.

`proven.json` is written by `./check --servers`, which installs each server, lets an error come and go, asks a question
of each kind that it offers, kills it and ends it. Nobody writes it by hand.
"""

import os
from collections.abc import Mapping
from functools import cache

import msgspec
from msgspec import Struct, field

from pilotfish.servers.spec import ServerSpec

FILE = os.path.join(os.path.dirname(__file__), "proven.json")


class Proof(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What was shown of one server."""

    version: str
    date: str
    machine: str
    """System and processor."""
    freshness: str
    """How an answer about the newest text is told from an older one."""
    reach: str
    """How far its answers reach: one file, open files, or the project."""
    others: tuple[str, ...] = ()
    """What was told of other files: after an edit, an edit through a file that stays clean, a deletion, a move."""
    start_ms: int
    """From nothing to the first verdict on a small project."""
    memory_mib: int | None = None
    seconds: float = 0.0
    """What the proof took, with the installation where that was needed."""
    questions: Mapping[str, str] = field(default_factory=dict[str, str])
    """The kinds of questions that it offers: `right` where the answer was judged, `answered` where one came."""
    exceptions: Mapping[str, str] = field(name="except", default_factory=dict[str, str])
    """Kinds that it offers and does not answer rightly, and why."""
    not_checked: str | None = None
    """What it never checks: its verdicts are partial, and say so."""
    untrusted: str = ""
    """What it does in a trap repository that is not trusted, where nothing of the project ran."""


@cache
def proofs() -> Mapping[str, Proof]:
    """By server."""
    with open(FILE, "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, Proof])


def why_listed(spec: ServerSpec) -> str:
    """Why there is no proof of a server."""
    if spec.unproven is not None:
        return spec.unproven
    carried = {"apt", "npm", "pip"} & spec.install.keys()
    return "nobody has run it yet" if carried else "PyPI, npm and Debian do not carry it"
