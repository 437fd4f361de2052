"""Events as they arrive: whose they are whichever hook file started them, answered once, and never passed over unread.

`events/HOST.json` holds what the real host sent (`version`) or what its reference says that it sends (`source`).
"""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pilotfish.errors import Refused
from pilotfish.hosts.registry import load_hosts
from pilotfish.hosts.shared.heard import GUESTS, HeardEvents
from pilotfish.hosts.shared.tool_hooks import MomentEvent, OtherEvent, StartEvent, TouchEvent, UnreadEvent
from pilotfish.ipc.rendezvous import BUILD, PROTOCOL
from support.daemon.desks import Desk, desk_on
from support.daemon.homes import WAIT_SECONDS, DaemonHome
from support.hosts.dialects import dialect_names
from support.servers.script import Script
from support.virtual_time import anyio_backend

__all__ = ["anyio_backend"]


EVENTS = Path(__file__).parent / "events"
FILES = {path.stem: json.loads(path.read_text()) for path in sorted(EVENTS.glob("*.json"))}
ALL = [(host, event) for host, file in FILES.items() for event in file["events"]]

VSCODE = FILES["vscode"]["events"]
EDIT = next(event for event in VSCODE if event.get("tool_name") == "create_file" and "tool_response" in event)


def spoken(event: Mapping[str, Any]) -> bytes:
    return json.dumps(event).encode()


@pytest.mark.proves("HOOK-1", "HOOK-4")
def test_no_recorded_or_documented_event_of_any_host_is_silent_for_want_of_understanding() -> None:
    # Not above: `tools/write_docs.py` imports this module, and has a module `hosts` of its own.
    from hosts.test_dialects import ROWS

    heard = HeardEvents()
    rows = [(host, said if isinstance(said, bytes) else spoken(said)) for host, said, _ in ROWS.values()]
    for host, event in [*((host, spoken(event)) for host, event in ALL), *rows]:
        assert not isinstance(heard.read(host, event).event, UnreadEvent), (host, event)
    assert heard.lines() == ()
    # Aider, Amp, OpenCode and Pi say what our own plugins and linter say: their rows are all that there is.
    assert {*FILES, "aider", "amp", "opencode", "pi", "plain"} == set(dialect_names())


@pytest.mark.proves("HOOK-1")
@pytest.mark.parametrize("host", ["vscode", "cursor", "kiro", "windsurf"])
def test_what_a_reference_says_of_an_edit_names_the_edited_file(host: str) -> None:
    words = {"post_write_code", "Write", "fs_write", "str_replace", "fs_append"}
    heard = HeardEvents()
    edits = [
        event
        for event in FILES[host]["events"]
        if (
            str(event.get("hook_event_name") or event.get("hookEventName")).lower() == "posttooluse"
            and event["tool_name"] not in {"Shell", "Read", "run_in_terminal", "read_file", "execute_bash", "fs_read"}
        )
        or event.get("agent_action_name") in words
    ]
    assert edits
    for event in edits:
        found = heard.read(host, spoken(event)).event
        assert isinstance(found, TouchEvent), event
        assert found.touch.kind != "read"
        assert found.touch.paths[0].endswith((".py", ".ts", ".ipynb"))


@pytest.mark.proves("HOOK-1")
@pytest.mark.parametrize("named", ["vscode", "claude-code", "copilot"])
@pytest.mark.parametrize("spelling", ["hookEventName", "hook_event_name"])
def test_an_edit_of_vs_code_is_its_own_whichever_hook_file_started_it(named: str, spelling: str) -> None:
    heard = HeardEvents()
    told = next(
        event for event in VSCODE if event.get(spelling) == "PostToolUse" and event["tool_name"] != "run_in_terminal"
    )
    stop = next(event for event in VSCODE if event.get(spelling) == "Stop")
    assert heard.read(named, spoken(told)).host == "vscode"
    # Nothing in a stop says whose it is, but its conversation does.
    found = heard.read(named, spoken(stop))
    assert found.host == "vscode"
    assert isinstance(found.event, MomentEvent)
    assert json.loads(found.dialect.written("left", "Stop")) == {
        "decision": "block",
        "reason": "left",
        "hookSpecificOutput": {"hookEventName": "Stop", "decision": "block", "reason": "left"},
    }


@pytest.mark.proves("HOOK-1")
@pytest.mark.parametrize(("named", "guest"), [(named, guest) for named, guests in GUESTS.items() for guest in guests])
def test_a_host_keeps_its_own_events_where_another_runs_its_hooks_too(named: str, guest: str) -> None:
    heard = HeardEvents()
    assert {heard.read(named, spoken(event)).host for event in FILES[named]["events"]} == {named}
    assert guest in {heard.read(named, spoken(event)).host for event in FILES[guest]["events"]}


