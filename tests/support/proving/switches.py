"""The switch for projects that nobody trusts, where a server has one of its own: it is set, or needless for a reason.

`switches.json` says of every server that could be installed what its program, or the npm or PyPI package around it,
was found to have; `tests/prove.py` writes it. What a server has and nobody has decided on is not proven.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, to_builtins

from pilotfish.servers.spec import ServerSpec
from support.proving.programs import ENTRANCES, OWN

WORDS = re.compile(
    rb"untrusted.?workspace|initializationoptions\??\.istrusted|workspace\.istrusted|workspace.?trust|restricted.?mode"
)
"""How servers name such an option."""

NEEDLESS: Mapping[tuple[str, str], str] = {
    ("ruff", "untrustedworkspace"): "it turns off uv as formatter, and nobody asks it to format (0.17.4)",
    ("ty", "workspacetrust"): "words of a message about its switch (0.0.100)",
    ("vim", "restrictedmode"): "a word of Vim's own documentation (2.3.1)",
    ("vtsls", "workspaceistrusted"): "its stand-in for VS Code, which is always trusted (0.3.0)",
    ("vtsls", "workspacetrust"): "the same",
}
"""Options that are not set, and why."""

CODE = {".js", ".cjs", ".mjs", ".py"}

FILE = Path(__file__).with_name("switches.json")


class Searched(Struct, frozen=True):
    """What was found in a release, by letters alone."""

    version: str
    found: tuple[str, ...]


def searched() -> Mapping[str, Searched]:
    """By server."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Searched])


def record(server: str, version: str, found: set[str]) -> None:
    known = {**searched(), server: Searched(version, tuple(sorted(found)))}
    FILE.write_text(json.dumps(to_builtins(dict(sorted(known.items()))), indent=1) + "\n")


def switches(program: Path) -> set[str]:
    """What is in the program, or in the package around it."""
    return {
        re.sub(r"[^a-z]", "", word.decode())
        for file in _sources(program.resolve())
        for near in _places(file.read_bytes().lower())
        for word in WORDS.findall(near)
    }


def _places(text: bytes) -> Iterator[bytes]:
    """What stands around the words that every pattern has: a pattern alone takes seconds for a large program."""
    for word in (b"trust", b"restricted"):
        at = text.find(word)
        while at >= 0:
            yield text[max(0, at - 30) : at + 20]
            at = text.find(word, at + 1)


def undecided(spec: ServerSpec, found: set[str]) -> set[str]:
    """Those that are neither set nor needless."""
    said = re.sub(r"[^a-z]", "", json.dumps([spec.command, to_builtins(spec.restricted)]).lower())
    return {
        one for one in found if one.removeprefix("initializationoptions") not in said and (spec.id, one) not in NEEDLESS
    }


def _sources(program: Path) -> Iterator[Path]:
    """Of npm the packages of its author, since one may only start another; of PyPI the modules that a script names; of
    Debian the package."""
    yield program
    if program.parent.name == ENTRANCES:
        yield from map(Path, (program.parent / OWN).read_text().split("\n"))
        return
    package = next((folder for folder in program.parents if (folder / "package.json").is_file()), None)
    if package is not None:
        own = package.parent if package.parent.name.startswith("@") else package
        yield from (one for one in own.rglob("*") if one.suffix in CODE and one.is_file())
    elif program.read_bytes()[:2] == b"#!":
        named = re.findall(rb"^(?:from|import) (\w+)", program.read_bytes(), re.MULTILINE)
        for name in {one.decode() for one in named} - {"re", "sys", "os"}:
            for folder in program.parent.parent.glob(f"lib/python*/site-packages/{name}"):
                yield from folder.rglob("*.py")
