"""What each host says, read as it was seen on the wire, and what it hears."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pilotfish.api.questions import Moment, Touch
from pilotfish.errors import Refused
from pilotfish.hosts.registry import dialect_of
from pilotfish.hosts.shared.old_texts import Hunk, Replacement, patched_files
from pilotfish.hosts.shared.tool_hooks import (
    EndEvent,
    HostEvent,
    MomentEvent,
    OtherEvent,
    StartEvent,
    TouchEvent,
)
from support.hosts.dialects import dialect_names

PATCH = """*** Begin Patch
*** Add File: src/new.py
+x = 1
*** Update File: src/a.py
@@ def f():
-    return 1
+    return 2
*** Delete File: src/old.py
*** Update File: src/from.py
*** Move to: src/to.py
@@
-a
+b
*** Update File: src/only.py
*** Move to: src/moved.py
*** End Patch"""
PATCHED = ("src/new.py", "src/a.py", "src/to.py")
OLD: Mapping[str, Any] = {
    "before": {"src/new.py": ""},
    "undos": {
        "src/a.py": (Hunk(("-    return 1", "+    return 2"), None, "def f():"),),
        "src/to.py": (Hunk(("-a", "+b")),),
    },
}
"""What the patch says about the texts before it."""

CLAUDE = {
    "session_id": "s1",
    "transcript_path": "/t.jsonl",
    "cwd": "/w",
    "permission_mode": "default",
    "hook_event_name": "PostToolUse",
    "tool_use_id": "toolu_1",
    "duration_ms": 3,
}
WRITE: Mapping[str, Any] = {
    "tool_name": "Write",
    "tool_input": {"file_path": "/w/a.py", "content": "x"},
    "tool_response": {"type": "create", "filePath": "/w/a.py", "structuredPatch": [], "originalFile": None},
}
EDIT = {
    "tool_name": "Edit",
    "tool_input": {"file_path": "/w/a.py", "old_string": "x", "new_string": "y"},
    "tool_response": {"filePath": "/w/a.py", "structuredPatch": [{"oldStart": 1, "lines": ["-x", "+y"]}]},
}
READ = {"tool_name": "Read", "tool_input": {"file_path": "/w/a.py"}, "tool_response": {"type": "text"}}
COPILOT = {
    "session_id": "s1",
    "cwd": "/w",
    "hook_event_name": "PostToolUse",
    "tool_name": "Write",
    "tool_input": {"path": "/w/a.py", "file_text": "x"},
}

CODEX = {
    "session_id": "s1",
    "turn_id": "t",
    "cwd": "/w",
    "hook_event_name": "PostToolUse",
    "model": "m",
    "tool_name": "apply_patch",
    "tool_input": {"command": PATCH},
    "tool_response": "Exit code: 0\nOutput:\nSuccess. Updated the following files:\nA src/new.py\n",
}
GEMINI = {
    "session_id": "s1",
    "cwd": "/w",
    "hook_event_name": "AfterTool",
    "timestamp": "2026-01-01T00:00:00Z",
    "tool_name": "write_file",
    "tool_input": {"file_path": "a.py", "content": "x"},
    "tool_response": {"llmContent": "ok", "returnDisplay": {"fileDiff": "", "filePath": "a.py"}},
}
QWEN = {**GEMINI, "hook_event_name": "PostToolUse", "tool_use_id": "u", "prompt_id": "p"}
CLINE: Mapping[str, Any] = {
    "taskId": "s1",
    "workspaceRoots": ["/w"],
    "hookName": "tool_result",
    "tool_result": {"id": "1", "name": "editor", "input": {"path": "/w/a.py", "new_text": "x"}, "output": "ok"},
    "postToolUse": {"toolName": "editor", "parameters": {"path": "/w/a.py"}, "success": True},
}


VSCODE = {"timestamp": "10:30", "cwd": "/w", "sessionId": "s1", "hookEventName": "PostToolUse", "tool_use_id": "t1"}
CURSOR = {
    "conversation_id": "s1",
    "generation_id": "g",
    "workspace_roots": ["/w"],
    "hook_event_name": "postToolUse",
    "tool_use_id": "t1",
}
KIRO = {"session_id": "s1", "cwd": "/w", "hook_event_name": "PostToolUse"}
WINDSURF = {"agent_action_name": "post_write_code", "trajectory_id": "s1"}


def touched(files: tuple[str, ...], kind: Any, **more: Any) -> TouchEvent:
    event, undos, identity = more.pop("event", ""), more.pop("undos", {}), more.pop("id", "")
    more = {"batch": None if kind == "read" else "part", "stops": bool(event), **more}
    return TouchEvent(Touch(files, kind, **more), "s1", "/w", event=event, undos=undos, id=identity)


def after(files: tuple[str, ...], kind: Any, **more: Any) -> TouchEvent:
    return touched(files, kind, **{"event": "PostToolUse", "max_bytes": 9000, **more})


def of_batch(files: tuple[str, ...], kind: Any, **more: Any) -> TouchEvent:
    """After one call of a batch, whose end another event tells."""
    return after(files, kind, counts=False, **more)


def moment(kind: Any, event: str = "PostToolUse", max_bytes: int = 9000, **more: Any) -> MomentEvent:
    return MomentEvent(Moment(kind, max_bytes=max_bytes, **more), "s1", "/w", event=event)


def of_all(files: tuple[str, ...]) -> TouchEvent:
    touch = Touch(files, "patch", max_bytes=9000, stops=True, batch="end")
    return TouchEvent(touch, "s1", "/w", event="PostToolBatch")


def cline(name: str, given: object, **more: Any) -> Mapping[str, Any]:
    return {**CLINE, "tool_result": {"name": name, "input": given, "output": "ok"}, **more}


def batch(*calls: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        **CLAUDE,
        "hook_event_name": "PostToolBatch",
        "tool_calls": [{**call, "tool_use_id": "u"} for call in calls],
    }


A = ("/w/a.py",)
OTHER: Mapping[str, Any] = {**WRITE, "tool_input": {"file_path": "/w/b.py", "content": ""}}
FAILED = {"llmContent": "no", "returnDisplay": "no", "error": {"message": "no such text"}}
AIDER = TouchEvent(Touch(("a.py", "b c.py"), "edit", plain=True, max_bytes=9000), "")

ROWS: Mapping[str, tuple[str, Mapping[str, Any] | bytes, HostEvent]] = {
    "claude write": ("claude-code", {**CLAUDE, **WRITE}, of_batch(A, "write", before={"/w/a.py": ""})),
    "claude edit": (
        "claude-code",
        {**CLAUDE, **EDIT},
        of_batch(A, "edit", undos={"/w/a.py": (Replacement("x", "y"),)}),
    ),
    "claude several edits": (
        "claude-code",
        {**CLAUDE, "tool_name": "MultiEdit", "tool_input": {"file_path": "/w/a.py", "edits": []}},
        of_batch(A, "edit"),
    ),
    "claude notebook": (
        "claude-code",
        {**CLAUDE, "tool_name": "NotebookEdit", "tool_input": {"notebook_path": "/w/a.ipynb", "new_source": "x"}},
        of_batch(("/w/a.ipynb",), "edit"),
    ),
    "claude read": ("claude-code", {**CLAUDE, **READ}, of_batch(A, "read")),
    "claude before an edit": ("claude-code", {**CLAUDE, **EDIT, "hook_event_name": "PreToolUse"}, touched(A, "read")),
    "claude before a command": (
        "claude-code",
        {**CLAUDE, "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "rm a.py"}},
        StartEvent("s1", "/w", warms=False),
    ),
    "claude failed edit": ("claude-code", {**CLAUDE, **EDIT, "hook_event_name": "PostToolUseFailure"}, OtherEvent()),
    "claude other tool": (
        "claude-code",
        {**CLAUDE, "tool_name": "Bash", "tool_input": {"command": "ls"}},
        moment("call", counts=False),
    ),
    "claude begins": (
        "claude-code",
        {**CLAUDE, "hook_event_name": "SessionStart", "source": "startup"},
        StartEvent("s1", "/w"),
    ),
    "claude ends": ("claude-code", {**CLAUDE, "hook_event_name": "SessionEnd", "reason": "other"}, EndEvent("s1")),
    "claude other event": ("claude-code", {**CLAUDE, "hook_event_name": "Notification"}, OtherEvent()),
    "claude prompt": (
        "claude-code",
        {**CLAUDE, "hook_event_name": "UserPromptSubmit", "prompt": "p"},
        moment("prompt", event="UserPromptSubmit"),
    ),
    "claude stops": (
        "claude-code",
        {**CLAUDE, "hook_event_name": "Stop", "stop_hook_active": False},
        moment("stop", event="Stop"),
    ),
    "claude stops again": (
        "claude-code",
        {**CLAUDE, "hook_event_name": "Stop", "stop_hook_active": True},
        moment("stop", event="Stop", again=True),
    ),
    "claude subagent stops": (
        "claude-code",
        {**CLAUDE, "hook_event_name": "SubagentStop", "agent_id": "a1"},
        moment("stop", event="SubagentStop", agent="a1"),
    ),
    "claude batch of one edit": ("claude-code", batch(WRITE, READ), of_all(A)),
    "claude batch without an edit": ("claude-code", batch(READ), moment("call", event="PostToolBatch")),
    "claude batch": (
        "claude-code",
        batch(WRITE, OTHER, READ, EDIT),
        of_all(("/w/a.py", "/w/b.py")),
    ),
    "claude batch of one file": (
        "claude-code",
        batch(WRITE, EDIT),
        of_all(A),
    ),
    "codex patch": ("codex", CODEX, after(PATCHED, "patch", **OLD, max_bytes=7000)),
    "codex failed patch": (
        "codex",
        {**CODEX, "tool_response": "Exit code: 1\nno such context"},
        moment("call", max_bytes=7000),
    ),
    "codex shell": (
        "codex",
        {**CODEX, "tool_name": "Bash", "tool_input": {"command": "ls"}},
        moment("call", max_bytes=7000),
    ),
    "codex stops": (
        "codex",
        {**CODEX, "hook_event_name": "Stop"},
        moment("stop", event="Stop", max_bytes=7000, plain=True),
    ),
    "codex patch in a shell": (
        "codex",
        {**CODEX, "tool_name": "Bash", "tool_input": {"command": f"apply_patch <<'EOF'\n{PATCH}\nEOF\n"}},
        after(PATCHED, "patch", **OLD, max_bytes=7000),
    ),
    "codex begins": ("codex", {**CODEX, "hook_event_name": "SessionStart"}, StartEvent("s1", "/w")),
    "codex ends": ("codex", {**CODEX, "hook_event_name": "SessionEnd"}, EndEvent("s1")),
    "copilot create": (
        "copilot",
        {**COPILOT, "tool_result": {"text_result_for_llm": "Created file /w/a.py with 1 characters"}},
        after(A, "write", before={"/w/a.py": ""}),
    ),
    "copilot write": ("copilot", {**COPILOT, "tool_result": {"text_result_for_llm": "Updated"}}, after(A, "write")),
    "copilot patch": ("copilot", {**COPILOT, "tool_name": "Edit", "tool_input": PATCH}, after(PATCHED, "edit", **OLD)),
    "copilot shell": (
        "copilot",
        {**COPILOT, "tool_name": "Bash", "tool_input": {"command": "ls"}},
        moment("call"),
    ),
    "copilot failed edit": ("copilot", {**COPILOT, "hook_event_name": "PostToolUseFailure"}, OtherEvent()),
    "copilot prompt": (
        "copilot",
        {**COPILOT, "hook_event_name": "UserPromptSubmit", "prompt": "p"},
        moment("prompt", event="UserPromptSubmit"),
    ),
    "copilot stops": (
        "copilot",
        {**COPILOT, "hook_event_name": "Stop", "stop_hook_active": True},
        moment("stop", event="Stop", again=True),
    ),
    "copilot begins": ("copilot", {**COPILOT, "hook_event_name": "SessionStart"}, StartEvent("s1", "/w")),
    "copilot ends": ("copilot", {**COPILOT, "hook_event_name": "SessionEnd"}, EndEvent("s1")),
    "gemini write": ("gemini", GEMINI, after(("a.py",), "write", event="AfterTool", plain=True)),
    "gemini edit": (
        "gemini",
        {**GEMINI, "tool_name": "replace"},
        after(("a.py",), "edit", event="AfterTool", plain=True),
    ),
    "gemini failed edit": (
        "gemini",
        {**GEMINI, "tool_response": FAILED},
        moment("call", event="AfterTool", plain=True),
    ),
    "gemini prompt": (
        "gemini",
        {**GEMINI, "hook_event_name": "BeforeAgent", "prompt": "p"},
        moment("prompt", event="BeforeAgent", plain=True),
    ),
    "gemini stops": (
        "gemini",
        {**GEMINI, "hook_event_name": "AfterAgent", "stop_hook_active": True},
        moment("stop", event="AfterAgent", plain=True, again=True),
    ),
    "gemini before an edit": ("gemini", {**GEMINI, "hook_event_name": "BeforeTool"}, touched(("a.py",), "read")),
    "gemini ends": ("gemini", {**GEMINI, "hook_event_name": "SessionEnd"}, EndEvent("s1")),
    "qwen write": ("qwen", QWEN, after(("a.py",), "write", plain=True)),
    "qwen edit": ("qwen", {**QWEN, "tool_name": "edit"}, after(("a.py",), "edit", plain=True)),
    "qwen failed edit": ("qwen", {**QWEN, "tool_response": FAILED}, moment("call", plain=True)),
    "qwen stops": ("qwen", {**QWEN, "hook_event_name": "Stop"}, moment("stop", event="Stop", plain=True)),
    "llxprt command": (
        "llxprt",
        {**GEMINI, "tool_name": "run_shell_command", "tool_input": {"command": "x"}},
        moment("call", event="AfterTool"),
    ),
    "llxprt prompt": (
        "llxprt",
        {**GEMINI, "hook_event_name": "BeforeAgent", "prompt": "p"},
        moment("prompt", event="BeforeAgent"),
    ),
    # Nothing that is said then would reach its model.
    "llxprt stop": ("llxprt", {**GEMINI, "hook_event_name": "AfterAgent"}, OtherEvent()),
    "llxprt write": ("llxprt", GEMINI, after(("a.py",), "write", event="AfterTool", stops=False)),
    "llxprt patch": (
        "llxprt",
        {
            **GEMINI,
            "tool_name": "apply_patch",
            "tool_input": {"absolute_path": "/w/a.py", "patch_content": "--- a\n+++ b\n"},
        },
        after(A, "patch", event="AfterTool", stops=False),
    ),
    "llxprt envelope": (
        "llxprt",
        {**GEMINI, "tool_name": "apply_patch", "tool_input": {"patch_content": PATCH}},
        after(PATCHED, "patch", **OLD, event="AfterTool", stops=False),
    ),
    "llxprt lines": (
        "llxprt",
        {**GEMINI, "tool_name": "insert_at_line", "tool_input": {"absolute_path": "/w/a.py", "line_number": 1}},
        after(A, "edit", event="AfterTool", stops=False),
    ),
    "cline edit": ("cline", CLINE, touched(A, "edit", max_bytes=9000)),
    "cline patch": ("cline", cline("apply_patch", {"input": PATCH}), touched(PATCHED, "patch", **OLD, max_bytes=9000)),
    "cline bare patch": ("cline", cline("apply_patch", PATCH), touched(PATCHED, "patch", **OLD, max_bytes=9000)),
    "cline read": (
        "cline",
        cline("read_files", {"files": [{"path": "/w/a.py", "start_line": 1}, "/w/b.py"]}),
        touched(("/w/a.py", "/w/b.py"), "read", max_bytes=9000),
    ),
    "cline failed edit": ("cline", {**CLINE, "postToolUse": {"success": False}}, OtherEvent()),
    "cline error": ("cline", {**CLINE, "tool_result": {**CLINE["tool_result"], "error": "no"}}, OtherEvent()),
    "cline other tool": ("cline", cline("run_commands", {"commands": ["ls"]}), OtherEvent()),
    "cline begins": ("cline", {**CLINE, "hookName": "agent_start"}, StartEvent("s1", "/w")),
    "cline ends": ("cline", {**CLINE, "hookName": "session_shutdown"}, EndEvent("s1")),
    "aider": ("aider", b"a.py\0b c.py\0a.py\0", AIDER),
    "aider without files": ("aider", b"", OtherEvent()),
    "opencode write": (
        "opencode",
        {"tool": "write", "args": {"filePath": "/w/a.py"}, "sessionID": "s1", "directory": "/w"},
        touched(A, "write"),
    ),
    "opencode patch": (
        "opencode",
        {"tool": "apply_patch", "args": {"patchText": PATCH}, "sessionID": "s1", "directory": "/w"},
        touched(PATCHED, "patch", **OLD),
    ),
    "opencode other tool": ("opencode", {"tool": "bash", "args": {"command": "ls"}}, OtherEvent()),
    "opencode ends": ("opencode", {"event": "ended", "sessionID": "s1"}, EndEvent("s1")),
    "pi edit": (
        "pi",
        {"toolName": "edit", "input": {"path": "@a.py", "edits": []}, "isError": False, "session": "s1", "cwd": "/w"},
        touched(("a.py",), "edit"),
    ),
    "pi failed edit": ("pi", {"toolName": "edit", "input": {"path": "a.py"}, "isError": True}, OtherEvent()),
    "vscode edit of the reference": (
        "vscode",
        {**VSCODE, "tool_name": "editFiles", "tool_input": {"files": ["a.py", "b.py"]}},
        after(("a.py", "b.py"), "edit", id="PostToolUse 10:30 t1"),
    ),
    "vscode edit": (
        "vscode",
        {
            **VSCODE,
            "tool_name": "replace_string_in_file",
            "tool_input": {"filePath": "/w/a.py", "oldString": "x", "newString": "y"},
        },
        after(A, "edit", undos={"/w/a.py": (Replacement("x", "y"),)}, id="PostToolUse 10:30 t1"),
    ),
    "vscode patch": (
        "vscode",
        {**VSCODE, "tool_name": "apply_patch", "tool_input": {"input": PATCH, "explanation": "e"}},
        after(PATCHED, "patch", **OLD, id="PostToolUse 10:30 t1"),
    ),
    "vscode prompt": ("vscode", {**VSCODE, "hookEventName": "UserPromptSubmit"}, OtherEvent()),
    "vscode before an edit": (
        "vscode",
        {**VSCODE, "hookEventName": "PreToolUse", "tool_name": "create_file", "tool_input": {"filePath": "/w/a.py"}},
        touched(A, "read", id="PreToolUse 10:30 t1"),
    ),
    "cursor edit": (
        "cursor",
        {**CURSOR, "tool_name": "Write", "tool_input": {"file_path": "/w/a.py"}},
        after(A, "edit", event="postToolUse", stops=False, id="postToolUse g t1 0"),
    ),
    "cursor edit for Claude Code's hooks": (
        "cursor",
        {**CURSOR, "hook_event_name": "PostToolUse", "tool_name": "Write", "tool_input": '{"path": "/w/a.py"}'},
        after(A, "edit", event="postToolUse", stops=False, id="postToolUse g t1 0"),
    ),
    "cursor shell": (
        "cursor",
        {**CURSOR, "tool_name": "Shell", "tool_input": {"command": "ls"}},
        replace(moment("call", event="postToolUse"), id="postToolUse g t1 0"),
    ),
    "cursor edited": (
        "cursor",
        {**CURSOR, "hook_event_name": "afterFileEdit", "file_path": "/w/a.py", "edits": []},
        touched(A, "read"),
    ),
    "cursor stops again": (
        "cursor",
        {**CURSOR, "hook_event_name": "stop", "tool_use_id": "", "status": "completed", "loop_count": 1},
        replace(moment("stop", event="stop", again=True), id="stop g  1"),
    ),
    "cursor is stopped": ("cursor", {**CURSOR, "hook_event_name": "stop", "status": "aborted"}, OtherEvent()),
    "kiro edit": (
        "kiro",
        {**KIRO, "tool_name": "str_replace", "tool_input": {}, "tool_response": "Replaced text in a b.py"},
        after(("a b.py",), "edit"),
    ),
    "kiro edit on the command line": (
        "kiro",
        {**KIRO, "hook_event_name": "postToolUse", "tool_name": "fs_write", "tool_input": {"path": "/w/a.py"}},
        after(A, "edit"),
    ),
    "kiro stops": ("kiro", {**KIRO, "hook_event_name": "Stop"}, moment("stop", event="Stop")),
    "kiro begins": ("kiro", {**KIRO, "hook_event_name": "agentSpawn"}, StartEvent("s1", "/w")),
    "windsurf edit": (
        "windsurf",
        {**WINDSURF, "tool_info": {"file_path": "/w/a.py", "edits": [{"old_string": "x", "new_string": "y"}]}},
        after(A, "edit", event="post_write_code", stops=False, undos={"/w/a.py": (Replacement("x", "y"),)}),
    ),
    "windsurf response": ("windsurf", {**WINDSURF, "agent_action_name": "post_cascade_response"}, OtherEvent()),
    "amp edit": ("amp", {"files": ["/w/a.py"], "session": "s1", "cwd": "/w"}, touched(A, "edit", batch=None)),
    "amp stops": (
        "amp",
        {"event": "stopping", "session": "s1", "cwd": "/w"},
        MomentEvent(Moment("stop"), "s1", "/w"),
    ),
    "pi begins": ("pi", {"event": "began", "session": "s1", "cwd": "/w"}, StartEvent("s1", "/w")),
}


@pytest.mark.proves("HOOK-1", "FMT-7")
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_what_a_host_says_is_understood(row: tuple[str, Mapping[str, Any] | bytes, HostEvent]) -> None:
    host, said, meant = row
    event = said if isinstance(said, bytes) else json.dumps(said).encode()
    assert dialect_of(host).read(event) == meant


@pytest.mark.proves("HOOK-1", "FMT-8")
@pytest.mark.parametrize("event", ["PostToolUse", "PostToolBatch", "AfterTool"])
@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini", "qwen", "llxprt"])
def test_hosts_with_tool_hooks_hear_context_and_nothing_that_decides(host: str, event: str) -> None:
    heard = json.loads(dialect_of(host).written('a "b"\n\ud800', event))
    assert heard == {"hookSpecificOutput": {"hookEventName": event, "additionalContext": 'a "b"\n\ufffd'}}


@pytest.mark.proves("DIAG-12")
@pytest.mark.parametrize(
    ("host", "event", "word"),
    [
        ("claude-code", "Stop", "block"),
        ("claude-code", "SubagentStop", "block"),
        ("codex", "Stop", "block"),
        ("copilot", "Stop", "block"),
        ("gemini", "AfterAgent", "deny"),
        ("qwen", "Stop", "block"),
        ("kiro", "Stop", "block"),
    ],
)
def test_a_stop_is_put_off_in_the_words_of_the_host(host: str, event: str, word: str) -> None:
    assert json.loads(dialect_of(host).written("a", event)) == {"decision": word, "reason": "a"}


@pytest.mark.proves("HOOK-1")
@pytest.mark.parametrize(
    ("host", "heard"),
    [
        pytest.param("cline", b'{"contextModification":"a"}', id="cline"),
        pytest.param("copilot", b'{"additionalContext":"a"}', id="copilot"),
        pytest.param("aider", b"a\n", id="aider"),
        pytest.param("opencode", b"a", id="opencode"),
        pytest.param("pi", b"a", id="pi"),
        pytest.param("plain", b"a\n", id="plain"),
        pytest.param("amp", b"a\n", id="amp"),
        pytest.param("cursor", b'{"additional_context":"a"}', id="cursor"),
        pytest.param("kiro", b"a\n", id="kiro"),
        pytest.param("windsurf", b"a\n", id="windsurf"),
    ],
)
def test_other_hosts_hear_it_in_their_own_way(host: str, heard: bytes) -> None:
    assert dialect_of(host).written("a", "") == heard


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def keys(event: object) -> set[str]:
    """All keys of an event, at any depth."""
    members = cast("dict[str, object]", event) if isinstance(event, dict) else dict[str, object]()
    return set(members).union(*(keys(value) for value in members.values()))


def changed(event: Mapping[str, object], changes: Mapping[str, object]) -> bytes:
    return json.dumps({**event, **changes}).encode()


@pytest.mark.proves("HOOK-2", "FMT-8", "A16.6")
@pytest.mark.parametrize("host", sorted({row[0] for row in ROWS.values()} | {"plain"}))
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_no_event_makes_a_dialect_fail(host: str, data: st.DataObject) -> None:
    said = [row[1] for row in ROWS.values() if row[0] == host and not isinstance(row[1], bytes)]
    known = sorted(set[str]().union(*map(keys, said))) or ["files"]
    mutated = st.builds(
        changed, st.sampled_from(said or [{}]), st.dictionaries(st.sampled_from(known), JSON, max_size=3)
    )
    event = data.draw(st.binary(max_size=200) | mutated | JSON.map(lambda value: json.dumps(value).encode()))
    with suppress(Refused):
        heard = dialect_of(host).read(event)
        assert not isinstance(heard, TouchEvent) or heard.touch.paths


def test_every_host_is_among_the_rows() -> None:
    assert {row[0] for row in ROWS.values()} | {"plain"} == set(dialect_names())


@pytest.mark.proves("FMT-7")
@pytest.mark.parametrize(
    ("patch", "files"),
    [
        pytest.param(PATCH, PATCHED, id="all kinds"),
        pytest.param("", (), id="empty"),
        pytest.param("*** Update File: a.py\n+x\n", (), id="no envelope"),
        pytest.param("*** Begin Patch\n*** Update File: a.py\n@@\n+x", ("a.py",), id="no end"),
        pytest.param(
            "*** Begin Patch\r\n*** Add File:  a b.py \r\n*** End Patch\r\n", ("a b.py",), id="empty file, CRLF"
        ),
        pytest.param(
            "*** Begin Patch\n*** Add File: a.py\n+*** Add File: b.py\n*** End Patch",
            ("a.py",),
            id="header in the text",
        ),
        pytest.param(
            "*** Begin Patch\n*** Update File: a.py\n+x\n*** Update File: a.py\n-y\n*** End Patch",
            ("a.py",),
            id="twice",
        ),
        pytest.param("*** Begin Patch\n*** Delete File: a.py\n*** Move to: b.py\n+x\n", (), id="deleted"),
    ],
)
def test_a_patch_names_the_files_that_it_leaves_with_a_new_text(patch: str, files: tuple[str, ...]) -> None:
    assert patched_files(patch) == files


@given(st.text(max_size=300))
def test_any_text_is_a_patch_of_some_files_or_none(patch: str) -> None:
    assert all(patched_files(f"*** Begin Patch\n{patch}"))
