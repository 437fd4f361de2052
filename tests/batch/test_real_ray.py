"""`pilotfish batch --engine ray` on a cluster of two workers: `./check --ray`."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.servers.real import User
from support.values.patched_project import BREAKING, COUNT, MAIN

pytestmark = [pytest.mark.server("ty"), pytest.mark.ray, pytest.mark.timeout(600)]

PATCHES: dict[str, tuple[dict[str, str | None], set[tuple[str, int]]]] = {
    "breaks another": ({"greeting.py": BREAKING}, {("main.py", 3)}),
    "breaks itself": ({"main.py": MAIN.replace('"x"', "1")}, {("main.py", 3)}),
    "deletes": ({"greeting.py": None}, {("main.py", 1)}),
    "mends": ({"count.py": COUNT.replace('"many"', "1")}, set()),
}
ROUNDS = 15


@pytest.mark.parametrize(
    "killed",
    [("ray::JudgeActor", "ray::JudgeActor"), ("ty", "ty"), ("ray::JudgeActor", "ty")],
    ids=["two workers", "two servers", "a worker and a server"],
)
def test_workers_and_servers_that_are_killed_in_the_middle_lose_no_patch_and_invent_none(
    user: User, tmp_path: Path, killed: tuple[str, str]
) -> None:
    asked = [{"id": f"{name} {one}", "files": _files(name, one)} for one in range(ROUNDS) for name in PATCHES]
    argv = [sys.executable, "-m", "pilotfish", "batch", "--engine", "ray", "--address", "local", "--jobs", "2"]
    variables = {**user.environment, "RAY_TMPDIR": f"/tmp/r{os.getpid()}"}
    with subprocess.Popen(
        argv, cwd=user.workspace, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.writelines(json.dumps(one) + "\n" for one in asked)
        process.stdin.flush()
        said = [json.loads(process.stdout.readline()) for _ in range(5)]
        ended = _kill_one(process.pid, killed[0])
        said += [json.loads(process.stdout.readline()) for _ in range(10)]
        ended += _kill_one(process.pid, killed[1])
        process.stdin.close()
        said += [json.loads(line) for line in process.stdout]
        assert process.wait() == 0, [one.get("reason") for one in said]
    assert ended == 2
    assert Counter(one["id"] for one in said) == Counter(one["id"] for one in asked)
    for one in said:
        assert one["state"] == "fresh", one
        assert _places(one) == PATCHES[one["id"].rpartition(" ")[0]][1], one


def _files(name: str, number: int) -> dict[str, str | None]:
    """Each patch differs from all others: one that is judged already needs no judge."""
    changed = {path: text and f"{text}# {number}\n" for path, text in PATCHES[name][0].items()}
    return {"count.py": f"{COUNT}# {number}\n", **changed}


def _kill_one(pid: int, name: str) -> int:
    """The first process of this name below another one; Ray gives its workers the name of their actor."""
    for process in psutil.Process(pid).children(recursive=True):
        try:
            words = " ".join(process.cmdline())
            if words.startswith(name) or os.path.basename(process.exe()) == name:
                process.send_signal(signal.SIGKILL)
                return 1
        except psutil.Error:
            continue
    return 0


def _places(judgement: dict[str, Any]) -> set[tuple[str, int]]:
    return {(one["file"], one["line"]) for one in judgement["introduced"]}
