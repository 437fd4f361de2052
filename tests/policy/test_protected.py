"""Which files inside a workspace no edit may touch."""

import os
from pathlib import Path

import pytest

from pilotfish.hosts.registry import host_names, load_host
from pilotfish.hosts.shared.host_spec import Programs, Where
from pilotfish.policy.boundary import PROTECTED, PROTECTED_PATHS, protected

DOCUMENTED = {
    "Aider": (".aider.conf.yml", ".aider.model.settings.yml", ".aider.model.metadata.json", ".aiderignore", ".env"),
    "Amazon Q": (".amazonq/rules/a.md", ".amazonq/mcp.json"),
    "Amp": ("AGENT.md", "AGENTS.md", ".amp/settings.json"),
    "Augment": (".augment/rules/a.md", ".augment-guidelines", ".augmentignore"),
    "Claude Code": (
        "CLAUDE.md", "CLAUDE.local.md", ".claude/settings.json", ".claude/settings.local.json", ".claude/commands/a.md",
        ".claude/skills/a/SKILL.md", ".claude-plugin/plugin.json", ".mcp.json", ".claudeignore",
    ),
    "Cline": (".clinerules", ".clinerules/a.md", ".clineignore", ".cline/hooks/a"),
    "Codex": ("AGENTS.md", "AGENTS.override.md", ".codex/config.toml", ".codex/hooks.json", ".agents/skills/a/b.md"),
    "Continue": (".continue/config.yaml", ".continuerules", ".continueignore"),
    "Copilot": (
        ".github/copilot-instructions.md", "copilot-instructions.md", ".github/instructions/a.instructions.md",
        ".github/prompts/a.prompt.md", ".github/agents/a.agent.md", ".github/hooks/a.json", ".copilotignore",
    ),
    "Crush": ("crush.json", ".crush.json", "CRUSH.md", "CRUSH.local.md", ".crush/init", ".crushignore"),
    "Cursor": (".cursorrules", ".cursor/rules/a.mdc", ".cursor/mcp.json", ".cursor/hooks.json", ".cursorignore"),
    "Factory": (".factory/mcp.json", ".factory/droids/a.md"),
    "Gemini CLI": ("GEMINI.md", ".gemini/settings.json", ".gemini/.env", ".geminiignore", ".env", ".aiexclude"),
    "Goose": (".goosehints", ".goosehints.local", ".goose/config.yaml", ".gooseignore"),
    "Junie": (".junie/guidelines.md", ".junie/mcp/mcp.json"),
    "Kilo Code": (".kilocode/mcp.json", ".kilocodemodes", ".kilocodeignore", "kilo.jsonc"),
    "Kiro": (".kiro/steering/a.md", ".kiro/settings/mcp.json"),
    "LLxprt Code": ("LLXPRT.md", ".llxprt/settings.json", ".llxprtignore"),
    "OpenCode": ("opencode.json", "opencode.jsonc", ".opencode/plugin/a.ts", ".opencode/agent/a.md"),
    "OpenHands": (".openhands/setup.sh", ".openhands_instructions"),
    "Pi": (".pi/lsp.json", ".pi/settings.json", ".pi/extensions/a.ts", ".pi/SYSTEM.md", "AGENTS.md", "CLAUDE.md"),
    "Qwen Code": ("QWEN.md", ".qwen/settings.json", ".qwenignore"),
    "Replit": ("replit.md",),
    "Roo Code": (".roo/mcp.json", ".roorules", ".roorules-code", ".roomodes", ".rooignore"),
    "Trae": (".trae/rules/project_rules.md",),
    "Warp": ("WARP.md", ".warp/a.yaml"),
    "Windsurf": (".windsurfrules", ".windsurf/rules/a.md", ".codeiumignore"),
    "Zed": (".rules", ".zed/settings.json", ".zed/tasks.json"),
    "any MCP client": ("mcp.json", ".mcp/servers.json", "mcp_config.json"),
    "Pilotfish": (".pilotfish/lsp.json", ".dispatch/lsp.json"),
    "git and forges": (
        ".git/config", "sub/.git/hooks/pre-commit", ".gitattributes", ".gitmodules", ".github/workflows/ci.yml",
        ".github/actions/a/action.yml", ".gitlab-ci.yml", ".gitlab/ci/a.yml", ".circleci/config.yml", "Jenkinsfile",
        ".husky/pre-push", ".pre-commit-config.yaml", "lefthook.yml", ".travis.yml", "azure-pipelines.yml",
    ),
    "editors": (
        ".vscode/settings.json", ".idea/workspace.xml", "a.code-workspace", ".vimrc", ".nvim.lua", ".exrc",
        ".dir-locals.el", ".devcontainer/devcontainer.json", ".devcontainer.json", ".gdbinit", "a.sublime-project",
    ),
    "shells and version managers": (
        ".envrc", ".env", ".env.local", ".direnv/bin/a", "mise.toml", "mise.local.toml", ".mise.toml", ".mise/tasks/a",
        ".config/mise/config.toml", ".tool-versions", ".bashrc", ".zshenv", ".profile", "rust-toolchain.toml",
        ".ruby-version", ".node-version", ".python-version", ".nvmrc", ".sdkmanrc",
    ),
    "package managers": (
        ".npmrc", ".yarnrc.yml", ".yarn/plugins/a.cjs", ".pnpmfile.cjs", ".pypirc", "pip.conf", ".cargo/config.toml",
        ".bundle/config", ".mvn/extensions.xml", ".bazelrc", "sitecustomize.py", "a/usercustomize.py", "a/b.pth",
        "NuGet.Config", ".netrc", "uv.toml", "poetry.toml", "pdm.toml", ".pdm-python",
        "gradle/wrapper/gradle-wrapper.properties",
    ),
}  # fmt: skip
"""What steers an agent or a tool, as its documentation has it."""


