"""The main job, on a workspace made for it: `./demo`, or `pilotfish demo`.

A real language server, an edit that breaks two files, what an agent would see and how long it took, the fix, a
question, the status; then everything that was started is stopped, and that is looked at too.
"""

import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

import anyio
import psutil

import pilotfish
from pilotfish.api.answers import Feedback, State
from pilotfish.errors import Code, ServerFailed
from pilotfish.library.workspace import Workspace, computer
from pilotfish.operations.render import text_of

GREETING = 'def greet(name: str) -> str:\n    return f"Hello, {name}!"\n'
MAIN = 'from greeting import greet\n\nprint(greet("world"))\n'
BROKEN = "def greet(name: str, times: int) -> str:\n    return times * len(name)\n"

T = TypeVar("T")


def shown() -> int:
    """Show it; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="pilotfish-demo-") as folder:
        root = Path(folder) / "project"
        root.mkdir()
        (root / "greeting.py").write_text(GREETING)
        (root / "main.py").write_text(MAIN)
        anyio.run(_show, root, _environment(Path(folder) / "home"))
    left = psutil.Process().children(recursive=True)
    print(f"\nStopped. Processes left behind: {len(left)}")
    return 1 if left else 0


def _environment(home: Path) -> Mapping[str, str]:
    """A home of its own, so that the demo shows the same whatever the user has configured."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    return {**os.environ, "XDG_CONFIG_HOME": str(home), "PILOTFISH_HOME": str(home), "PATH": path}


async def _show(root: Path, environment: Mapping[str, str]) -> None:
    print("A project of two files: greeting.py defines greet(name), main.py calls it.\n")
    async with pilotfish.open(root, host="claude-code", shell=computer(environment)) as workspace:
        await _warm(workspace)
        feedback, milliseconds = await _after(workspace, root, BROKEN)
        print("An agent rewrites greeting.py. The result of its edit then carries:\n")
        print(_indented(feedback.text))
        print(f"\n… {milliseconds:.0f} ms after the edit; the answer is {feedback.state}.")
        if feedback.state is not State.FRESH or "main.py" not in feedback.text:
            raise ServerFailed(Code.PROTOCOL_ERROR, f"the demo did not see both files break: {feedback}")
        feedback, milliseconds = await _after(workspace, root, GREETING)
        verdict = "nothing to add" if not feedback.text else feedback.text
        print(f"It takes the change back: {verdict} ({milliseconds:.0f} ms, {feedback.state}).\n")
        answer, milliseconds = await _timed(lambda: workspace.definition("main.py", line=3, character=7))
        print(f"It asks where greet is defined ({milliseconds:.0f} ms):\n\n{_indented(text_of(answer))}\n")
        print("Status:")
        for row in workspace.status().rows:
            if row.connected_roots:
                print(f"  {row.server_id:14} active in {len(row.connected_roots)} root")


async def _warm(workspace: Workspace) -> None:
    print("Starting the language server … ", end="", flush=True)
    checked, milliseconds = await _timed(lambda: workspace.check("greeting.py", "main.py"))
    if not checked.ok:
        raise ServerFailed(Code.SERVER_MISSING, f"no language server answered: {checked.meta.reason}")
    print(f"ready after {milliseconds / 1000:.1f} s.\n")


async def _after(workspace: Workspace, root: Path, text: str) -> tuple[Feedback, float]:
    (root / "greeting.py").write_text(text)
    return await _timed(lambda: workspace.after_edit("greeting.py", kind="write"))


async def _timed(work: Callable[[], Awaitable[T]]) -> tuple[T, float]:
    started = time.perf_counter()
    return await work(), (time.perf_counter() - started) * 1000


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


if __name__ == "__main__":
    sys.exit(shown())
