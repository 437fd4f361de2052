"""The catalogue is whole, says only what the code knows, and merges with a configuration."""

import os
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from pilotfish.config.load import Catalogue, ConfigRequest
from pilotfish.config.load import load as load_config
from pilotfish.config.places import user_places
from pilotfish.errors import Bug
from pilotfish.servers.catalogue import (
    OVERRIDABLE,
    BadTable,
    Language,
    builtin_layer,
    canonical_id,
    effective_servers,
    load,
    read_spec,
)
from pilotfish.servers.resolve import language_id
from pilotfish.servers.spec import PullSupport, Risk, Role, ServerSpec

SPECS = load()
PYTHON = {"python": Language("python", (".py",), (), ("python",))}
MINIMAL: dict[str, object] = {"name": "X", "languages": ["python"], "command": ["x"]}

each_server = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())


@pytest.mark.proves("REG-1")
def test_the_catalogue_has_at_least_eighty_servers() -> None:
    assert len(SPECS) >= 80


@pytest.mark.proves("REG-1")
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(
            "typescript eslint gopls pyright rust-analyzer jdtls clangd luau", id="those that every host promises"
        ),
        pytest.param(
            # Razor is left out: it needs assemblies of a VS Code extension that cannot be named in a command.
            "deno typescript vue eslint oxlint biome gopls ruby-lsp ty pyright elixir-ls zls csharp fsharp"
            " sourcekit-lsp rust clangd svelte astro jdtls kotlin-ls yaml-ls lua-ls prisma dart ocaml-lsp bash"
            " terraform texlab dockerfile gleam clojure-lsp nixd tinymist haskell-language-server julials rubocop"
            " intelephense",
            id="those of OpenCode",
        ),
        pytest.param(
            # mSL is left out: its server is a part of Serena.
            "ada al angular ansible bash bsl csharp csharp_omnisharp cpp cpp_ccls clojure crystal cue dart expert elm"
            " erlang fsharp fortran gdscript gleam go groovy haskell haxe hlsl html java julia julia_fatou kotlin latex"
            " lean4 lua luau marksman matlab nextflow nix ocaml pascal perl php php_phpactor php_phpantom php_devsense"
            " powershell pyright basedpyright ty pyrefly python_jedi qml r rego ruby-lsp ruby_solargraph rust scala"
            " somesass solidity svelte swift systemverilog terraform taplo typescript typescript_vts deno vue wolfram"
            " yaml json zig-zls",
            id="those of Serena",
        ),
    ],
)
def test_the_servers_that_others_ship_are_there_under_their_names(names: str) -> None:
    wanted = [name.removeprefix("zig-") for name in names.split()]
    assert [name for name in wanted if canonical_id(name) not in SPECS] == []


@each_server
def test_a_server_can_be_started_installed_and_told_apart(spec: ServerSpec) -> None:
    assert spec.command
    assert "/" not in spec.command[0], "a program is looked for by name"
    assert spec.install, "somebody must be able to get it"
    assert spec.files.extensions or spec.files.names
    assert all(re.fullmatch(r"\.\S+", extension) for extension in spec.files.extensions)
    assert not (spec.root.required and not (spec.root.markers or spec.root.strong))
    assert set(spec.root.strong) <= set(spec.root.markers)


@pytest.mark.proves("REG-7")
@each_server
def test_what_comes_from_pypi_or_npm_is_pinned(spec: ServerSpec) -> None:
    for package in spec.install.get("pip", ()):
        assert re.fullmatch(r"[A-Za-z0-9._-]+(\[\w+\])?==\d[\w.]*", package)
    for package in spec.install.get("npm", ()):
        assert re.fullmatch(r"(@[a-z0-9-]+/)?[a-z0-9._-]+@\d+\.\d+\.\d+[\w.-]*", package)


def test_no_name_means_two_servers() -> None:
    aliases = [alias for spec in SPECS.values() for alias in spec.aliases]
    assert len(aliases) == len(set(aliases))
    assert SPECS.keys() & set(aliases) == set(), "an alias that is an id would never be looked up"


def test_conflicts_name_companions() -> None:
    assert all(SPECS[other].rank.role is Role.COMPANION for spec in SPECS.values() for other in spec.rank.conflicts)


