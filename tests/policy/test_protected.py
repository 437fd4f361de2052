"""Which files inside a workspace no edit may touch."""

import pytest

from pilotfish.policy.protected import PROTECTED_FILES, PROTECTED_FOLDERS, PROTECTED_PATHS, protected


@pytest.mark.proves("T28", "T11")
@pytest.mark.parametrize(
    "path",
    [
        ".git/config", "sub/.git/hooks/pre-commit", ".pilotfish/lsp.json", ".claude/settings.json", ".mcp.json",
        ".vscode/settings.json", ".codex/config.toml", ".gemini/settings.json", ".pi/lsp.json", ".dispatch/lsp.json",
        ".llxprt/settings.json", "opencode.json", ".opencode/plugin/x.ts", ".cursor/mcp.json", "AGENTS.md",
        "packages/a/CLAUDE.md", ".github/workflows/ci.yml", ".envrc", ".husky/pre-push",
    ],
)  # fmt: skip
def test_what_decides_for_other_programs_is_protected(path: str) -> None:
    assert protected(path.split("/")) is not None


@pytest.mark.proves("T30", "F46")
@pytest.mark.parametrize(
    "path",
    [".GIT/config", ".Git/config", ".claude./x", ".git /config", ".g\u200cit/config", "Claude.MD", ".MCP.json"],
)
def test_other_spellings_of_a_protected_name_are_protected(path: str) -> None:
    assert protected(path.split("/")) is not None


@pytest.mark.proves("T28")
@pytest.mark.parametrize(
    "path",
    [
        "src/a.py",
        ".github/CODEOWNERS",
        ".gitignore",
        "git/config",
        "docs/agents.rst",
        "vscode/settings.json",
        "claude.py",
    ],
)
def test_ordinary_files_are_not(path: str) -> None:
    assert protected(path.split("/")) is None


def test_the_lists_are_written_as_they_are_compared() -> None:
    names = [*PROTECTED_FOLDERS, *PROTECTED_FILES, *(name for pair in PROTECTED_PATHS for name in pair)]
    assert [name for name in names if name != name.casefold()] == []
