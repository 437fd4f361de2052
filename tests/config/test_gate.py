"""Which parts of a project's file run something."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.config.gate import GatedValue, split
from pilotfish.protocol.wire import Json

pytestmark = pytest.mark.proves("TRUST-1")


def settings_kept(settings: Json) -> Json:
    """What is left of a server's settings without trust."""
    servers = split({"lsp": {"x": {"settings": settings}}}).open["lsp"]
    assert isinstance(servers, dict)
    entry = servers["x"]
    assert isinstance(entry, dict)
    return entry.get("settings", {})


EXECUTABLE: dict[str, Json] = {
    "rust-analyzer check.overrideCommand": {"rust-analyzer": {"check": {"overrideCommand": ["sh", "-c", "x"]}}},
    "rust-analyzer check.command": {"rust-analyzer": {"check": {"command": "clippy"}}},
    "rust-analyzer buildScripts": {"rust-analyzer": {"cargo": {"buildScripts": {"enable": True}}}},
    "rust-analyzer procMacro": {"rust-analyzer": {"procMacro": {"enable": True}}},
    "rust-analyzer procMacro.server": {"rust-analyzer": {"procMacro": {"server": "evil"}}},
    "rust-analyzer extraEnv": {"rust-analyzer": {"server": {"extraEnv": {"RUSTC_WRAPPER": "evil"}}}},
    "rust-analyzer checkOnSave": {"rust-analyzer": {"checkOnSave": True}},
    "rust-analyzer sysroot": {"rust-analyzer": {"cargo": {"sysroot": "./evil"}}},
    "flattened key": {"rust-analyzer.cargo.buildScripts.enable": True},
    "python.pythonPath": {"python": {"pythonPath": "evil"}},
    "python.defaultInterpreterPath": {"python": {"defaultInterpreterPath": "evil"}},
    "python.venvPath": {"python": {"venvPath": "evil"}},
    "python.analysis.extraPaths": {"python": {"analysis": {"extraPaths": ["evil"]}}},
    "environment.python": {"environment": {"python": "evil"}},
    "python alone": {"mypy": {"python": "evil"}},
    "pylsp plugins": {"pylsp": {"plugins": {"evil": {"enabled": True}}}},
    "jedi extra paths": {"jedi": {"extra_paths": ["evil"]}},
    "eslint.nodePath": {"eslint": {"nodePath": "evil"}},
    "eslint.runtime": {"eslint": {"runtime": "evil"}},
    "eslint.execArgv": {"eslint": {"execArgv": ["evil"]}},
    "eslint workingDirectories": {"workingDirectory": {"mode": "auto"}},
    "typescript.tsdk": {"typescript": {"tsdk": "evil"}},
    "tsserver.path": {"tsserver": {"path": "evil"}},
    "tsserver plugins": {"plugins": [{"name": "evil", "location": "."}]},
    "tsserver pluginPaths": {"typescript": {"tsserver": {"pluginPaths": ["evil"]}}},
    "java.home": {"java": {"home": "evil"}},
    "java gradle": {"java": {"import": {"gradle": {"enabled": True}}}},
    "java vmargs": {"java": {"jdt": {"ls": {"vmargs": "-javaagent:evil.jar"}}}},
    "gopls buildFlags": {"gopls": {"buildFlags": ["-toolexec=evil"]}},
    "gopls env": {"gopls": {"env": {"GOFLAGS": "-toolexec=evil"}}},
    "clangd arguments": {"clangd": {"arguments": ["--query-driver=evil"]}},
    "lua plugin": {"Lua": {"runtime": {"plugin": "evil"}}},
    "texlab build on save": {"texlab": {"build": {"onSave": True}}},
    "luau sourcemap generator": {"luau-lsp": {"sourcemap": {"autogenerate": True}}},
    "luau project file": {"luau-lsp": {"sourcemap": {"rojoProjectFile": "evil.project.json"}}},
    "unknown key with a module": {"stylelint": {"customSyntax": "evil"}},
    "unknown key with a path": {"whatever": "./evil"},
    "unknown key with a file": {"whatever": "evil.sh"},
    "unknown key with a command line": {"whatever": "touch pwned"},
    "unknown key with a list of words and a path": {"whatever": ["ok", "../evil"]},
    "unknown key with a nested list": {"whatever": [["touch"]]},
    "unknown key with an object in a list": {"whatever": [{"a": 1}]},
    "a key that is a path": {"./evil": True},
    "a key that is a command line": {"touch pwned": True},
    "a port to connect to": {"some": {"port": 1337}},
    "a log file": {"logFile": "evil"},
    "an address": {"server": {"url": "evil"}},
}


@pytest.mark.proves("T10")
@pytest.mark.parametrize("settings", EXECUTABLE.values(), ids=EXECUTABLE)
@pytest.mark.parametrize("field", ["settings", "initialization"])
def test_a_setting_that_names_or_enables_code_needs_trust(settings: Json, field: str) -> None:
    parts = split({"lsp": {"x": {field: settings}}})
    assert len(parts.gated) == 1
    assert parts.gated[0].path[0] == field
    assert json.dumps(parts.gated[0].value) not in json.dumps(parts.open)


