"""Crush: it runs hooks before tools only, so it is told by its own LSP client, for which we are a language server.

- Not run here: its npm package fetches the program from elsewhere. Read in its source (0.96.1); its client's part of
  the protocol is played in `tests/lsp/test_crush.py`.
- After `edit`, `multiedit` and `write` it notifies its servers, waits until their diagnostics have settled (5 s at
  most) and appends them to the tool's result: ten of the file, ten of all other files.
- It opens the file with the text on disk, and sends the whole text after each edit; it never saves or closes.
- It starts every language server of its own list that is on the PATH (`options.auto_lsp`), which would say everything
  twice, later, and never about other files: so `setup` turns that off. Servers that a person has configured stay.
- A server without `filetypes` gets every file.
- A project may have `crush.json` or `.crush.json`; the first one that exists counts.
"""

from pilotfish.hosts.edits.json_edit import JsonEdit, Member
from pilotfish.hosts.shared.hook_settings import mcp_server
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    folder = where.below_config("crush")
    name = "crush.json" if where.is_global else folder.first("crush.json", ".crush.json")
    edit = JsonEdit(
        (
            Member(("lsp", "pilotfish"), mcp_server(where.programs.lsp("crush"))),
            Member(("options", "auto_lsp"), value=False, shared=True),
            Member(("mcp", "pilotfish"), mcp_server(where.programs.mcp, type="stdio")),
        )
    )
    return (folder.file(name, edit),)


HOST = HostSpec(
    title="Crush",
    files=wired_files,
    programs=("crush",),
    folders=(".config/crush",),
    probes=("lsp", "mcp"),
    ways=("lsp",),
)
