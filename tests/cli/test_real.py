"""The command line as a program, with a real language server behind it: the daemon's, which all tests here share."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pilotfish.errors import Code
from pilotfish.surfaces.cli.workspace import NO_DAEMON
from support.daemon.homes import no_daemon_left, processes_of
from support.servers.real import User, make_user, require
from support.services.cli_workspace import data_of
from support.values.answers import read_answer

pytestmark = [pytest.mark.server("basedpyright"), pytest.mark.proves("CLI-1")]

FILES = {
    "greeting.py": "def greet(name: str) -> str:\n    return name\n",
    "main.py": 'from greeting import greet\n\n\tx = "😀"; greet(1)\n'.replace("\tx", "x"),
    "clean.py": "VALUE: int = 1\n",
    "sub/note.txt": "",
}


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    """One user with one daemon for the whole module; whoever changes a file puts it back."""
    with user_in(tmp_path_factory.mktemp("user")) as made:
        yield made


@contextmanager
def user_in(folder: Path) -> Generator[User]:
    require(["basedpyright"])
    user = make_user(folder, ["basedpyright"], {}, trusted=False)
    for name, text in FILES.items():
        (user.workspace / name).parent.mkdir(exist_ok=True)
        (user.workspace / name).write_text(text)
    with no_daemon_left(user.environment["PILOTFISH_HOME"]):
        yield user


def pilotfish(
    user: User, *arguments: str, given: str | None = None, cwd: str = "."
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pilotfish", *arguments],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        cwd=user.workspace / cwd,
        env=dict(user.environment),
    )


def test_check_tells_findings_from_clean_from_no_verdict_from_wrong_use(user: User) -> None:
    findings = pilotfish(user, "check", "main.py", "--json")
    assert findings.returncode == 1
    found = data_of(findings.stdout)["main.py"]
    assert [one.code for one in found if one.severity == "error"] == ["reportArgumentType"]
    clean = pilotfish(user, "check", "clean.py")
    assert (clean.returncode, clean.stdout, clean.stderr) == (0, "No problems in 1 file.\n", "")
    assert pilotfish(user, "check", "sub/note.txt").returncode == 2
    assert pilotfish(user, "check", "nope.py").returncode == 3


@pytest.mark.proves("DIAG-9")
def test_check_judges_a_text_that_is_not_on_disk(user: User) -> None:
    proposed = pilotfish(user, "check", "--stdin", "clean.py", given="VALUE: int = 'x'\n")
    assert proposed.returncode == 1
    assert proposed.stdout.startswith("clean.py:1:14  error: ")
    assert (user.workspace / "clean.py").read_text() == FILES["clean.py"]


@pytest.mark.proves("OPS-1", "OPS-2")
def test_questions_are_answered_from_a_folder_below(user: User) -> None:
    found = pilotfish(user, "references", "--root", "..", "../main.py:3:10", cwd="sub")
    assert found.stdout.splitlines() == [
        "../greeting.py:1:5  def greet(name: str) -> str:",
        "../main.py:1:22  from greeting import greet",
        '../main.py:3:10  x = "😀"; greet(1)',
    ]


@pytest.mark.proves("OPS-3")
def test_a_symbol_alone_is_enough(user: User) -> None:
    found = pilotfish(user, "definition", "greet", "--json")
    assert found.returncode == 0
    (place,) = data_of(found.stdout)
    assert (place.path, place.line, place.character) == ("greeting.py", 1, 5)


@pytest.mark.proves("OPS-4")
@pytest.mark.proves("OPS-1")
def test_a_type_in_a_string_is_a_use_in_a_file_that_nobody_has_opened(user: User) -> None:
    library, main = user.workspace / "library.py", user.workspace / "user_of_library.py"
    library.write_text('import typing\nT = typing.TypeVar("T", bound="Thing | None")\nclass Thing: ...\n')
    main.write_text("from library import Thing\n")
    try:
        found = pilotfish(user, "references", "user_of_library.py", "Thing").stdout
        assert "library.py:2:32  T = typing.TypeVar(" in found, found
    finally:
        library.unlink()
        main.unlink()


def test_a_rename_is_a_preview_of_every_file(user: User) -> None:
    preview = pilotfish(user, "rename", "greeting.py:1:5", "hello")
    assert preview.stdout.startswith("Preview: 2 files, 3 edits. Nothing was written.\n")
    assert (user.workspace / "main.py").read_text() == FILES["main.py"]


@pytest.mark.proves("FMT-2", "HOOK-1")
def test_touched_prints_feedback_and_ends_with_0(user: User) -> None:
    file = user.workspace / "edited.py"
    file.write_text("VALUE: int = 1\n")
    fine = pilotfish(user, "touched", "edited.py", "--kind", "write")
    assert (fine.returncode, fine.stdout, fine.stderr) == (0, "", "")
    file.write_text("VALUE: int = 'x'\n")
    broken = pilotfish(user, "touched", "edited.py", "--kind", "edit")
    file.unlink()
    assert broken.returncode == 0
    block = r'^<diagnostics file="edited.py">\nERROR \[1:14\] .*\n\| VALUE: int = .x.\n</diagnostics>$'
    assert re.search(block, broken.stdout, re.MULTILINE)


@pytest.mark.proves("REG-6")
def test_a_missing_server_comes_with_what_to_do(tmp_path: Path) -> None:
    with user_in(tmp_path) as user:
        (Path(user.environment["PATH"]) / "basedpyright-langserver").unlink()
        missing = pilotfish(user, "definition", "main.py:3:12", "--json")
    assert missing.returncode == 2
    (error,) = read_answer(missing.stdout.encode()).errors
    assert error.code is Code.SERVER_MISSING
    assert "Install it with: pilotfish install basedpyright" in error.message
    assert "rg -n '\\bgreet\\b' -g '*.py'" in error.message


@pytest.mark.proves("POOL-1", "POOL-6")
def test_all_of_them_share_one_server(user: User) -> None:
    for words in (["hover", "main.py:3:10"], ["check", "."]):
        assert pilotfish(user, *words).returncode in {0, 1}
    about = json.loads(pilotfish(user, "daemon", "status", "--json").stdout)
    assert (about["servers"], about["sessions"]) == ({"basedpyright": 1}, [])


@pytest.mark.proves("POOL-5")
@pytest.mark.parametrize(
    ("words", "variables"),
    [
        pytest.param(["--no-daemon"], dict[str, str](), id="option"),
        pytest.param([], {NO_DAEMON: "1"}, id="variable"),
    ],
)
def test_without_the_daemon_the_answer_is_the_same_and_nothing_is_left(
    words: list[str], variables: dict[str, str], tmp_path: Path
) -> None:
    with user_in(tmp_path) as user:
        alone = User(user.workspace, {**user.environment, **variables})
        found = pilotfish(alone, "check", "main.py", "--json", *words)
        assert processes_of(user.environment["PILOTFISH_HOME"]) == {}
    assert found.returncode == 1
    assert [one.code for one in data_of(found.stdout)["main.py"] if one.severity == "error"] == ["reportArgumentType"]


def terminal(user: User, *arguments: str, **environment: str) -> str:
    """What a person sees."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "pilotfish", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=user.workspace,
        env={**user.environment, "TERM": "xterm-256color", "COLUMNS": "100", **environment},
    )
    os.close(theirs)
    seen = "".join(_read(ours))
    assert process.wait() in {0, 1}
    os.close(ours)
    return seen.replace("\r\n", "\n")


