"""The Opta tool set: schemas, permissions, calls from JSON, and what follows an edit."""

import json
from pathlib import Path

import pytest

import pilotfish
from support.services.computer import ScriptedShell, scripted_shell

pytestmark = [pytest.mark.anyio, pytest.mark.proves("OPTA-1")]

NAMES = ["lsp_definition", "lsp_references", "lsp_hover", "lsp_document_symbols", "lsp_symbols", "lsp_rename"]
AT = json.dumps({"path": "a.toy", "line": 1, "character": 4})


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        pytest.param("lsp_definition", AT, "a.toy:1:4", id="definition"),
        pytest.param("lsp_references", AT, "a.toy:1:4", id="references"),
        pytest.param("lsp_hover", AT, "a number", id="hover"),
        pytest.param("lsp_document_symbols", '{"path": "a.toy"}', "a.toy:1:4 variable greet", id="outline"),
        pytest.param("lsp_nope", AT, "Unknown tool: lsp_nope", id="unknown"),
        pytest.param(
            "lsp_definition",
            '{"path": "a.toy", "line": 1}',
            "character is missing. It takes path, line, character.",
            id="missing field",
        ),
        pytest.param("lsp_symbols", '{"query": "g"', "The arguments must be a JSON object:", id="no JSON"),
        pytest.param("lsp_symbols", "[]", "The arguments must be a JSON object:", id="no object"),
        pytest.param("lsp_symbols", "", "query is missing.", id="nothing"),
        pytest.param(
            "lsp_definition",
            '{"path": "a.xyz", "line": 1, "character": 0}',
            "unavailable: No LSP server configured for .xyz files",
            id="a type that nobody serves",
        ),
    ],
)
async def test_a_call_gives_text(name: str, arguments: str, text: str, shell: ScriptedShell) -> None:
    (shell.root / "a.xyz").write_text("x\n")
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        assert (await pilotfish.ToolRegistry(workspace).execute(name, arguments)).startswith(text)


async def test_where_nothing_is_found_that_is_said(shell: ScriptedShell) -> None:
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        registry = pilotfish.ToolRegistry(workspace)
        await registry.execute("lsp_hover", AT)
        shell.servers[0].on("textDocument/definition", lambda _: [])
        assert await registry.execute("lsp_definition", AT) == "No results found."


async def test_a_rename_is_a_preview(shell: ScriptedShell) -> None:
    arguments = json.dumps({"path": "a.toy", "line": 1, "character": 4, "new_name": "hello"})
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        said = await pilotfish.ToolRegistry(workspace).execute("lsp_rename", arguments)
    assert "+let hello = 1" in said
    assert (shell.root / "a.toy").read_text() == "let greet = 1\ngreet\n"


async def test_schemas_and_permissions_are_those_of_the_six(shell: ScriptedShell) -> None:
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        registry = pilotfish.ToolRegistry(workspace)
        schemas, permissions = registry.schemas(), registry.permissions()
    assert sorted(schema["function"]["name"] for schema in json.loads(json.dumps(schemas))) == sorted(NAMES)
    assert permissions == {**dict.fromkeys(NAMES, "allow"), "lsp_rename": "ask"}


@pytest.mark.parametrize("config", [{"lsp": False}, {"navigationTools": False}], ids=["all off", "tools off"])
@pytest.mark.proves("CFG-3", "CFG-7")
async def test_there_are_no_tools_where_the_configuration_says_so(config: dict[str, bool], tmp_path: Path) -> None:
    shell = scripted_shell(tmp_path, config)
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        registry = pilotfish.ToolRegistry(workspace)
        assert (registry.schemas(), registry.permissions()) == ([], {})


@pytest.mark.proves("CFG-9", "OPTA-1")
async def test_the_file_of_opta_counts_for_opta(tmp_path: Path) -> None:
    shell = scripted_shell(tmp_path)
    file = Path(shell.system.places.config) / "opta" / "config.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    own = Path(shell.system.places.global_file)
    servers = json.loads(own.read_text())["lsp"]
    own.unlink()
    command, *words = servers["toy"]["command"]
    entry = {"command": command, "args": words, "fileExtensions": servers["toy"]["extensions"]}
    file.write_text(json.dumps({"lsp": {"enabled": True, "servers": {"toy": entry}, "timeout": 9000}}))
    async with pilotfish.open(shell.root, host="opta", shell=shell.system) as workspace:
        assert "toy" in {row.server_id for row in workspace.status().rows}
        assert pilotfish.ToolRegistry(workspace).schemas()
        file.write_text(json.dumps({"lsp": {"enabled": False, "servers": {"toy": entry}}}))
        assert pilotfish.ToolRegistry(workspace).schemas() == []


