"""How the tests run OpenCode: on a scripted model, for one prompt, without the network."""

import json
from pathlib import Path
from typing import Any

from support.daemon.homes import DaemonHome
from support.hosts.agents import ADDING, BROKEN, PROMPT, UPDATING
from support.hosts.model_server import Call
from support.hosts.real import Agent, call, program, write

QUIET = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "PROJECT_CONFIG", "SHARE")


CHAT, MESSAGES = "@ai-sdk/openai-compatible", "@ai-sdk/anthropic"
"""The packages for two APIs of models."""


def opencode(model: str = "scripted", npm: str = CHAT, **config: Any) -> Agent:
    """Which tools it offers follows from the name of the model: one called GPT gets `apply_patch` and no other."""
    patches = "gpt" in model
    return Agent(
        "opencode",
        lambda home, url: started(home, url, model, npm, config),
        (lambda _: Call("apply_patch", {"patchText": ADDING}))
        if patches
        else call("write", filePath="{file}", content=BROKEN),
        (lambda _: Call("apply_patch", {"patchText": UPDATING}))
        if patches
        else call("edit", filePath="{file}", oldString='"x"', newString="1"),
        ("Success. Updated the following files:",) * 2
        if patches
        else ("Wrote file successfully.", "Edit applied successfully."),
    )


def started(home: DaemonHome, url: str, model: str, npm: str, config: dict[str, Any]) -> list[str]:
    options = {"baseURL": f"{url}/v1", "apiKey": "none"}
    provider = {"npm": npm, "options": options, "models": {model: {"tool_call": True}}}
    settings = {"provider": {"scripted": provider}, "model": f"scripted/{model}", **config}
    home.environment["OPENCODE_CONFIG_CONTENT"] = json.dumps(settings)
    home.environment.update({f"OPENCODE_DISABLE_{name}": "1" for name in QUIET})
    _seed(config_folder(home))
    return [program("opencode"), "run", "--title", "scripted", "--print-logs", PROMPT]


def config_folder(home: DaemonHome) -> Path:
    return Path(home.environment["XDG_CONFIG_HOME"]) / "opencode"


def _seed(folder: Path) -> None:
    """OpenCode fetches its own package into every folder of plugins, unless a lock file says that it is there.

    Nothing of it is needed: our plugin imports types from it, and those are gone when it runs.
    """
    (folder / "node_modules").mkdir(parents=True, exist_ok=True)
    write(folder / "package-lock.json", {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}})
