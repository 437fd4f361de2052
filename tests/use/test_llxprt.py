"""A session of LLxprt Code through its hooks: the hook program as LLxprt runs it, real servers, a real daemon."""

import json
import os
import signal
from typing import Any

import pytest

from support.daemon.users import ShellUser, named_server
from support.process_tree import ends

pytestmark = pytest.mark.slow

DEADLINE = ("llxprt", "--deadline-ms", "50000")

RENAME = """diff --git a/a.x b/b.x
similarity index 100%
rename from a.x
rename to b.x
"""


def send(user: ShellUser, session: str, event: str, **more: Any) -> str:
    """What LLxprt adds to the tool's result."""
    said = {"session_id": session, "cwd": str(user.root), "hook_event_name": event, **more}
    done = user.home.run_hook(json.dumps(said).encode(), *DEADLINE)
    assert done.returncode == 0
    return json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"] if done.stdout else ""


def write_file(user: ShellUser, session: str, name: str, text: str) -> str:
    user.write(name, text)
    arguments = {"file_path": str(user.root / name), "content": text}
    return send(user, session, "AfterTool", tool_name="write_file", tool_input=arguments, tool_response={})


def pid_of(user: ShellUser) -> int:
    rows: list[dict[str, Any]] = json.loads(user.run("status", "--json").stdout)["rows"]
    (row,) = [row for row in rows if row["serverId"] == "toy"]
    return row["instances"][0]["pid"]


@pytest.mark.proves("POOL-2", "HOOK-1")
def test_a_server_that_crashed_stays_away_for_its_session_and_is_back_in_the_next(user: ShellUser) -> None:
    user.configure({"lsp": {"toy": named_server("toy", ".x")}})
    send(user, "one", "SessionStart")
    assert "toy found a bad word" in write_file(user, "one", "a.x", "bad\n")
    server = pid_of(user)
    os.kill(server, signal.SIGKILL)
    assert ends(server)
    assert write_file(user, "one", "a.x", "bad, worse\n") == ""
    send(user, "one", "SessionEnd")
    send(user, "two", "SessionStart")
    assert "toy found a bad word" in write_file(user, "two", "b.x", "bad\n")


@pytest.mark.proves("HOOK-1", "DIAG-11")
def test_a_patch_that_only_renames_is_followed_by_nothing(user: ShellUser) -> None:
    user.home.configure()
    user.write("b.x", "bad\n")
    arguments = {"file_path": str(user.root / "b.x"), "patch_content": RENAME}
    call: dict[str, Any] = {"tool_name": "apply_patch", "tool_response": {}}
    assert send(user, "one", "AfterTool", tool_input=arguments, **call) == ""
    changed = {**arguments, "patch_content": RENAME + "--- a/a.x\n+++ b/b.x\n@@ -1 +1 @@\n-good\n+bad\n"}
    assert "bad word" in send(user, "one", "AfterTool", tool_input=changed, **call)