def test_copilot_is_left_to_its_own_hooks_by_those_of_vs_code() -> None:
    heard = HeardEvents()
    for event in FILES["copilot"]["events"]:
        assert isinstance(heard.read("vscode", spoken(event)).event, OtherEvent)


@pytest.mark.proves("HOOK-1")
def test_an_event_that_comes_once_for_each_hook_file_is_answered_once() -> None:
    heard = HeardEvents()
    assert isinstance(heard.read("claude-code", spoken(EDIT)).event, TouchEvent)
    for named in ("copilot", "vscode", "claude-code"):
        assert isinstance(heard.read(named, spoken(EDIT)).event, OtherEvent)
    later = {**EDIT, "timestamp": "2026-07-01T10:31:00.000Z", "tool_use_id": "call_77"}
    assert isinstance(heard.read("copilot", spoken(later)).event, TouchEvent)


def test_a_session_of_cursor_that_runs_claude_code_s_hooks_too_is_told_once() -> None:
    heard = HeardEvents()
    edit = next(
        event for event in FILES["cursor"]["events"] if event.get("tool_use_id") == "t1" and "tool_output" in event
    )
    first, again = heard.read("cursor", spoken(edit)), heard.read("claude-code", spoken(edit))
    assert isinstance(first.event, TouchEvent)
    assert first.dialect.written("a", first.event.event) == b'{"additional_context":"a"}'
    assert (again.host, again.event) == ("cursor", OtherEvent())
    stop = next(event for event in FILES["cursor"]["events"] if event["hook_event_name"] == "stop")
    assert heard.read("cursor", spoken(stop)).dialect.written("a", "stop") == b'{"followup_message":"a"}'


@pytest.mark.proves("HOOK-4")
@pytest.mark.parametrize("host", [host for host in FILES if host not in {"cline", "windsurf"}])
def test_an_event_of_a_name_that_nobody_knows_is_counted_with_its_keys(host: str) -> None:
    heard = HeardEvents()
    for _ in range(2):
        found = heard.read(host, b'{"hook_event_name": "AfterEverything", "\\u001b[31mred": 1}').event
        assert isinstance(found, UnreadEvent)
    (line,) = heard.lines()
    assert f"{load_hosts()[host].title} sent 2 events that this version cannot read" in line
    assert re.search(r"the last one `AfterEverything` at \d\d:\d\d, with the keys hook_event_name, ", line)
    assert "\x1b" not in line


@pytest.mark.proves("HOOK-4")
def test_an_edit_that_names_no_file_is_counted_and_what_changed_on_disk_is_told_all_the_same() -> None:
    heard = HeardEvents()
    strange = {**EDIT, "tool_input": {"target": "/w/a.py", "body": "x"}}
    found = heard.read("vscode", spoken(strange)).event
    assert isinstance(found, UnreadEvent)
    assert (found.name, found.keys) == ("PostToolUse of create_file", ("target", "body"))
    assert isinstance(found.moment, MomentEvent)


@pytest.mark.proves("HOOK-4")
def test_what_is_no_event_at_all_is_counted_too() -> None:
    heard = HeardEvents()
    with pytest.raises(Refused):
        heard.read("gemini", b"no event")
    assert len(heard.lines()) == 1


@pytest.mark.proves("HOOK-4")
def test_what_cannot_be_read_is_shown_where_it_came_from_and_for_a_day() -> None:
    now = 1_000_000.0
    heard = HeardEvents(lambda: now)
    with pytest.raises(Refused):
        heard.read("plain", b"no event", "/w/a/src")
    assert (len(heard.lines("/w/a")), len(heard.lines()), heard.lines("/w/b")) == (1, 1, ())
    assert heard.lines()[0].startswith("A program that ran `pilotfish hook plain` sent 1 event that")
    now += 23 * 3600
    assert heard.lines()
    now += 2 * 3600
    assert not heard.lines()


def test_the_begin_of_a_session_is_read_in_every_host_that_reports_one() -> None:
    heard = HeardEvents()
    for host in load_hosts().values():
        if host.dialect is not None and host.name not in {"aider", "opencode", "pi", "windsurf"}:
            began = (host.session_events[0] % ("s1", "/w")).encode()
            assert isinstance(heard.read(host.name, began).event, StartEvent), host.name


def bad_words(script: Script) -> None:
    from hosts.test_dialects_daemon import verbose

    verbose(script)


