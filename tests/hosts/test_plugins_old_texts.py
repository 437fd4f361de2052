"""The plugins send the text before an edit: read when the tool is about to run, as it was then."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.daemon.homes import DaemonHome
from support.hosts.pi_events import result
from support.hosts.plugins import Driven, driven
from support.hosts.recording_daemon import recording_daemon

pytestmark = [pytest.mark.host("node"), pytest.mark.proves("DIAG-8")]

WROTE: dict[str, Any] = {"title": "a", "output": "Wrote file successfully.", "metadata": {}}

Step = Callable[[Driven, str, str, dict[str, Any]], Any]
"""Of a plugin: a call by its number, its tool and its arguments, with the file under the name of the host."""


def pi_call(pi: Driven, call: str, tool: str, arguments: dict[str, Any]) -> None:
    assert pi("fire", event="tool_call", data={"toolCallId": call, "toolName": tool, "input": arguments}) is None


def pi_result(pi: Driven, call: str, tool: str, arguments: dict[str, Any]) -> None:
    assert pi("fire", **result(tool, arguments, call)) is None


def opencode_call(opencode: Driven, call: str, tool: str, arguments: dict[str, Any]) -> None:
    opencode("before", tool=tool, args=arguments, call=call)


def opencode_result(opencode: Driven, call: str, tool: str, arguments: dict[str, Any]) -> None:
    assert opencode("after", tool=tool, args=arguments, call=call, output=WROTE) == WROTE


PLUGINS = [
    pytest.param("pi", "path", "input", pi_call, pi_result, id="pi"),
    pytest.param("opencode", "filePath", "patchText", opencode_call, opencode_result, id="opencode"),
]


@pytest.mark.parametrize(("host", "path", "patch", "begin", "end"), PLUGINS)
def test_an_edit_brings_the_text_before_it(
    host: str, path: str, patch: str, begin: Step, end: Step, own: DaemonHome, tmp_path: Path
) -> None:
    file = str(own.root / "a.x")
    new, moved = str(own.root / "new.x"), str(own.root / "moved.x")
    (own.root / "latin.x").write_bytes(b"\xe9")
    (own.root / "large.x").write_bytes(b"x" * (1024 * 1024 + 1))
    moving = "*** Begin Patch\n*** Update File: a.x\n*** Move to: moved.x\n@@\n-a\n+b\n*** End Patch"
    with recording_daemon(own) as daemon, driven(host, own, tmp_path / "driver") as plugin:
        own.write("a.x", "one\n")
        begin(plugin, "1", "edit", {path: "a.x"})
        own.write("a.x", "two\n")
        begin(plugin, "2", "write", {path: "a.x"})
        begin(plugin, "3", "write", {path: "new.x"})
        begin(plugin, "4", "write", {path: "latin.x"})
        begin(plugin, "5", "write", {path: "large.x"})
        begin(plugin, "6", "apply_patch", {patch: moving})
        begin(plugin, "7", "bash", {"command": "ls"})
        own.write("a.x", "three\n")
        end(plugin, "2", "write", {path: "a.x"})
        end(plugin, "1", "edit", {path: "a.x"})
        end(plugin, "1", "edit", {path: "a.x"})
        end(plugin, "3", "write", {path: "new.x"})
        end(plugin, "4", "write", {path: "latin.x"})
        end(plugin, "5", "write", {path: "large.x"})
        end(plugin, "6", "apply_patch", {patch: moving})
    assert daemon.touches == [
        {"paths": [file], "kind": "write", "before": {file: "two\n"}},
        {"paths": [file], "kind": "edit", "before": {file: "one\n"}},
        {"paths": [file], "kind": "edit"},
        {"paths": [new], "kind": "write", "before": {new: ""}},
        {"paths": [str(own.root / "latin.x")], "kind": "write"},
        {"paths": [str(own.root / "large.x")], "kind": "write"},
        {"paths": [moved], "kind": "patch"},
    ]


@pytest.mark.parametrize(("host", "path", "patch", "begin", "end"), PLUGINS)
def test_a_daemon_that_knows_no_old_texts_gets_none(
    host: str, path: str, patch: str, begin: Step, end: Step, own: DaemonHome, tmp_path: Path
) -> None:
    assert patch
    with recording_daemon(own, knows_old_texts=False) as daemon, driven(host, own, tmp_path / "driver") as plugin:
        begin(plugin, "1", "edit", {path: "a.x"})
        end(plugin, "1", "edit", {path: "a.x"})
    assert ["before" in touch for touch in daemon.touches] == [True, False]


def test_arguments_that_are_none_leave_the_tool_of_pi_to_pi(own: DaemonHome, tmp_path: Path) -> None:
    with driven("pi", own, tmp_path / "driver") as pi:
        assert pi("fire", event="tool_call", data={"toolCallId": "1", "toolName": "edit", "input": None}) is None


def test_arguments_that_are_none_leave_the_tool_of_opencode_to_opencode(own: DaemonHome, tmp_path: Path) -> None:
    with driven("opencode", own, tmp_path / "driver") as opencode:
        assert opencode("before", tool="edit", args={"filePath": 7}, call="1") is None