@pytest.mark.proves("T28", "T11", "T53", "A13.1")
@pytest.mark.parametrize(("who", "path"), [(who, path) for who in DOCUMENTED for path in DOCUMENTED[who]])
def test_what_steers_an_agent_or_a_tool_is_protected(who: str, path: str) -> None:
    for place in (path, f"packages/a/{path}"):
        assert protected(place.split("/")) is not None


@pytest.mark.proves("T53")
@pytest.mark.parametrize("host", host_names())
def test_every_file_that_setup_writes_into_a_project_is_protected(host: str, tmp_path: Path) -> None:
    root, home = str(tmp_path / "project"), str(tmp_path / "home")
    spec = load_host(host)
    if "project" not in spec.scopes:
        return
    for way in spec.ways:
        where = Where("project", home, f"{home}/.config", root, {}, Programs("/a", "/b", "/c", isolated=True), way)
        for file in spec.files(where):
            assert protected(os.path.relpath(file.path, root).split("/")) is not None, file.path


@pytest.mark.proves("T30", "F46", "A18.23")
@pytest.mark.parametrize(
    "path",
    [
        ".GIT/config", ".Git/config", ".claude./x", ".git /config", ".g\u200cit/config", "Claude.MD", ".MCP.json",
        "Claude.Local.MD", "MISE.toml", "Qwen\u200b.md",
    ],
)  # fmt: skip
def test_other_spellings_of_a_protected_name_are_protected(path: str) -> None:
    assert protected(path.split("/")) is not None


@pytest.mark.proves("T28")
@pytest.mark.parametrize(
    "path",
    [
        "src/a.py", ".github/CODEOWNERS", ".gitignore", "git/config", "docs/agents.rst", "vscode/settings.json",
        "claude.py", "package.json", "tsconfig.json", "docs/gemini-api.md", "Makefile", "justfile", "mcp/server.py",
        "mcp_server.json", "promise.toml", "environment.py", "src/agents/a.py", "pyproject.toml", "codex/a.md",
    ],
)  # fmt: skip
def test_ordinary_files_are_not(path: str) -> None:
    assert protected(path.split("/")) is None


def test_the_lists_are_written_as_they_are_compared() -> None:
    names = [*PROTECTED, *(name for pair in PROTECTED_PATHS for name in pair)]
    assert [name for name in names if name != name.casefold()] == []
