"""Languages: which files are written in one, under the ids of the LSP specification."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from pilotfish.servers.toml_table import BadTable, TomlTable


class Language(Struct, frozen=True):
    """One language id and the files that have it."""

    id: str
    extensions: tuple[str, ...]
    names: tuple[str, ...]
    shebangs: tuple[str, ...]
    code: bool = True
    """False for prose and data: a missing server for these is not reported."""


def read_languages(tables: Mapping[str, object]) -> Mapping[str, Language]:
    """All tables of `languages.toml`; raises `BadTable`."""
    whole = TomlTable("languages.toml", tables)
    return {language_id: _language(language_id, whole.table(language_id)) for language_id in tables}


def language_ids(languages: Iterable[Language], keys: Iterable[str]) -> dict[str, str]:
    """The language id of each extension or name in `keys`: the first language that claims it."""
    claims: dict[str, str] = {}
    for language in languages:
        for key in (*language.extensions, *language.names):
            claims.setdefault(key, language.id)
    return {key: claims[key] for key in keys if key in claims}


def _language(language_id: str, table: TomlTable | None) -> Language:
    if table is None:
        raise BadTable(f"languages.toml: {language_id} must be a table")
    language = Language(
        language_id,
        extensions=table.texts("extensions"),
        names=table.texts("names"),
        shebangs=table.texts("shebangs"),
        code=table.flag("code") is not False,
    )
    table.close()
    return language
