"""What the hook program costs on top of the wait: process start to exit, beside the interpreter that does nothing.

`python bench/hook.py [--runs N]` prints; it never judges. The daemon is real and warm, in a home made for this. The
event is one of 20 KB that no server is asked about (its files are of no language), so that what is measured is the
program, the socket and the daemon's own work. Runs alternate, because the machine is never the same twice.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pilotfish.ipc.client import Introduction, Link, Terms, open_link
from pilotfish.surfaces import hook

NOTHING = [sys.executable, "-I", "-S", "-c", "pass"]
HOOK = [sys.executable, "-I", "-S", str(hook.__file__), "plain"]


def timed(argv: list[str], event: bytes, environment: dict[str, str]) -> float:
    """Milliseconds from start to exit."""
    began = time.perf_counter()
    done = subprocess.run(argv, input=event, capture_output=True, env=environment, check=True)
    took = (time.perf_counter() - began) * 1000
    if done.stdout or done.stderr:
        raise SystemExit(f"{argv}: {done.stdout!r} {done.stderr!r}")
    return took


def waited(link: Link, event: bytes, root: str) -> float:
    """Milliseconds that the same event takes the daemon, over a connection that is open already."""
    began = time.perf_counter()
    params = {"protocol": 1, "host": "plain", "cwd": root.encode().hex(), "event": event.hex()}
    link.request("hook", params)
    return (time.perf_counter() - began) * 1000


def told(name: str, values: list[float]) -> str:
    quantiles = statistics.quantiles(values, n=20)
    return (
        f"{name:28} p50 {statistics.median(values):7.2f} ms   p95 {quantiles[-1]:7.2f} ms   min {min(values):6.2f} ms"
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=200)
    measure(arguments.parse_args().runs)


def measure(runs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "workspace"
        root.mkdir()
        (root / "notes.unknown").write_text("x\n")
        environment = {"HOME": folder, "PILOTFISH_HOME": f"{folder}/state", "PATH": os.environ["PATH"]}
        event = json.dumps({"files": ["notes.unknown"], "cwd": str(root), "padding": "x" * 20_000}).encode()
        began = time.perf_counter()
        with open_link(Introduction(cwd=str(root)), Terms(environment)) as link:
            print(f"cold: daemon started and greeted in {(time.perf_counter() - began) * 1000:.0f} ms")
            report(link, runs, event, environment, str(root))
            print(f"daemon: {memory(int(link.welcome['pid'])):.1f} MB resident")
            link.request("stop")


def report(link: Link, runs: int, event: bytes, environment: dict[str, str], root: str) -> None:
    nothing: list[float] = []
    hooks: list[float] = []
    waits: list[float] = []
    for _ in range(runs):
        nothing.append(timed(NOTHING, b"", environment))
        hooks.append(timed(HOOK, event, environment))
        waits.append(waited(link, event, root))
    print(told("python -I -S -c pass", nothing))
    print(told("hook, daemon warm", hooks))
    print(told("the wait itself", waits))
    own = [hook - wait for hook, wait in zip(hooks, waits, strict=True)]
    print(told("hook minus the wait", own))
    base, cost = statistics.median(nothing), statistics.median(own)
    target = 1.5 * base + 5
    print(f"ratio of the medians {cost / base:.2f}; target 1.5 × {base:.2f} + 5 = {target:.2f} ms, is {cost:.2f} ms")


def memory(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


if __name__ == "__main__":
    main()
