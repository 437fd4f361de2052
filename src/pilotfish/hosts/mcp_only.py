"""Hosts that run nothing after an edit which could answer: their models ask with our MCP tools. A row for each.

None was run here: they are editors, extensions of editors, or want a login. Each row is by the page that it names.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct

from pilotfish.hosts.shared.hook_settings import tools_file
from pilotfish.hosts.shared.host_spec import HostFolder, HostSpec, SetupScope, Where, WiredFile
from pilotfish.protocol.wire import Json


class McpHost(Struct, frozen=True, kw_only=True):
    title: str
    folder: Callable[[Where], HostFolder]
    file: str
    page: str
    """What the row is by."""
    member: str = "mcpServers"
    more: Mapping[str, Json] = {}
    """What an entry has beside the command."""
    programs: tuple[str, ...] = ()
    folders: tuple[str, ...]
    scopes: tuple[SetupScope, ...] = ("global", "project")
    missing: tuple[str, ...] = ()


ROWS: Mapping[str, McpHost] = {
    "continue-dev": McpHost(
        title="Continue",
        folder=lambda where: where.folder(".continue", project=".continue"),
        # Every JSON file of this folder is read.
        file="mcpServers/pilotfish.json",
        page="docs.continue.dev/customize/deep-dives/mcp",
        folders=(".continue",),
        scopes=("project",),
        missing=(
            "Its command line (1.5.47) has hooks in its source, in the form of Claude Code's, and runs none of them.",
        ),
    ),
    "junie": McpHost(
        title="JetBrains Junie",
        folder=lambda where: where.folder(".junie", project=".junie"),
        file="mcp/mcp.json",
        # AI Assistant, the other agent of these editors, keeps its servers in a dialogue and documents no file.
        page="jetbrains.com/help/junie/model-context-protocol-mcp.html, and the file in JetBrains/kotlin-web-site",
        programs=("junie",),
        folders=(".junie",),
    ),
    "roo-code": McpHost(
        title="Roo Code",
        # The file of the user is in the storage of the extension.
        folder=lambda where: where.folder(".roo", project=".roo"),
        file="mcp.json",
        page="docs.roocode.com/features/mcp/using-mcp-in-roo",
        folders=(".roo",),
        scopes=("project",),
    ),
    "zed": McpHost(
        title="Zed and agents over ACP",
        folder=lambda where: where.below_config("zed"),
        file="settings.json",
        # It hands its context servers on to agents in `session/new`. ACP has no hook after an edit.
        page="zed.dev/docs/ai/mcp",
        member="context_servers",
        more={"source": "custom"},
        programs=("zed", "zeditor"),
        folders=(".config/zed",),
        scopes=("global",),
    ),
}


def _host(row: McpHost) -> HostSpec:
    def files(where: Where) -> tuple[WiredFile, ...]:
        return (tools_file(where, row.folder(where), row.file, row.member, **row.more),)

    return HostSpec(
        title=row.title,
        files=files,
        programs=row.programs,
        folders=row.folders,
        probes=("mcp",),
        scopes=row.scopes,
        missing=row.missing,
    )


HOSTS = {name: _host(row) for name, row in ROWS.items()}
