"""What starting costs, as the modules that are imported: the clock of a shared machine says nothing.

What the hook program imports is counted in `tests/daemon/test_hook.py`, with a daemon that runs.
"""

import subprocess
import sys

import pytest

from pilotfish.surfaces.cli.main import VERBS

HEAVY = frozenset({
    "anyio", "asyncio", "mcp", "msgspec", "psutil", "pydantic", "rich", "starlette", "textual", "trio", "uvicorn",
})  # fmt: skip
"""Each takes longer to import than click does, or is an extra."""

EXTRAS = frozenset({"mcp", "rich", "starlette", "textual", "trio", "uvicorn"})
"""What no verb imports in order to say what it does."""

STARTED = (
    "import sys; from pilotfish.surfaces.cli.main import run\n"
    "try: run({words!r})\n"
    "finally: print(*sorted({{name.partition('.')[0] for name in sys.modules}}), file=sys.stderr)"
)


def imported(*words: str) -> set[str]:
    """The packages that a command line imports."""
    code = STARTED.format(words=list(words))
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.proves("CLI-1")
@pytest.mark.parametrize("words", [["--help"], ["--version"], ["completion", "bash"]], ids=" ".join)
def test_what_is_said_by_click_alone_imports_nothing_heavy(words: list[str]) -> None:
    assert imported(*words) & HEAVY == set()


@pytest.mark.proves("CLI-1")
def test_no_verb_imports_an_extra_to_say_what_it_does() -> None:
    code = STARTED.format(words=["--help"]).replace(
        "run(['--help'])", f"[run([verb, '--help']) for verb in {[*VERBS]}]"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stderr.splitlines()[-1].split()) & EXTRAS == set()


AHEAD = (
    "import sys; from pilotfish.ipc import client\n"
    "def started(): print(*sorted({{name.partition('.')[0] for name in sys.modules}})); raise SystemExit\n"
    "client.start_ahead = started\n"
    "from pilotfish.surfaces.cli.main import run; run([{verb!r}])"
)


@pytest.mark.proves("CLI-1")
@pytest.mark.parametrize("verb", ["mcp", "lsp"])
def test_a_program_of_a_host_starts_the_daemon_before_it_imports_what_takes_as_long(verb: str) -> None:
    argv = [sys.executable, "-I", "-c", AHEAD.format(verb=verb)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout.split()
    assert set(done.stdout.split()) & HEAVY == set()


@pytest.mark.proves("CLI-1")
def test_the_daemon_begins_without_what_its_first_clients_do_not_need() -> None:
    code = "import sys, pilotfish.daemon.start, pilotfish.daemon.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    later = EXTRAS | {"click", "psutil", "pilotfish.surfaces.lsp.face", "pilotfish.surfaces.mcp.server"}
    assert set(done.stdout.split()) & later == set()


ALONE = """
import sys

class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0].startswith("pilotfish_"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import pilotfish, pilotfish.daemon.main
from pilotfish.surfaces.cli.main import run
pilotfish.open_blocking
print(run(["--help"]), *[run([verb, "--help"]) for verb in sys.argv[1:]])
"""


@pytest.mark.proves("CLI-1")
def test_the_core_works_without_the_packages_beside_it() -> None:
    """What they would do is refused, with the way to get them; everything else is there."""
    beside = [name for name, verb in VERBS.items() if verb.module.startswith("pilotfish_")]
    argv = [sys.executable, "-I", "-c", ALONE, "check", *beside]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == " ".join(["0", "0", *("3" for _ in beside)])
    assert set(beside) == {"panel", "serve", "service"}
    assert done.stderr.count("pip install '.[all]'") == len(beside)


@pytest.mark.proves("PLAT-1")
def test_every_module_can_be_imported_where_there_is_no_posix() -> None:
    """But those that are for one system alone; `system.calls` is the one that chooses, by `sys.platform`."""
    code = f"""
import asyncio, importlib, pkgutil, sys, tempfile, anyio, click, mcp.server, psutil, pilotfish.system.calls
sys.modules.update(dict.fromkeys({POSIX}))
for module in pkgutil.walk_packages(pilotfish.__path__, "pilotfish."):
    if not module.name.endswith({LINUX_ONLY + WINDOWS_ONLY}) and ".hosts.plugins." not in module.name:
        importlib.import_module(module.name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr


POSIX = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")
LINUX_ONLY = (".__main__", ".inotify", ".shared", ".supervisor")
WINDOWS_ONLY = (".jobs",)
