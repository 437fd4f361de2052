"""What `setup --advice` adds: a skill where a host has skills, else a section of the project's AGENTS.md.

Tools that are there are not yet used: models reach for grep out of habit. Both texts say in few words when definition,
references, rename and impact are better. They cost tokens in every conversation, so they are written on request only.
"""

from collections.abc import Mapping

from pilotfish.hosts.edits.section import MarkdownSection
from pilotfish.hosts.edits.whole_file import WholeFile
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile
from pilotfish.hosts.shared.packaged import read_packaged

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
