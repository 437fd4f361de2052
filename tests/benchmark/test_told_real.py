"""A small part of `bench/told` in the gate: random edits of a real project, against the checker's own command line.

Every error that an edit introduced is told, in other files too; nothing else is; a harmless edit adds no byte. What was
told is no worse than when `bench/told/quick.jsonl` was kept: no more mistakes, no more bytes. Times are not compared.
"""

import subprocess
from pathlib import Path

import pytest

from support.servers.real import REPOSITORY, require

BENCH = REPOSITORY / "bench"
KINDS = "harmless,own,fix,rename-export,rename-member,new-parameter"
PATIENT = '{"timing": {"diagnosticsWaitTimeoutMs": 60000, "firstTouchTimeoutMs": 60000}}'
"""What is told is judged here, and not how soon on a busy machine."""


@pytest.mark.slow
@pytest.mark.server("ty")
@pytest.mark.proves("CFG-6", "DIAG-8", "DIAG-11", "FMT-7")
def test_of_random_edits_of_httpx_everything_that_is_new_is_told_and_nothing_else(tmp_path: Path) -> None:
    require(["ty"])
    plan = ["--project", "httpx", "--server", "ty", "--edits", "12", "--kinds", KINDS]
    now = tmp_path / "now.jsonl"
    command = [
        BENCH / "told" / "run",
        *plan,
        "--strict",
        "--config",
        PATIENT,
        "--deadline-ms",
        "50000",
        "--out",
        now,
        "--short",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("| httpx | ty | claude-code | 12 |")]
    _, _, _, _, _, false, own, others, harmless, *_ = (cell.strip() for cell in row.split("|"))
    assert false == "0", row
    new, _, missing = own.partition(" / ")
    broken, told, late, never = (int(number) for number in others.split(" / "))
    assert (int(new) > 0, missing) == (True, "0 (0)"), row
    assert (broken > 0, told, late, never) == (True, broken, 0, 0), row
    assert harmless.startswith("0 (n "), row
    compare = [BENCH / "compare", BENCH / "told" / "quick.jsonl", now]
    compared = subprocess.run(compare, capture_output=True, text=True, check=False)
    assert compared.returncode == 0, compared.stdout + compared.stderr
