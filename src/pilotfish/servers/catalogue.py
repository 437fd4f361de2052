"""The catalogue: every server we know, as data in `catalogue/`, one file `ID.server.toml` each.

The second half of the name keeps tools from taking `ruff.toml` or `ty.toml` for their own configuration.
All files are read and parsed when the first is needed, without a generated form beside them: for 162 files that is
45 ms, a quarter of what `pilotfish servers` takes from start to end, and the daemon pays it once.
A server names its languages, and `languages.toml` says once which files those are; its own `extensions`, `fileNames`
or `shebangs` replace what follows from the languages.
"""

import os
import tomllib
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pilotfish.errors import Bug
from pilotfish.servers.spec import CatalogueTable, FileRule, Rank, Risk, Role, RootRule, ServerSpec, Words

if TYPE_CHECKING:
    from pilotfish.config.load import ServerConfig
    from pilotfish.protocol.wire import Json

from msgspec import field

HERE = os.path.dirname(__file__)
SUFFIX = ".server.toml"

OVERRIDABLE = (
    "command", "extensions", "env", "initialization", "settings", "roots", "languageId", "watch", "restart", "timeouts",
)  # fmt: skip
"""Keys that a configuration file may set too. In the catalogue these are the lowest layer of the merge."""

ONLY_CONFIGURED = ("restart", "timeouts")  # Those of them that a server gets only through the configuration

SPREAD: Final[Mapping[str, type[CatalogueTable]]] = {"files": FileRule, "root": RootRule, "rank": Rank}
"""Parts of a spec whose keys stand in the top table of a file."""

NOT_WRITTEN = frozenset({*SPREAD, "id", "named", "disabled", "servesCode", "auxiliary", "announcements", "guests"})
"""Fields of a spec that follow from something else than its file."""


class BadTable(ValueError):
    """The data is wrong; the message names the place."""


class Language(CatalogueTable, frozen=True):
    """One language id of the LSP specification, and the files that have it."""

    id: str = ""
    extensions: Words = ()
    names: Words = ()
    shebangs: Words = ()
    code: bool = True  # False for prose and data: a missing server for these is not reported
    auxiliary: bool = False  # Styles, markup, scripts and build files, which projects have beside their main language


@cache
def load(folder: str = HERE) -> Mapping[str, ServerSpec]:
    """Every server of the catalogue by id, in the order of the ids."""
    try:
        languages = _languages(folder)
        return {server_id: read_spec(server_id, table, languages) for server_id, table in _tables(folder).items()}
    except (BadTable, tomllib.TOMLDecodeError) as error:
        raise Bug(f"the catalogue is wrong: {error}") from error


def read_spec(server_id: str, values: Mapping[str, object], languages: Mapping[str, Language]) -> ServerSpec:
    """One table as a spec; raises `BadTable`."""
    table = {key: value for key, value in values.items() if key not in ONLY_CONFIGURED}
    if derived := NOT_WRITTEN & table.keys():
        raise BadTable(f"{server_id}: unknown key {min(derived)}")
    for name, kind in SPREAD.items():
        table[name] = {key: table.pop(key) for key in kind.__struct_encode_fields__ if key in table}
    try:
        spec = msgspec.convert({**table, "id": server_id}, ServerSpec)
    except msgspec.ValidationError as error:
        raise BadTable(f"{server_id}: {error}") from None
    if not spec.languages or not languages.keys() >= set(spec.languages):
        raise BadTable(f"{server_id}: languages must name tables of languages.toml")
    written = [languages[name] for name in spec.languages]
    return replace(
        spec,
        files=_files(spec.files, values, written),
        serves_code=any(one.code for one in written),
        auxiliary=all(one.auxiliary for one in written if one.code),
    )


def _files(own: FileRule, values: Mapping[str, object], languages: Collection[Language]) -> FileRule:
    """What follows from the languages, where the server's own table does not replace it."""
    extensions = own.extensions if "extensions" in values else _joined(one.extensions for one in languages)
    names = own.names if "fileNames" in values else _joined(one.names for one in languages)
    shebangs = own.shebangs if "shebangs" in values else _joined(one.shebangs for one in languages)
    return FileRule(extensions, names, shebangs, {**language_ids(languages, (*extensions, *names)), **own.language_ids})


def _joined(groups: Iterable[Words]) -> Words:
    return tuple(dict.fromkeys(item for group in groups for item in group))


def read_languages(tables: Mapping[str, object]) -> Mapping[str, Language]:
    """All tables of `languages.toml`; raises `BadTable`."""
    try:
        read = msgspec.convert(tables, dict[str, Language])
    except msgspec.ValidationError as error:
        raise BadTable(f"languages.toml: {error}") from None
    return {name: replace(language, id=name) for name, language in read.items()}


def language_ids(languages: Iterable[Language], keys: Iterable[str]) -> dict[str, str]:
    """The language id of each extension or name in `keys`: the first language that claims it."""
    claims: dict[str, str] = {}
    for language in languages:
        for key in (*language.extensions, *language.names):
            claims.setdefault(key, language.id)
    return {key: claims[key] for key in keys if key in claims}


def builtin_layer() -> "dict[str, dict[str, Json]]":
    """What the catalogue says under the keys of the configuration file, by server id."""
    layer: dict[str, dict[str, Json]] = {}
    for server_id, spec in load().items():
        table = _tables(HERE)[server_id]
        layer[server_id] = {key: table[key] for key in OVERRIDABLE if key in table}
        # A server may go by file names alone; the configuration file knows no empty list of extensions.
        layer[server_id].pop("extensions", None)
        if spec.files.extensions:
            layer[server_id]["extensions"] = list(spec.files.extensions)
    return layer


