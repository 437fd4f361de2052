"""What outlives the daemon, on real files."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.errors import Code, Unavailable
from pilotfish.model import AbsPath
from pilotfish.store import FIND_CWD, FIND_FACT, FORGET_CWD, Store

pytestmark = pytest.mark.proves("HTTP-1")

HERE = AbsPath("/project")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "store.sqlite")


def test_nothing_is_known_of_a_conversation_that_nobody_named(path: str) -> None:
    store = Store(path)
    assert (store.cwd("new"), store.get("habit", "toy")) == (None, None)
    store.close()


def test_the_last_word_counts_and_outlives_the_connection(path: str) -> None:
    store = Store(path)
    store.put_cwd("one", HERE)
    store.put_cwd("one", AbsPath("/elsewhere"))
    store.put("habit", "toy", b"slow")
    store.put("habit", "toy", b"quick")
    store.close()
    again = Store(path)
    assert (again.cwd("one"), again.get("habit", "toy"), again.get("other", "toy")) == ("/elsewhere", b"quick", None)
    again.close()


@settings(max_examples=40)
@given(st.text(max_size=40), st.binary(min_size=1, max_size=40))
def test_any_name_and_any_path_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, name: str, raw: bytes
) -> None:
    store = Store(str(tmp_path_factory.getbasetemp() / "any.sqlite"))
    cwd = AbsPath(os.fsdecode(b"/" + raw.replace(b"\0", b"")))
    store.put_cwd(name, cwd)
    assert store.cwd(name) == cwd
    store.close()


def test_the_file_is_for_its_user_alone(path: str) -> None:
    store = Store(path)
    store.put_cwd("one", HERE)
    files = {file: os.stat(file).st_mode & 0o777 for file in (path, f"{path}-wal", f"{path}-shm")}
    assert set(files.values()) == {0o600}
    assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700
    store.close()


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        pytest.param(FIND_CWD, (b"",), id="cwd"),
        pytest.param(FIND_FACT, ("", b""), id="fact"),
        pytest.param(FORGET_CWD, (1,), id="forgetting"),
    ],
)
def test_a_look_up_among_ten_thousand_goes_by_an_index(path: str, statement: str, values: tuple[object, ...]) -> None:
    store = Store(path)
    store.put_cwd("first", HERE)
    store.close()
    database = sqlite3.connect(path)
    with database:
        rows = ((f"conversation {number}".encode(), b"/project") for number in range(10_000))
        database.executemany("INSERT INTO conversations VALUES (?, ?)", rows)
    plan = [str(row[3]) for row in database.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
    database.close()
    assert any("USING" in step for step in plan)
    assert not any(step.startswith("SCAN") for step in plan), plan
    store = Store(path)
    assert store.cwd("conversation 9999") == HERE
    store.close()


def test_beyond_the_bound_the_oldest_is_forgotten(path: str) -> None:
    store = Store(path, max_rows=3)
    for name in ("a", "b", "c", "a", "d"):
        store.put_cwd(name, HERE)
    assert [name for name in "abcd" if store.cwd(name) is not None] == ["a", "c", "d"]
    store.close()


def test_what_was_written_outlives_a_kill(path: str) -> None:
    program = (
        "import os, signal, sys; from pilotfish.store import Store; store = Store(sys.argv[1])\n"
        "store.put_cwd('one', '/project'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", program, path], check=False)
    assert killed.returncode == -signal.SIGKILL
    store = Store(path)
    assert store.cwd("one") == HERE
    store.close()


def replaced(_whole: bytes) -> bytes:
    return b"not a database, whatever it was before" * 40


def overwritten(whole: bytes) -> bytes:
    return whole[:100] + os.urandom(len(whole) - 100)


def cut_off(whole: bytes) -> bytes:
    return whole[: len(whole) // 2 + 1]


@pytest.mark.parametrize("damage", [replaced, overwritten, cut_off])
def test_a_ruined_file_is_moved_aside_and_begun_anew(path: str, damage: Callable[[bytes], bytes]) -> None:
    store = Store(path)
    store.put_cwd("one", HERE)
    store.close()
    ruined = damage(Path(path).read_bytes())
    Path(path).write_bytes(ruined)
    store = Store(path)
    assert store.cwd("one") is None
    store.put_cwd("one", HERE)
    assert store.cwd("one") == HERE
    assert store.notice is not None
    assert f"{path}.broken" in store.notice
    assert Path(f"{path}.broken").read_bytes() == ruined
    store.close()


def test_damage_while_it_is_open_is_noticed_at_the_next_use(path: str) -> None:
    store = Store(path)
    for number in range(500):
        store.put_cwd(f"conversation {number}", HERE)
    store.close()
    assert store.cwd("conversation 0") == HERE
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))
    found = {store.cwd(f"conversation {number}") for number in range(500)}
    assert None in found
    assert store.notice is not None
    store.close()


def test_a_place_that_cannot_be_written_is_said_and_not_swallowed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = Store(str(tmp_path / "file" / "store.sqlite"))
    with pytest.raises(Unavailable) as said:
        store.put_cwd("one", HERE)
    assert said.value.code is Code.FILE_UNREADABLE


def test_a_link_in_place_of_the_file_is_not_followed(path: str, tmp_path: Path) -> None:
    os.makedirs(os.path.dirname(path))
    victim = tmp_path / "victim"
    os.symlink(victim, path)
    with pytest.raises(Unavailable):
        Store(path).put_cwd("one", HERE)
    assert not victim.exists()
