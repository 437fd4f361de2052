"""A user asks about a whole project, in every way: all of its files, and whether that is all (DIAG-13)."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.clients.http import http_served
from support.daemon.homes import DaemonHome
from support.daemon.users import ShellUser
from support.servers.real import PYPI, make_user, require

pytestmark = [pytest.mark.slow, pytest.mark.server("ty"), pytest.mark.proves("DIAG-13")]

PATIENT = {"timing": {"firstTouchTimeoutMs": 45_000, "diagnosticsWaitTimeoutMs": 45_000}}
FILES = {
    "pyproject.toml": "",
    ".gitignore": "made/\n",
    "package/__init__.py": "",
    "package/lib.py": "def total() -> int:\n    return 1\n",
    "package/near.py": "from package.lib import total\n\nanswer: str = total()\n",
    "tests/far.py": "from package.lib import missing\n",
    "tests/clean.py": "from package.lib import total\n\nprint(total())\n",
    "made/ignored.py": "missing_in_ignored\n",
}
BROKEN = ["package/near.py", "tests/far.py"]

Places = set[tuple[str, int]]


@pytest.fixture
def user(tmp_path: Path) -> Iterator[ShellUser]:
    require(["ty"])
    made = make_user(tmp_path, ["ty"], PATIENT, trusted=True)
    home = DaemonHome(made.workspace, dict(made.environment))
    (Path(made.environment["HOME"]) / "bin").symlink_to(made.environment["PATH"])
    # ty reads the ignore files of repositories only.
    (home.root / ".git").mkdir()
    for name, text in FILES.items():
        (home.root / name).parent.mkdir(parents=True, exist_ok=True)
        home.write(name, text)
    try:
        yield ShellUser(home)
    finally:
        home.kill_all()


def of_mcp(user: ShellUser) -> str:
    answer: dict[str, Any] = user.call("lsp_diagnostics", {})
    assert answer["isError"] is False
    return answer["content"][0]["text"]


def places(text: str) -> Places:
    return {(path, int(line)) for path, line in re.findall(r"^(\S+?):(\d+):\d+  error: ", text, re.MULTILINE)}


def of_ty_itself(user: ShellUser) -> Places:
    words = [str(PYPI / "ty"), "check", "--output-format", "concise", "."]
    done = subprocess.run(words, cwd=user.root, env=user.environment, capture_output=True, text=True, check=False)
    found = re.findall(r"^(\S+?):(\d+):\d+: error", done.stdout, re.MULTILINE)
    return {(path, int(line)) for path, line in found}


def test_mcp_without_a_file_names_every_file_with_an_error_and_says_that_this_is_all(user: ShellUser) -> None:
    told = of_mcp(user)
    assert places(told) == of_ty_itself(user)
    assert sorted({path for path, _ in places(told)}) == BROKEN
    assert "the whole project was checked: 5 files" in told
    assert "missing_in_ignored" not in told


def test_what_changes_between_two_questions_is_in_the_second_and_nothing_else_is(user: ShellUser) -> None:
    of_mcp(user)
    (user.root / "package/lib.py").write_text("def total() -> str:\n    return ''\n\n\nmissing = 1\n")
    told = of_mcp(user)
    assert places(told) == of_ty_itself(user) == set()
    assert "No diagnostics." in told
    (user.root / "package/lib.py").unlink()
    told = of_mcp(user)
    assert places(told) == of_ty_itself(user)
    assert "the whole project was checked: 4 files" in told


def test_every_way_says_the_same(user: ShellUser) -> None:
    printed: dict[str, Any] = json.loads(user.run("check", "--project", "--json").stdout)
    assert printed["meta"]["state"] == "fresh"
    by_command = {path: [one["line"] for one in found] for path, found in printed["data"].items() if found}
    with http_served(user.home) as served:
        served.ask("PUT", "/conversations/a/cwd", {"cwd": str(user.root)})
        answer = served.ask("POST", "/conversations/a/lsp", {"operation": "diagnostics"}).json
    assert answer["meta"]["state"] == "fresh"
    by_http = {path: [one["line"] for one in found] for path, found in answer["data"].items()}
    assert sorted(by_command) == BROKEN
    assert by_http == by_command
    assert {(path, line) for path, lines in by_http.items() for line in lines} == places(of_mcp(user))