def _read(descriptor: int) -> Iterator[str]:
    while True:
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:  # The other end is closed: the terminal is gone.
            return
        if not chunk:
            return
        yield chunk.decode()


def test_a_person_sees_colours_and_a_mark_below_the_source(user: User) -> None:
    seen = terminal(user, "check", "main.py")
    assert "\x1b[31merror\x1b[0m" in seen
    assert f'    x = "😀"; greet(1)\n    \x1b[31m{" " * 16}^\x1b[0m' in seen


def test_unless_they_want_no_colour(user: User) -> None:
    seen = terminal(user, "check", "clean.py", NO_COLOR="1")
    assert re.fullmatch(r"(.*\r +\r)?No problems in 1 file\. \(\d+\.\d s\)\n", seen, re.DOTALL)


def test_a_batch_that_is_ended_leaves_nothing_in_the_temporary_folder(user: User, tmp_path: Path) -> None:
    made = tmp_path / "temporary"
    made.mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "pilotfish", "batch", "--jobs", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=user.workspace,
        env={**user.environment, "TMPDIR": str(made)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"id": 1, "files": {"clean.py": "VALUE: int = 1\\n"}}\n')
        process.stdin.flush()
        assert json.loads(_line(process.stdout.fileno()))["id"] == 1
        assert list(made.iterdir())
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 130
    assert list(made.iterdir()) == []


@pytest.mark.proves("WATCH-5")
def test_a_watched_file_is_checked_again_when_it_changes(user: User) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "pilotfish", "check", "clean.py", "--watch", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=user.workspace,
        env=dict(user.environment),
    ) as process:
        assert process.stdout is not None
        assert json.loads(_line(process.stdout.fileno()))["meta"]["empty"] is True
        (user.workspace / "clean.py").write_text("VALUE: int = 'x'\n")
        assert json.loads(_line(process.stdout.fileno()))["data"]["clean.py"]
        (user.workspace / "clean.py").write_text(FILES["clean.py"])
        assert json.loads(_line(process.stdout.fileno()))["meta"]["empty"] is True
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


def _line(descriptor: int) -> bytes:
    """One line, within a time that only a hang exceeds."""
    line = b""
    while not line.endswith(b"\n"):
        assert select.select([descriptor], [], [], 40)[0], "nothing came"
        line += os.read(descriptor, 65536)
    return line


