"""TOML and YAML files of hosts, changed line by line: our part comes and goes, and nothing else changes."""

import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.errors import Refused
from pilotfish.hosts.edits.edit import WholeFile
from pilotfish.hosts.edits.toml_edit import TomlEdit
from pilotfish.hosts.edits.yaml_edit import YamlEdit

pytestmark = pytest.mark.proves("HOOK-3")

# --- TOML -----------------------------------------------------------------------------------------------------------

TABLE = TomlEdit("mcp_servers", "pilotfish", {"command": '/opt/é "x"\\python', "args": ["-m", "pilotfish", "mcp"]})
OURS = {"command": '/opt/é "x"\\python', "args": ["-m", "pilotfish", "mcp"]}

TOML_LINES = st.lists(
    st.sampled_from(
        [
            "# a comment",
            "",
            'model = "x" # why',
            "[profiles.fast]",
            "[mcp_servers.other]",
            '[mcp_servers."quoted name".env]',
            "numbers = [\n  1, # one\n  2,\n]",
            'long = """\n[mcp_servers.pilotfish]\nnot a table\n"""',
            "[[steps]]",
            "mcp_servers.dotted.command = 'x'",
        ]
    ),
    max_size=8,
)


def _joined(lines: list[str], end: str) -> str:
    return end.join(lines) + end


def toml_files() -> st.SearchStrategy[str]:
    files = st.builds(_joined, TOML_LINES, st.sampled_from(["\n", "\r\n"]))
    return (files | files.map(str.rstrip)).filter(_is_toml)


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


@settings(max_examples=60, deadline=None)
@given(toml_files())
def test_a_table_comes_and_goes_and_the_rest_means_the_same(text: str) -> None:
    before: dict[str, Any] = tomllib.loads(text)
    try:
        added = TABLE.added(text)
    except Refused:
        # A file that writes the same table in another way has no place for ours.
        assert "mcp_servers" in before
        return
    assert added.startswith(text)
    assert tomllib.loads(added)["mcp_servers"]["pilotfish"] == OURS
    removed = TABLE.removed(added, text) or ""
    assert tomllib.loads(removed) == before
    assert removed.rstrip() == text.rstrip()


def test_a_table_between_others_goes_alone() -> None:
    text = TABLE.added('model = "x"\n') + "\n# theirs\n[other] # also\na = 1\n"
    assert TABLE.removed(text, 'model = "x"\n') == 'model = "x"\n\n# theirs\n[other] # also\na = 1\n'


def test_a_file_of_ours_alone_goes_and_one_of_others_stays() -> None:
    assert TABLE.removed(TABLE.added(None), None) is None
    assert TABLE.removed("a = 1\n", None) == "a = 1\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a = ", id="not TOML"),
        pytest.param("mcp_servers = {}", id="inline table"),
        pytest.param("mcp_servers = 1", id="no table"),
        pytest.param("[mcp_servers]\npilotfish = {}", id="there already"),
    ],
)
def test_a_toml_file_without_a_place_is_refused(text: str) -> None:
    with pytest.raises(Refused) as refused:
        TABLE.added(text)
    assert refused.value.hint


def test_a_table_in_another_hand_is_left_to_the_person() -> None:
    with pytest.raises(Refused):
        TABLE.removed("[mcp_servers]\npilotfish = {command = 'x'}\n", None)


# --- YAML -----------------------------------------------------------------------------------------------------------

LINT = YamlEdit("lint-cmd", "/opt/python -I -S /opt/pilotfish/aider_lint.py")
SERVER = YamlEdit("extensions", {"pilotfish": {"name": "pilotfish", "args": ["-m", "x"], "enabled": True}})
CHILD = ["pilotfish:", 'name: "pilotfish"', 'args: ["-m", "x"]', "enabled: true"]

