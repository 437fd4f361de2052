"""`pilotfish demo`, which `./demo` runs: a real server on a small project made for it, and what an agent sees."""

import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

import anyio
import click
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


@click.command()
def demo() -> None:
    """Show what an agent sees after an edit.

    Starts a real language server on a small temporary project, breaks two files, fixes them, and stops the server.
    """
    with tempfile.TemporaryDirectory(prefix="pilotfish-demo-") as folder:
        root = Path(folder) / "project"
        root.mkdir()
        (root / "greeting.py").write_text(GREETING)
        (root / "main.py").write_text(MAIN)
        anyio.run(_show, root, _environment(Path(folder) / "home"))
    left = psutil.Process().children(recursive=True)
    click.echo(f"\nStopped. Processes left behind: {len(left)}")
    click.get_current_context().exit(1 if left else 0)


def _environment(home: Path) -> Mapping[str, str]:
    """An empty home, so that the user's configuration does not matter."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    return {**os.environ, "XDG_CONFIG_HOME": str(home), "PILOTFISH_HOME": str(home), "PATH": path}


async def _show(root: Path, environment: Mapping[str, str]) -> None:
    click.echo("A project of two files: greeting.py defines greet(name), main.py calls it.\n")
    async with pilotfish.open(root, host="claude-code", shell=computer(environment)) as workspace:
        click.echo("Starting the language server … ", nl=False)
        checked, milliseconds = await _timed(lambda: workspace.check("greeting.py", "main.py"))
        if not checked.ok:
            raise ServerFailed(Code.SERVER_MISSING, f"no language server answered: {checked.meta.reason}")
        click.echo(f"ready after {milliseconds / 1000:.1f} s.\n")
        feedback, milliseconds = await _after(workspace, root, BROKEN)
        click.echo("An agent rewrites greeting.py. The result of its edit then carries:\n")
        click.echo(_indented(feedback.text))
        click.echo(f"\n… {milliseconds:.0f} ms after the edit; the answer is {feedback.state}.")
        require_both(feedback)
        feedback, milliseconds = await _after(workspace, root, GREETING)
        verdict = "no errors" if not feedback.text else feedback.text
        click.echo(f"The agent reverts the change: {verdict} ({milliseconds:.0f} ms, {feedback.state}).\n")
        answer, milliseconds = await _timed(lambda: workspace.definition("main.py", line=3, character=7))
        click.echo(f"It asks where greet is defined ({milliseconds:.0f} ms):\n\n{_indented(text_of(answer))}\n")
        click.echo("Status:")
        for row in workspace.status().rows:
            if row.connected_roots:
                click.echo(f"  {row.server_id:14} active in {len(row.connected_roots)} root")


def require_both(feedback: Feedback) -> None:
    """Raise `ServerFailed` where the edit was not seen to break both files."""
    if feedback.state is not State.FRESH or "main.py" not in feedback.text:
        why = (feedback.reason or "main.py was not reported").rstrip(".")
        hint = "On a busy machine a server may need longer than an edit waits: try again."
        raise ServerFailed(Code.PROTOCOL_ERROR, f"The demo did not see both files break: {why}.", hint=hint)


async def _after(workspace: Workspace, root: Path, text: str) -> tuple[Feedback, float]:
    (root / "greeting.py").write_text(text)
    return await _timed(lambda: workspace.after_edit("greeting.py", kind="write"))


async def _timed(work: Callable[[], Awaitable[T]]) -> tuple[T, float]:
    started = time.perf_counter()
    return await work(), (time.perf_counter() - started) * 1000


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())