@pytest.mark.proves("REG-2")
def test_of_two_main_servers_for_a_language_one_is_preferred() -> None:
    mains = [spec for spec in SPECS.values() if spec.rank.role is Role.MAIN]
    ties = [
        (one.id, other.id)
        for one in mains
        for other in mains
        if one.id < other.id
        and one.rank.preference == other.rank.preference
        and set(one.files.extensions) & set(other.files.extensions)
    ]
    assert ties == []


@pytest.mark.proves("REG-2")
def test_the_order_of_the_python_servers_is_the_documented_one() -> None:
    mains = [spec for spec in SPECS.values() if "python" in spec.languages and spec.rank.role is Role.MAIN]
    order = [spec.id for spec in sorted(mains, key=lambda spec: spec.rank.preference)]
    assert order == ["basedpyright", "pyright", "ty", "pyrefly", "zuban", "pylsp", "jedi"]


@pytest.mark.proves("T7")
def test_what_a_server_runs_is_assumed_unless_the_data_says_that_it_only_parses() -> None:
    assert read_spec("x", MINIMAL, PYTHON).risk is Risk.RUNS_PROJECT_CODE


@pytest.mark.proves("T7")
@pytest.mark.parametrize(
    "name", ["rust-analyzer", "eslint", "svelte", "jdtls", "kotlin-lsp", "typescript", "zls", "pyrefly"]
)
def test_servers_that_run_project_code_are_marked(name: str) -> None:
    assert SPECS[name].risk is Risk.RUNS_PROJECT_CODE


@pytest.mark.proves("T7")
def test_rust_analyzer_is_restricted_to_its_own_analysis() -> None:
    restricted = SPECS["rust-analyzer"].restricted
    assert restricted is not None
    assert restricted.initialization == {
        "checkOnSave": False,
        "procMacro": {"enable": False},
        "cargo": {"buildScripts": {"enable": False}},
    }
    assert restricted.settings == {"rust-analyzer": restricted.initialization}
    assert restricted.env["RUSTC_WRAPPER"] == ""


@pytest.mark.proves("C72")
@pytest.mark.parametrize(
    ("server", "path", "expected"),
    [
        ("typescript", "/w/a.ts", "typescript"),
        ("typescript", "/w/a.d.mts", "typescript"),
        ("typescript", "/w/a.tsx", "typescriptreact"),
        ("typescript", "/w/a.js", "javascript"),
        ("typescript", "/w/a.jsx", "javascriptreact"),
        ("bash", "/w/a.sh", "shellscript"),
        ("bash", "/w/.zshrc", "shellscript"),
        ("bash", "/w/run", "shellscript"),
        ("clangd", "/w/a.c", "c"),
        ("clangd", "/w/a.hpp", "cpp"),
        ("clangd", "/w/a.C", "cpp"),
        ("clangd", "/w/a.m", "objective-c"),
        ("clangd", "/w/a.mm", "objective-cpp"),
        ("matlab", "/w/a.m", "matlab"),
        ("json", "/w/a.json", "json"),
        ("json", "/w/tsconfig.json", "jsonc"),
        ("json", "/w/tsconfig.app.json", "jsonc"),
        ("json", "/w/.vscode/settings.json", "jsonc"),
        ("gopls", "/w/go.mod", "go.mod"),
        ("gopls", "/w/go.work", "go.work"),
        ("docker-compose", "/w/compose.yaml", "dockercompose"),
        ("dockerfile", "/w/Dockerfile.dev", "dockerfile"),
        ("ruby-lsp", "/w/a.html.erb", "erb"),
        ("csharp-ls", "/w/a.cs", "csharp"),
        ("fortls", "/w/a.F90", "fortran"),
        ("pyright", "/w/A.PY", "python"),
        ("texlab", "/w/a.bib", "bibtex"),
        ("css", "/w/a.scss", "scss"),
    ],
)
def test_the_language_id_is_that_of_the_specification(server: str, path: str, expected: str) -> None:
    spec = SPECS[server]
    assert language_id(path, spec.files.language_ids, spec.languages[0]) == expected


