"""`pilotfish batch` with ty: what it says of patches is what ty's command line says before and after them."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from support.servers.real import PYPI, User
from support.values.patched_project import BREAKING, COUNT, FILES, GREETING, MAIN, NO_METHOD

pytestmark = [pytest.mark.server("ty"), pytest.mark.proves("DIAG-9")]

Texts = Mapping[str, str | None]

RENAME = "diff --git a/greeting.py b/hello.py\nsimilarity index 100%\nrename from greeting.py\nrename to hello.py\n"
CHANGE = (
    "".join(
        f"{line}\n"
        for line in ("--- a/main.py", "+++ b/main.py", "@@ -1,3 +1,3 @@", " from greeting import greet", " ")
    )
    + '-print(greet("x"))\n+print(greet(1))\n'
)

PATCHES: Mapping[str, tuple[Mapping[str, Any], Texts]] = {
    "breaks another": ({"files": {"greeting.py": BREAKING}}, {"greeting.py": BREAKING}),
    "breaks another by blanks": ({"files": {"state.py": NO_METHOD}}, {"state.py": NO_METHOD}),
    "breaks itself": ({"diff": CHANGE}, {"main.py": MAIN.replace('"x"', "1")}),
    "deletes": ({"files": {"greeting.py": None}}, {"greeting.py": None}),
    "moves": ({"diff": RENAME}, {"greeting.py": None, "hello.py": GREETING}),
    "adds": ({"files": {"new/other.py": "from main import x\n"}}, {"new/other.py": "from main import x\n"}),
    "mends": ({"files": {"count.py": COUNT.replace('"many"', "1")}}, {"count.py": COUNT.replace('"many"', "1")}),
    "moves an old error": ({"files": {"count.py": "\n\n" + COUNT}}, {"count.py": "\n\n" + COUNT}),
    "does nothing": ({"files": {"main.py": MAIN + "# said\n"}}, {"main.py": MAIN + "# said\n"}),
    "configures": (
        {"files": {"pyproject.toml": '[tool.ty.rules]\ninvalid-assignment = "ignore"\n'}},
        {"pyproject.toml": '[tool.ty.rules]\ninvalid-assignment = "ignore"\n'},
    ),
}
"""What is asked, and the texts that it comes to."""


def test_every_patch_is_judged_as_the_checker_does_before_and_after_it(user: User, tmp_path: Path) -> None:
    asked = [{"id": name, **asked} for name, (asked, _) in PATCHES.items()]
    asked.append({"id": "at a commit", "base": "HEAD", **PATCHES["breaks another"][0]})
    # Not committed: no base of a commit has it.
    (user.workspace / "draft.py").write_text("print(missing)\n")
    said = {one["id"]: one for one in _batch(user, asked, "--jobs", "2")}
    assert said.keys() == {one["id"] for one in asked}
    base = {**FILES, "draft.py": "print(missing)\n"}
    before = _checked(tmp_path / "before", base)
    for name, (_, texts) in PATCHES.items():
        after = _checked(tmp_path / name, {**base, **texts})
        expected = set(after) - set(before)
        if name == "moves an old error":
            expected = set[tuple[str, int]]()
        assert said[name]["state"] == "fresh", said[name].get("reason")
        assert _places(said[name]) == Counter(expected), (name, said[name])
    assert [one["line"] for one in said["at a commit"]["introduced"]] == [3]
    assert {name: one["fixed"] for name, one in said.items() if one["fixed"]} == {"mends": 1, "configures": 1}
    assert {path.name for path in user.workspace.iterdir()} == {*FILES, "draft.py", ".git"}
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_server_that_is_killed_between_patches_loses_none_and_invents_none(user: User) -> None:
    names = [name for name in PATCHES if name != "configures"]
    with _running(user, "--jobs", "2") as process:
        said, killed = list[dict[str, Any]](), 0
        for round_ in range(3):
            for name in names:
                _say(process, {"id": f"{name} {round_}", **_numbered(PATCHES[name][0], round_)})
            said.append(_heard(process))
            killed += _kill_servers(process.pid)
        assert killed
        assert process.stdin is not None
        process.stdin.close()
        said += [json.loads(line) for line in process.stdout or ()]
        assert process.wait() == 0, [one.get("reason") for one in said]
    assert Counter(one["id"] for one in said) == Counter(f"{name} {one}" for one in range(3) for name in names)
    for name in names:
        places = [_places(one) for one in said if one["id"].rpartition(" ")[0] == name and one["state"] == "fresh"]
        assert len(places) == 3, [one for one in said if one["id"].startswith(name)]
        assert places[0] == places[1] == places[2]


def _numbered(asked: Mapping[str, Any], number: int) -> Mapping[str, Any]:
    """The same in other words: a patch that is judged already needs no judge."""
    if "diff" in asked:
        return {"diff": f"{number}\n{asked['diff']}"}
    files = {path: text and f"{text}# {number}\n" for path, text in asked["files"].items()}
    return {"files": {"count.py": f"{COUNT}# {number}\n", **files} if None in files.values() else files}


def test_what_cannot_be_judged_says_why_and_the_rest_is_judged(user: User) -> None:
    asked = [
        {"id": 1, "files": {"../out.py": ""}},
        {"id": 2, "files": {".git/config": ""}},
        {"id": 3, "diff": CHANGE.replace("greeting", "other")},
        {"id": 4, "base": "no-such-commit", "files": {"main.py": ""}},
        {"id": 5, "files": {"README.md": "Read me.\n"}},
        {"id": 6, **PATCHES["breaks itself"][0]},
    ]
    said = {one["id"]: one for one in _batch(user, asked, "--jobs", "1", code=2)}
    assert [said[number]["state"] for number in range(1, 7)] == [*["unavailable"] * 5, "fresh"]
    assert all(said[number]["reason"] for number in range(1, 6))
    assert "outside" in said[1]["reason"]
    assert "does not apply" in said[3]["reason"]
    assert not (user.workspace.parent / "out.py").exists()


def test_lines_that_are_no_patches_are_named_and_left_out(user: User) -> None:
    lines = ["{", '{"id": 1}', json.dumps({"id": 2, **PATCHES["breaks itself"][0]})]
    lines.append(lines[-1])
    done = _run(user, "\n".join(lines).encode(), "--jobs", "1")
    assert done.returncode == 3, done.stderr
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [2]
    assert [line.partition(":")[0] for line in done.stderr.decode().splitlines()] == ["line 1", "line 2", "line 4"]


def test_a_batch_goes_on_where_it_was_cut_short(user: User, tmp_path: Path) -> None:
    asked = [{"id": number, **PATCHES["breaks itself"][0]} for number in range(4)]
    out = tmp_path / "out.jsonl"
    _batch(user, asked[:2], "--jobs", "1", "--out", str(out))
    whole = out.read_bytes()
    out.write_bytes(whole + b'{"id":2,"sta')
    assert _batch(user, asked, "--jobs", "1", "--out", str(out), "--resume") == []
    lines = out.read_bytes()
    assert lines.startswith(whole)
    assert sorted(json.loads(line)["id"] for line in lines.splitlines()) == [0, 1, 2, 3]


def test_an_interrupted_batch_leaves_nothing_behind(user: User, tmp_path: Path) -> None:
    with _running(user, "--jobs", "2") as process:
        for number in range(3):
            _say(process, {"id": number, **PATCHES["breaks another"][0]})
        _heard(process)
        below = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    assert below
    assert psutil.wait_procs(below, timeout=50)[1] == []
    assert list((tmp_path / "tmp").iterdir()) == []


# --- Running it -----------------------------------------------------------------------------------------------------


def _run(user: User, given: bytes, *options: str) -> "subprocess.CompletedProcess[bytes]":
    argv = [sys.executable, "-m", "pilotfish", "batch", *options]
    return subprocess.run(
        argv, cwd=user.workspace, env=dict(user.environment), input=given, capture_output=True, check=False
    )


def _batch(user: User, asked: list[dict[str, Any]], *options: str, code: int = 0) -> list[dict[str, Any]]:
    done = _run(user, "".join(json.dumps(one) + "\n" for one in asked).encode(), *options)
    assert done.returncode == code, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def _running(user: User, *options: str) -> "subprocess.Popen[bytes]":
    argv = [sys.executable, "-m", "pilotfish", "batch", *options]
    return subprocess.Popen(
        argv, cwd=user.workspace, env=dict(user.environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def _say(process: "subprocess.Popen[bytes]", patch: Mapping[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(patch).encode() + b"\n")
    process.stdin.flush()


def _heard(process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    assert process.stdout is not None
    return cast("dict[str, Any]", json.loads(process.stdout.readline()))


def _kill_servers(pid: int) -> int:
    """How many there were: one that was killed before may not be back yet."""
    killed = 0
    for process in psutil.Process(pid).children(recursive=True):
        try:
            if os.path.basename(process.exe()).startswith("ty"):
                process.kill()
                killed += 1
        except psutil.NoSuchProcess:
            continue
    return killed


def _places(judgement: Mapping[str, Any]) -> Counter[tuple[str, int]]:
    return Counter((one["file"], one["line"]) for one in judgement["introduced"])


def _checked(folder: Path, texts: Texts) -> list[tuple[str, int]]:
    """The errors of ty's own command line."""
    folder.mkdir()
    for name, text in texts.items():
        if text is not None:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
    argv = [PYPI / "ty", "check", "--output-format", "gitlab", "--no-progress"]
    variables = {"PATH": os.path.dirname(shutil.which("git") or ""), "HOME": str(folder)}
    done = subprocess.run(argv, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    places = [(one["location"]["path"], one["location"]["positions"]["begin"]["line"]) for one in found]
    return [(path.removeprefix("./"), line) for path, line in places]
