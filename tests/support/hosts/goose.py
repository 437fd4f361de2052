"""How the tests run Goose: on a scripted model, for one prompt, with its own tools for files."""

from pathlib import Path

from support.daemon.homes import DaemonHome
from support.hosts.agents import BROKEN, PROMPT
from support.hosts.real import Agent, call, program


def goose() -> Agent:
    return Agent(
        "goose",
        started,
        call("write", path="{file}", content=BROKEN),
        call("edit", path="{file}", before='"x"', after="1"),
        ("Created ", "Edited "),
    )


def started(home: DaemonHome, url: str) -> list[str]:
    home.environment.update(
        OPENAI_API_KEY="none",
        OPENAI_HOST=url,
        GOOSE_PROVIDER="openai",
        GOOSE_MODEL="scripted",
        GOOSE_MODE="auto",
        GOOSE_DISABLE_KEYRING="1",
        GOOSE_TELEMETRY_ENABLED="false",
    )
    return [program("goose"), "run", "--no-session", "--with-builtin", "developer", "--text", PROMPT]


def config_file(home: DaemonHome) -> Path:
    return Path(home.environment["XDG_CONFIG_HOME"]) / "goose" / "config.yaml"
