"""How long anybody waits while hostile files of a repository are read: `.venv/bin/python tests/fuzz/waits.py [WORD…]`.

Each file is as long as what reads it allows, or longer, and of the kind that takes longest. The service runs in this
process, with a server that answers at once; a task of the same loop says how late it was ever woken: so late is every
other client. It prints and does not judge; the table of docs/RELIABILITY.md has what it said. Of each file the least
and the most of some runs: what a virtual machine is denied by others counts as its own time, and is not in all of them.
The first row is a control, a thread that only counts: beside other work the system may run that thread and not the one
that is woken, and so late as there is everybody late whatever is read.
"""

import gc
import json
import resource
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import anyio
import anyio.to_thread

from pilotfish.api.questions import Touch
from support.daemon.users import named_server
from support.services.clean import write
from support.services.real import only, real_service

TICK_SECONDS = 0.002
RUNS = 3
COUNTED = 10_000_000
"""What takes about as long as what is read here."""
SERVERS = {"basedpyright": ".py", "gopls": ".go", "vtsls": ".ts", "clangd": ".c"}
"""Whose inputs are read; a program of ours stands in for each."""
SITE = ".venv/lib/python3.11/site-packages"
VENV = {".venv/pyvenv.cfg": "home = /usr/bin\nversion = 3.11.2\n", f"{SITE}/a/__init__.py": ""}

MOVED = "moved"
"""What is in this folder is made elsewhere, and moved here between two questions."""

GIT = {".git/HEAD": "ref: refs/heads/main\n", ".git/config": "", ".git/refs/heads/main": "1" * 40 + "\n"}

PLAIN = {"a.py": "x = 1\n", "b.py": "from a import x\n"}

HOSTILE: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "servers/manifests.py": {
        "pyproject.toml, a key of 20,000 parts": {"pyproject.toml": "a." * 20_000 + "a = 1\n"},
        "pyproject.toml, lists": {"pyproject.toml": "a = [" + "1," * 7_900 + "]\nb = '''" + "-" * 75_000 + "'''\n"},
        "pyproject.toml, tables": {"pyproject.toml": "".join(f"[a{number}]\n" for number in range(7_900))},
        "package.json, 256 KB of numbers": {"package.json": "[" + "1," * 130_000 + "1]"},
        "pyrightconfig.json, comments": {"pyrightconfig.json": "/* */[" + "1,/**/" * 5_400 + "1]"},
    },
    "servers/roots.py": {
        "go.work, 2,000 modules": {"a.go": "package a\n", "go.work": "use (\n" + "\t./a\n" * 40_000 + ")\n"},
        "pnpm-workspace.yaml, 40,000 lines": {
            "a.ts": "export {};\n",
            "package.json": "{}",
            "pnpm-workspace.yaml": "packages:\n" + "  - 'a*'\n" * 25_000,
        },
    },
    "servers/toolchains.py": {"go.mod, 256 KB": {"a.go": "package a\n", "go.mod": "module a\n" + "go \n" * 60_000}},
    "servers/resolve.py": {"a., one line": {"a.": "#!" + "/usr/bin/env " * 20_000}},
    "servers/python_environment.py": {
        ".pth, 20,000 lines": {**VENV, f"{SITE}/a.pth": "".join(f"/nowhere/{number}\n" for number in range(20_000))},
        ".pth, 20,000 folders": {
            **VENV,
            f"{SITE}/a.pth": "".join(f"../../../../../f/{number}\n" for number in range(20_000)),
            **{f"../f/{number}/a.py": "" for number in range(2_000)},
        },
        ".pth, 500 finders": {
            **VENV,
            f"{SITE}/a.pth": "".join(f"import __editable___a{number}_finder\n" for number in range(500)),
            **{
                f"{SITE}/__editable___a{number}_finder.py": "MAPPING = {" + "'a': 'b', " * 400 + "}\n"
                for number in range(500)
            },
        },
        "pyvenv.cfg, 256 KB": {**VENV, ".venv/pyvenv.cfg": "home = /usr/bin\n" + "a = b\n" * 40_000},
    },
    "servers/inputs.py": {
        "tsconfig.json, a chain of 300": {
            "a.ts": "export {};\n",
            **{f"c{number}.json": f'{{"extends": "./c{number + 1}.json"}}' for number in range(300)},
            "tsconfig.json": '{"extends": "./c0.json"}',
        },
        "a.go, 70,000 embedded names": {"a.go": "package a\n" + "//go:embed a\n" * 70_000},
        "a.go, 8 MB of blank lines": {"a.go": "\n" * 8_000_000},
        "a.ts, 8 MB of imports": {"a.ts": "import '../../aaaa';\n" * 390_000},
        "compile_flags.txt, 1 MB": {"a.c": "int a;\n", "compile_flags.txt": "-I../a\n" * 150_000},
    },
    "config/jsonc.py": {
        "lsp.json, comments": {".pilotfish/lsp.json": '{"lsp": [' + "1,/**/" * 43_000 + "1]}"},
        "lsp.json, servers": {
            ".pilotfish/lsp.json": json.dumps({"lsp": {f"s{n}": {"extensions": [".x"]} for n in range(7_000)}})
        },
        "opencode.json, comments": {"opencode.json": '{"lsp": {' + '"a":1,/**/' * 25_000 + '"b":1}}'},
    },
    "feedback/shapes/parsing.py": {
        "a.py, 64,000 statements": {"a.py": "a=1\n" * 64_000},
        "a.py, 24,000 statements": {"a.py": "a=1\n" * 24_000},
        "a.py, 16,000 functions": {"a.py": "".join(f"def f{number}():a\n" for number in range(16_000))},
        "a.py, methods that assign": {"a.py": "class A:\n def f(self):\n" + "  self.a = b\n" * 18_000},
        "a.py, one string with 40,000 expressions": {"a.py": "x = f'" + "{a}" * 40_000 + "'\n"},
    },
    "feedback/word_index.py": {
        "a.py, 400 KB of accents": {"a.py": "a" + "\u0301\u0316" * 100_000 + " = 1\n"},
        "a.py, 2 MB of words": {"a.py": " ".join(f"w{number}" for number in range(250_000)) + "\n"},
    },
    "system/files.py": {"a.go, 390,000 lines": {"a.go": "var aaaaaaaaaaaa = 1\n" * 390_000}},
    "protocol/notebooks.py": {
        "a.ipynb, lists": {"a.ipynb": json.dumps({"cells": [[[]]] * 30_000, "nbformat": 4})},
    },
    "system/watching/ignoring.py": {
        ".gitignore, 30,000 rules": {".gitignore": "".join(f"f{number}*x*\n" for number in range(30_000))},
        "2,000 folders that come at once": {f"{MOVED}/{number}/c.py": "x = 1\n" for number in range(2_000)},
        "10,000 files that come at once": {f"{MOVED}/{n % 9}/c{n}.py": "x = 1\n" for n in range(10_000)},
    },
    "system/git.py": {
        ".git/config, 256 KB": {**GIT, ".git/config": "[include]\n\tpath = a\n" * 10_000},
        ".git/config, one line": {**GIT, ".git/config": "[include" * 30_000},
    },
    "system/git_state.py": {
        ".git/logs/HEAD, 512 KB": {**GIT, ".git/logs/HEAD": f"{'0' * 40} {'1' * 40} a <b> 1 +0\tcommit: x\n" * 5_500},
    },
}
"""By what reads them, as the table of docs/ATTACKS.md has it: a reader without a row fails `test_fuzz.py`."""


