"""A repository whose every key tries to run `touch pwned` gets none of it into the configuration in force."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from msgspec.structs import asdict

from pilotfish.config.load import Loaded
from pilotfish.config.schema import json_schema
from pilotfish.config.sheets import COMPOSED, GENERAL, PER_SERVER
from pilotfish.protocol.wire import Json
from support.files.config_home import Home

pytestmark = pytest.mark.proves("T1", "TRUST-1", "TRUST-5")

HOSTILE = "touch pwned"
SETTINGS: Json = {
    "command": HOSTILE,
    "path": "pwned",
    "args": ["pwned"],
    "enable": {"script": "pwned"},
    "x": HOSTILE,
    "y": ["./pwned"],
    "z": "pwned",
    "python": {"pythonPath": "pwned", "analysis": {"extraPaths": ["pwned"]}},
    "plugins": [{"name": "pwned"}],
    "rust-analyzer": {"check": {"overrideCommand": ["touch", "pwned"]}, "server": {"extraEnv": {"A": "pwned"}}},
    HOSTILE: True,
}


def hostile(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[Json]:
    """Values that a property accepts, or nearly, with the command in them."""
    if "$ref" in schema:
        return hostile(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions)
    branches = schema.get("anyOf") or schema.get("oneOf")
    if branches:
        return [value for branch in branches for value in hostile(branch, definitions)]
    match schema.get("type"):
        case "array":
            return [["touch", "pwned"], [HOSTILE], [f".{HOSTILE}"]]
        case "object" if "properties" in schema:
            return [
                {key: value} for key, inner in schema["properties"].items() for value in hostile(inner, definitions)
            ]
        case "object":
            return [SETTINGS, {"A": HOSTILE}, {"PATH": HOSTILE, "LD_PRELOAD": "pwned"}, {HOSTILE: "pwned"}]
        case _:
            return [HOSTILE, "pwned", ["pwned"], {"x": HOSTILE}]


def own_files() -> Iterator[Json]:
    """Every key of our own file, alone and all together, for a known and for a new server."""
    schema = json_schema()
    definitions = schema["$defs"]
    together: dict[str, Json] = {}
    for key, inner in schema["properties"].items():
        if key != "lsp":
            yield from ({key: value} for value in hostile(inner, definitions))
    for server in ("pyright", "new"):
        for field, inner in definitions["ServerEntry"]["properties"].items():
            for value in hostile(inner, definitions):
                together[field] = value
                yield {"lsp": {server: {"extensions": [".py"], "command": ["pwned"], field: value}}}
        yield {"lsp": {server: dict(together)}}


def foreign_files() -> Iterator[tuple[str, Json]]:
    """Every key that is understood in another host's file, in each host's place for it."""
    values: list[Json] = [HOSTILE, "pwned", ["touch", "pwned"], {"A": HOSTILE}, SETTINGS]
    for value in values:
        for key in (*PER_SERVER, *COMPOSED):
            entry: Json = {"command": ["pwned"], "extensions": [".py"], key: value}
            for server in ("pyright", "new"):
                yield ".pi/lsp.json", {"lsp": {server: entry}}
                yield ".pi/lsp.json", {"servers": [{"id": server, **entry}]}
                yield ".dispatch/lsp.json", {"servers": {server: entry}}
                yield ".llxprt/settings.json", {"lsp": {"servers": {server: entry}}}
                yield "opencode.json", {"lsp": {server: entry}}
        for key in GENERAL:
            yield ".pi/lsp.json", {key: value}
            yield ".llxprt/settings.json", {"lsp": {key: value}}


def pwned(loaded: Loaded) -> bool:
    """Whether the word reached anything that is started, sent to a server, or decides what may be."""
    servers = loaded.config.servers.values()
    running = [[s.command, s.watch, dict(s.env), dict(s.initialization), dict(s.settings)] for s in servers]
    return "pwned" in json.dumps([running, asdict(loaded.config.security)])


def test_no_key_of_our_own_file_runs_anything(home: Home) -> None:
    before = home.load().config
    files = [*own_files()]
    assert len(files) > 60
    for content in files:
        home.project(content)
        loaded = home.load()
        assert not pwned(loaded), content
        assert loaded.config.security == before.security


@pytest.mark.proves("CFG-9")
def test_no_key_of_another_hosts_file_runs_anything(home: Home) -> None:
    files = [*foreign_files()]
    assert len(files) > 500
    for name, content in files:
        file = home.project(content, name)
        assert not pwned(home.load()), (name, content)
        file.unlink()


@pytest.mark.parametrize("field", ["command", "watch", "env", "initialization", "settings"])
def test_with_trust_the_same_values_do_get_in(home: Home, field: str) -> None:
    """The tests above can fail: what they look for is there as soon as a person trusts the workspace."""
    values: dict[str, Json] = {"command": ["pwned"], "watch": ["pwned"], "env": {"A": "pwned"}}
    home.user({"security": {"trustedProjectRoots": [str(home.workspace)]}})
    home.project({"lsp": {"pyright": {field: values.get(field, SETTINGS)}}})
    assert pwned(home.load())


@pytest.mark.parametrize("name", [".pilotfish/lsp.json", ".pi/lsp.json", "opencode.json"])
def test_a_parent_folders_file_says_nothing(home: Home, name: str) -> None:
    inner = Home(home.path, home.workspace / "inner", home.environment)
    inner.workspace.mkdir()
    home.project({"lsp": {"pyright": {"command": ["pwned"]}}, "navigationTools": False}, name)
    home.user({"security": {"trustedProjectRoots": [str(home.workspace)]}})
    loaded = inner.load()
    assert loaded.config.trusted
    assert not pwned(loaded)
    assert loaded.project_file == ""


@pytest.mark.proves("T3")
def test_a_link_to_a_trusted_workspace_lends_nothing_to_this_one(home: Home) -> None:
    trusted = Home(home.path, home.workspace.with_name("trusted"), home.environment)
    trusted.project({"lsp": {"pyright": {"command": ["pwned"]}}})
    home.user({"security": {"trustedProjectRoots": [str(trusted.workspace)]}})
    (home.workspace / ".pilotfish").symlink_to(trusted.workspace / ".pilotfish")
    assert pwned(trusted.load())
    assert not pwned(home.load())
