"""Why a server is used for a file, or not, in words. Pure: it says what `resolve.choose` decided.

The order is that of the rules: what the configuration names, what the project has a file for, the catalogue's order.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from pilotfish.servers.resolve import Candidate, ServerChoice
from pilotfish.servers.spec import Role, ServerSpec

MAX_MARKERS = 4
"""Names of files that are told; a few servers know a dozen."""


class Explained(Struct, frozen=True):
    """One server that could serve a file."""

    server: str
    is_used: bool
    why: str


def explained(
    specs: Mapping[str, ServerSpec],
    candidates: Sequence[Candidate],
    choice: ServerChoice,
    why_not: Callable[[ServerSpec], str | None],
) -> tuple[Explained, ...]:
    """For each of `specs`, those that are used first. `why_not` says why one cannot run here; None when it can."""
    used = [one.spec.id for one in choice.servers]
    found = {one.spec.id: one for one in candidates}
    order = [*used, *(server for server in found if server not in used), *(name for name in specs if name not in found)]
    return tuple(
        Explained(server, server in used, _why(specs[server], found.get(server), choice, why_not))
        for server in order
        if server in specs
    )


def _why(
    spec: ServerSpec, candidate: Candidate | None, choice: ServerChoice, why_not: Callable[[ServerSpec], str | None]
) -> str:
    if spec.disabled:
        return "the configuration disables it"
    if candidate is None and (needed := spec.root.requires) is not None:
        bound = f"{needed.minimum} or newer" if needed.minimum is not None else f"older than {needed.below}"
        return f"the project does not have {needed.package} {bound}"
    if candidate is None:
        return f"the project has none of its files: {_listed(spec.root.markers)}"
    if candidate in choice.servers:
        return _why_used(candidate, choice)
    if (reason := why_not(spec)) is not None:
        return reason
    leading = choice.servers[0].spec.id
    if spec.rank.role is Role.COMPANION:
        return f"it would say the same again as {leading}"
    return f"{leading} comes before it: {_why_used(choice.servers[0], choice)}"


def _why_used(candidate: Candidate, choice: ServerChoice) -> str:
    spec = candidate.spec
    if spec.rank.named:
        return "your configuration names its command"
    if spec.rank.role is Role.COMPANION:
        leading = choice.servers[0].spec
        return "it runs beside the others" if leading is not spec else "it serves these files"
    if candidate.favoured:
        return f"the project has its configuration: {_listed(spec.rank.favoured_by)}"
    return "the first in the catalogue's order that can run here"


def _listed(markers: Sequence[str]) -> str:
    more = ["…"] if len(markers) > MAX_MARKERS else []
    return ", ".join([*markers[:MAX_MARKERS], *more])
