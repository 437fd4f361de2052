"""Our own programs by themselves: what the hook costs, what the daemon holds, what is kept of files and edits.

`bench/soak.py` prints the same of edits for people who look at it alone.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from harness import processes
from harness.servers import CLONE
from harness.setting import HOOK, Setting, resident, verb

from parity.records import Bench
from parity.subjects import KINDS
from pilotfish.ipc.client import Introduction, Link, Terms, open_link

NONE = "–"
"""The language of what has none."""

NOTHING = [sys.executable, "-I", "-S", "-c", "pass"]
PLAIN = [sys.executable, "-I", "-S", str(HOOK), "plain"]
IDLE_SESSIONS = 50
SOAK_SECONDS = 1800.0
MCP_MEMORY = "memory of the daemon, MCP in use"
CHECKED_FILES = 900
CHECKED = f"memory of the daemon, after a check of {CHECKED_FILES} files"


async def programs(bench: Bench) -> None:
    for number in range(max(1, bench.plan.cold)):
        await asyncio.to_thread(_daemon, bench, bench.plan.hooks if number == 0 else 0)
    await _mcp_memory(bench)
    await _checked(bench)
    await asyncio.to_thread(_soaked, bench)


async def _mcp_memory(bench: Bench) -> None:
    """Of the daemon alone, after a model's first questions of each operation."""
    fixture = bench.fixture("typescript")
    place = fixture.places[0]
    async with bench.home("mcp", fixture) as home:
        try:
            async with KINDS["mcp"].open(fixture, home) as subject:
                for what in ("definition", "references", "hover", "symbols", "shown") * 5:
                    await subject.ask(what, place.file if what in {"symbols", "shown"} else place)
                bench.figure(MCP_MEMORY, NONE, "daemon", _resident(home))
        except RuntimeError as error:
            bench.fail([MCP_MEMORY], NONE, "daemon", error)


async def _checked(bench: Bench) -> None:
    fixture = bench.fixture("typescript", modules=CHECKED_FILES, functions=2)
    async with bench.home("check", fixture) as home:
        about = json.loads(await asyncio.to_thread(verb, home, "check", ".", "--json"))["meta"]
        if about["state"] == "fresh":
            bench.figure(CHECKED, NONE, "daemon", _resident(home))
        else:
            bench.fail([CHECKED], NONE, "daemon", about.get("reason"))
        verb(home, "daemon", "stop")


def _resident(home: Setting) -> float:
    with open_link(None, Terms(home.environment(), start=False)) as link:
        return resident(int(link.welcome["pid"]))


def _daemon(bench: Bench, hooks: int) -> None:
    """From no daemon to one that has greeted; what it holds; and the hook program on top of the wait itself."""
    scratch = bench.scratch.fresh("daemon")
    root = scratch / "workspace"
    root.mkdir()
    home = Setting(root, scratch, "typescript").prepare()
    (root / "notes.unknown").write_text("x\n")
    # Nobody serves such a file: what is measured is the program and the socket.
    event = json.dumps({"files": ["notes.unknown"], "cwd": str(root), "padding": "x" * 20_000}).encode()
    variables = home.environment()
    try:
        started = time.perf_counter()
        with open_link(Introduction(cwd=str(root)), Terms(variables)) as link:
            bench.figure("daemon, from nothing to greeted", NONE, "daemon", (time.perf_counter() - started) * 1000)
            _memory(bench, link, root, variables)
            for _ in range(hooks):
                _hook(bench, link, event, root, variables)
            link.request("stop")
    finally:
        processes.end(home)


def _memory(bench: Bench, link: Link, root: Path, variables: Mapping[str, str]) -> None:
    pid = int(link.welcome["pid"])
    idle = resident(pid)
    bench.figure("memory of the daemon, nothing running", NONE, "daemon", idle)
    links = [open_link(Introduction(cwd=str(root)), Terms(variables)) for _ in range(IDLE_SESSIONS)]
    each = (resident(pid) - idle) * 1000 / IDLE_SESSIONS
    bench.figure("memory of an idle session", NONE, "daemon", each)
    for one in links:
        one.close()


def _hook(bench: Bench, link: Link, event: bytes, root: Path, variables: Mapping[str, str]) -> None:
    nothing, whole = _run(NOTHING, b"", variables), _run(PLAIN, event, variables)
    started = time.perf_counter()
    link.request("hook", {"protocol": 1, "host": "plain", "cwd": str(root).encode().hex(), "event": event.hex()})
    wait = (time.perf_counter() - started) * 1000
    bench.figure("hook program, the wait taken off", NONE, "hook", whole - wait)
    bench.figure("hook program, the wait taken off", NONE, "python -I -S -c pass", nothing)


def _run(argv: list[str], event: bytes, variables: Mapping[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(argv, input=event, capture_output=True, env=variables, check=True)
    return (time.perf_counter() - started) * 1000


def _soaked(bench: Bench) -> None:
    """What the service keeps of edits of one file, in a process of its own, the first tenth not counted."""
    argv = [sys.executable, str(CLONE / "bench" / "soak.py"), "--edits", str(bench.plan.soak), "--worktrees", "0"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=SOAK_SECONDS, check=False)
    found = [float(value) for value in re.findall(r"^edit .*?([\d.]+) MiB", done.stdout, re.MULTILINE)]
    measure = "growth over edits of one file"
    if done.returncode or len(found) < 3:
        bench.fail([measure], NONE, "library", done.stderr[-120:] or "it said nothing")
        return
    bench.figure(measure, NONE, "library", (found[-1] - found[1]) * 1024 * 1024 / 1e6)


async def growth(bench: Bench, language: str) -> None:
    """An edit after so many files were touched, and what the library and the server hold by then."""
    modules = max(bench.plan.touched)
    fixture = bench.fixture(language, modules=modules, functions=2)
    files = [fixture.file(f"module_{number}") for number in range(modules)]
    main, touched = fixture.file("main"), 0
    async with bench.opened(KINDS["library"], fixture) as subject:
        for many in bench.plan.touched:
            for file in files[touched:many]:
                await subject.ask("written", file)
            touched = many
            record = bench.record(f"edit after {many} touched files", language, "library")
            for number in range(max(6, bench.plan.edits)):
                name = f"missing_{many}{number}"
                fixture.write(main, fixture.grammar.missing.format(name=name) + "\n")
                await bench.timed(record, lambda: subject.ask("told", main), lambda answer, name=name: name in answer)
            bench.figure(f"memory after {many} touched files", language, "library", resident(os.getpid()))
