"""What `pilotfish servers` prints. Pure: from rows to lines and to JSON."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, assert_never

from msgspec import Struct, to_builtins

from pilotfish.counting import counted
from pilotfish.sanitise import sanitised
from pilotfish.servers.catalogue import Proof, why_listed
from pilotfish.servers.locate import Gated, ProgramFound, ProgramLocation, ProgramMissing
from pilotfish.servers.resolve import Explained
from pilotfish.servers.spec import ServerSpec
from pilotfish.surfaces.cli.terminal.table import cut, table

HEADINGS = ("SERVER", "STATE", "SHOWN", "LANGUAGES", "PATH, OR HOW TO INSTALL IT")
MAX_LANGUAGES = 40
"""Characters of the languages' column: a few servers know two dozen."""

MAX_CELL = 1000


class ListedServer(Struct, frozen=True):
    spec: ServerSpec
    located: ProgramLocation
    install: str | None
    proof: Proof | None = None
    is_ours: bool = True
    """Whether it is one of the catalogue, and not of the user's configuration alone."""

    @property
    def shown(self) -> str:
        if self.proof is not None:
            return "proven"
        return "listed" if self.is_ours else "yours"

    @property
    def state(self) -> str:
        if self.spec.disabled:
            return "disabled"
        match self.located:
            case ProgramFound():
                return "installed"
            case Gated():
                return "untrusted"
            case ProgramMissing():
                return "missing"
            case _:
                assert_never(self.located)


ALSO_CALLED = {
    "c++": "cpp",
    "c#": "csharp",
    "f#": "fsharp",
    "golang": "go",
    "js": "javascript",
    "jsx": "javascriptreact",
    "make": "makefile",
    "py": "python",
    "react": "typescriptreact",
    "shell": "shellscript",
    "sh": "shellscript",
    "ts": "typescript",
    "tsx": "typescriptreact",
}
"""What people call languages that have another id in the LSP specification."""


def wanted_servers(specs: Iterable[ServerSpec], word: str) -> list[ServerSpec]:
    """The servers that a word means: of a language, all for it; else those that have it in their id or name, or as
    one of their extensions, file names or helpers."""
    known, wanted = list(specs), ALSO_CALLED.get(word.casefold(), word.casefold())
    of_language = [spec for spec in known if wanted in spec.languages or wanted in spec.aliases]
    if any(wanted in spec.languages for spec in known):
        return of_language

    def is_wanted(spec: ServerSpec) -> bool:
        exact = (*spec.aliases, *spec.files.extensions, *spec.files.names, *spec.helpers)
        return wanted in spec.id.casefold() or wanted in spec.name.casefold() or wanted in map(str.casefold, exact)

    return [spec for spec in known if is_wanted(spec)]


def table_lines(rows: Sequence[ListedServer], width: int | None) -> Iterator[str]:
    """A line for each server under a heading, none wider than `width`, and a line that counts them."""
    yield from table([HEADINGS, *(_cells(row) for row in rows)], width)
    installed = sum(row.state == "installed" for row in rows)
    yield cut(f"{counted(len(rows), 'server')}, {installed} installed", width)


def choice_lines(word: str, choice: Sequence[Explained], width: int | None) -> Iterator[str]:
    yield ""
    yield cut(f"For {_clean(word)} here:", width)
    yield from table(
        [(f"  {_clean(one.server)}", f"{'used' if one.is_used else 'not used'}: {_clean(one.why)}") for one in choice],
        width,
    )


def proof_lines(row: ListedServer, width: int | None) -> Iterator[str]:
    proof = row.proof
    if not row.is_ours:
        return
    yield ""
    if proof is None:
        yield cut(f"{row.spec.id} is listed: no run of ours has shown that it works ({why_listed(row.spec)}).", width)
        return
    yield cut(f"{row.spec.id} {proof.version} was proven on {proof.date}, {proof.machine}:", width)
    yield cut("  an error that comes and goes, a restart after kill -9, an end that leaves no process", width)
    memory = "" if proof.memory_mib is None else f", {proof.memory_mib} MiB"
    facts = {
        "fresh is": proof.freshness,
        "it reaches": proof.reach,
        "its start": f"{proof.start_ms / 1000:.1f} s to the first verdict on a small project{memory}",
        "partial": proof.not_checked,
        "right": ", ".join(kind for kind, outcome in proof.questions.items() if outcome == "right"),
        "answered": ", ".join(kind for kind, outcome in proof.questions.items() if outcome != "right"),
        "not right": "; ".join(f"{kind} ({why})" for kind, why in proof.exceptions.items()),
    }
    for name, value in facts.items():
        if value:
            yield cut(f"  {name.ljust(10)}  {value}", width)


def rows_json(rows: Sequence[ListedServer], choice: Sequence[Explained] = ()) -> dict[str, Any]:
    explained = {one.server: {"used": one.is_used, "why": one.why} for one in choice}
    return {"servers": [{**_row_json(row), "choice": explained.get(row.spec.id)} for row in rows]}


def _cells(row: ListedServer) -> tuple[str, ...]:
    languages = cut(", ".join(row.spec.languages), MAX_LANGUAGES)
    cells = (row.spec.id, row.state, row.shown, languages, _where(row.located) or row.install or "")
    return tuple(map(_clean, cells))


def _row_json(row: ListedServer) -> dict[str, Any]:
    spec = row.spec
    return {
        "id": spec.id,
        "name": spec.name,
        "state": row.state,
        "languages": list(spec.languages),
        "extensions": list(spec.files.extensions),
        "fileNames": list(spec.files.names),
        "command": list(spec.command),
        "role": spec.rank.role,
        "preference": spec.rank.preference,
        "risk": spec.risk,
        "path": _where(row.located),
        "install": row.install,
        "needs": list(spec.needs),
        "proof": to_builtins(row.proof) if row.proof is not None else None,
        "listed": why_listed(spec) if row.shown == "listed" else None,
    }


def _where(located: ProgramLocation) -> str | None:
    return None if isinstance(located, ProgramMissing) else located.path


def _clean(text: str) -> str:
    """Of the user's configuration, which may hold anything."""
    return sanitised(text, MAX_CELL)
