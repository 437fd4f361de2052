"""Other hosts' files, read as ours."""

from pathlib import Path

import pytest

from pilotfish.config.jsonc import parse
from pilotfish.config.merge import ConfigSource, ValueOrigin
from pilotfish.config.places import CONFIG_DIALECTS
from pilotfish.config.problems import ProblemGrade, path_text, problems
from pilotfish.config.sheets import Translation, translation
from pilotfish.model import AbsPath
from pilotfish.protocol.wire import Json
from support.files.config_home import Home, canonical_id

pytestmark = pytest.mark.proves("CFG-9")

EXAMPLES = Path(__file__).parent / "foreign"
BY_HOST = {dialect.host: dialect for dialect in CONFIG_DIALECTS}


def translated(host: str, value: Json) -> Translation | None:
    return translation(BY_HOST[host], value, "/f.json", canonical_id)


EXPECTED: dict[str, tuple[str, Json, set[str]]] = {
    "pi-map.json": (
        "pi",
        {
            "lsp": {
                "typescript": {
                    "command": ["typescript-language-server", "--stdio"],
                    "extensions": [".ts", ".tsx"],
                    "env": {"TSS_LOG": "-level terse"},
                    "initialization": {"preferences": {"quotePreference": "double"}},
                    "roots": ["tsconfig.json", "package.json"],
                },
                "eslint": {"disabled": True},
            },
            "security": {
                "projectConfigPolicy": "trusted-only",
                "trustedProjectRoots": ["~/Code/personal/**"],
                "allowExternalPaths": False,
            },
            "timing": {"requestTimeoutMs": 8000, "diagnosticsWaitTimeoutMs": 2500},
        },
        set(),
    ),
    "pi-servers.json": (
        "pi",
        {
            "lsp": {
                "typescript": {
                    "command": ["bun", "run", "typescript-language-server", "--stdio"],
                    "extensions": [".ts", ".js"],
                    "languageId": {".ts": "typescript", ".js": "typescript"},
                    "roots": ["tsconfig.base.json", ".git"],
                },
                "rust-analyzer": {"initialization": {"check": {"command": "clippy"}, "checkOnSave": False}},
            },
            "timing": {"requestTimeoutMs": 30000},
        },
        set(),
    ),
    "pi-list.json": (
        "pi",
        {
            "lsp": {
                "pyright": {
                    "disabled": False,
                    "command": ["pyright-langserver", "--stdio"],
                    "extensions": [".py", ".pyi"],
                    "roots": ["pyproject.toml"],
                    "languageId": {".py": "python", ".pyi": "python"},
                    "timeouts": {"initializeTimeoutMs": 45000, "diagnosticsWaitTimeoutMs": 1500},
                    "initialization": {},
                    "settings": {"python": {"analysis": {"typeCheckingMode": "basic"}}},
                },
                "eslint": {"disabled": True},
            }
        },
        {"servers[0].exclude", "servers[0].cwd", "servers[2]"},
    ),
    "dispatch.json": (
        "dispatch",
        {
            "lsp": {
                "luau": {
                    "command": ["luau-lsp", "lsp"],
                    "extensions": [".luau", ".lua"],
                    "roots": ["default.project.json"],
                    "env": {"RUST_LOG": "warn"},
                    "initialization": {
                        "luau-lsp": {"sourcemap": {"autogenerate": True, "rojoProjectFile": "default.project.json"}}
                    },
                    "watch": ["rojo", "sourcemap", "default.project.json", "--watch", "-o", "sourcemap.json"],
                }
            }
        },
        set(),
    ),
    "llxprt.json": (
        "llxprt",
        {
            "lsp": {
                "eslint": {"disabled": True},
                "gopls": {
                    "command": ["gopls", "serve"],
                    "extensions": [".go", ".mod"],
                    "roots": ["go.work", "go.mod"],
                    "initialization": {"staticcheck": True},
                },
            },
            "timing": {"diagnosticsWaitTimeoutMs": 5000, "firstTouchTimeoutMs": 15000, "requestTimeoutMs": 7000},
            "feedback": {"includeSeverities": ["error", "warning"], "maxPerFile": 10, "maxOtherFiles": 2},
            "navigationTools": False,
        },
        {"lsp.navigationTimeout"},
    ),
    "llxprt-list.json": (
        "llxprt",
        {
            "lsp": {
                "pyright": {"command": ["pyright-langserver", "--stdio"]},
                "mine": {"command": ["mine"], "extensions": [".mine"]},
            }
        },
        {"lsp.servers[0].rootUri"},
    ),
    "opencode.jsonc": (
        "opencode",
        {
            "lsp": {
                "typescript": {
                    "disabled": False,
                    "command": ["typescript-language-server", "--stdio"],
                    "env": {"TSS_LOG": "-level verbose"},
                },
                "php-intelephense": {"disabled": True},
                "custom": {
                    "command": ["custom-lsp-server", "--stdio"],
                    "extensions": [".custom"],
                    "initialization": {"preferences": {"importModuleSpecifierPreference": "relative"}},
                },
            }
        },
        set(),
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_real_shaped_file_is_translated(name: str) -> None:
    host, value, unused = EXPECTED[name]
    found = translated(host, parse((EXAMPLES / name).read_bytes()).value)
    assert found is not None
    assert found.value == value
    assert {path_text(note.path) for note in found.notes} == unused
    assert all(note.grade is ProblemGrade.NOTE for note in found.notes)
    assert problems(found.value, "f") == ()


def test_every_example_is_used() -> None:
    assert {path.name for path in EXAMPLES.iterdir()} == set(EXPECTED)


ODD: dict[str, tuple[str, Json, Json]] = {
    "pi off": ("pi", {"lsp": False}, {"lsp": False}),
    "llxprt off": ("llxprt", {"lsp": False}, {"lsp": False}),
    "opencode's own servers off": ("opencode", {"lsp": False}, {}),
    "opencode on": ("opencode", {"lsp": True}, {}),
    "opta off": ("opta", {"lsp": {"enabled": False, "servers": {"x": {"command": "y"}}}}, {"lsp": False}),
    "opta on": (
        "opta",
        {"lsp": {"enabled": True, "servers": {"typescript": {"command": "t", "args": ["-v"]}}, "timeout": 9}},
        {"lsp": {"typescript": {"command": ["t", "-v"]}}, "timing": {"requestTimeoutMs": 9}},
    ),
    "nothing set": ("llxprt", {"lsp": {}}, {}),
    "section is a string": ("opencode", {"lsp": "yes"}, {}),
    "file is a list": ("pi", [], {}),
    "servers is a string": ("dispatch", {"servers": "x"}, {}),
    "a server is a list": ("opencode", {"lsp": {"x": []}}, {}),
    "args without a command": ("llxprt", {"lsp": {"servers": {"x": {"args": ["a"]}}}}, {"lsp": {"x": {}}}),
    "command with args twice": (
        "pi",
        {"servers": {"x": {"command": ["a"], "args": ["b"]}}},
        {"lsp": {"x": {"command": ["a", "b"]}}},
    ),
    "args that are no list": (
        "pi",
        {"servers": {"x": {"command": "a", "args": "b"}}},
        {"lsp": {"x": {"command": ["a"]}}},
    ),
    "a value that we do not accept": (
        "pi",
        {"timeout": -1, "servers": {"x": {"env": {"A": 1}}}},
        {"timing": {}, "lsp": {"x": {"env": {}}}},
    ),
    "both places": (
        "pi",
        {"lsp": {"x": {"roots": ["a"]}}, "servers": {"x": {"env": {"A": "b"}}}},
        {"lsp": {"x": {"roots": ["a"], "env": {"A": "b"}}}},
    ),
    "a language without extensions": (
        "pi",
        {"servers": {"x": {"languageId": "go"}}},
        {"lsp": {"x": {"languageId": {}}}},
    ),
}


@pytest.mark.parametrize(("host", "value", "expected"), ODD.values(), ids=ODD)
def test_odd_files_are_taken_for_what_they_can_mean(host: str, value: Json, expected: Json) -> None:
    found = translated(host, value)
    assert found is not None
    assert found.value == expected


@pytest.mark.parametrize("host", ["llxprt", "opencode"])
@pytest.mark.parametrize("value", [{}, {"theme": "dark"}, [], "x"], ids=str)
def test_a_file_that_says_nothing_about_servers_is_passed_over(host: str, value: Json) -> None:
    assert translated(host, value) is None


# --- Which file is read -------------------------------------------------------------------------------------------

FILES: dict[str, tuple[str, Json]] = {
    "pi": (".pi/lsp.json", {"lsp": {"pyright": {"roots": ["pi"]}}}),
    "dispatch": (".dispatch/lsp.json", {"servers": {"pyright": {"rootMarkers": ["dispatch"]}}}),
    "llxprt": (".llxprt/settings.json", {"lsp": {"servers": {"pyright": {"workspaceRootMarkers": ["llxprt"]}}}}),
    "opencode": ("opencode.json", {"lsp": {"pyright": {"roots": ["opencode"]}}}),
    "opencode with comments": ("opencode.jsonc", {"lsp": {"pyright": {"roots": ["opencode with comments"]}}}),
}


def test_the_first_of_a_projects_files_counts_and_only_without_our_own(home: Home) -> None:
    for name, content in FILES.values():
        home.project(content, name)
    for host, (name, _) in FILES.items():
        loaded = home.load()
        assert loaded.config.servers["pyright"].roots == (host,)
        origin = ValueOrigin(ConfigSource.PROJECT, AbsPath(str(home.workspace / name)))
        assert loaded.config.origins["lsp", "pyright", "roots"] == origin
        (home.workspace / name).unlink()
    for name, content in FILES.values():
        home.project(content, name)
    home.project({})
    assert home.load().config.servers["pyright"].roots == ("pyproject.toml",)


def test_a_host_file_without_servers_does_not_hide_the_next_one(home: Home) -> None:
    home.project({"ui": {}}, ".llxprt/settings.json")
    name, content = FILES["opencode"]
    home.project(content, name)
    assert home.load().config.servers["pyright"].roots == ("opencode",)


def test_a_server_that_we_do_not_know_in_a_host_file_is_a_note(home: Home) -> None:
    home.project({"lsp": {"their-own": {"env": {}}}}, "opencode.json")
    loaded = home.load()
    (note,) = loaded.problems
    assert note.grade is ProblemGrade.NOTE
    assert "their-own" not in loaded.config.servers


def test_a_broken_host_file_is_a_warning(home: Home) -> None:
    home.project(b"{", ".pi/lsp.json")
    loaded = home.load()
    assert loaded.errors == ()
    assert "cannot be read" in str(loaded.warnings[0])


GLOBALS: dict[str, tuple[str, str, Json]] = {
    "pi": ("pi", ".pi/agent/lsp.json", {"lsp": {"pyright": {"roots": ["g"]}}}),
    "opencode": ("opencode", ".config/opencode/opencode.json", {"lsp": {"pyright": {"roots": ["g"]}}}),
    "llxprt": ("llxprt", ".llxprt/settings.json", {"lsp": {"servers": {"pyright": {"rootMarkers": ["g"]}}}}),
    "opta": ("opta", ".config/opta/config.json", {"lsp": {"servers": {"pyright": {"rootPatterns": ["g"]}}}}),
    "llxprt, newer": (
        "llxprt",
        ".config/llxprt-code/settings.json",
        {"lsp": {"servers": {"pyright": {"rootMarkers": ["g"]}}}},
    ),
}


@pytest.mark.parametrize(("host", "name", "content"), GLOBALS.values(), ids=GLOBALS)
def test_a_hosts_own_user_file_counts_for_that_host_and_without_ours(
    home: Home, host: str, name: str, content: Json
) -> None:
    file = home.user(content, name)
    loaded = home.load(host=host)
    assert loaded.config.servers["pyright"].roots == ("g",)
    assert loaded.config.origins["lsp", "pyright", "roots"] == ValueOrigin(ConfigSource.GLOBAL, AbsPath(str(file)))
    assert home.load().config.servers["pyright"].roots == ("pyproject.toml",)
    assert home.load(host="claude").config.servers["pyright"].roots == ("pyproject.toml",)
    home.user({})
    assert home.load(host=host).config.servers["pyright"].roots == ("pyproject.toml",)


@pytest.mark.proves("TRUST-1")
def test_pis_own_user_file_may_trust_and_its_project_file_may_not(home: Home) -> None:
    rules: Json = {"security": {"trustedProjectRoots": [str(home.workspace)]}}
    home.project({**rules, "lsp": {"pyright": {"command": ["./own"]}}}, ".pi/lsp.json")
    assert home.load(host="pi").config.servers["pyright"].command == ("pyright-langserver", "--stdio")
    home.user(rules, ".pi/agent/lsp.json")
    assert home.load(host="pi").config.servers["pyright"].command == ("./own",)
    assert not home.load().config.trusted


@pytest.mark.proves("TRUST-4")
def test_rules_of_pis_user_file_that_we_do_not_accept_trust_nothing(home: Home) -> None:
    home.user({"security": {"trustedProjectRoots": [str(home.workspace), "relative"]}}, ".pi/agent/lsp.json")
    assert not home.load(host="pi").config.trusted
