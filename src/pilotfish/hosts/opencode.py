"""OpenCode: a plugin (`plugins/opencode`) that appends to the output of its tools.

- Run: 1.18.18, the newest for arm64 on npm; its plugin fits the types of 1.18.33.
- `tool.execute.after` may change the output, so the feedback is inside the tool's result. An exception in it makes the
  edit fail, so the plugin catches everything. It is not called for an edit that failed.
- `tool.execute.before` is where the plugin reads the text before the edit.
- Models whose name has GPT in it get `apply_patch` in place of `write` and `edit`.
- At each start it installs the packages of every plugin folder, which takes up to a minute the first time.
- `opencode run` ends as soon as the session is idle. It goes on when a message is there that is newer than the last
  answer, so the plugin writes one (`noReply`) while the last text is being completed.
- Its own `lsp` setting is off by default; on, it repeats what we say.
"""

from pilotfish.hosts.edits.json_edit import JsonEdit, Member
from pilotfish.hosts.shared.hook_settings import RESTART, plugin_files, read_setting
from pilotfish.hosts.shared.host_spec import HostFolder, HostSpec, Where, WiredFile
from pilotfish.hosts.shared.plain import PluginDialect
from pilotfish.hosts.shared.tool_hooks import HostTool, host_tools
from pilotfish.protocol.wire import Json

TOOLS = {
    **host_tools("filePath", edit="edit multiedit", write="write", read="read"),
    "apply_patch": HostTool("patch", patch="patchText"),
    "patch": HostTool("patch", patch="patchText"),
}


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    settings = _settings_folder(where)
    value: Json = {"type": "local", "command": list[Json](where.programs.mcp), "enabled": True}
    return (
        *plugin_files(where, _folder(where), "plugin", "opencode"),
        settings.file(_settings_name(settings), JsonEdit((Member(("mcp", "pilotfish"), value),))),
    )


def _folder(where: Where) -> HostFolder:
    return where.below_config("opencode", project=".opencode")


def _settings_folder(where: Where) -> HostFolder:
    """A project has its configuration at the top and its plugins in a folder."""
    return _folder(where) if where.is_global else where.folder(".")


def _settings_name(folder: HostFolder) -> str:
    return folder.first("opencode.json", "opencode.jsonc")


def _has_language_servers(where: Where) -> bool:
    folder = _settings_folder(where)
    return bool(read_setting(f"{folder.path}/{_settings_name(folder)}", "lsp"))


HOST = HostSpec(
    title="OpenCode",
    files=wired_files,
    programs=("opencode",),
    folders=(".config/opencode",),
    dialect=PluginDialect(TOOLS),
    probes=("daemon", "mcp"),
    afterwards=(RESTART,),
    cautions={"OpenCode's own `lsp` is on and says everything twice: set it to false.": _has_language_servers},
)
