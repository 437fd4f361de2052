"""A repository whose names and files are traps: nothing runs, nothing blocks, nothing outside is shown."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pilotfish.ipc.client import Introduction, Link, open_link
from support.daemon.homes import WAIT_SECONDS, DaemonHome

NAMES = (
    b"$(touch pwned).x",
    b"`touch pwned`.x",
    b"a;touch pwned;.x",
    b"-rf.x",
    b"--help.x",
    b"a\nb.x",
    b"\x1b[31mred\x1b[0m.x",
    "\u202egpj.x".encode(),
    b'"><diagnostics file=".x',
    b"\xff\xfe.x",
    b"%2e%2e%2fa.x",
    b"@a.x",
    b"~.x",
    b"{root}.x",
    b"a b\t.x",
)


@pytest.mark.slow
@pytest.mark.proves("T13", "T30", "T32", "F44", "F45", "FMT-3", "A17.12")
def test_a_name_is_only_ever_a_name(home: DaemonHome, tmp_path: Path) -> None:
    for name in NAMES:
        (Path(os.fsdecode(os.fsencode(home.root))) / os.fsdecode(name)).write_bytes(b"bad\n")
    shown = home.run_hook(
        json.dumps({"files": [os.fsdecode(name) for name in NAMES if name[:1] != b"@"], "kind": "patch"}).encode()
    )
    text = shown.stdout.decode()
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert text.count("bad word") >= len(NAMES) - 3
    assert text.count("<diagnostics file=") == text.count("</diagnostics>")
    folder = subprocess.run(
        [sys.executable, "-m", "pilotfish", "check", "."],
        env=home.environment,
        cwd=home.root,
        capture_output=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert folder.returncode == 1, folder.stderr
    for printed in (text, folder.stdout.decode(), folder.stderr.decode()):
        assert "\x1b" not in printed
        assert "\u202e" not in printed
    assert not list(tmp_path.rglob("pwned"))


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(path))


def make_folder(path: Path) -> None:
    path.mkdir()


def link_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


TRAPS = {
    "fifo": make_fifo,
    "socket": make_socket,
    "folder": make_folder,
    "link to the users of the system": link_to("/etc/passwd"),
    "link to endless zeros": link_to("/dev/zero"),
    "link to memory": link_to("/proc/self/mem"),
    "link to itself": link_to("a.x"),
    "link to nothing": link_to("nowhere.x"),
}


@pytest.mark.proves("T29", "T43", "PATH-3", "PATH-4")
@pytest.mark.parametrize("trap", TRAPS)
def test_what_is_no_file_of_the_workspace_is_refused_and_blocks_nothing(
    old_home: DaemonHome, trap: str, tmp_path: Path
) -> None:
    TRAPS[trap](tmp_path / "a.x")
    (tmp_path / "good.x").write_text("bad\n")
    with _session(old_home, tmp_path) as link:
        answer = link.request("check", {"paths": ["a.x"]})
        assert (answer["ok"], answer["meta"]["state"]) == (False, "unavailable")
        assert answer["errors"][0]["code"] in {"not_a_file", "outside_workspace", "file_missing", "file_unreadable"}
        assert "bad word" in link.request("touched", {"paths": ["a.x", "good.x"], "kind": "patch"})["text"]
    event = {"files": ["a.x"], "cwd": str(tmp_path)}
    assert old_home.run_hook(json.dumps(event).encode()).stdout == b""


def point_to_pipe(git: Path) -> None:
    os.mkfifo(git.parent / "pipe")
    git.write_text(f"gitdir: {git.parent}/pipe\n")


def point_to_itself(git: Path) -> None:
    git.write_text(f"gitdir: {git}\n")


def point_far(git: Path) -> None:
    git.write_bytes(b"gitdir: " + b"x" * 5_000_000)


def share_the_root(git: Path) -> None:
    git.mkdir()
    (git / "commondir").write_text("/\n")
    (git / "HEAD").write_text("x")


def point_to_root(git: Path) -> None:
    git.write_text("gitdir: /\n")


POINTERS = {
    "a pointer to somewhere else": point_to_root,
    "a pointer to a pipe": point_to_pipe,
    "a pointer to itself": point_to_itself,
    "a pipe": make_fifo,
    "a huge pointer": point_far,
    "a folder whose common one is the root": share_the_root,
    "a link to the root": link_to("/"),
}


@pytest.mark.proves("T3", "T8", "PATH-2")
@pytest.mark.parametrize("pointer", POINTERS)
def test_what_git_points_at_opens_nothing_and_runs_nothing(old_home: DaemonHome, pointer: str, tmp_path: Path) -> None:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside.x"
    workspace.mkdir()
    POINTERS[pointer](workspace / ".git")
    (workspace / "a.x").write_text("bad\n")
    outside.write_text("bad\n")
    with _session(old_home, workspace) as link:
        assert "bad word" in link.request("touched", {"paths": ["a.x"], "kind": "edit"})["text"]
        answer = link.request("check", {"paths": [str(outside)]})
        assert [error["code"] for error in answer["errors"]] == ["outside_workspace"]


def _session(home: DaemonHome, root: Path) -> Link:
    return open_link(Introduction(cwd=str(root)), home.terms())
