"""Host files after `setup`: written anew by the host, or by an earlier version of `setup`."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import pilotfish
from pilotfish.surfaces.cli.main import run
from support.daemon.homes import WAIT_SECONDS, DaemonHome, no_daemon_left
from support.hosts.users import User, install

pytestmark = pytest.mark.proves("HOOK-3")

PACKAGE = Path(pilotfish.__file__).parent


def turned(value: Any) -> Any:
    """The same JSON with the members of every object in the opposite order."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {key: turned(members[key]) for key in reversed(members)}
    return [turned(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def rewrite_json(text: str) -> str:
    return json.dumps(turned(json.loads(text)), separators=(",", ":"))


def rewrite_claude(text: str) -> str:
    """Claude Code adds what it has defaults for."""
    value = json.loads(text)
    value.setdefault("mcpServers", {}).get("pilotfish", {})["env"] = {}
    return rewrite_json(json.dumps({"numStartups": 2, **value}))


def rewrite_toml(text: str) -> str:
    table, *lines = text.strip().splitlines()
    return "\n".join(['model = "x"', "", table, "enabled = true", *reversed(lines), "", "[other]", "a = 1", ""])


def rewrite_yaml(text: str) -> str:
    """In the style of serde_yaml, which Goose writes with."""
    lines: list[str] = []
    for line in text.splitlines():
        key, _, value = line.partition(": ")
        if value.startswith("["):
            indent = " " * (len(key) - len(key.lstrip()))
            lines += [f"{key}:", *(f"{indent}- {item}" for item in json.loads(value))]
        else:
            lines.append(f"{key}: {json.loads(value)}" if value.startswith('"') else line)
    return "\n".join([*lines, "    env_keys: []", "    bundled: null", "GOOSE_MODEL: x", ""])


REWRITTEN: dict[str, tuple[str, str, Callable[[str], str]]] = {
    "claude hooks": ("claude-code", ".claude/settings.json", rewrite_json),
    "claude servers": ("claude-code", ".claude.json", rewrite_claude),
    "codex hooks": ("codex", ".codex/hooks.json", rewrite_json),
    "codex servers": ("codex", ".codex/config.toml", rewrite_toml),
    "gemini": ("gemini", ".gemini/settings.json", rewrite_json),
    "llxprt": ("llxprt", ".config/llxprt-code/settings.json", rewrite_json),
    "goose": ("goose", ".config/goose/config.yaml", rewrite_yaml),
    "zed": ("zed", ".config/zed/settings.json", rewrite_json),
}


@pytest.mark.parametrize(("host", "name", "rewrite"), REWRITTEN.values(), ids=REWRITTEN)
def test_a_file_that_its_host_has_written_anew_is_wired_still(
    host: str, name: str, rewrite: Callable[[str], str], user: User, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["setup", host]) == 0
    file = user.home / name
    text = rewrite(file.read_text())
    assert text != file.read_text()
    file.write_text(text)
    capsys.readouterr()
    assert run(["setup", host]) == 0
    assert "nothing to change" in capsys.readouterr().out
    assert file.read_text() == text
    assert run(["setup", host, "--remove"]) == 0
    assert "pilotfish" not in (file.read_text() if file.exists() else "")


@pytest.mark.parametrize(
    ("host", "name", "before", "after"),
    [
        pytest.param("qwen", ".qwen/settings.json", '"timeout": 10', '"timeout": 11', id="another time"),
        pytest.param("qwen", ".qwen/settings.json", '"matcher": ".*"', '"matcher": "edit"', id="other tools"),
        pytest.param("qwen", ".qwen/settings.json", '"SessionEnd"', '"Notification"', id="another event"),
        pytest.param("zed", ".config/zed/settings.json", '"custom"', '"extension"', id="another server"),
        pytest.param("goose", ".config/goose/config.yaml", "timeout: 300", "timeout: 3", id="another number"),
        pytest.param("goose", ".config/goose/config.yaml", '"mcp"]', '"mcp", "-x"]', id="other words"),
        pytest.param("codex", ".codex/config.toml", '"mcp"]', '"mcp", "-x"]', id="other words in TOML"),
        pytest.param("aider", ".aider.conf.yml", "-I -S", "-I", id="another command"),
    ],
)
def test_a_file_that_says_something_else_is_wired_anew(
    host: str, name: str, before: str, after: str, user: User
) -> None:
    assert run(["setup", host]) == 0
    file = user.home / name
    written = file.read_text()
    assert before in written
    file.write_text(written.replace(before, after))
    assert run(["setup", host]) == 0
    assert file.read_text() == written


def test_hooks_of_others_around_ours_change_nothing(user: User, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["setup", "qwen"]) == 0
    file = user.home / ".qwen" / "settings.json"
    value = json.loads(file.read_text())
    other = {"type": "command", "command": "theirs"}
    value["hooks"]["PostToolUse"][0]["hooks"].append(other)
    value["hooks"]["PostToolUse"].append({"hooks": [other]})
    file.write_text(json.dumps(value))
    capsys.readouterr()
    assert run(["setup", "qwen"]) == 0
    assert "nothing to change" in capsys.readouterr().out
    assert run(["setup", "qwen", "--remove"]) == 0
    assert "pilotfish" not in file.read_text()
    assert file.read_text().count("theirs") == 2


# --- Earlier versions -----------------------------------------------------------------------------------------------

HOOK = "/old/bin/python -I -S /old/lib/pilotfish/surfaces/hook.py"
MCP = {"command": "/old/bin/python", "args": ["-I", "-m", "pilotfish", "mcp"]}
EARLIER: dict[str, dict[str, object]] = {
    "claude-code": {
        ".claude/settings.json": {
            "hooks": {
                "PostToolUse": [
                    {"matcher": "Write|Edit", "hooks": [{"type": "command", "command": f"{HOOK} claude-code"}]}
                ],
                "Stop": [{"hooks": [{"type": "command", "command": f"{HOOK} claude-code --deadline-ms 2000"}]}],
            }
        },
        ".claude.json": {"mcpServers": {"pilotfish": MCP}},
    },
    "codex": {
        ".codex/hooks.json": {
            "hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": f"{HOOK} codex", "timeout": 10}]}]}
        },
        ".codex/config.toml": '[mcp_servers.pilotfish]\ncommand = "/old/bin/python"\nargs = ["mcp"]\n',
    },
    "cline": {
        ".cline/hooks/PostToolUse.sh": f"#!/bin/sh\n# Written by `pilotfish setup cline`.\nexec {HOOK} cline\n",
    },
    "aider": {
        ".aider.conf.yml": 'lint-cmd: "/old/bin/python -I -S /old/lib/pilotfish/surfaces/hosts/aider_lint.py"\n',
    },
    "pi": {
        ".pi/agent/extensions/pilotfish.ts": "/**\n * Pilotfish in Pi: an earlier version.\n */\n",
        ".pi/agent/extensions/pilotfish.json": {"command": ["/old/bin/python", "-I", "-m", "pilotfish"]},
    },
    "opencode": {
        ".config/opencode/plugin/pilotfish.ts": "/**\n * Pilotfish in OpenCode: an earlier version.\n */\n",
        ".config/opencode/plugin/pilotfish.json": {"command": ["/old/bin/python", "-I", "-m", "pilotfish"]},
        ".config/opencode/opencode.json": {"mcp": {"pilotfish": {"type": "local", "command": ["/old/bin/python"]}}},
    },
}
"""What earlier versions wrote, from another installation and without a receipt."""


