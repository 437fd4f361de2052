"""The hosts whose models ask with our MCP tools, and what each puts before the names of the tools."""

from dataclasses import replace

from support.daemon.homes import DaemonHome
from support.hosts.agents import AGENTS
from support.hosts.goose import goose
from support.hosts.opencode import opencode
from support.hosts.real import Agent


def _waiting_codex() -> Agent:
    """It does not wait for MCP servers otherwise, and a scripted model asks at once."""
    agent = next(agent for agent in AGENTS if agent.host == "codex")

    def command(home: DaemonHome, url: str) -> list[str]:
        *usual, said = agent.command(home, url)
        return [*usual, "-c", "mcp_servers.pilotfish.required=true", said]

    return replace(agent, command=command)


_KNOWN = {agent.host: agent for agent in (*AGENTS, goose(), opencode())} | {"codex": _waiting_codex()}

PREFIXES = {
    "claude-code": "mcp__pilotfish__",
    "cline": "pilotfish__",
    "codex": "mcp__pilotfish/",
    "copilot": "pilotfish-",
    "gemini": "mcp_pilotfish_",
    "goose": "pilotfish__",
    "opencode": "pilotfish_",
    "qwen": "mcp__pilotfish__",
}
ASKING: dict[str, tuple[Agent, str]] = {host: (_KNOWN[host], prefix) for host, prefix in PREFIXES.items()}
