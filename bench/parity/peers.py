"""Other programs that give an agent language servers over MCP, installed from npm and PyPI into `.tools/bench`.

Versions are pinned in `peers.json`. What an upstream cannot do with a language server is what the report shows.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from parity.fixtures import Fixture, Place
from parity.subjects import CLONE, PROGRAMS, Kind, McpKind, through_mcp

FOLDER = CLONE / ".tools" / "bench"
PINS: Mapping[str, Mapping[str, Mapping[str, str]]] = json.loads((Path(__file__).parent / "peers.json").read_text())


def install(name: str) -> None:
    """Once; raises `CalledProcessError` when a registry refuses."""
    folder, pins = FOLDER / name, PINS[name]
    stamp = folder / ".stamp"
    if stamp.exists() and stamp.read_text() == json.dumps(pins):
        return
    folder.mkdir(parents=True, exist_ok=True)
    print(f"installing {name}", flush=True)
    if npm := pins.get("npm"):
        (folder / "package.json").write_text('{"private": true}')
        argv = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", *_pinned(npm, "@")]
        subprocess.run(argv, cwd=folder, check=True, capture_output=True)
    if pypi := pins.get("pypi"):
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True)
        argv = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *_pinned(pypi, "==")]
        subprocess.run(argv, check=True, capture_output=True)
    stamp.write_text(json.dumps(pins))


def _pinned(packages: Mapping[str, str], sign: str) -> list[str]:
    return [f"{name}{sign}{version}" for name, version in packages.items()]


def _absolute(fixture: Fixture, file: str) -> str:
    return str(fixture.root / file)


def _cclsp_environment(fixture: Fixture, scratch: Path) -> dict[str, str]:
    config = scratch / "cclsp.json"
    server = {
        "extensions": [fixture.grammar.suffix[1:]],
        "command": list(fixture.grammar.command),
        "rootDir": str(fixture.root),
    }
    config.write_text(json.dumps({"servers": [server]}))
    return {"CCLSP_CONFIG_PATH": str(config)}


def _line_character(fixture: Fixture, place: Place) -> dict[str, object]:
    return {
        "file_path": _absolute(fixture, place.file),
        "line": place.line + 1,
        "character": place.character + 1,
    }


def _line_column(fixture: Fixture, place: Place) -> dict[str, object]:
    return {"file_path": _absolute(fixture, place.file), "line": place.line + 1, "column": place.character + 1}


def _file_path(fixture: Fixture, file: str) -> dict[str, object]:
    return {"file_path": _absolute(fixture, file)}


def _document(fixture: Fixture, file: str) -> dict[str, object]:
    return {"file_path": _absolute(fixture, file), "language_id": fixture.language}


def _changed(fixture: Fixture, file: str) -> dict[str, object]:
    return {"changes": [{"uri": (fixture.root / file).as_uri(), "type": 2}]}


CCLSP = McpKind(
    argv=lambda _fixture: [str(FOLDER / "cclsp" / "node_modules" / ".bin" / "cclsp")],
    # It takes names, not places: the name at the place.
    tools={
        "definition": (
            "find_definition",
            lambda fixture, place: {"file_path": _absolute(fixture, place.target), "symbol_name": place.name},
        ),
        "references": (
            "find_references",
            lambda fixture, place: {"file_path": _absolute(fixture, place.target), "symbol_name": place.name},
        ),
        "hover": ("get_hover", _line_character),
        "diagnostics": ("get_diagnostics", _file_path),
    },
    environment=_cclsp_environment,
)

AGENT_LSP = McpKind(
    argv=lambda fixture: [
        str(FOLDER / "agent-lsp" / "bin" / "agent-lsp"),
        f"{fixture.language}:{','.join(fixture.grammar.command)}",
    ],
    tools={
        "definition": ("go_to_definition", _line_column),
        "references": ("find_references", _line_column),
        "hover": ("inspect_symbol", _line_column),
        "symbols": ("list_symbols", _file_path),
        "diagnostics": ("get_diagnostics", _file_path),
        "opened": ("open_document", _document),
        "written": ("did_change_watched_files", _changed),
    },
    before=(("start_lsp", lambda fixture, _: {"root_dir": str(fixture.root), "language_id": fixture.language}),),
    no_verdict="this does not confirm the file is clean",
)

SERENA_SERVERS = {"python": "python_basedpyright", "typescript": "typescript"}


def _serena_environment(fixture: Fixture, scratch: Path) -> dict[str, str]:
    """It is told to run the same servers as the others; JSON is YAML enough."""
    own, project = scratch / "home" / ".serena", fixture.root / ".serena"
    server = SERENA_SERVERS[fixture.language]
    program = shutil.which(fixture.grammar.command[0], path=os.pathsep.join(map(str, PROGRAMS)))
    for folder in (own, project):
        folder.mkdir(parents=True, exist_ok=True)
    config: dict[str, object] = {"projects": [], "ls_specific_settings": {server: {"ls_path": program}}}
    (own / "serena_config.yml").write_text(json.dumps(config))
    (project / "project.yml").write_text(json.dumps({"project_name": "workspace", "language_servers": [server]}))
    return {}


SERENA = McpKind(
    argv=lambda fixture: [
        str(FOLDER / "serena" / "bin" / "serena"),
        "start-mcp-server",
        "--project",
        str(fixture.root),
        "--context",
        "agent",
        "--enable-web-dashboard",
        "false",
    ],
    tools={
        "definition": ("find_symbol", lambda _fixture, place: {"name_path_pattern": place.name}),
        "references": (
            "find_referencing_symbols",
            lambda _fixture, place: {"name_path": place.name, "relative_path": place.target},
        ),
        "symbols": ("get_symbols_overview", lambda _fixture, file: {"relative_path": file}),
        "diagnostics": ("get_diagnostics_for_file", lambda _fixture, file: {"relative_path": file}),
    },
    environment=_serena_environment,
)


KINDS = {
    "cclsp": Kind("cclsp", through_mcp(CCLSP)),
    "agent-lsp": Kind("agent-lsp", through_mcp(AGENT_LSP)),
    "serena": Kind("serena", through_mcp(SERENA)),
}
