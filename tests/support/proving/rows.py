"""What one server is proven with: a file without errors, an edit that breaks it, and what to ask about.

A row is `rows/SERVER.row.toml`:

    file = "main.py"                            the file that is edited and asked about, `text` what it holds
    text = "def §add(…): …\\n¤add(1, 2)\\n"       § stands before the name of a definition, ¤ before a use of it
    break = ["add(1, 2)", "add(1, 'a')"]        the edit that brings an error, by what is replaced and with what
    error = "not assignable"                    a pattern that a message about the error fits, and no other message
    files = { "pyproject.toml" = "" }           what else the project holds
    elsewhere = { file, text, break, error }    another file, and an edit of the first one that brings an error in it
    others = { … }                              a project of three files, see `Others`
    also = [{ … }]                              further ones, which must hold as well
    beside = ["typescript"]                     servers that run in the same project
    config = { … }                              what the user's configuration says of the server
    modules = true                              the project has the npm packages of the server as `node_modules`
    symbol = "p"                                what the outline calls the definition, where that is not its name
    except = { rename = "why" }                 a kind of question that it offers, and does not answer rightly
    harmless = { ".editorconfig" = "why" }      what it looks up and the catalogue need not name; see `lookups`
    programs = { pip = […], debian = { … } }    what it needs besides, or where it comes from; see `programs`
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.servers.catalogue import load

DEFINITION, USE = "§", "¤"

FOLDER = Path(__file__).with_name("rows")
SUFFIX = ".row.toml"


class Place(Struct, frozen=True):
    """1-based, as users count."""

    line: int
    character: int


class Elsewhere(Struct, frozen=True):
    """A file that an edit of the first one breaks."""

    file: str
    text: str
    edit: tuple[str, str] = field(name="break")
    error: str


class Others(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A project of its own: edits of its first file break the second, which may be the first itself, or only the third
    through a clean second."""

    like: str = ""
    """The server whose row says what this one does not say."""
    files: Mapping[str, str] = {}
    first: str = ""
    second: str = ""
    third: str = ""
    edit: tuple[str, str] | None = field(name="break", default=None)
    """Of the first file: it brings an error in the second."""
    through: tuple[str, str] | None = None
    """Of the first file: the second stays without errors, and the third gets one."""
    error: str = ""
    """A pattern of all these errors."""
    gone: str = ""
    """A pattern of an error of the second file without the first; where there is none, the first stays."""
    moved: str = ""
    """Where the first is moved to, which is as good as deleting it; where there is none, it stays."""
    unsure: tuple[str, ...] = ()
    """Ways after which the answer need not name the error, if it does not claim to be fresh either."""


class Debian(Struct, frozen=True, forbid_unknown_fields=True):
    """Packages of one of Debian's suites with all that they depend on."""

    packages: tuple[str, ...]
    suite: str = "sid"
    program: str = ""
    """Its path; empty where the packages are only needed by the server."""
    also: tuple[str, ...] = ()
    """Further programs, by path, that the server starts."""


class Programs(Struct, frozen=True, forbid_unknown_fields=True):
    pip: tuple[str, ...] = ()
    links: Mapping[str, str] = {}
    """Programs that a package of PyPI has among its files, by name: where, as a glob in the environment."""
    npm: tuple[str, ...] = ()
    scripts: bool = False
    """Whether the install scripts of the npm packages run: one puts its program into place so."""
    debian: Debian | None = None


class ProofRow(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    server: str
    file: str
    marked: str = field(name="text")
    edit: tuple[str, str] = field(name="break")
    error: str
    symbol: str | None = None
    files: Mapping[str, str] = {}
    elsewhere: Elsewhere | None = None
    others: Others | None = None
    also: tuple[Others, ...] = ()
    beside: tuple[str, ...] = ()
    config: Mapping[str, Any] = {}
    modules: bool = False
    exceptions: Mapping[str, str] = field(name="except", default_factory=dict[str, str])
    harmless: Mapping[str, str] = {}
    programs: Programs = Programs()

    @property
    def fine(self) -> str:
        return self.marked.replace(DEFINITION, "").replace(USE, "")

    @property
    def broken(self) -> str:
        return replaced(self.fine, self.edit)

    @property
    def definition(self) -> Place | None:
        return self._place(DEFINITION)

    @property
    def use(self) -> Place | None:
        return self._place(USE)

    @property
    def name(self) -> str:
        """The name that is defined and used."""
        after = self.marked.partition(DEFINITION)[2].replace(USE, "")
        length = next((at for at, character in enumerate(after) if not _is_of_a_name(character)), len(after))
        return after[:length]

    def _place(self, mark: str) -> Place | None:
        before, found, _ = self.marked.partition(mark)
        if not found:
            return None
        plain = before.replace(DEFINITION, "").replace(USE, "")
        return Place(plain.count("\n") + 1, len(plain.rpartition("\n")[2]) + 1)


def replaced(text: str, edit: tuple[str, str]) -> str:
    find, put = edit
    assert text.count(find) == 1, f"{find!r} stands {text.count(find)} times in the file"
    return text.replace(find, put)


def others_of(row: ProofRow) -> Others | None:
    """With what the row that it is like says."""
    own = row.others
    model = rows()[own.like].others if own is not None and own.like else None
    if own is None or model is None:
        return own
    said = {name: value for name in own.__struct_fields__ if (value := getattr(own, name))}
    return replace(model, **said)


def shown_cases(row: ProofRow) -> tuple[Others, ...]:
    """What other files are shown by; nothing where every verdict is partial: what is told is not known to be all."""
    first = others_of(row)
    return () if first is None or load()[row.server].freshness.not_checked else (first, *row.also)


@cache
def rows() -> Mapping[str, ProofRow]:
    """By server."""
    return {path.name.removesuffix(SUFFIX): read_row(path) for path in sorted(FOLDER.glob(f"*{SUFFIX}"))}


def read_row(path: Path) -> ProofRow:
    table = {"server": path.name.removesuffix(SUFFIX), **tomllib.loads(path.read_text())}
    return msgspec.convert(table, ProofRow)


def _is_of_a_name(character: str) -> bool:
    return character.isalnum() or character in "_-$"