@pytest.mark.proves("OPS-3")
def test_a_word_that_only_a_string_has_is_no_symbol(user: User) -> None:
    words = user.workspace / "words.py"
    words.write_text('WORD = "only_in_a_string"\n')
    try:
        done = pilotfish(user, "definition", "only_in_a_string")
        assert (done.returncode, done.stderr) == (3, "There is no symbol only_in_a_string.\n")
    finally:
        words.unlink()


@pytest.mark.proves("OPS-3")
def test_a_line_has_the_actions_of_everything_on_it(user: User) -> None:
    file = user.workspace / "unknown.py"
    file.write_text('HERE = Path("a")\n')
    try:
        listed = pilotfish(user, "actions", "unknown.py:1").stdout
        assert listed.count("pyright: ignore") == 1
        shown = pilotfish(user, "actions", "unknown.py:1", "--action", "from pathlib import Path").stdout
        assert "+from pathlib import Path" in shown
    finally:
        file.unlink()


@pytest.mark.proves("OPS-3")
def test_a_rename_to_a_name_that_is_there_says_so(user: User) -> None:
    file = user.workspace / "two.py"
    file.write_text("def one() -> None: ...\ndef two() -> None: ...\n")
    try:
        shown = pilotfish(user, "rename", "two.py", "one", "two").stdout
        assert shown.splitlines()[-1] == "note: two.py:2 already has a function two"
    finally:
        file.unlink()


@pytest.mark.proves("OPS-3")
@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("from greeting import greet\n\nsalute = 1\ngreet('x')\n", ["note: third.py:3 has the name salute already"]),
        ("import greeting\n\nsalute = 1\ngreeting.greet('x')\n", []),
        ("from greeting import greet\n\n# salute\ngreet('salute')\n", []),
    ],
    ids=["by itself", "as a member", "in words"],
)
def test_a_rename_to_a_name_that_a_user_of_it_has_says_so(user: User, text: str, note: list[str]) -> None:
    file = user.workspace / "third.py"
    file.write_text(text)
    try:
        shown = pilotfish(user, "rename", "greeting.py", "greet", "salute").stdout
        assert [line for line in shown.splitlines() if line.startswith("note: third")] == note
    finally:
        file.unlink()


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["check", "--help"],
        ["check"],
        ["check", "--no-daemon"],
        ["references", "greeting.py", "greet"],
        ["rename", "greeting.py", "greet", "salute"],
        ["status"],
        ["servers"],
        ["tools"],
        [],
    ],
    ids=" ".join,
)
def test_a_reader_that_has_closed_the_pipe_ends_it_quietly(user: User, words: list[str], stream: str) -> None:
    """Where standard error has the closed pipe, the question is a wrong one, of which it has to tell."""
    reader, writer = os.pipe()
    os.close(reader)
    argv = [sys.executable, "-m", "pilotfish", *words, *(["--nonsense"] if stream == "stderr" else [])]
    out, err = (writer, subprocess.PIPE) if stream == "stdout" else (subprocess.PIPE, writer)
    done = subprocess.run(argv, stdout=out, stderr=err, cwd=user.workspace, env=dict(user.environment), check=False)
    os.close(writer)
    assert (done.returncode, done.stdout or done.stderr or b"") == (141, b"")


@pytest.mark.proves("OPS-4")
def test_a_rename_names_the_places_that_keep_the_old_name(user: User) -> None:
    """A stub hides its module from those who import it: the server sees no use there."""
    texts = {
        "stubbed.py": "def wave(hand: str) -> str:\n    return hand\n",
        "stubbed.pyi": "def wave(hand: str) -> str: ...\n",
        "waving.py": "from stubbed import wave as wave\n\n__all__ = ['wave']\nwaves = 1\n" + "# wave\n" * 6,
        "wave.md": "wave\n",
    }
    for name, text in texts.items():
        (user.workspace / name).write_text(text)
    why = "basedpyright takes these for another symbol, a string or a comment; change by hand what means it"
    places = ", ".join(f"waving.py:{line}" for line in (1, 3, 5, 6, 7, 8, 9))
    note = f"note: wave stays in stubbed.pyi:1, {places}, 1 more line: {why}"
    try:
        for options in ([], ["--apply"]):
            done = pilotfish(user, "rename", "stubbed.py", "wave", "greet_by_hand", *options)
            assert [line for line in done.stdout.splitlines() if line.startswith("note:")] == [note], done
        local = pilotfish(user, "rename", "stubbed.py:2:12", "fingers").stdout
        assert "+    return fingers" in local
        assert "note:" not in local
    finally:
        for name in texts:
            (user.workspace / name).unlink()


@pytest.mark.proves("CLI-1")
def test_a_folder_outside_of_the_workspace_is_refused_once(user: User, tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("x = 1\n")
    done = pilotfish(user, "check", str(tmp_path))
    served = "Only files of the workspace and its git worktree are served; start in the folder of others."
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"{tmp_path} is outside the workspace {user.workspace}. {served}\n"
