"""What no edit of ours may touch, even inside the workspace (T11, T28).

Files that decide what other programs run, or what an agent believes: a language server that is confused by a
repository, or malicious, must not be able to change them through us. Names are compared as the most forgiving file
systems do: without case, in one Unicode form, without characters that cannot be seen, without dots at the end.
"""

import unicodedata
from collections.abc import Sequence

PROTECTED_FOLDERS = frozenset({
    ".aider", ".amazonq", ".bzr", ".circleci", ".claude", ".clinerules", ".codex", ".continue", ".cursor",
    ".devcontainer", ".direnv", ".dispatch", ".fleet", ".gemini", ".git", ".hg", ".husky", ".idea", ".jj", ".kiro",
    ".llxprt", ".opencode", ".pi", ".pilotfish", ".qwen", ".roo", ".ssh", ".svn", ".trae", ".vscode",
    ".vscode-insiders", ".windsurf", ".zed",
})  # fmt: skip
"""Folders by name, at any depth: a nested repository has hooks too."""

PROTECTED_PATHS = ((".github", "workflows"), (".github", "actions"), (".config", "pilotfish"), (".config", "opencode"))
"""Folders by two names, at any depth."""

PROTECTED_FILES = frozenset({
    ".aider.conf.yml", ".bashrc", ".bash_profile", ".cursorrules", ".env", ".envrc", ".gitattributes", ".gitconfig",
    ".gitlab-ci.yml", ".gitmodules", ".mcp.json", ".npmrc", ".pre-commit-config.yaml", ".profile", ".pypirc",
    ".windsurfrules", ".yarnrc.yml", ".zshenv", ".zshrc", "agents.md", "claude.md", "gemini.md", "opencode.json",
    "opencode.jsonc",
})  # fmt: skip
"""Files by name, at any depth."""


def protected(segments: Sequence[str]) -> str | None:
    """The part of a path below a root that makes it untouchable; None when nothing does."""
    folded = [_folded(segment) for segment in segments]
    for place, segment in enumerate(folded):
        if segment in PROTECTED_FOLDERS or (segment, *folded[place + 1 : place + 2]) in PROTECTED_PATHS:
            return segments[place]
    return segments[-1] if folded and folded[-1] in PROTECTED_FILES else None


def _folded(segment: str) -> str:
    visible = "".join(character for character in segment if unicodedata.category(character) != "Cf")
    return unicodedata.normalize("NFC", visible).casefold().rstrip(". ")