HARMLESS: dict[str, Json] = {
    "python.analysis": {"python": {"analysis": {"typeCheckingMode": "strict", "autoImportCompletions": True}}},
    "version": {"python": {"pythonVersion": "3.12"}},
    "switches and numbers": {"gopls": {"staticcheck": True, "analyses": {"nilness": False}, "limit": 20, "x": None}},
    "list of words": {"deno": {"unstable": ["off", "non-relative"]}},
    "inlay hints": {"typescript": {"inlayHints": {"parameterNames": {"enabled": "all"}}}},
    "empty things": {"a": {}, "b": [], "c": ""},
}


@pytest.mark.parametrize("settings", HARMLESS.values(), ids=HARMLESS)
def test_a_setting_that_can_name_nothing_counts_without_trust(settings: Json) -> None:
    assert settings_kept(settings) == settings


def test_only_the_leaves_that_need_trust_are_taken_out() -> None:
    settings: Json = {"python": {"analysis": {"typeCheckingMode": "basic", "extraPaths": ["x"]}, "pythonPath": "y"}}
    assert settings_kept(settings) == {"python": {"analysis": {"typeCheckingMode": "basic"}}}


def test_what_runs_is_taken_out_and_the_rest_of_the_file_stays() -> None:
    file: dict[str, Json] = {
        "lsp": {"x": {"command": ["a"], "env": {"A": "1"}, "watch": ["w"], "roots": ["r"], "disabled": True}, "y": {}},
        "timing": {"requestTimeoutMs": 5},
    }
    parts = split(file)
    assert parts.open == {"lsp": {"x": {"roots": ["r"], "disabled": True}, "y": {}}, "timing": {"requestTimeoutMs": 5}}
    assert parts.whole == file
    assert parts.gated == (
        GatedValue("x", ("command",), ["a"]),
        GatedValue("x", ("env",), {"A": "1"}),
        GatedValue("x", ("watch",), ["w"]),
    )
    assert parts.entries().keys() == {"x"}


@pytest.mark.parametrize("value", [{}, {"lsp": False}, {"lsp": {}}, {"timing": {"requestTimeoutMs": 1}}])
def test_a_file_that_runs_nothing_passes_whole(value: dict[str, Json]) -> None:
    parts = split(value)
    assert parts.open == parts.whole == value
    assert parts.gated == parts.refused == ()
    assert parts.entries() == {}


NEVER = [
    "PATH",
    "Path",
    "HOME",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "DYLD_INSERT_LIBRARIES",
    "NODE_OPTIONS",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "GIT_SSH_COMMAND",
    "GIT_CONFIG_COUNT",
    "BASH_ENV",
    "XDG_CONFIG_HOME",
    "PILOTFISH_HOME",
]


@pytest.mark.proves("T12")
@pytest.mark.parametrize("name", NEVER)
def test_a_variable_that_redirects_every_program_is_refused_even_with_trust(name: str) -> None:
    parts = split({"lsp": {"x": {"env": {name: "evil", "FINE": "1"}}}})
    assert parts.refused == (GatedValue("x", ("env", name), "evil"),)
    assert parts.whole == {"lsp": {"x": {"env": {"FINE": "1"}}}}
    assert parts.open == {"lsp": {"x": {}}}


@pytest.mark.parametrize("name", ["GOFLAGS", "JAVA_HOME", "RUST_LOG", "MY_PATH", "ENVIRONMENT"])
def test_other_variables_are_the_projects_own_once_it_is_trusted(name: str) -> None:
    parts = split({"lsp": {"x": {"env": {name: "v"}}}})
    assert parts.refused == ()
    assert parts.whole == {"lsp": {"x": {"env": {name: "v"}}}}


def leaf() -> st.SearchStrategy[Json]:
    return st.booleans() | st.integers(-9, 9) | st.text("ab./-~$ ", max_size=6)


trees = st.dictionaries(
    st.sampled_from(["mode", "nodePath", "args", "a b", "x"]),
    st.recursive(
        leaf() | st.lists(leaf(), max_size=2),
        lambda below: st.dictionaries(st.sampled_from(["mode", "tsdk", "y"]), below, max_size=2),
        max_leaves=5,
    ),
    max_size=3,
)


@pytest.mark.proves("T10")
@given(trees)
def test_no_path_and_no_command_line_is_left_without_trust(settings: dict[str, Json]) -> None:
    kept = settings_kept(settings)
    assert set(strings(kept)) <= {"mode", "x", "y", ""}, "keys that say nothing, and no text at all"
    assert settings_kept(kept) == kept, "what was kept once is kept again"


def strings(value: Json) -> list[str]:
    match value:
        case str():
            return [value]
        case list():
            return [text for item in value for text in strings(item)]
        case dict():
            return [text for key, item in value.items() for text in (key, *strings(item))]
        case _:
            return []
