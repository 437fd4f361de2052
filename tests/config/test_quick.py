"""The quick look at a config file: it may have no opinion, and is never wrong when it has one."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pilotfish.config.defaults import DEFAULTS, PRESETS
from pilotfish.config.faults import faults
from pilotfish.config.quick import is_certainly_valid
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
    "otherFilesAfter", "onlyNew",
)  # fmt: skip
SECTIONS: dict[str, st.SearchStrategy[Any]] = {
    "$schema": ANYTHING,
    "lsp": st.one_of(st.booleans(), st.none(), st.dictionaries(st.sampled_from(["x", "../x", "a.b", ""]), SERVER)),
    "timing": TIMING,
    "feedback": some_of(*FEEDBACK_KEYS),
    "navigationTools": ANYTHING,
    "mcp": some_of("tools"),
    "pool": some_of("idleMinutes", "memoryMiBPerServer", "memoryMiB"),
    "security": some_of("projectConfigPolicy", "trustedProjectRoots", "allowExternalPaths"),
    "other": ANYTHING,
}
FILES = st.one_of(st.sampled_from(list(SECTIONS)).flatmap(lambda name: st.fixed_dictionaries({name: SECTIONS[name]})))


@settings(max_examples=600)
@given(FILES)
@example({"navigationTools": "\udc80"})
def test_what_is_certain_here_the_schema_accepts(value: Json) -> None:
    if is_certainly_valid(value):
        assert faults(value, "lsp.json") == ()


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
def test_an_ordinary_file_is_certain(value: Json) -> None:
    assert is_certainly_valid(value)


LOADING = """
import sys
from pilotfish.config.load import Catalogue, ConfigRequest, load
from pilotfish.config.places import user_places
from pilotfish.servers.catalogue import builtin_layer, canonical_id
root, home = sys.argv[1:]
loaded = load(ConfigRequest(root, user_places({"HOME": home}), Catalogue(builtin_layer(), canonical_id)))
print(len(loaded.errors), "pydantic" in sys.modules)
"""


@pytest.mark.proves("CLI-1")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param('{"lsp": {"ruff": {"disabled": true}}}', "0 False", id="right"),
        pytest.param('{"lsp": {"ruff": {"disabled": "yes"}}}', "1 True", id="wrong"),
    ],
)
def test_only_a_file_with_errors_costs_the_import_of_pydantic(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / ".pilotfish").mkdir()
    (tmp_path / ".pilotfish" / "lsp.json").write_text(text)
    command = [sys.executable, "-c", LOADING, str(tmp_path), str(tmp_path / "home")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == said
