"""A table of the catalogue as a `ServerSpec`. Every key is named here once; what is not named is refused.

Keys that a configuration file may set too have the same names there: `OVERRIDABLE`.
"""

from collections.abc import Iterable, Mapping, Sequence

from pilotfish.servers.language import Language, language_ids
from pilotfish.servers.spec import (
    ORDINARY_PREFERENCE,
    Completeness,
    DerivedWatch,
    Environment,
    FileRule,
    Freshness,
    Grouping,
    Imports,
    Inputs,
    LoadedFiles,
    LocalSchemas,
    Manager,
    NpmRequirement,
    OnDemand,
    Phases,
    ProjectRequests,
    ProjectScope,
    PullSupport,
    Rank,
    Restricted,
    Risk,
    Role,
    RootRule,
    RootStrategy,
    ScopeKind,
    ServerSpec,
    Shown,
)
from pilotfish.servers.toml_table import BadTable, TomlTable

OVERRIDABLE = (
    "command", "extensions", "env", "initialization", "settings", "roots", "languageId", "watch", "restart", "timeouts",
)  # fmt: skip
"""In the catalogue these are the lowest layer of the merge."""

ONLY_CONFIGURED = ("restart", "timeouts")
"""Those of them that a server gets only through the configuration."""


def read_spec(server_id: str, values: Mapping[str, object], languages: Mapping[str, Language]) -> ServerSpec:
    """One table as a spec; raises `BadTable`."""
    table = TomlTable(server_id, {key: value for key, value in values.items() if key not in ONLY_CONFIGURED})
    names = table.texts("languages")
    if not names or not all(name in languages for name in names):
        raise BadTable(f"{server_id}: languages must name tables of languages.toml")
    spec = ServerSpec(
        id=server_id,
        name=table.required_text("name"),
        languages=names,
        command=table.texts("command"),
        files=_files(table, [languages[name] for name in names]),
        root=_root(table),
        env=table.text_map("env"),
        initialization=table.object("initialization"),
        settings=table.object("settings"),
        watch=table.texts("watch") or None,
        derived_watch=_derived_watch(table.table("derivedWatch")),
        serves_code=any(languages[name].code for name in names),
        rank=_rank(table),
        risk=table.choice("risk", Risk) or Risk.RUNS_PROJECT_CODE,
        restricted=_restricted(table.table("restricted")),
        connects=bool(table.flag("connects")),
        local_schemas=_local_schemas(table.table("localSchemas")),
        shown=_shown(table.table("shown")),
        freshness=_freshness(table.table("freshness")),
        scope=_scope(table.table("scope")),
        imports=_imports(table.table("imports")),
        completeness=_completeness(table.table("completeness")),
        inputs=_inputs(table.table("inputs")),
        lacks=table.texts("lacks"),
        install=table.lists("install", Manager),
        needs=table.texts("needs"),
        helpers=table.text_map("helpers"),
        version_args=table.texts("versionArgs"),
        death_signs=table.texts("deathSigns"),
        aliases=table.texts("aliases"),
        unproven=table.text("unproven"),
    )
    table.close()
    return spec


def _files(table: TomlTable, languages: Sequence[Language]) -> FileRule:
    extensions = _own_or(table, "extensions", (language.extensions for language in languages))
    names = _own_or(table, "fileNames", (language.names for language in languages))
    return FileRule(
        extensions=extensions,
        names=names,
        shebangs=_own_or(table, "shebangs", (language.shebangs for language in languages)),
        language_ids={**language_ids(languages, (*extensions, *names)), **table.text_map("languageId")},
    )