@pytest.mark.proves("REG-6")
async def test_without_a_server_there_is_a_search_to_copy(shell: ScriptedShell) -> None:
    (Path(shell.system.environment["HOME"]) / "toy-server").unlink()
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        said = await pilotfish.ToolRegistry(workspace).execute("lsp_definition", AT)
    assert "is not available" in said
    assert said.endswith(r'search_files({"pattern": "\\bgreet\\b", "glob": "*.toy"})')


@pytest.mark.proves("REG-6", "OPTA-1")
async def test_a_server_that_is_missing_and_would_need_trust_is_to_be_installed_first(shell: ScriptedShell) -> None:
    (shell.root / "A.java").write_text("class Greeter {}\n")
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        place = '{"path": "A.java", "line": 1, "character": 6}'
        said = (await pilotfish.ToolRegistry(workspace).execute("lsp_definition", place)).splitlines()
    assert said[0] == 'LSP server "jdtls" is not available.'
    assert said[1].startswith("Install it with: ")
    step = f"`pilotfish trust {shell.root}` shows what would run, and asks."
    assert said[2] == f"It also needs trust. Only a person can allow it, at a terminal: {step}"
    assert said[3].endswith(r'search_files({"pattern": "\\bGreeter\\b", "glob": "*.java"})')


@pytest.mark.proves("OPTA-1")
async def test_a_place_before_the_first_line_is_on_the_first_line(shell: ScriptedShell) -> None:
    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        registry = pilotfish.ToolRegistry(workspace)
        first = await registry.execute("lsp_hover", '{"path": "a.toy", "line": 1, "character": 0}')
        before = await registry.execute("lsp_hover", '{"path": "a.toy", "line": 0, "character": 0}')
    assert first == before


# --- After an edit --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        pytest.param("edit_file", {"path": "a.toy", "old": "x", "new": "bad"}, id="edit"),
        pytest.param("write_file", {"path": "a.toy", "content": "bad"}, id="write"),
        pytest.param("multi_edit", {"edits": [{"path": "a.toy", "old": "x"}, {"old": "y"}, 3]}, id="several"),
    ],
)
@pytest.mark.proves("FMT-1")
async def test_an_edit_of_the_host_is_followed_by_what_it_broke(
    name: str, arguments: dict[str, object], shell: ScriptedShell
) -> None:
    async def run(called: str, given: str) -> str:
        assert (called, json.loads(given)) == (name, arguments)
        (shell.root / "a.toy").write_text("bad\n")
        return "Edited.\n"

    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        said = await pilotfish.ToolRegistry(workspace, run).execute(name, json.dumps(arguments))
    assert said.startswith("Edited.\n\nLSP errors detected in this file")


@pytest.mark.proves("FMT-8")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        pytest.param("edit_file", '{"path": "a.toy"}', id="nothing broken"),
        pytest.param("edit_file", '{"path": "nope.toy"}', id="no such file"),
        pytest.param("edit_file", '{"path": "/etc/passwd"}', id="outside"),
        pytest.param("edit_file", "{", id="no JSON"),
        pytest.param("edit_file", '{"path": 3, "edits": "x"}', id="no path"),
        pytest.param("read_file", '{"path": "a.toy"}', id="another tool"),
    ],
)
async def test_otherwise_its_answer_stays_word_for_word(name: str, arguments: str, shell: ScriptedShell) -> None:
    async def run(called: str, given: str) -> str:
        return "Done."

    async with pilotfish.open(shell.root, shell=shell.system) as workspace:
        assert await pilotfish.ToolRegistry(workspace, run).execute(name, arguments) == "Done."
        assert await pilotfish.ToolRegistry(workspace).edited(name, arguments) == ""


def test_the_blocking_twin_does_the_same(shell: ScriptedShell) -> None:
    def run(called: str, given: str) -> str:
        (shell.root / "a.toy").write_text("bad\n")
        return "Done."

    with pilotfish.open_blocking(shell.root, shell=shell.system) as workspace:
        registry = pilotfish.BlockingToolRegistry(workspace, run)
        assert registry.execute("lsp_definition", AT) == "a.toy:1:4"
        assert registry.execute("write_file", '{"path": "a.toy"}').startswith("Done.\n\nLSP errors")
        assert registry.execute("read_file", "{}") == "Done."
        assert len(registry.schemas()) == len(registry.permissions()) == 6
        assert pilotfish.BlockingToolRegistry(workspace).execute("nope", "{}") == "Unknown tool: nope"