@pytest.mark.proves("REG-1")
@pytest.mark.parametrize(
    ("table", "message"),
    [
        pytest.param({"colour": "red"}, "x: Object contains unknown field `colour`", id="unknown key"),
        pytest.param({"servesCode": True}, "x: unknown key servesCode", id="what follows from the languages"),
        pytest.param({"name": ""}, "x: Expected `str` of length >= 1 - at `$.name`", id="no name"),
        pytest.param({"name": 3}, "x: Expected `str`, got `int` - at `$.name`", id="a number for a string"),
        pytest.param(
            {"command": "x --stdio"}, "x: Expected `array`, got `str` - at `$.command`", id="a string for a list"
        ),
        pytest.param(
            {"command": ["x", 1]}, "x: Expected `str`, got `int` - at `$.command[1]`", id="a number in a list"
        ),
        pytest.param({"languages": ["klingon"]}, "x: languages must name tables of languages.toml", id="language"),
        pytest.param({"languages": []}, "x: languages must name tables of languages.toml", id="no language"),
        pytest.param({"role": "boss"}, "x: Invalid enum value 'boss' - at `$.rank.role`", id="unknown role"),
        pytest.param(
            {"preference": True}, "x: Expected `int`, got `bool` - at `$.rank.preference`", id="true for a number"
        ),
        pytest.param({"preference": 0}, "x: Expected `int` >= 1 - at `$.rank.preference`", id="zero"),
        pytest.param(
            {"rootRequired": 1}, "x: Expected `bool`, got `int` - at `$.root.rootRequired`", id="one for true"
        ),
        pytest.param({"settings": []}, "x: Expected `object`, got `array` - at `$.settings`", id="a list for a table"),
        pytest.param(
            {"env": {"A": 1}}, "x: Expected `str`, got `int` - at `$.env[...]`", id="a number in the environment"
        ),
        pytest.param(
            {"install": {"curl": ["x"]}}, "x: Invalid enum value 'curl' - at `key` in `$.install`", id="unknown manager"
        ),
        pytest.param(
            {"freshness": {"pull": "often"}}, "x: Invalid enum value 'often' - at `$.freshness.pull`", id="nested"
        ),
        pytest.param(
            {"freshness": {"speed": 1}},
            "x: Object contains unknown field `speed` - at `$.freshness`",
            id="nested unknown key",
        ),
        pytest.param(
            {"restricted": {}},
            "x: Object missing required field `reason` - at `$.restricted`",
            id="restricted without a reason",
        ),
        pytest.param(
            {"requires": {"below": 7}},
            "x: Object missing required field `npm` - at `$.root.requires`",
            id="requires nothing",
        ),
    ],
)
def test_wrong_data_is_refused_with_its_place(table: dict[str, object], message: str) -> None:
    with pytest.raises(BadTable, match=re.escape(message)):
        read_spec("x", {**MINIMAL, **table}, PYTHON)


def test_a_broken_catalogue_is_our_fault(tmp_path: Path) -> None:
    (tmp_path / "catalogue").mkdir()
    (tmp_path / "catalogue/x.server.toml").write_text("name = ")
    (tmp_path / "languages.toml").write_text("")
    with pytest.raises(Bug, match="the catalogue is wrong"):
        load(str(tmp_path))


def test_own_lists_replace_what_follows_from_the_languages() -> None:
    spec = read_spec("x", {**MINIMAL, "extensions": [".x"], "shebangs": []}, PYTHON)
    assert (spec.files.extensions, spec.files.shebangs) == ((".x",), ())
    assert read_spec("x", MINIMAL, PYTHON).files.extensions == (".py",)


# --- Under a configuration ----------------------------------------------------------------------------------------


def configured(tmp_path: Path, text: str) -> dict[str, ServerSpec]:
    """The servers under a global file with this content."""
    places = user_places({"HOME": str(tmp_path), "PILOTFISH_HOME": str(tmp_path / "state")})
    workspace = tmp_path / "work"
    workspace.mkdir()
    os.makedirs(os.path.dirname(places.global_file))
    Path(places.global_file).write_text(text)
    loaded = load_config(ConfigRequest(str(workspace), places, Catalogue(builtin_layer(), canonical_id)))
    assert loaded.errors == ()
    return dict(effective_servers(loaded.config.servers))


@pytest.mark.proves("CFG-2", "CFG-4")
def test_an_empty_configuration_changes_no_server(tmp_path: Path) -> None:
    """The catalogue's layer is valid under the rules of the file, and comes back as it went in."""
    servers = configured(tmp_path, "{}")
    assert servers.keys() == SPECS.keys()
    for server_id, spec in servers.items():
        assert replace(spec, files=SPECS[server_id].files, guests=()) == SPECS[server_id]
        assert set(spec.files.extensions) == set(SPECS[server_id].files.extensions)
        assert SPECS[server_id].files.language_ids.items() <= spec.files.language_ids.items()


