"""The gate: format, lint, types, import contracts, documentation, tests. `./check [--quick|--hosts|--ray|…] [FILE…]`.

`--hosts` installs every coding agent of `hosts.json` and runs the end-to-end tests of all of them, and nothing else.
`--portable` runs all tests with the code paths of other systems (`tests/support/portable.py`), and nothing else.
`--ray` installs Ray and runs the tests that need it, and nothing else.
`--servers [NAME…]` installs language servers, proves them (`tests/prove.py`), and writes down what was shown.

Every step runs even when one before it failed, so that one run shows all there is to mend.

The machines are noisy, so up to three tests that failed beside all the others are run once more, alone. One that
passes then is printed as unsteady, below its failure: a fault, of it or of the program, that shows itself by chance. It
is to be mended, but no reason to refuse the change that happened to meet it. One that fails again fails the gate, and
so does a fourth. Tests of attacks, faults and leaks have no second chance: what they show by chance is the fault.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"

STATIC = {
    "format": ["ruff", "format", "--check", "."],
    "lint": ["ruff", "check", "."],
    "types": ["basedpyright"],
    "imports": ["lint-imports", "--no-cache"],
    "unused": ["vulture"],
    "docs": ["mkdocs", "build", "--strict"],
}
ELSEWHERE = ("Darwin", "Windows")
"""Systems whose branches of `src` are type-checked too: a minute each, beside the steps that use one core."""
CLEAN_ELSEWHERE = ROOT / ".pytest_cache" / "clean-elsewhere"
"""The hash of the sources that were last clean there: the same sources are not looked at again."""
SLOW = frozenset({"types", "docs"})
"""Left out of the inner loop, which is to take less than a minute: an editor shows types, and the gate runs them."""
QUICK_FOLDERS = ("client", "config", "feedback", "operations", "policy", "pool", "protocol", "service")
QUICK = [*(f"tests/{name}" for name in QUICK_FOLDERS), "tests/test_api.py"]
"""The core and the middle of the program, where most changes are, in virtual time and without real servers."""
QUICK_LACKS = ("slow", "leak", "server", "host")
"""Marks of tests that need time, or programs that only the whole gate installs."""
LAST_FAILED = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
MAX_UNSTEADY = 3
PARTS = {
    "quick": "the inner loop: less than a minute, without what is slow",
    "hosts": "install every coding agent that we plug into, and run the end-to-end tests of all of them",
    "portable": "run all tests with the code paths of macOS",
    "ray": "install Ray, and run the tests of `pilotfish batch` on a cluster of this machine",
    "servers": "install language servers, prove each of them, and write down what was shown",
}
NEVER_UNSTEADY = ("tests/attack/", "tests/faults/", "tests/leaks/")


def options(argv: list[str] | None = None) -> argparse.Namespace:
    """What is to run. An unknown option is refused: it is not worth a whole run to find out that it was one."""
    parser = argparse.ArgumentParser(prog="./check", description="The whole gate, or with an option a part of it.")
    parts = parser.add_mutually_exclusive_group()
    for name, text in PARTS.items():
        parts.add_argument(f"--{name}", dest="part", action="store_const", const=name, default="check", help=text)
    parser.add_argument("files", nargs="*", metavar="FILE", help="only these tests; with --servers, only these servers")
    return parser.parse_args(argv)


def main() -> int:
    given = options()
    files: list[str] = given.files
    hosts, quick = given.part == "hosts", given.part == "quick"
    goal = "check" if given.part in ("portable", "servers") else given.part
    if subprocess.run([sys.executable, str(ROOT / "tools" / "setup.py"), goal], check=False).returncode:
        return 1  # it has said why
    if given.part == "servers":
        results = {name: step(name, argv) for name, argv in proofs(files).items()}
        return 0 if all(results.values()) else 1
    if given.part == "portable":
        LAST_FAILED.unlink(missing_ok=True)
        good = step("portable", ["pytest", "-q", "-n", "2", "--portable", *files])
        return 0 if good or (not files and again("--portable")) else 1
    if goal == "ray":
        return 0 if step("ray", ["pytest", "--ray", "-m", "ray", "--durations=0", *(files or ["tests/batch"])]) else 1
    static = {name: argv for name, argv in STATIC.items() if not quick or name not in SLOW}
    steps = end_to_end(files) if hosts else static | tests(quick=quick, files=files)
    LAST_FAILED.unlink(missing_ok=True)
    beside = {} if hosts or quick or files else start_elsewhere()
    results = {name: step(name, argv) for name, argv in steps.items() if name in STATIC} | ended_elsewhere(beside)
    results |= {name: step(name, argv) for name, argv in steps.items() if name not in STATIC}
    if not (hosts or quick or files or results["tests"]):
        results["tests"] = again()
    if not hosts:
        subprocess.run(
            [sys.executable, str(ROOT / "tools" / "structure.py"), "small", "layers"], check=False
        )  # shown, not judged
    print("\n" + "  ".join(f"{name} {'ok' if ok else 'FAILED'}" for name, ok in results.items()))
    if quick:
        print(left_out(files))
    return 0 if all(results.values()) else 1


def start_elsewhere() -> dict[str, subprocess.Popen[str]]:
    """The type-checks for other systems, running; none when these sources were clean before."""
    if CLEAN_ELSEWHERE.exists() and CLEAN_ELSEWHERE.read_text() == sources():
        return {}
    argv = [str(BIN / "basedpyright"), "src", "--pythonplatform"]
    start = partial(subprocess.Popen[str], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return {f"types on {name}": start([*argv, name]) for name in ELSEWHERE}


def ended_elsewhere(running: dict[str, subprocess.Popen[str]]) -> dict[str, bool]:
    results: dict[str, bool] = {}
    for name, process in running.items():
        said = process.communicate()[0]
        results[name] = not process.returncode
        print(f"{name}: ok" if results[name] else f"{said}{name}: FAILED", flush=True)
    if running and all(results.values()):
        CLEAN_ELSEWHERE.parent.mkdir(exist_ok=True)
        CLEAN_ELSEWHERE.write_text(sources())
    return results


def sources() -> str:
    """A hash of what decides the types: the sources, and the versions and settings of `pyproject.toml`."""
    digest = hashlib.sha256((ROOT / "pyproject.toml").read_bytes())
    for path in sorted((ROOT / "src").rglob("*.py")):
        digest.update(str(path).encode() + path.read_bytes())
    return digest.hexdigest()


def tests(*, quick: bool, files: list[str]) -> dict[str, list[str]]:
    if files:
        return {"tests": ["pytest", *files]}
    if quick:
        chosen = " and ".join(f"not {mark}" for mark in QUICK_LACKS)
        return {"tests": ["pytest", "-q", "-n", "2", "--hypothesis-profile=quick", "-m", chosen, *QUICK]}
    return {
        # One more than cores on the usual machine: many tests wait for a server or a limit.
        # Coverage of the core is measured on the tests of the core alone: what only passes by accident does not count.
        "core": ["pytest", "-q", "-n", "2", "tests/protocol", "--cov", "--cov-report=term"],
        "tests": ["pytest", "-q", "-n", "3", "--ignore=tests/protocol", "--durations=25", "--durations-min=5"],
    }


def again(*options: str) -> bool:
    """Whether all that failed passes alone; prints what did."""
    failed = list(json.loads(LAST_FAILED.read_text())) if LAST_FAILED.exists() else []
    if not 0 < len(failed) <= MAX_UNSTEADY or any(name.startswith(NEVER_UNSTEADY) for name in failed):
        return False
    if not step("once more, alone", ["pytest", *options, *failed]):
        return False
    print(f"UNSTEADY, failed beside the others and passed alone: {', '.join(failed)}")
    return True


def left_out(files: list[str]) -> str:
    """What a quick run did not look at, and what the whole gate needs for it."""
    folders = sorted(path.parent.name for path in (ROOT / "tests").glob("*/test_*.py"))
    others = [name for name in dict.fromkeys(folders) if name not in QUICK_FOLDERS]
    tests = [f"the tests of {', '.join(others)}", f"those marked {', '.join(QUICK_LACKS)}"] if not files else []
    needs = "It needs npm, and as root installs a browser, Go and language servers from Debian."
    return f"left out: {'; '.join([*sorted(SLOW), *tests])}. `./check` has all of it. {needs}"


def end_to_end(files: list[str]) -> dict[str, list[str]]:
    """One after the other: every host takes the machine for itself."""
    return {
        "hosts": ["pytest", "--hosts", "-m", "host", "--durations=0", "--durations-min=5", *(files or ["tests/hosts"])]
    }


def proofs(servers: list[str]) -> dict[str, list[str]]:
    """The pages follow from what was shown, also where a server did not hold."""
    return {"servers": ["python", "tests/prove.py", *servers], "pages": ["python", "tools/write_docs.py"]}


def step(name: str, argv: list[str]) -> bool:
    started = time.monotonic()
    done = subprocess.run(
        [str(BIN / argv[0]), *argv[1:]], cwd=ROOT, capture_output=name in STATIC, text=True, check=False
    )
    if done.returncode and name in STATIC:
        print(done.stdout + done.stderr)
    print(f"{name}: {'ok' if not done.returncode else 'FAILED'} ({time.monotonic() - started:.1f} s)", flush=True)
    return not done.returncode


if __name__ == "__main__":
    sys.exit(main())