def give_earlier(user: User, host: str) -> None:
    for name, content in EARLIER[host].items():
        (user.home / name).parent.mkdir(parents=True, exist_ok=True)
        (user.home / name).write_text(content if isinstance(content, str) else json.dumps(content))


@pytest.fixture
def daemon(user: User) -> Iterator[None]:
    with no_daemon_left(str(user.state)):
        yield


@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize("host", EARLIER)
def test_what_an_earlier_version_wrote_is_known_as_that(
    host: str, user: User, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(user, monkeypatch, "claude")
    give_earlier(user, host)
    assert run(["setup", host, "--status", "--json"]) == 1
    (status,) = json.loads(capsys.readouterr().out)
    for name in EARLIER[host]:
        assert "run setup again" in status["files"][str(user.home / name)]


@pytest.mark.parametrize("host", EARLIER)
def test_what_an_earlier_version_wrote_is_repaired(host: str, user: User, capsys: pytest.CaptureFixture[str]) -> None:
    give_earlier(user, host)
    assert run(["setup", "--repair", "--dry-run"]) == 0
    assert "/old/" in "".join(path.read_text() for path in user.home.rglob("*") if path.is_file())
    assert run(["setup", "--repair"]) == 0
    assert "/old/" not in "".join((user.home / name).read_text() for name in EARLIER[host])
    capsys.readouterr()
    assert run(["setup", "--repair"]) == 0
    assert capsys.readouterr().out.startswith("Nothing to repair")


@pytest.mark.parametrize("host", EARLIER)
def test_what_an_earlier_version_wrote_can_be_replaced_and_removed(host: str, user: User) -> None:
    give_earlier(user, host)
    assert run(["setup", host, "--remove"]) == 0
    left = [path.read_text() for path in user.home.rglob("*") if path.is_file()]
    assert "pilotfish" not in "".join(left)
    give_earlier(user, host)
    assert run(["setup", host]) == 0
    assert all("/old/" not in (user.home / name).read_text() for name in EARLIER[host])


@pytest.mark.proves("HOOK-1")
def test_the_programs_that_earlier_versions_named_run_still(own: DaemonHome) -> None:
    with own.control(start=True):
        own.run_hook(b'{"files":["a.x"]}')
    event = json.dumps({"files": ["a.x"], "cwd": str(own.root)}).encode()
    for words, given, status in (
        (["hook.py", "plain"], event, 0),
        (["hosts/aider_lint.py", "a.x"], b"", 1),
    ):
        program, argument = words
        command = [sys.executable, "-I", "-S", str(PACKAGE / "surfaces" / program), argument]
        done = subprocess.run(
            command,
            input=given,
            capture_output=True,
            cwd=own.root,
            env=own.environment,
            timeout=WAIT_SECONDS,
            check=False,
        )
        assert (done.returncode, done.stderr) == (status, b"")
        assert b"ERROR [1:1] bad word" in done.stdout


def test_setup_writes_the_path_that_hosts_hold(user: User) -> None:
    assert run(["setup", "qwen"]) == 0
    assert os.path.join(PACKAGE, "surfaces", "hook.py") in (user.home / ".qwen" / "settings.json").read_text()