@pytest.mark.proves("CFG-2", "CFG-4")
def test_a_configuration_is_laid_over_the_catalogue(tmp_path: Path) -> None:
    spec = configured(
        tmp_path,
        """{"lsp": {"gopls": {
            "command": ["my-gopls", "-v"], "extensions": [".go", ".gox"], "env": {"GOFLAGS": "-mod=mod"},
            "settings": {"gopls": {"staticcheck": true}}, "languageId": {".gox": "go"}, "roots": ["BUILD"],
            "watch": ["regen"]}}}""",
    )["gopls"]
    assert spec.command == ("my-gopls", "-v")
    assert spec.files.extensions == (".go", ".gox")
    assert spec.files.language_ids[".gox"] == "go"
    assert spec.files.names == SPECS["gopls"].files.names
    assert spec.env == {"GOFLAGS": "-mod=mod"}
    assert spec.settings == {"gopls": {"diagnosticsDelay": "0s", "staticcheck": True}}
    assert spec.watch == ("regen",)
    assert spec.freshness == SPECS["gopls"].freshness


@pytest.mark.proves("REG-3", "CFG-4")
def test_configured_roots_are_the_only_ones(tmp_path: Path) -> None:
    """What the catalogue knows beside its markers would overrule the ones that somebody wrote down."""
    root = configured(tmp_path, '{"lsp": {"typescript": {"roots": ["my.marker"]}}}')["typescript"].root
    assert (root.markers, root.strong, root.grouping) == (("my.marker",), (), ())
    assert root.exclusions == SPECS["typescript"].root.exclusions


@pytest.mark.proves("CFG-4")
def test_a_disabled_server_says_so(tmp_path: Path) -> None:
    servers = configured(tmp_path, '{"lsp": {"eslint": {"disabled": true}}}')
    assert [server_id for server_id, spec in servers.items() if spec.disabled] == ["eslint"]


@pytest.mark.proves("CFG-4")
def test_a_custom_server_runs_beside_any_other_and_may_run_because_somebody_named_it(tmp_path: Path) -> None:
    text = '{"lsp": {"mine": {"command": ["mine", "--stdio"], "extensions": [".mine", ".py"]}}}'
    spec = configured(tmp_path, text)["mine"]
    assert (spec.command, spec.name, spec.risk) == (("mine", "--stdio"), "mine", Risk.PARSES)
    assert (spec.rank.role, spec.rank.named) == (Role.COMPANION, True)
    assert spec.files.language_ids == {".mine": "mine", ".py": "python"}


@pytest.mark.proves("CFG-9")
@pytest.mark.parametrize(
    ("name", "expected"),
    [("rust", "rust-analyzer"), ("php intelephense", "intelephense"), ("pyright", "pyright"), ("mine", "mine")],
)
def test_other_tools_names_are_ours(name: str, expected: str) -> None:
    assert canonical_id(name) == expected


def test_the_layer_holds_only_what_a_file_may_set() -> None:
    keys = {key for entry in builtin_layer().values() for key in entry}
    assert keys <= set(OVERRIDABLE)
    assert "command" in keys


@pytest.mark.proves("CFG-5")
@pytest.mark.parametrize("name", ["jdtls", "rust-analyzer", "kotlin-lsp", "metals"])
def test_slow_starters_have_a_minute(name: str) -> None:
    timeouts = builtin_layer()[name]["timeouts"]
    assert isinstance(timeouts, dict)
    assert timeouts["initializeTimeoutMs"] == 60_000


@pytest.mark.proves("DIAG-2")
def test_native_typescript_is_told_not_to_soften_the_errors_of_tsc() -> None:
    """The gate has no TypeScript 7; `tests/markers/cases/typescript/unused.txt` has the errors of the older server."""
    section = SPECS["typescript-native"].settings["typescript"]
    assert isinstance(section, dict)
    assert section["reportStyleChecksAsWarnings"] is False


@pytest.mark.proves("DIAG-2")
@pytest.mark.parametrize(
    ("name", "pull"),
    [
        ("pyright", PullSupport.DYNAMIC),
        ("ty", PullSupport.DYNAMIC),
        ("typescript-native", PullSupport.STATIC),
        ("typescript", PullSupport.NONE),
        ("clangd", PullSupport.NONE),
        ("yaml", PullSupport.NONE),
        ("robotcode", PullSupport.EMPTY),
    ],
)
def test_how_a_server_shows_freshness_is_as_it_was_measured(name: str, pull: PullSupport) -> None:
    assert SPECS[name].freshness.pull is pull