def languages_by_extension() -> dict[str, str]:
    return _ids_of(tuple(sorted({extension for spec in load().values() for extension in spec.files.extensions})))


def canonical_id(name: str) -> str:
    """Our id for what another tool calls a server; the name itself when we know no better."""
    return name if name in load() else _aliases().get(name, name)


_lately: "deque[tuple[Mapping[str, ServerConfig], frozenset[str], Mapping[str, ServerSpec]]]" = deque(maxlen=16)
"""Configurations, what they name, and the servers that follow."""


def effective_servers(
    configured: "Mapping[str, ServerConfig]", named: Collection[str] = ()
) -> Mapping[str, ServerSpec]:
    """The servers of one workspace: `configured` is the merged configuration, the catalogue its lowest layer.

    `named` are those whose command a layer above the catalogue says. Workspaces with one
    configuration have them in common.
    """
    names = frozenset(named)
    for known, with_names, specs in tuple(_lately):
        if known is configured and with_names == names:
            return specs
    found = {name: effective(load().get(name), entry, named=name in names) for name, entry in configured.items()}
    _lately.append((configured, names, specs := with_guests(found)))
    return specs


def with_guests(specs: Mapping[str, ServerSpec]) -> dict[str, ServerSpec]:
    """The same; each knows the others that relay questions to it."""
    asking = [spec for spec in specs.values() if spec.relay is not None and not spec.disabled]
    return {
        server: replace(spec, guests=guests)
        if (guests := tuple(one for one in asking if one.relays_to([server])))
        else spec
        for server, spec in specs.items()
    }


def effective(spec: ServerSpec | None, entry: "ServerConfig", *, named: bool = False) -> ServerSpec:
    """The spec under its merged configuration. None is a custom server: assumed to run what the project names."""
    ids = {**_ids_of(entry.extensions), **entry.language_id}
    known = spec or ServerSpec(
        id=entry.id,
        name=entry.id,
        languages=tuple(dict.fromkeys(ids.values())),
        command=(),
        rank=Rank(role=Role.COMPANION),
        # Its command was named by the user, or by a project that the user trusts: it may run.
        risk=Risk.PARSES,
    )
    ids = {**_ids_of(entry.extensions), **known.files.language_ids, **entry.language_id}
    own_roots = entry.roots != known.root.markers
    return replace(
        known,
        disabled=entry.disabled,
        command=entry.command,
        files=replace(known.files, extensions=entry.extensions, language_ids=ids),
        root=replace(known.root, markers=entry.roots, strong=(), grouping=()) if own_roots else known.root,
        env=entry.env,
        initialization=entry.initialization,
        settings=entry.settings,
        watch=entry.watch or None,
        rank=replace(known.rank, named=named or spec is None),
    )


def _ids_of(extensions: tuple[str, ...]) -> dict[str, str]:
    """Language ids for extensions that no server of ours has to know; the bare extension for an unheard-of one."""
    known = _language_ids()
    return {extension: known.get(extension, extension.lstrip(".")) for extension in extensions}


@cache
def _language_ids() -> Mapping[str, str]:
    languages = _languages(HERE).values()
    return language_ids(languages, [key for one in languages for key in (*one.extensions, *one.names)])


@cache
def _aliases() -> Mapping[str, str]:
    return {alias: spec.id for spec in load().values() for alias in spec.aliases}


@cache
def _languages(folder: str) -> Mapping[str, Language]:
    return read_languages(_toml(os.path.join(folder, "languages.toml")))


@cache
def _tables(folder: str) -> "Mapping[str, Mapping[str, Json]]":
    """The files as they stand. Not through `importlib.resources`: that costs more than all the reading."""
    place = os.path.join(folder, "catalogue")
    ids = sorted(name.removesuffix(SUFFIX) for name in os.listdir(place) if name.endswith(SUFFIX))
    return {server_id: _toml(os.path.join(place, server_id + SUFFIX)) for server_id in ids}


def _toml(path: str) -> "dict[str, Json]":
    with open(path, "rb") as stream:
        return tomllib.load(stream)


# --- Which servers were proven, and with what -------------------------------------------------------------------------

# The others are listed: their entry was written from what is known of them. `proven.json` is written by
# `./check --servers`, which installs each server, lets an error come and go, asks a question of each kind that it
# offers, kills it and ends it. Nobody writes it by hand.

PROVEN = os.path.join(HERE, "proven.json")


class Proof(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    version: str
    date: str
    machine: str  # System and processor
    freshness: str  # How an answer about the newest text is told from an older one
    reach: str  # How far its answers reach: one file, open files, or the project
    others: tuple[str, ...] = ()
    """What was told of other files: after an edit, an edit through a file that stays clean, a deletion, a move."""
    start_ms: int  # From nothing to the first verdict on a small project
    memory_mib: int | None = None
    seconds: float = 0.0  # What the proof took, with the installation where that was needed
    questions: Mapping[str, str] = field(default_factory=dict[str, str])
    """The kinds of questions that it offers: `right` where the answer was judged, `answered` where one came."""
    exceptions: Mapping[str, str] = field(name="except", default_factory=dict[str, str])
    """Kinds that it offers and does not answer rightly, and why."""
    not_checked: str | None = None  # What it never checks: its verdicts are partial, and say so
    untrusted: str = ""  # What it does in a trap repository that is not trusted, where nothing of the project ran


@cache
def proofs() -> Mapping[str, Proof]:
    with open(PROVEN, "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, Proof])


def why_listed(spec: ServerSpec) -> str:
    if spec.unproven is not None:
        return spec.unproven
    carried = {"apt", "npm", "pip"} & spec.install.keys()
    return "nobody has run it yet" if carried else "PyPI, npm and Debian do not carry it"