async def printed(desk: Desk, host: str, event: Mapping[str, Any]) -> Any:
    """What the hook program prints for an event in the workspace."""
    root = str(desk.ground.root)
    said = json.dumps({**event, "cwd": root}).replace("/w/", f"{root}/").replace("a.py", "a.x")
    said = said.replace('["/w"]', json.dumps([root]))
    call = {"protocol": PROTOCOL, "build": BUILD, "host": host, "cwd": root.encode().hex()}
    line = desk.connect()
    answer = bytes.fromhex(await line.request("hook", {**call, "event": said.encode().hex()}))
    line.hang_up()
    await line.closed.wait()
    return json.loads(answer or b"{}") if answer[:1] in {b"{", b""} else answer.decode()


DOCUMENTED = {
    "vscode": EDIT,
    "cursor": next(event for event in FILES["cursor"]["events"] if event["hook_event_name"] == "postToolUse"),
    "kiro": next(event for event in FILES["kiro"]["events"] if event["hook_event_name"] == "PostToolUse"),
    "windsurf": next(e for e in FILES["windsurf"]["events"] if e["agent_action_name"] == "post_write_code"),
    "amp": {"event": "touched", "files": ["/w/a.py"], "session": "s1"},
}
"""What comes after an edit, by the references of hosts that cannot be run here."""

STOPS = {
    "vscode": {**next(e for e in VSCODE if e.get("hook_event_name") == "Stop"), "stop_hook_active": False},
    "cursor": next(event for event in FILES["cursor"]["events"] if event["hook_event_name"] == "stop"),
    "kiro": next(event for event in FILES["kiro"]["events"] if event["hook_event_name"] == "Stop"),
    "amp": {"event": "stopping", "session": "s1"},
}


@pytest.mark.anyio
@pytest.mark.proves("HOOK-1", "DIAG-12")
@pytest.mark.parametrize("host", DOCUMENTED)
async def test_a_documented_edit_is_answered_and_what_is_left_is_said_before_the_stop(
    host: str, tmp_path: Path
) -> None:
    async with desk_on(tmp_path, bad_words) as desk:
        desk.ground.write("a.x", "good\n")
        assert await printed(desk, host, DOCUMENTED[host]) == {}
        desk.ground.write("a.x", "bad\n")
        again = {**DOCUMENTED[host], "timestamp": "later", "tool_use_id": "another"}
        assert "ERROR [1:1] no 0" in str(await printed(desk, host, again))
        if host in STOPS:
            assert "no 0" in str(await printed(desk, host, STOPS[host]))
        else:
            assert load_hosts()[host].tells == "person"


@pytest.mark.anyio
@pytest.mark.proves("HOOK-1")
async def test_vs_code_reads_of_its_edit_once_though_three_hook_files_were_run(tmp_path: Path) -> None:
    async with desk_on(tmp_path, bad_words) as desk:
        desk.ground.write("a.x", "bad\n")
        first = await printed(desk, "claude-code", EDIT)
        assert first["hookSpecificOutput"]["hookEventName"] == "PostToolUse"
        assert "no 0" in first["hookSpecificOutput"]["additionalContext"]
        assert [await printed(desk, host, EDIT) for host in ("copilot", "vscode")] == [{}, {}]


@pytest.mark.anyio
@pytest.mark.proves("HOOK-4")
async def test_the_person_is_told_once_of_what_cannot_be_read(tmp_path: Path) -> None:
    strange = {**EDIT, "hook_event_name": "AfterEverything"}
    async with desk_on(tmp_path, bad_words) as desk:
        desk.ground.write("a.x", "good\n")
        said = await printed(desk, "vscode", strange)
        assert list(said) == ["systemMessage"]
        assert "VS Code sent 1 event that this version cannot read" in said["systemMessage"]
        assert await printed(desk, "vscode", strange) == {}
        line = await desk.client()
        assert any("VS Code sent 2 events" in warning for warning in (await line.request("status", {}))["warnings"])


@pytest.mark.proves("HOOK-4")
def test_status_doctor_and_setup_show_what_a_wired_host_has_sent_in_vain(own: DaemonHome) -> None:
    def run(*words: str) -> str:
        command = [sys.executable, "-I", "-m", "pilotfish", *words]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            cwd=own.root,
            env=own.environment,
            timeout=WAIT_SECONDS,
            check=False,
        )
        return done.stdout + done.stderr

    own.control(start=True).close()
    run("setup", "vscode")
    own.run_hook(spoken({**EDIT, "hook_event_name": "AfterEverything"}), "vscode")
    sentence = "VS Code sent 1 event that this version cannot read, the last one `AfterEverything` at "
    for words in (["status"], ["doctor"], ["setup", "--status"]):
        assert sentence in " ".join(run(*words).split())