class Watchdog:
    """How much the process did at most before a task was woken: how long that waits on a machine without other work."""

    def __init__(self) -> None:
        self.worst = 0.0

    async def run(self) -> None:
        while True:
            before = time.process_time()
            await anyio.sleep(TICK_SECONDS)
            self.worst = max(self.worst, time.process_time() - before)


async def waited(files: Mapping[str, str], folder: Path) -> float:
    """Check and edit beside hostile files, and have everybody else wait for it."""
    config = only("")
    config["lsp"] |= {server: named_server(server) | {"extensions": [ending]} for server, ending in SERVERS.items()}
    watchdog, root, files = Watchdog(), folder / "workspace", {**PLAIN, **files}
    async with real_service(folder, config) as running, anyio.create_task_group() as tasks:
        write(root / "warm.py", "x = 1\n")
        await running.service.touched(Touch(("warm.py",), "edit"), running.client)
        for name, text in files.items():
            write((folder if name.startswith(MOVED) else root) / name, text)
        tasks.start_soon(watchdog.run)
        for source in (name for name in files if name.startswith(("a.", "b."))):
            await running.service.check(running.client, (source,))
            if (folder / MOVED).exists():
                (folder / MOVED).rename(root / MOVED)
            await anyio.to_thread.run_sync(write, root / source, files[source] + "\ny = 1\n")
            await running.service.touched(Touch((source,), "edit"), running.client)
        tasks.cancel_scope.cancel()
    return watchdog.worst


async def waited_for_a_thread() -> float:
    """The same beside a thread that counts, and hands over whenever it is asked to."""
    watchdog = Watchdog()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watchdog.run)
        await anyio.to_thread.run_sync(lambda: sum(one % 7 for one in range(COUNTED)))
        tasks.cancel_scope.cancel()
    return watchdog.worst


def main() -> None:
    gc.freeze()
    times = [anyio.run(waited_for_a_thread) * 1000 for _ in range(RUNS)]
    print(f"{'control: a thread that counts':45} {min(times):5.0f} to {max(times):5.0f} ms", flush=True)
    for what, files in ((what, files) for rows in HOSTILE.values() for what, files in rows.items()):
        if sys.argv[1:] and not any(word in what for word in sys.argv[1:]):
            continue
        times = list[float]()
        for _ in range(RUNS):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                times.append(anyio.run(waited, files, Path(folder).resolve()) * 1000)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{what:45} {min(times):5.0f} to {max(times):5.0f} ms {peak:6} MiB at most so far", flush=True)


if __name__ == "__main__":
    main()
