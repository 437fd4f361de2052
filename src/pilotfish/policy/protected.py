"""What no edit of ours may touch, even inside the workspace (T11, T28, T53).

Files that decide what other programs run, or what an agent believes: a language server that is confused by a
repository, or malicious, must not be able to create or change them through us. One list, by pattern: `*` stands for any
characters, at any depth. Names are compared as the most forgiving file systems do: without case, in one Unicode form,
without characters that cannot be seen, without dots at the end.

Files that language servers are for (`package.json`, `tsconfig.json`, a `justfile`) are not on it: a rename must reach
them, and the person sees the diff.
"""

import re
import unicodedata
from collections.abc import Sequence
from fnmatch import translate
from functools import cache

AGENTS = (
    "agent", "agents", "amp", "claude", "codex", "crush", "firebender", "gemini", "goose", "iflow", "jules", "kilo",
    "llxprt", "opencode", "qwen", "replit", "warp",
)  # fmt: skip
"""Agents that read `NAME.md`, `NAME.local.md` or `NAME.json`."""

PROTECTED = (
    # What agents are told, and how they are set up; the folders of each hold rules, skills, hooks and servers.
    ".agent", ".agents", ".ai", ".aiassistant", ".aider*", ".amazonq", ".amp", ".antigravity*", ".augment*", ".claude*",
    ".cline*", ".codebuddy", ".codeium*", ".codex*", ".commandcode", ".continue*", ".copilot*", ".crush*", ".cursor*",
    ".dispatch", ".factory", ".firebender*", ".forge", ".gemini*", ".goose*", ".idx", ".iflow", ".junie*", ".kilo*",
    ".kiro*", ".letta", ".llxprt*", ".mcp*", ".mux", ".openhands*", ".opencode*", ".pi", ".pilotfish", ".plandex*",
    ".pochi", ".qoder", ".qwen*", ".roo*", ".rovodev*", ".ruler", ".rules", ".serena", ".tabnine", ".trae*", ".void*",
    ".warp*", ".windsurf*", ".zed", ".zencoder*", ".aiexclude", ".aiignore",
    *(f"{agent}{ending}" for agent in AGENTS for ending in (".md", ".*.md", ".json", ".jsonc")),
    "*copilot-instructions.md", "*.agent.md", "*.chatmode.md", "*.instructions.md", "*.prompt.md", "airules.md",
    "lsp.json", ".lsp.json", "mcp.json", "mcp.jsonc", "mcp_config.json", "mcp-servers.json", "skill.md",
    # What version control, forges and their machines run.
    ".bzr", ".circleci", ".buildkite", ".drone*", ".forgejo", ".gitea", ".git", ".gitattributes", ".gitconfig",
    ".githooks", ".gitlab*", ".gitmodules", ".hg", ".hgrc", ".husky*", ".jj", ".lefthook*", ".svn", ".teamcity",
    ".travis.yml", ".woodpecker*", "*appveyor.yml", "azure-pipelines*.y*ml", "bitbucket-pipelines.yml",
    "buildspec*.y*ml", "cloudbuild.y*ml", ".cirrus*", "dependabot.y*ml", "jenkinsfile*", "lefthook*.y*ml",
    "lefthook*.toml", "lefthook*.json", ".lintstagedrc*", "lint-staged.config.*", ".overcommit.yml", ".pre-commit*",
    # What editors and debuggers run on opening a folder.
    ".devcontainer*", ".dir-locals*.el", ".exrc", ".fleet", ".gdbinit", ".idea", ".lldbinit", ".lvimrc", ".nvim.lua",
    ".nvimrc", ".vimrc", ".vs", ".vscode*", ".ycm_extra_conf.py", "*.code-workspace", "*.sublime-project",
    "*.sublime-workspace",
    # What shells and version managers run on entering a folder, or at a login.
    ".*-version", ".asdfrc", ".bash*", ".cshrc", ".direnv*", ".env", ".env.*", ".envrc*", ".inputrc", ".kshrc",
    ".login", ".mise*", ".nvmrc", ".profile", ".sdkmanrc", ".tcshrc", ".tool-versions", ".zlog*", ".zprofile", ".zsh*",
    "mise*.toml", "rust-toolchain*",
    # What package managers and build tools run, and where they fetch from; secrets.
    ".bazelrc", ".bundle", ".cargo", ".condarc", ".curlrc", ".gemrc", ".mvn", ".netrc", ".npmrc", ".pdm*", ".pnp.*",
    ".pnpmfile.*", ".pypirc", ".ssh", ".wgetrc", ".yarn", ".yarnrc*", "*-wrapper.properties", "*.pth", "_netrc",
    "bunfig.toml", "nuget.config", "pdm.toml", "pip.conf", "pip.ini", "poetry.toml", "sitecustomize.py",
    "usercustomize.py", "uv.toml",
)  # fmt: skip
"""Names of folders and files, at any depth: a nested repository has hooks too."""

PROTECTED_PATHS = (
    (".config", "pilotfish"),
    (".config", "opencode"),
    (".config", "mise"),
    (".config", "git"),
    (".config", "goose"),
    (".config", "crush"),
    *((".github", name) for name in ("actions", "agents", "chatmodes", "hooks", "instructions", "prompts", "skills")),
    (".github", "workflows"),
)
"""Folders by two names, at any depth."""


def protected(segments: Sequence[str]) -> str | None:
    """The part of a path below a root that makes it untouchable; None when nothing does."""
    folded = [_folded(segment) for segment in segments]
    for place, segment in enumerate(folded):
        if _names().match(segment) or (segment, *folded[place + 1 : place + 2]) in PROTECTED_PATHS:
            return segments[place]
    return None


@cache
def _names() -> re.Pattern[str]:
    """Made for the first edit: it takes as long as fifty modules, and no daemon needs it to start."""
    return re.compile("|".join(translate(pattern) for pattern in PROTECTED))


def _folded(segment: str) -> str:
    visible = "".join(character for character in segment if unicodedata.category(character) != "Cf")
    return unicodedata.normalize("NFC", visible).casefold().rstrip(". ")
