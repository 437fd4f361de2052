"""How the tests run Pi: on a scripted model, for one prompt or in a terminal."""

import json
from pathlib import Path

from support.daemon.homes import DaemonHome
from support.hosts.agents import BROKEN, PROMPT
from support.hosts.model_server import Call
from support.hosts.real import Agent, call, program, write

VERSIONS = ("pi", "pi-0.73")
"""The newest that can be installed, and the last one under the old name; one file is for both."""


def pi(version: str) -> Agent:
    return Agent(
        version,
        lambda home, url: [*started(version, home, url), "--print", PROMPT],
        call("write", path="{file}", content=BROKEN),
        lambda file: Call("edit", {"path": str(file), "edits": [{"oldText": '"x"', "newText": "1"}]}),
        ("Successfully wrote", "Successfully replaced 1 block(s) in"),
    )


def started(version: str, home: DaemonHome, url: str) -> list[str]:
    """The command, once what it reads is written."""
    home.environment["PI_OFFLINE"] = "1"
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "none", "models": [{"id": "scripted"}]}
    write(agent_folder(home) / "models.json", {"providers": {"scripted": provider}})
    write(agent_folder(home) / "settings.json", {"quietStartup": True})
    return [program("node"), program(version), "--provider", "scripted", "--model", "scripted", "--no-session"]


def agent_folder(home: DaemonHome) -> Path:
    return Path(home.environment["HOME"]) / ".pi" / "agent"


def shorten_wait(settings: Path) -> None:
    """Let an edit wait for the daemon only as long as it takes to run into what the test has put there."""
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"waitMs": 700}))
