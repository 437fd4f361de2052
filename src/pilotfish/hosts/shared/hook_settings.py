"""Settings that several hosts share: groups of hooks, an MCP server, a plugin with its settings beside it.

`setup --advice` adds a skill where a host has skills, else a section of the project's AGENTS.md. Tools that are there
are not yet used: models reach for grep out of habit. Both texts say in few words when definition, references, rename
and impact are better. They cost tokens in every conversation, so they are written on request only.
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from pilotfish.config.jsonc import BadJson
from pilotfish.errors import Code, Refused
from pilotfish.hosts.edits.edit import MarkdownSection, WholeFile
from pilotfish.hosts.edits.json_edit import Hooks, JsonEdit, Member, NoHooks, value_of
from pilotfish.hosts.shared.changes import MAX_BYTES
from pilotfish.hosts.shared.host_spec import HostFolder, HostSpec, Where, WiredFile, shell
from pilotfish.protocol.wire import Json
from pilotfish.servers.catalogue import languages_by_extension
from pilotfish.system.regular_files import read_regular
from pilotfish.system.windows import for_cmd

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
        command = hook_command(where, host, event, milliseconds)
        return {"type": "command", "command": command, "timeout": timeouts.get(event, timeouts[""]), **more}

    return tuple(
        Hooks(("hooks", event), {**({} if matcher is None else {"matcher": matcher}), "hooks": [hook(event)]})
        for event, matcher in events.items()
    )


def tools_only(host: HostSpec, files: Sequence[WiredFile]) -> tuple[WiredFile, ...]:
    """The same files without hooks; raises `Refused` for a host that is not told by hooks of its settings."""
    found = list[WiredFile]()
    for file in files:
        parts = file.edit.parts if isinstance(file.edit, JsonEdit) else ()
        others = [part for part in parts if not isinstance(part, Hooks)]
        hooks = next((part for part in parts if isinstance(part, Hooks)), None)
        if hooks is None:
            found.append(file)
        elif others:
            found.append(replace(file, edit=JsonEdit((NoHooks((hooks.path[0],)), *others))))
    if found == list(files):
        hint = 'Set "feedback": {"after": "ask"} in lsp.json.'
        raise Refused(Code.INVALID_INPUT, f"the files of {host.title} have no part for feedback alone", hint=hint)
    return tuple(found)


def mcp_server(command: list[str], **more: Json) -> dict[str, Json]:
    """An MCP server as most hosts write it."""
    return {**more, "command": command[0], "args": list[Json](command[1:])}


def tools_file(where: Where, folder: HostFolder, name: str, member: str = "mcpServers", **more: Json) -> WiredFile:
    """The file that names MCP servers, with ours in it."""
    return folder.file(name, JsonEdit((Member((member, "pilotfish"), mcp_server(where.programs.mcp, **more)),)))


def hook_command(
    where: Where,
    host: str,
    event: str,
    milliseconds: int | None = None,
    on_windows: Callable[[list[str]], str] = for_cmd,
) -> str:
    """What a shell runs for an event; `milliseconds` as in `hook_groups`."""
    limit = SILENT_MILLISECONDS if event[:1].upper() + event[1:] in SILENT_EVENTS else milliseconds
    return shell([*where.programs.hook(host), *([] if limit is None else ["--deadline-ms", str(limit)])], on_windows)


def lsp_server(where: Where, host: str, extensions: str) -> Json:
    """Us as a language server for every kind of file that we have one for; `extensions` is the host's word for them."""
    return {**mcp_server(where.programs.lsp(host)), extensions: dict[str, Json](languages_by_extension())}


def hooks_and_server(where: Where, hooks: tuple[Hooks, ...]) -> JsonEdit:
    return JsonEdit((*hooks, Member(("mcpServers", "pilotfish"), mcp_server(where.programs.mcp))))


def json_file(value: object) -> WholeFile:
    return WholeFile(json.dumps(value, indent=2) + "\n")


def plugin_files(where: Where, folder: HostFolder, below: str, host: str) -> tuple[WiredFile, ...]:
    """The plugin of a host, and beside it the file that tells it how to start pilotfish."""
    start = {"command": where.programs.pilotfish, **({"home": where.programs.home} if where.programs.home else {})}
    return (
        folder.file(f"{below}/pilotfish.ts", WholeFile(read_plugin(host))),
        folder.file(f"{below}/pilotfish.json", json_file(start)),
    )


def read_setting(path: str, key: str) -> Json:
    """One value of a host's settings; None when the file has none or cannot be read."""
    try:
        value = value_of((read_regular(path, MAX_BYTES) or b"").decode("utf-8-sig"))
    except (UnicodeDecodeError, BadJson):
        return None
    return value.get(key) if isinstance(value, dict) else None


FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "plugins")

IMPORT = re.compile(r'^import (type )?\{ (.+) \} from "(.+)";\n', re.MULTILINE)

CLIENT = "../daemon.ts"
"""The client of the daemon, as plugins import it."""


def read_packaged(name: str) -> str:
    """The text of one, by its path below `plugins`."""
    with open(os.path.join(FOLDER, name), encoding="utf-8", newline="") as file:
        return file.read()


def read_plugin(host: str) -> str:
    """The plugin of a host and the client of the daemon in one file, since hosts load single files.

    Only the plugin exports: OpenCode takes every export of a file for a plugin.
    """
    plugin, client = read_packaged(f"{host}/pilotfish.ts"), read_packaged("daemon.ts")
    first = IMPORT.search(plugin)
    assert first is not None
    head, body = plugin[: first.start()], IMPORT.sub("", plugin[first.start() :])
    own = re.sub(r"^export ", "", IMPORT.sub("", client), flags=re.MULTILINE)
    names: dict[tuple[bool, str, str], set[str]] = {}
    for is_type, imported, module in IMPORT.findall(plugin + client):
        if module != CLIENT:
            names.setdefault((bool(is_type), module, is_type), set()).update(imported.split(", "))
    imports = (
        f'import {is_type}{{ {", ".join(sorted(imported))} }} from "{module}";\n'
        for (_, module, is_type), imported in sorted(names.items())
    )
    return f"{head}{''.join(imports)}{body.rstrip()}\n\n{own.strip()}\n"


SKILLS: Mapping[str, tuple[str, str]] = {
    "amp": (".config/agents", ".agents"),
    "claude-code": (".claude", ".claude"),
    "codex": (".agents", ".agents"),
    "copilot": (".copilot", ".github"),
    "cursor": (".cursor", ".cursor"),
    "gemini": (".gemini", ".gemini"),
    "goose": (".config/agents", ".agents"),
    "kiro": (".kiro", ".kiro"),
    "llxprt": (".config/llxprt-code", ".llxprt"),
    "opencode": (".config/opencode", ".opencode"),
    "pi": (".pi/agent", ".pi"),
    "qwen": (".qwen", ".qwen"),
    "vscode": (".copilot", ".github"),
}
"""By host: the folders that `skills` is in, below the home folder and in a project, as its documentation has them."""


def advice_files(host: HostSpec, where: Where) -> tuple[WiredFile, ...]:
    """The files with advice for the model of a host; none for one without skills, in the user's own files."""
    if host.name in SKILLS:
        own, project = SKILLS[host.name]
        folder = where.folder(own, project=project)
        skill = WholeFile(read_packaged("advice/SKILL.md"))
        return (folder.file("skills/pilotfish/SKILL.md", skill, optional=True),)
    if where.is_global or "mcp" not in host.probes:
        return ()
    return (where.folder(".").file("AGENTS.md", MarkdownSection(read_packaged("advice/AGENTS.md"))),)
