"""What each server reads beside its sources, and whether a change of it is covered, or makes its answers partial.

From the catalogue: by server and input, with what shows it. docs/RELIABILITY.md has the table.
"""

from collections.abc import Iterator

from msgspec import Struct

from pilotfish.servers.catalogue import load
from pilotfish.servers.inputs import inputs_of
from pilotfish.servers.spec import ServerSpec
from support.proving.lookups import looked_up
from support.services.clean import CASES

INPUTS: dict[str, tuple[str, ...]] = {
    "steering": ("configuration", "database", ".clangd"),
    "reloads": ("configuration",),
    "extends": ("extended",),
    "above": (".clangd above", "configuration above"),
    "home": ("configuration at home",),
    "environment": ("inside of a package", "package upgraded"),
    "late_libraries": ("outside folder",),
    "own_watchers": ("memory mapping", "switched link"),
    "by_time": ("another file, same size and time",),
    "presence": ("package without", "module made", "component deleted"),
    "mentions": ("embedded file deleted",),
    "folders": ("outside folder",),
    "also_told": ("schema",),
    "emptied": (),
    "arrivals": (),
}
"""What the catalogue says of what a server reads, and how the names of the cases begin that play it."""

STARTED_ANEW = {"steering", "extends", "above", "home"}
"""What is the same for every server: of one that was traced, `tests/servers/test_named_inputs.py` is enough."""

NOT_PLAYED: dict[tuple[str, str], str] = {
    **dict.fromkeys(
        (
            (server, "environment")
            for server in ("angular", "astro", "django", "flow", "marko", "mdx", "pylsp", "stylelint")
        ),
        "not installed where the matrix was played; started anew as every server that reads packages",
    ),
    **dict.fromkeys(
        ((server, "steering") for server in ("nil", "nim", "nixd")),
        "not installed where the matrix was played; started anew as every server that has such files",
    ),
    ("gopls", "emptied"): "played by the cases of its proof (`tests/prove.py`), which delete a file and bring it back",
    ("astro", "presence"): "played by the cases of its proof, which delete a module and bring it back",
    ("jdtls", "presence"): "nobody has tried an archive; it is started anew when one comes or goes, as any such server",
    ("robotcode", "own_watchers"): "played by the cases of its proof, which change a file on disk that is not open",
    ("buf", "arrivals"): "played by the cases of its proof, which delete a file and bring it back",
    ("jedi", "environment"): "it reports errors of syntax alone",
    ("json", "reloads"): "a marker of its root, of which it reads nothing",
    ("tailwindcss", "environment"): "its configuration is a program, and it has no verdict without its library",
    ("texlab", "also_told"): "what a build writes: it is told, and numbers of labels are no errors",
    ("vue", "environment"): "partial whatever changes: TypeScript checks its scripts, with a plugin of Vue",
}
"""By server and input: why there is no case."""

OUTSIDE, WHOLE, UNTRUSTED = "files outside of its root", "its answers", "its answers, untrusted"
"""Inputs that are no field of the catalogue's table."""


class Pair(Struct, frozen=True):
    """A server, and something that it reads."""

    server: str
    input: str
    state: str
    """`covered`, `partial`, or what is missing."""
    shown: str


def pairs() -> Iterator[Pair]:
    for server, spec in load().items():
        known, checks = inputs_of(spec), spec.freshness
        yield from (Pair(server, name, *_state(spec, name)) for name in INPUTS if getattr(known, name))
        if checks.late_imports and not known.late_libraries:
            yield Pair(
                server, OUTSIDE, "partial", "where a file names one, the answer says so: `service/test_check.py`"
            )
        else:
            yield Pair(server, OUTSIDE, "covered", "a case of the matrix, or `faults/test_outside.py`")
        if checks.not_checked:
            yield Pair(server, WHOLE, "partial", checks.not_checked)
        if spec.restricted is not None and spec.restricted.unchecked is not None:
            yield Pair(server, UNTRUSTED, "partial", "where a file has what it does not check, the answer says so")


def _state(spec: ServerSpec, name: str) -> tuple[str, str]:
    if any(case.server == spec.id and case.name.startswith(INPUTS[name]) for case in CASES):
        return "covered", "a case of the matrix"
    if (spec.id, name) in NOT_PLAYED:
        reason = NOT_PLAYED[spec.id, name]
        return ("partial" if reason.startswith("partial") else "covered"), reason
    if name in STARTED_ANEW and spec.id in looked_up():
        return "covered", "traced, and started anew: `servers/test_named_inputs.py`"
    if not getattr(spec.inputs, name):
        return "covered", "the markers of its root, started anew: `servers/test_inputs.py`"
    return "there is no case, no trace and no reason", ""
