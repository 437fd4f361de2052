"""LLxprt Code: the hooks of Gemini CLI, under settings of its own.

- Run: 0.11.0 from its source (f80a695), with `--set streaming=disabled`; its npm package could not be installed. The
  run is recorded, and played in `tests/hosts/test_recorded_llxprt.py`.
- What a hook adds is in the tool's result, not escaped. `SessionEnd` comes twice.
- Read in that source, not run: an `AfterTool` hook comes after tools of any kind, and what a `BeforeAgent` hook adds is
  appended to the prompt. An `AfterAgent` hook cannot make the agent go on: of its answer only `clearContext` is used.
- In the recorded run its model was offered no tools of MCP servers.
- Hooks run only with `hooks.enabled`. Timeouts: milliseconds.
- Its `apply_patch` is a unified diff for one file, which another argument names; from it the old text is taken back.
- `/lsp status` lists the servers of its own service, which are not ours: `setup` adds the command `/pilotfish`, which
  runs `pilotfish status`.
- Its own LSP service is configured in `settings.lsp`, which the version run does not pass on (`pilotfish_llxprt`).
"""

import json
import sys

from pilotfish.hosts.edits.edit import WholeFile
from pilotfish.hosts.edits.json_edit import JsonEdit, Member
from pilotfish.hosts.shared.hook_settings import RESTART, hook_groups, hooks_and_server, read_setting
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile, shell
from pilotfish.hosts.shared.tool_hooks import HostTool, ToolHooks, host_tools

PATHS = ("absolute_path", "file_path")
"""Most tools take either name."""

FIRST_TOUCH_MILLISECONDS = 10_000
"""What its users were promised for the first touch of a server; its settings may say more."""

HOOK_MILLISECONDS, TIMEOUT_MILLISECONDS = 3_000, 5_000
"""Beside the first touch: for the hook program to start and to write the answer, and until LLxprt gives it up."""

STATUS = "The language servers of this project and their state"

DIALECT = ToolHooks(
    {
        **host_tools(
            *PATHS,
            edit="replace ast_edit insert_at_line delete_line_range",
            write="write_file",
            read="read_file read_line_range ast_read_file",
        ),
        "apply_patch": HostTool("patch", PATHS, patch="patch_content"),
    },
    before="BeforeTool",
    after="AfterTool",
    prompt="BeforeAgent",
    stops=(),
)


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    events = {"AfterTool": ".*", "BeforeAgent": None, "SessionStart": None, "SessionEnd": None}
    # On macOS its settings are where those of applications are, elsewhere below XDG_CONFIG_HOME.
    below = where.folder if sys.platform == "darwin" else where.below_config
    name = "Library/Preferences/llxprt-code" if sys.platform == "darwin" else "llxprt-code"
    folder = below(name, "LLXPRT_CONFIG_HOME", project=".llxprt")
    # How long the first touch of a server may take, by either name that its settings have for that.
    section = read_setting(f"{folder.path}/settings.json", "lsp")
    names = ("firstTouchTimeout", "firstTouchTimeoutMs")
    found = [section.get(name) for name in names] if isinstance(section, dict) else []
    patience = max([FIRST_TOUCH_MILLISECONDS, *(one for one in found if isinstance(one, int))])
    hooks = hook_groups(
        where,
        "llxprt",
        events,
        {"": patience + TIMEOUT_MILLISECONDS},
        milliseconds=patience + HOOK_MILLISECONDS,
        name="pilotfish",
    )
    edit = JsonEdit((Member(("hooks", "enabled"), value=True, shared=True), *hooks_and_server(where, hooks).parts))
    status = json.dumps(f"!{{{shell(where.programs.status)}}}")
    command = f'# Written by `pilotfish setup llxprt`.\ndescription = "{STATUS}"\nprompt = {status}\n'
    return (
        folder.file("settings.json", edit),
        folder.file("commands/pilotfish.toml", WholeFile(command), optional=True),
    )


HOST = HostSpec(
    title="LLxprt Code",
    files=wired_files,
    programs=("llxprt",),
    folders=(".config/llxprt-code", ".llxprt"),
    dialect=DIALECT,
    afterwards=(RESTART,),
    missing=(
        "Before it stops nothing is said: no answer of a hook makes its agent go on then (0.11.0, read in its source).",
        "In the recorded run its model was offered no tools of MCP servers.",
    ),
    notice_key="systemMessage",
)
