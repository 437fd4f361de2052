"""The shape of a config file: what has it, what is said of the rest, and the JSON Schema made from it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pilotfish.config.problems import problems, without
from pilotfish.config.schema import DEFAULTS, PRESETS, ConfigFile, json_schema
from pilotfish.protocol.wire import Json
from pilotfish.servers.catalogue import builtin_layer

pytestmark = pytest.mark.proves("CFG-8")

NUMBERS = st.sampled_from([0, 1, -1, 1_000_000, 1_000_001, 86_400_000, 86_400_001, 10**30, 1.0, 1.5, True, None])
WORDS = st.sampled_from([
    "", "x", ".py", "py", "..", "a/../b", "/etc", "~", "~/x", "~bob/x", "/a/**", "/a/{b", "a b", "A=B", "\0", "a\n",
    "error", "warning", "path", "edit", "never", "backoff", "always", "named", "pi", "é", "x" * 65, "\udc80",
])  # fmt: skip
ANYTHING = st.one_of(NUMBERS, WORDS, st.booleans(), st.lists(WORDS, max_size=2), st.dictionaries(WORDS, WORDS))


def some_of(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    """An object with some of these keys, and now and then another."""
    return st.dictionaries(st.sampled_from([*names, *names, "unknown"]), ANYTHING, max_size=4)


TIMING = some_of("initializeTimeoutMs", "requestTimeoutMs", "diagnosticsWaitTimeoutMs", "firstTouchTimeoutMs")
SERVER_KEYS = (
    "disabled", "command", "extensions", "env", "initialization", "settings", "roots", "languageId", "watch", "restart",
)  # fmt: skip
SERVER = st.one_of(some_of(*SERVER_KEYS), st.fixed_dictionaries({"timeouts": TIMING}))
FEEDBACK_KEYS = (
    "preset", "includeSeverities", "maxPerFile", "maxOtherFiles", "maxTotalLines", "maxBytes", "otherFilesOrder",
    "otherFilesAfter", "onlyNew", "noVerdict",
)  # fmt: skip
SECTIONS: dict[str, st.SearchStrategy[Any]] = {
    "$schema": ANYTHING,
    "lsp": st.one_of(st.booleans(), st.none(), st.dictionaries(st.sampled_from(["x", "../x", "a.b", ""]), SERVER)),
    "timing": TIMING,
    "feedback": some_of(*FEEDBACK_KEYS),
    "navigationTools": ANYTHING,
    "startAhead": ANYTHING,
    "mcp": some_of("tools"),
    "pool": some_of("idleMinutes", "memoryMiBPerServer", "memoryMiB", "shareWorktrees"),
    "security": some_of("projectConfigPolicy", "trustedProjectRoots", "allowExternalPaths"),
    "other": ANYTHING,
}
FILES = st.one_of(st.sampled_from(list(SECTIONS)).flatmap(lambda name: st.fixed_dictionaries({name: SECTIONS[name]})))


@settings(max_examples=600)
@given(FILES)
@example({"navigationTools": "\udc80"})
@example({"\udc80": 1})
def test_what_has_another_shape_is_explained_and_without_that_it_has_the_shape(value: Json) -> None:
    found = problems(value, "lsp.json")
    try:
        msgspec.convert(value, ConfigFile)
    except (msgspec.ValidationError, UnicodeEncodeError):
        assert found
        assert all(problem.path and problem.accepted for problem in found)
    else:
        assert not found
    assert problems(without(value, found), "lsp.json") == ()


RIGHT: dict[str, Json] = {
    "nothing": {},
    "off": {"lsp": False},
    "a server": {"lsp": {"x": {"command": ["x", "--stdio"], "extensions": [".x"], "env": {"A": "b"}, "roots": ["a*"]}}},
    "options": {"lsp": {"x": {"initialization": {"a": [1, None, {"b": 2.5}]}, "timeouts": {"requestTimeoutMs": 1}}}},
    "no limit": {"pool": {"memoryMiBPerServer": None}, "feedback": {"maxBytes": None}},
    "trust": {"security": {"trustedProjectRoots": ["~/code/**", "/w"], "projectConfigPolicy": "never"}},
    "schema": {"$schema": "https://example.org/x.json", "mcp": {"tools": "lsp"}},
    "defaults": dict(DEFAULTS),
    "presets": {"feedback": dict(PRESETS["pi"])},
    "catalogue": {"lsp": {server: dict(entry) for server, entry in builtin_layer().items()}},
}


@pytest.mark.parametrize("value", RIGHT.values(), ids=RIGHT)
def test_an_ordinary_file_has_the_shape(value: Json) -> None:
    assert problems(value, "lsp.json") == ()


LOADING = """
import sys
from pilotfish.config.load import Catalogue, ConfigRequest, load
from pilotfish.config.places import user_places
from pilotfish.servers.catalogue import builtin_layer, canonical_id
root, home = sys.argv[1:]
loaded = load(ConfigRequest(root, user_places({"HOME": home}), Catalogue(builtin_layer(), canonical_id)))
print(len(loaded.errors), *sorted({"pydantic", "anyio", "asyncio"} & set(sys.modules)))
"""


@pytest.mark.proves("CLI-1")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param('{"lsp": {"ruff": {"disabled": true}}}', "0", id="right"),
        pytest.param('{"lsp": {"ruff": {"disabled": "yes"}}}', "1", id="wrong"),
    ],
)
def test_reading_the_configuration_imports_nothing_heavy(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / ".pilotfish").mkdir()
    (tmp_path / ".pilotfish" / "lsp.json").write_text(text)
    command = [sys.executable, "-c", LOADING, str(tmp_path), str(tmp_path / "home")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == said


@pytest.mark.proves("CFG-11")
def test_the_json_schema_names_every_closed_object_and_the_defaults() -> None:
    schema = json_schema()
    sections = {"TimingSettings", "ServerEntry", "FeedbackSettings", "PoolSettings", "McpSettings", "SecuritySettings"}
    assert set(schema["$defs"]) == sections
    assert all(body["additionalProperties"] is False for body in (schema, *schema["$defs"].values()))
    assert schema["$defs"]["TimingSettings"]["properties"]["initializeTimeoutMs"]["default"] == 15_000
    assert schema["$defs"]["SecuritySettings"]["properties"]["projectConfigPolicy"]["enum"] == [
        "always", "never", "trusted-only",
    ]  # fmt: skip
    assert schema["properties"]["lsp"]["anyOf"][0] == {"const": False}
    assert not [key for key, of in schema["$defs"]["ServerEntry"]["properties"].items() if "default" in of]


WRONG: dict[str, Json] = {
    "lsp is true": {"lsp": True},
    "server id": {"lsp": {"../x": {}}},
    "extension": {"lsp": {"x": {"extensions": ["py"]}}},
    "too small": {"timing": {"requestTimeoutMs": 0}},
    "unknown key": {"timming": {}},
    "relative root": {"security": {"trustedProjectRoots": ["code"]}},
}


@pytest.mark.proves("CFG-11")
def test_the_json_schema_accepts_what_we_accept() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())
    for value in RIGHT.values():
        jsonschema.validate(value, json_schema())


@pytest.mark.proves("CFG-11")
@pytest.mark.parametrize("value", WRONG.values(), ids=WRONG)
def test_the_json_schema_refuses_what_we_refuse(value: Json) -> None:
    assert problems(value, "lsp.json")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, json_schema())


@pytest.mark.proves("CFG-5", "CFG-6")
@pytest.mark.parametrize("section", ["timing", "feedback", "pool", "mcp", "security"])
def test_every_key_has_a_default(section: str) -> None:
    properties = json_schema()["$defs"][f"{section.capitalize()}Settings"]["properties"]
    assert DEFAULTS[section] == {key: of["default"] for key, of in properties.items() if key != "preset"}


@pytest.mark.proves("CFG-6")
@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_sets_every_limit_and_the_order(name: str) -> None:
    assert problems({"feedback": {**PRESETS[name], "preset": name}}, name) == ()
    keys = set(json_schema()["$defs"]["FeedbackSettings"]["properties"])
    assert set(PRESETS[name]) == keys - {"preset", "after", "onlyNew", "noVerdict", "beforeStop"}
