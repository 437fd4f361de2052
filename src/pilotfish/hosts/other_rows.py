"""Hosts that load a plugin, and hosts that only take an MCP server."""

import json

from pilotfish.hosts.edits.json_edit import JsonEdit, Member
from pilotfish.hosts.edits.whole_file import WholeFile
from pilotfish.hosts.edits.yaml_edit import YamlEdit
from pilotfish.hosts.hook_rows import RESTART, server, setting
from pilotfish.hosts.shared.host_row import Folder, HostRow, Where, Wiring
from pilotfish.hosts.shared.packaged import packaged
from pilotfish.protocol.wire import Json

GOOSE_SECONDS = 300
"""What Goose itself writes for a new server."""


# --- Plugins --------------------------------------------------------------------------------------------------------


def pi(where: Where) -> tuple[Wiring, ...]:
    folder = where.folder(".pi/agent", "PI_CODING_AGENT_DIR", project=".pi")
    return _plugin(where, folder, "extensions", "pi/pilotfish.ts")


def opencode(where: Where) -> tuple[Wiring, ...]:
    folder = _opencode_folder(where)
    # A project has its configuration at the top and its plugins in a folder.
    beside = where.folder(".") if not where.is_global else folder
    value: Json = {"type": "local", "command": list[Json](where.programs.mcp), "enabled": True}
    return (
        *_plugin(where, folder, "plugin", "opencode/pilotfish.ts"),
        beside.gets(beside.first("opencode.json", "opencode.jsonc"), JsonEdit((Member(("mcp", "pilotfish"), value),))),
    )


def _opencode_folder(where: Where) -> Folder:
    return where.below_config("opencode", project=".opencode")


def _opencode_has_its_own(where: Where) -> bool:
    beside = where.folder(".") if not where.is_global else _opencode_folder(where)
    return bool(setting(f"{beside.path}/{beside.first('opencode.json', 'opencode.jsonc')}", "lsp"))


def _plugin(where: Where, folder: Folder, below: str, name: str) -> tuple[Wiring, ...]:
    """The plugin, and beside it how it finds us."""
    finding = {"command": where.programs.pilotfish, **({"home": where.programs.home} if where.programs.home else {})}
    return (
        folder.gets(f"{below}/pilotfish.ts", WholeFile(packaged(name))),
        folder.gets(f"{below}/pilotfish.json", WholeFile(json.dumps(finding, indent=2) + "\n")),
    )


# --- MCP only -------------------------------------------------------------------------------------------------------


def goose(where: Where) -> tuple[Wiring, ...]:
    command = where.programs.mcp
    members = {
        "name": "pilotfish",
        "type": "stdio",
        "cmd": command[0],
        "args": command[1:],
        "enabled": True,
        "timeout": GOOSE_SECONDS,
        "description": "Diagnostics, definitions and references from language servers",
    }
    return (where.below_config("goose").gets("config.yaml", YamlEdit("extensions", {"pilotfish": members})),)


def crush(where: Where) -> tuple[Wiring, ...]:
    folder = where.below_config("crush")
    name = "crush.json" if where.is_global else folder.first("crush.json", ".crush.json")
    return (folder.gets(name, JsonEdit((Member(("mcp", "pilotfish"), server(where.programs.mcp, type="stdio")),))),)


def cursor(where: Where) -> tuple[Wiring, ...]:
    edit = JsonEdit((Member(("mcpServers", "pilotfish"), server(where.programs.mcp)),))
    return (where.folder(".cursor", project=".cursor").gets("mcp.json", edit),)


def zed(where: Where) -> tuple[Wiring, ...]:
    """Zed hands its servers on to the agents that it runs over ACP."""
    edit = JsonEdit((Member(("context_servers", "pilotfish"), server(where.programs.mcp, source="custom")),))
    return (where.below_config("zed").gets("settings.json", edit),)


OTHER_ROWS = (
    HostRow(
        "pi",
        "Pi",
        pi,
        ("pi",),
        (".pi",),
        probes=("daemon",),
        afterwards=(RESTART, "Pi skips the extensions of a project until that is trusted; the global place is surer."),
    ),
    HostRow(
        "opencode",
        "OpenCode",
        opencode,
        ("opencode",),
        (".config/opencode",),
        probes=("daemon", "mcp"),
        afterwards=(RESTART,),
        cautions={"OpenCode's own `lsp` is on and says everything twice: set it to false.": _opencode_has_its_own},
    ),
    HostRow("goose", "Goose", goose, ("goose",), (".config/goose",), probes=("mcp",), scopes=("global",)),
    HostRow("crush", "Crush", crush, ("crush",), (".config/crush",), probes=("mcp",)),
    HostRow("cursor", "Cursor", cursor, ("cursor", "cursor-agent"), (".cursor",), probes=("mcp",)),
    HostRow(
        "zed", "Zed and agents over ACP", zed, ("zed", "zeditor"), (".config/zed",), probes=("mcp",), scopes=("global",)
    ),
)
