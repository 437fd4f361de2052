"""Hosts that run nothing after an edit which could answer: their models ask with our MCP tools. A row for each.

None was run here: they are editors, extensions of editors, or want a login. Each row is by the page that it names.
"""

from collections.abc import Callable
from functools import partial

from pilotfish.hosts.shared.hook_settings import tools_file
from pilotfish.hosts.shared.host_spec import HostFolder, HostSpec, Where, WiredFile
from pilotfish.protocol.wire import Json


def _file(
    folder: Callable[[Where], HostFolder], name: str, member: str = "mcpServers", **more: Json
) -> Callable[[Where], tuple[WiredFile, ...]]:
    """The file of a host that names MCP servers; `more` is what an entry has beside the command."""
    return lambda where: (tools_file(where, folder(where), name, member, **more),)


_McpHost = partial(HostSpec, probes=("mcp",))

HOSTS = {
    # docs.continue.dev/customize/deep-dives/mcp. Every JSON file of this folder is read.
    "continue-dev": _McpHost(
        title="Continue",
        files=_file(lambda where: where.folder(".continue", project=".continue"), "mcpServers/pilotfish.json"),
        programs=(),
        folders=(".continue",),
        scopes=("project",),
        missing=(
            "Its command line (1.5.47) has hooks in its source, in the form of Claude Code's, and runs none of them.",
        ),
    ),
    # jetbrains.com/help/junie/model-context-protocol-mcp.html, and the file in JetBrains/kotlin-web-site.
    # AI Assistant, the other agent of these editors, keeps its servers in a dialogue and documents no file.
    "junie": _McpHost(
        title="JetBrains Junie",
        files=_file(lambda where: where.folder(".junie", project=".junie"), "mcp/mcp.json"),
        programs=("junie",),
        folders=(".junie",),
    ),
    # docs.roocode.com/features/mcp/using-mcp-in-roo. The file of the user is in the storage of the extension.
    "roo-code": _McpHost(
        title="Roo Code",
        files=_file(lambda where: where.folder(".roo", project=".roo"), "mcp.json"),
        programs=(),
        folders=(".roo",),
        scopes=("project",),
    ),
    # zed.dev/docs/ai/mcp. It hands its context servers on to agents in `session/new`. ACP has no hook after an edit.
    "zed": _McpHost(
        title="Zed and agents over ACP",
        files=_file(lambda where: where.below_config("zed"), "settings.json", "context_servers", source="custom"),
        programs=("zed", "zeditor"),
        folders=(".config/zed",),
        scopes=("global",),
    ),
}
