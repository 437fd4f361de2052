"""Settings that several hosts share: groups of hooks, an MCP server, a plugin with its settings beside it."""

import json
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from pilotfish.config.jsonc import BadJson
from pilotfish.errors import Code, Refused
from pilotfish.hosts.edits.json_edit import Hooks, JsonEdit, Member, NoHooks
from pilotfish.hosts.edits.json_text import value_of
from pilotfish.hosts.edits.whole_file import WholeFile
from pilotfish.hosts.shared.host_spec import HostFolder, HostSpec, Where, WiredFile
from pilotfish.hosts.shared.packaged import read_plugin
from pilotfish.hosts.shared.programs import shell
from pilotfish.protocol.wire import Json
from pilotfish.servers.catalogue import languages_by_extension

TIMEOUT_SECONDS = 10
"""For one hook. The hook program gives up by itself two seconds earlier."""

SILENT_EVENTS = frozenset({"PreToolUse", "SessionStart", "SessionEnd"})
"""Events whose hook prints nothing: should the daemon hang, an edit waits for the others only."""

SILENT_MILLISECONDS = 2000

RESTART = "Sessions that are open now use it after they are started again."


def hook_groups(
    where: Where,
    host: str,
    events: Mapping[str, str | None],
    timeouts: Mapping[str, int],
    *,
    milliseconds: int | None = None,
    **more: Json,
) -> tuple[Hooks, ...]:
    """A group for each event; None where an event has no tools to choose from. `timeouts[""]` is the usual one.

    `milliseconds`: what the hook program may take, where the host's timeout allows for more than the usual.
    """

    def hook(event: str) -> Json:
        timeout = timeouts.get(event, timeouts[""])
        return {
            "type": "command",
            "command": hook_command(where, host, event, milliseconds),
            "timeout": timeout,
            **more,
        }

    return tuple(
        Hooks(("hooks", event), {**({} if matcher is None else {"matcher": matcher}), "hooks": [hook(event)]})
        for event, matcher in events.items()
    )


def tools_only(host: HostSpec, files: Sequence[WiredFile]) -> tuple[WiredFile, ...]:
    """The same files without hooks; raises `Refused` for a host that is not told by hooks of its settings."""
    found, has_hooks = list[WiredFile](), False
    for file in files:
        parts = file.edit.parts if isinstance(file.edit, JsonEdit) else ()
        hooks = [part for part in parts if isinstance(part, Hooks)]
        has_hooks = has_hooks or bool(hooks)
        others = [part for part in parts if not isinstance(part, Hooks)]
        if hooks and others:
            found.append(replace(file, edit=JsonEdit((NoHooks((hooks[0].path[0],)), *others))))
        elif not hooks:
            found.append(file)
    if not has_hooks:
        hint = 'Set "feedback": {"after": "ask"} in lsp.json.'
        raise Refused(Code.INVALID_INPUT, f"the files of {host.title} have no part for feedback alone", hint=hint)
    return tuple(found)


def mcp_server(command: list[str], **more: Json) -> Json:
    """An MCP server as most hosts write it."""
    return {**more, **_server(command)}


def _server(command: list[str]) -> dict[str, Json]:
    return {"command": command[0], "args": list[Json](command[1:])}


def tools_file(where: Where, folder: HostFolder, name: str, member: str = "mcpServers", **more: Json) -> WiredFile:
    """The file that names MCP servers, with ours in it."""
    return folder.file(name, JsonEdit((Member((member, "pilotfish"), mcp_server(where.programs.mcp, **more)),)))


def hook_command(where: Where, host: str, event: str, milliseconds: int | None = None) -> str:
    """What a shell runs for an event; `milliseconds` as in `hook_groups`."""
    limit = SILENT_MILLISECONDS if event[:1].upper() + event[1:] in SILENT_EVENTS else milliseconds
    return shell([*where.programs.hook(host), *([] if limit is None else ["--deadline-ms", str(limit)])])


def lsp_server(where: Where, host: str, extensions: str) -> Json:
    """Us as a language server for every kind of file that we have one for; `extensions` is the host's word for them."""
    return {**_server(where.programs.lsp(host)), extensions: dict[str, Json](languages_by_extension())}


def hooks_and_server(where: Where, hooks: tuple[Hooks, ...]) -> JsonEdit:
    return JsonEdit((*hooks, Member(("mcpServers", "pilotfish"), mcp_server(where.programs.mcp))))


def plugin_files(where: Where, folder: HostFolder, below: str, host: str) -> tuple[WiredFile, ...]:
    """The plugin of a host, and beside it the file that tells it how to start pilotfish."""
    start = {"command": where.programs.pilotfish, **({"home": where.programs.home} if where.programs.home else {})}
    return (
        folder.file(f"{below}/pilotfish.ts", WholeFile(read_plugin(host))),
        folder.file(f"{below}/pilotfish.json", WholeFile(json.dumps(start, indent=2) + "\n")),
    )


def read_setting(path: str, key: str) -> Json:
    """One value of a host's settings; None when the file has none or cannot be read."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            value = value_of(file.read())
    except (OSError, UnicodeDecodeError, BadJson):
        return None
    return value.get(key) if isinstance(value, dict) else None
