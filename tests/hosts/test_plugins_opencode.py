"""The OpenCode plugin in a plain node, against a real daemon: what it appends, and that it can break nothing."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.daemon.homes import DaemonHome
from support.hosts.plugins import NOWHERE, Driven, driven

pytestmark = pytest.mark.host("node")

WROTE = "Wrote file successfully."


@pytest.fixture(scope="module")
def opencode(shared: DaemonHome, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driven]:
    with driven("opencode", shared, tmp_path_factory.mktemp("opencode")) as driver:
        yield driver


def after(opencode: Driven, tool: str, args: object, output: object = WROTE) -> Any:
    """The result of a tool once the plugin has seen it."""
    whole: Any = {"title": "a", "output": output, "metadata": {}}
    return opencode("after", tool=tool, args=args, output=whole if isinstance(output, str) else output)


def edited(opencode: Driven) -> str:
    return after(opencode, "edit", {"filePath": "a.x", "oldString": "good", "newString": "bad"})["output"]


@pytest.mark.proves("HOOK-1", "FMT-1", "FMT-7")
@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("write", {"filePath": "{root}/a.x", "content": "bad\n"}),
        ("edit", {"filePath": "a.x", "oldString": "good", "newString": "bad"}),
        ("multiedit", {"filePath": "a.x", "edits": []}),
        ("apply_patch", {"patchText": "*** Begin Patch\n*** Update File: a.x\n@@\n-good\n+bad\n*** End Patch"}),
        ("patch", {"patchText": "*** Begin Patch\n*** Add File: a.x\n+bad\n*** End Patch"}),
    ],
)
def test_an_edit_gets_its_errors_appended_and_a_mended_file_gets_nothing(
    shared: DaemonHome, opencode: Driven, tool: str, args: dict[str, Any]
) -> None:
    args = {name: value.format(root=shared.root) if name == "filePath" else value for name, value in args.items()}
    shared.write("a.x", "bad\n")
    told = after(opencode, tool, args)
    assert told["output"].startswith(f"{WROTE}\n\nLSP errors detected in this file")
    assert "ERROR [1:1] bad word" in told["output"]
    assert (told["title"], told["metadata"]) == ("a", {})
    shared.write("a.x", "good\n")
    assert after(opencode, tool, args)["output"] == WROTE


@pytest.mark.proves("HOOK-1", "FMT-8")
@pytest.mark.parametrize(
    ("tool", "args", "output"),
    [
        pytest.param("edit", {"filePath": "a.x"}, {"content": [], "isError": False}, id="the result of an MCP server"),
        pytest.param("edit", {"filePath": "a.x"}, None, id="no result"),
        pytest.param("bash", {"command": "echo"}, WROTE, id="another tool"),
        pytest.param("toString", {"filePath": "a.x"}, WROTE, id="a tool with an odd name"),
        pytest.param("edit", None, WROTE, id="no arguments"),
        pytest.param("edit", {"filePath": 7}, WROTE, id="arguments of another type"),
        pytest.param("write", {"filePath": "/etc/hostname"}, WROTE, id="a file elsewhere"),
        pytest.param("write", {"filePath": "gone.x"}, WROTE, id="a file that is gone"),
        pytest.param("apply_patch", {"patchText": "*** Delete File: a.x"}, WROTE, id="a deletion"),
        pytest.param("read", {"filePath": "a.x"}, WROTE, id="a read"),
    ],
)
def test_what_is_none_of_our_business_stays_as_it_is(
    shared: DaemonHome, opencode: Driven, tool: str, args: object, output: object
) -> None:
    shared.write("a.x", "bad\n")
    after(opencode, "edit", {"filePath": "a.x"})
    told = after(opencode, tool, args, output)
    assert (told["output"] if output == WROTE else told) == output


@pytest.mark.proves("DIAG-12")
def test_what_a_command_broke_is_appended_to_its_result(shared: DaemonHome, opencode: Driven) -> None:
    shared.write("a.x", "good\n")
    after(opencode, "edit", {"filePath": "a.x"})
    shared.write("a.x", "bad\n")
    told = after(opencode, "bash", {"command": "echo"})["output"]
    assert told.startswith(f"{WROTE}\n\nLSP errors detected in files that were changed by a command")
    assert after(opencode, "bash", {"command": "echo"})["output"] == WROTE


@pytest.mark.proves("DIAG-12")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param(["run", "Mend it."], True, id="run"),
        pytest.param(
            ["--print-logs", "--log-level", "ERROR", "-m", "a/b", "run", "Mend it."], True, id="options first"
        ),
        pytest.param(["--log-level=ERROR", "run"], True, id="a value in one word"),
        pytest.param(["--newer", "word", "run", "Mend it."], True, id="an option that is newer than we are"),
        pytest.param(["a folder"], False, id="no command"),
        pytest.param(["--prompt", "run"], False, id="a value that is the word"),
        pytest.param(["--model", "a/b", "serve", "run"], False, id="another command"),
        pytest.param([], False, id="the terminal"),
    ],
)
def test_it_is_told_before_a_text_that_may_be_its_last_where_the_program_ends_with_the_turn(
    shared: DaemonHome, tmp_path: Path, words: list[str], told: bool
) -> None:
    with driven("opencode", shared, tmp_path, words=words) as opencode:
        # A file of its own: in another's, the error would be an old one that this conversation brings back.
        file = f"{tmp_path.name}.x"
        shared.write(file, "good\n")
        after(opencode, "edit", {"filePath": file})
        shared.write(file, "bad\n")
        assert "bad word" in after(opencode, "edit", {"filePath": file})["output"]
        # Its next step, in which it calls no tool.
        opencode("step")
        opencode("said")
        prompts = opencode("seen")["prompts"]
    assert [prompt.partition(":")[0] for prompt in prompts] == ["Before you finish"] * told


def attached(home: DaemonHome) -> int:
    with home.control() as control:
        return sum(each["host"] == "opencode" for each in control.request("about")["sessions"])


@pytest.mark.proves("HOOK-1")
def test_a_session_begins_with_that_of_opencode_and_ends_with_dispose(shared: DaemonHome, tmp_path: Path) -> None:
    before = attached(shared)
    with driven("opencode", shared, tmp_path) as opencode:
        opencode("event", event={"type": "session.idle", "properties": {}})
        opencode("event", event={"type": "session.created", "properties": {}})
        while attached(shared) == before:
            pass
        opencode("dispose")
        while attached(shared) != before:
            pass
        assert "Timeout" not in opencode("resources")
        assert opencode.leave() == ""


@pytest.mark.proves("HOOK-1")
@pytest.mark.parametrize(("lsp", "times"), [(True, 1), ({"mini": {"command": ["x"]}}, 1), (False, 0), (None, 0)])
def test_whoever_has_the_own_lsp_of_opencode_on_is_told_once(
    shared: DaemonHome, tmp_path: Path, lsp: object, times: int
) -> None:
    with driven("opencode", shared, tmp_path) as opencode:
        opencode("config", config={} if lsp is None else {"lsp": lsp})
        for _ in range(2):
            opencode("event", event={"type": "session.created", "properties": {}})
        seen = opencode("seen")
    assert [level for level, _ in seen["logged"]] == ["warn"] * times
    assert len(seen["toasts"]) == times


@pytest.mark.proves("HOOK-1", "FMT-8")
def test_trouble_leaves_the_edit_as_it_is_and_goes_to_the_log(own: DaemonHome, tmp_path: Path) -> None:
    with driven("opencode", own, tmp_path, command=NOWHERE) as opencode:
        assert edited(opencode) == WROTE
        opencode.configure(waitMs=50_000)
        assert "bad word" in edited(opencode)
        (daemon,) = own.daemons()
        os.kill(daemon, signal.SIGSTOP)
        opencode.configure(waitMs=300)
        assert edited(opencode) == WROTE
        assert edited(opencode) == WROTE
        os.kill(daemon, signal.SIGKILL)
        opencode.configure(waitMs=50_000)
        while edited(opencode) == WROTE:
            pass
        said = [message for _, message in opencode("seen")["logged"]]
    for number, reason in enumerate(("cannot be run", "did not answer within 0.3 s", "does not answer")):
        assert reason in said[number]