YAML_BLOCKS = st.lists(
    st.sampled_from(
        [
            "# a comment",
            "",
            "model: x # why",
            "list:\n- a\n- b: 1",
            "list2:\n    - a",
            "text: |\n  extensions:\n    pilotfish: no\n",
            '"quoted": "a: b"',
            "deep:\n  pilotfish:\n    a: 1",
        ]
    ),
    max_size=6,
    unique=True,
)


@settings(max_examples=60, deadline=None)
@given(YAML_BLOCKS, st.sampled_from(["", "---\n", "# first\n---\n"]), st.sampled_from(["", "\n"]))
def test_a_key_comes_and_goes_and_every_line_stays(blocks: list[str], start: str, end: str) -> None:
    text = start + "\n".join(blocks) + end
    for edit in (LINT, SERVER):
        added = edit.added(text)
        assert added.startswith(text)
        removed = edit.removed(added, text) or ""
        assert removed.rstrip("\n") == text.rstrip("\n")


@pytest.mark.parametrize(
    ("before", "indent"),
    [
        pytest.param("extensions:\n  developer:\n    enabled: true\nmodel: x\n", "  ", id="two spaces"),
        pytest.param("extensions: # mine\n\n    # first\n    developer:\n        enabled: true\n", "    ", id="four"),
        pytest.param("model: x\nextensions:\n", "  ", id="empty"),
        pytest.param("model: x\r\nextensions:\r\n  a:\r\n    b: 1\r\n", "  ", id="CRLF"),
        pytest.param("model: x\nextensions:", "  ", id="no line end"),
    ],
)
def test_a_child_stands_below_its_parent_with_the_indentation_of_the_others(before: str, indent: str) -> None:
    added = SERVER.added(before)
    lines = added.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("extensions:"))
    assert lines[at + 1 : at + 5] == [indent + CHILD[0], *(indent * 2 + line for line in CHILD[1:])]
    removed = SERVER.removed(added, before)
    assert removed is not None
    assert removed.rstrip("\n") == before.rstrip("\n")


def test_a_parent_that_came_with_us_goes_with_us() -> None:
    assert SERVER.removed(SERVER.added("model: x\n"), "model: x\n") == "model: x\n"
    assert SERVER.removed(SERVER.added(None), None) is None


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        pytest.param(LINT, "lint-cmd: mine\n", id="taken"),
        pytest.param(LINT, "'lint-cmd': [mine]\n", id="taken, quoted"),
        pytest.param(LINT, "{a: 1}\n", id="flow style"),
        pytest.param(LINT, "a: 1\n...\n", id="end of document"),
        pytest.param(LINT, "a: 1\n---\nb: 2\n", id="two documents"),
        pytest.param(LINT, "- a\nwhat\n", id="no key"),
        pytest.param(SERVER, "extensions: {a: 1}\n", id="flow children"),
        pytest.param(SERVER, "extensions:\n- a\n", id="a list"),
        pytest.param(SERVER, "extensions:\n  - a\n", id="an indented list"),
        pytest.param(SERVER, "extensions: null\n", id="a scalar"),
    ],
)
def test_yaml_that_we_might_misread_is_refused_with_what_to_do(edit: YamlEdit, text: str) -> None:
    with pytest.raises(Refused) as refused:
        edit.added(text)
    assert refused.value.hint


def test_a_linter_of_others_stays() -> None:
    assert LINT.removed("lint-cmd: mine\n", None) == "lint-cmd: mine\n"
    assert SERVER.removed("extensions:\n  other:\n    a: 1\n", None) == "extensions:\n  other:\n    a: 1\n"


# --- Whole files ----------------------------------------------------------------------------------------------------


def test_a_file_of_ours_is_replaced_and_one_of_others_is_not() -> None:
    ours = WholeFile("// Pilotfish, new\n")
    assert ours.added(None) == ours.added("// pilotfish, old\n") == ours.text
    with pytest.raises(Refused):
        ours.added("// theirs\n")
    assert ours.removed("// Pilotfish, old\n", None) is None
    assert ours.removed("// theirs\n", None) == "// theirs\n"
