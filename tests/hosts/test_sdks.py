"""`docs/guide/sdks.md`: each block as it stands, in its SDK, on a fake model that breaks a file and wants to stop."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.daemon.homes import DaemonHome
from support.hosts.agents import BROKEN, ERROR, MENDED
from support.hosts.model_server import Call, ModelServer, Say
from support.hosts.real import HOSTS, MANIFEST, RUN_SECONDS, program
from support.servers.real import REPOSITORY

pytestmark = pytest.mark.proves("HOOK-1", "DIAG-12")

PAGE = (REPOSITORY / "docs" / "guide" / "sdks.md").read_text()
SNIPPETS: Mapping[str, str] = {
    heading[1]: code[1]
    for part in re.split(r"^(?=##)", PAGE, flags=re.MULTILINE)
    if (heading := re.match(r"#+ (.+)\n", part))
    and (code := re.search(r"^<!-- not run.*\n```\w+\n([^`]*)^```", part, re.MULTILINE))
}
"""The blocks of the page by the heading above them."""

SUPPORT = Path(__file__).parent.parent / "support" / "sdks"
MAX_LINES = 10
MODEL_TURNS = (BROKEN, None, MENDED, None)


def test_every_sdk_takes_at_most_ten_lines() -> None:
    assert list(SNIPPETS) == [
        "Python",
        "TypeScript",
        "OpenAI Agents SDK",
        "LangChain and Deep Agents",
        "Pydantic AI",
        "Vercel AI SDK",
    ]
    for title, code in SNIPPETS.items():
        assert len([line for line in code.splitlines() if line.strip()]) <= MAX_LINES, title


@pytest.mark.parametrize(
    "sdk", ["claude-agent-sdk", "claude-agent-sdk-ts", "openai-agents", "deepagents", "pydantic-ai"]
)
def test_the_page_names_the_versions_that_the_tests_run(sdk: str) -> None:
    packages = MANIFEST[sdk].get("npm") or MANIFEST[sdk]["pypi"]
    assert all(f"{name} {version}" in PAGE for name, version in packages.items())


@pytest.mark.parametrize(
    ("sdk", "title"),
    [
        pytest.param("pydantic-ai", "Pydantic AI", marks=pytest.mark.host("pydantic-ai")),
        pytest.param("openai-agents", "OpenAI Agents SDK", marks=pytest.mark.host("openai-agents")),
        pytest.param("deepagents", "LangChain and Deep Agents", marks=pytest.mark.host("deepagents")),
    ],
)
def test_a_model_in_a_python_sdk_reads_what_its_edit_broke_and_what_is_left(
    sdk: str, title: str, home: DaemonHome, tmp_path: Path
) -> None:
    read = play(
        home, [program(sdk), str(SUPPORT / "play.py"), sdk, snippet(tmp_path, title), os.pathsep.join(sys.path)]
    )
    assert_told(json.loads(read))


@pytest.mark.host("vercel-ai", "node")
def test_a_model_in_the_vercel_sdk_reads_what_its_edit_broke_and_what_is_left(home: DaemonHome, tmp_path: Path) -> None:
    script = (SUPPORT / "vercel.mjs").read_text().replace("// THE PAGE", SNIPPETS["Vercel AI SDK"])
    (HOSTS / "vercel-ai" / "play.mjs").write_text(script)
    assert_told(json.loads(play(home, [program("node"), str(HOSTS / "vercel-ai" / "play.mjs")])))


@pytest.mark.parametrize(
    ("sdk", "title"),
    [
        pytest.param("claude-agent-sdk", "Python", marks=pytest.mark.host("claude-agent-sdk", "claude-code")),
        pytest.param(
            "claude-agent-sdk-ts",
            "TypeScript",
            marks=pytest.mark.host("claude-agent-sdk-ts", "claude-code", "node"),
        ),
    ],
)
def test_a_model_in_the_claude_agent_sdk_reads_what_its_edit_broke_and_what_is_left(
    sdk: str, title: str, home: DaemonHome, tmp_path: Path
) -> None:
    file = str(home.root / "b.py")
    turns = [Call("Write", {"file_path": file, "content": BROKEN}), Say("Done.")]
    turns += [Call("Edit", {"file_path": file, "old_string": '"x"', "new_string": "1"}), Say("Done.")]
    with ModelServer(turns) as model:
        home.environment.update(
            ANTHROPIC_API_KEY="none",
            ANTHROPIC_BASE_URL=model.url,
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            DISABLE_AUTOUPDATER="1",
            IS_SANDBOX="1",
            CLAUDE=program("claude-code"),
        )
        if sdk.endswith("-ts"):
            made = HOSTS / sdk / "play.mjs"
            made.write_text((SUPPORT / "claude.mjs").read_text().replace("// THE PAGE", SNIPPETS[title]))
            play(home, [program("node"), str(made)])
        else:
            play(
                home, [program(sdk), str(SUPPORT / "play.py"), sdk, snippet(tmp_path, title), os.pathsep.join(sys.path)]
            )
        assert_told([model.after(turn).text for turn in range(4)])


def snippet(folder: Path, title: str) -> str:
    (folder / "snippet.py").write_text(SNIPPETS[title])
    return str(folder / "snippet.py")


def play(home: DaemonHome, command: list[str]) -> str:
    """What the agent prints; `pilotfish` is on its PATH, as after an installation."""
    home.write("a.py", MENDED)
    shim = home.root.parent / "bin" / "pilotfish"
    shim.parent.mkdir(exist_ok=True)
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -I -m pilotfish "$@"\n')
    shim.chmod(0o755)
    environment = {**home.environment, "PATH": f"{shim.parent}:{home.environment['PATH']}"}
    done = subprocess.run(
        command, capture_output=True, cwd=home.root, env=environment, text=True, timeout=RUN_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def assert_told(read: list[Any]) -> None:
    """What the model read before each of its four answers."""
    assert len(read) == len(MODEL_TURNS)
    first, after_edit, before_stop, after_all = (str(text) for text in read)
    assert ERROR not in first
    assert after_edit.count(ERROR) == 1
    assert before_stop.count(ERROR) > 1
    assert after_all.count(ERROR) == before_stop.count(ERROR)
