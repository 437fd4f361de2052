"""A user of a hook: silence means that the edit is clean, and what else it could mean is said once."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon.homes import DaemonHome
from support.daemon.users import ShellUser
from support.servers.real import make_user, require

pytestmark = [pytest.mark.slow, pytest.mark.proves("FMT-8")]


PATIENT = {"timing": {"firstTouchTimeoutMs": 45_000, "diagnosticsWaitTimeoutMs": 45_000}}


def touched(home: DaemonHome, *names: str, session: str = "one") -> str:
    """What the hook says after an edit of these files."""
    event = {"files": [*names], "kind": "edit", "cwd": str(home.root), "session": session}
    done = home.run_hook(json.dumps(event).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def test_a_language_without_a_server_is_named_once_per_session(user: ShellUser) -> None:
    user.configure({})
    home = DaemonHome(user.root, user.environment)
    for name in ("a.py", "b.py"):
        user.write(name, "x = 1\n")
    (line,) = touched(home, "a.py").splitlines()
    assert line.startswith(".py files are not checked by basedpyright:")
    assert "pilotfish install basedpyright" in line
    assert touched(home, "b.py") == ""
    assert touched(home, "b.py", session="two").strip() == line


def test_it_is_not_said_where_the_user_wants_silence(user: ShellUser) -> None:
    user.configure({"feedback": {"noVerdict": "silent"}})
    user.write("a.py", "x = 1\n")
    assert touched(DaemonHome(user.root, user.environment), "a.py") == ""


@pytest.fixture
def untrusted(tmp_path: Path) -> Iterator[DaemonHome]:
    """A TypeScript project that nobody has trusted: its own TypeScript is not used."""
    require(["typescript"])
    made = make_user(tmp_path, ["typescript"], PATIENT, trusted=False)
    home = DaemonHome(made.workspace, dict(made.environment))
    home.write("tsconfig.json", '{"compilerOptions": {"strict": true}, "include": ["*.ts"]}\n')
    try:
        yield home
    finally:
        home.kill_all()


@pytest.mark.server("typescript")
@pytest.mark.proves("TRUST-6", "FMT-6")
def test_a_restricted_server_is_mentioned_once_and_only_beside_something_else(untrusted: DaemonHome) -> None:
    trust = f"Only a person can allow it, at a terminal: `pilotfish trust {untrusted.root}` shows"
    untrusted.write("a.ts", "export const a: number = 1;\n")
    assert touched(untrusted, "a.ts") == ""
    untrusted.write("a.ts", 'export const a: number = "x";\n')
    assert trust in touched(untrusted, "a.ts")
    untrusted.write("a.ts", 'export const a: number = "x";\nexport const b: number = "y";\n')
    said = touched(untrusted, "a.ts")
    assert "[2:14]" in said
    assert "[1:14]" not in said
    # It was told a moment ago.
    assert "older error" not in said
    assert trust not in said