def _own_or(table: TomlTable, key: str, derived: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    if key in table:
        return table.texts(key)
    return tuple(dict.fromkeys(item for group in derived for item in group))


def _root(table: TomlTable) -> RootRule:
    return RootRule(
        markers=table.texts("roots"),
        strong=table.texts("strongRoots"),
        exclusions=table.texts("rootExclusions"),
        strategy=table.choice("rootStrategy", RootStrategy) or RootStrategy.NEAREST,
        required=table.flag("rootRequired") or False,
        grouping=table.choices("grouping", Grouping),
        requires=_requirement(table.table("requires")),
    )


def _requirement(table: TomlTable | None) -> NpmRequirement | None:
    if table is None:
        return None
    requirement = NpmRequirement(table.required_text("npm"), table.number("minimum"), table.number("below"))
    table.close()
    return requirement


def _rank(table: TomlTable) -> Rank:
    return Rank(
        role=table.choice("role", Role) or Role.MAIN,
        preference=table.number("preference") or ORDINARY_PREFERENCE,
        favoured_by=table.texts("favouredBy"),
        conflicts=table.texts("conflicts"),
    )


def _derived_watch(table: TomlTable | None) -> DerivedWatch | None:
    if table is None:
        return None
    watch = DerivedWatch(table.texts("command"), table.texts("when"), table.texts("argument"))
    table.close()
    return watch


def _imports(table: TomlTable | None) -> Imports:
    if table is None:
        return Imports()
    imports = Imports(table.texts("unresolved"), table.choice("environment", Environment))
    table.close()
    return imports


def _completeness(table: TomlTable | None) -> Completeness:
    if table is None:
        return Completeness()
    completeness = Completeness(
        loads=table.choice("loads", LoadedFiles) or LoadedFiles.OPENED,
        needs=table.texts("needs"),
        narrowed_by=table.texts("narrowedBy"),
        skipped_paths=table.text("skippedPaths"),
        skipped_lines=table.text("skippedLines"),
        types_in_strings=table.text("typesInStrings"),
        requests=_project_requests(table.table("requests")),
    )
    table.close()
    return completeness


def _project_requests(table: TomlTable | None) -> ProjectRequests | None:
    if table is None:
        return None
    requests = ProjectRequests(*(table.required_text(key) for key in ("command", "files", "symbols", "shape")))
    table.close()
    return requests


def _inputs(table: TomlTable | None) -> Inputs:
    if table is None:
        return Inputs()
    inputs = Inputs(
        steering=table.texts("steering"),
        extends=table.texts("extends"),
        environment=table.choice("environment", Environment),
        late_libraries=table.flag("lateLibraries") or False,
        also_told=table.texts("alsoTold"),
        folders=table.text_map("folders"),
    )
    table.close()
    return inputs


def _restricted(table: TomlTable | None) -> Restricted | None:
    if table is None:
        return None
    restricted = Restricted(
        reason=table.required_text("reason"),
        incomplete=bool(table.flag("incomplete")),
        env=table.text_map("env"),
        initialization=table.object("initialization"),
        settings=table.object("settings"),
    )
    table.close()
    return restricted


def _local_schemas(table: TomlTable | None) -> LocalSchemas | None:
    if table is None:
        return None
    local = LocalSchemas(
        env=table.text_map("env"),
        initialization=table.object("initialization"),
        settings=table.object("settings"),
        announcements=table.texts("announcements"),
    )
    table.close()
    return local


def _shown(table: TomlTable | None) -> Shown | None:
    if table is None:
        return None
    shown = Shown(table.required_text("first"), table.required_text("last"), table.flag("network") or False)
    table.close()
    return shown


def _freshness(table: TomlTable | None) -> Freshness:
    if table is None:
        return Freshness()
    freshness = Freshness(
        pull=table.choice("pull", PullSupport),
        unopened_pull=table.flag("unopenedPull") or False,
        phases=table.choice("phases", Phases) or Phases.UNKNOWN,
        ask_first=table.text("askFirst"),
        barrier=table.text("barrier"),
        waits_for_work=table.flag("waitsForWork") is not False,
        names_versions=table.flag("namesVersions") or False,
        publishes_unchanged=table.flag("publishesUnchanged"),
        debounce_ms=table.number("debounceMs"),
        debounces_opens=table.flag("debouncesOpens") is not False,
        on_save_only=table.flag("onSaveOnly") or False,
        save_progress=table.text("saveProgress"),
        restarts_check=table.flag("restartsCheck") or False,
        compiler=table.text("compiler"),
        answers_after=table.text("answersAfter"),
        dependents_after_save=table.flag("dependentsAfterSave") or False,
        cancels_on_change=table.flag("cancelsOnChange") or False,
        on_demand=_on_demand(table.table("onDemandCommand")),
        did_change_extra=table.object("didChangeExtra"),
        cannot_check=table.texts("cannotCheck"),
        remedy=table.text("remedy"),
        failed_check=table.texts("failedCheck"),
        not_checked=table.text("notChecked"),
        late_imports=table.text("lateImports"),
    )
    table.close()
    return freshness


def _scope(table: TomlTable | None) -> ProjectScope:
    if table is None:
        return ProjectScope()
    scope = ProjectScope(
        kind=table.choice("kind", ScopeKind) or ScopeKind.CANDIDATES,
        command=table.text("command"),
        progress=table.text("progress"),
        starts_with_open=table.flag("startsWithOpen") or False,
        stops_at=table.text("stopsAt"),
    )
    table.close()
    return scope


def _on_demand(table: TomlTable | None) -> OnDemand | None:
    if table is None:
        return None
    on_demand = OnDemand(
        command=table.required_text("command"),
        requests=table.texts("requests"),
        shape=table.required_text("shape"),
        hints=table.texts("hints"),
        project=table.text("project"),
        project_files=table.texts("projectFiles"),
        reread=table.text("reread"),
        reread_all=table.text("rereadAll"),
    )
    table.close()
    return on_demand
