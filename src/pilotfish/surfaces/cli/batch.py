"""`pilotfish batch`: what each of many patches would introduce."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import anyio
import anyio.to_thread
import click

from pilotfish.api.answers import SEVERITIES, severity_of
from pilotfish.batch.engine import Engine, LocalEngine
from pilotfish.batch.judge import JudgeSettings
from pilotfish.batch.patches import BadPatch, Judgement, Patch, PatchId, judged_ids, line_of, read_patch
from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.surfaces.cli.terminal.exit_codes import ExitCode
from pilotfish.surfaces.cli.terminal.progress import ProgressBar
from pilotfish.surfaces.cli.workspace import find_git, root_of, root_option
from pilotfish.system.real_path import real_path

READ_BYTES = 1 << 20
"""Of a pipe, at once."""

DIFF = (b"diff ", b"--- ", b"Index: ", b"From ")
"""How files begin that hold one patch as git and diff print it."""

LONG = 50
"""Patches for which it pays to know the state of every file."""


@click.command()
@click.argument("patches", type=click.File("rb"), default="-", metavar="[FILE]")
@click.option(
    "--jobs", type=click.IntRange(1, 256), help="Copies that patches are judged in; by default one for each processor."
)
@click.option("--engine", type=click.Choice(("local", "ray")), default="local", show_default=True, help="Who judges.")
@click.option("--address", default="auto", show_default=True, help="The Ray cluster; `local` starts one for this run.")
@click.option(
    "--severity", type=click.Choice(SEVERITIES), default="error", show_default=True, help="The least that counts."
)
@click.option("--out", type=click.Path(dir_okay=False), help="Write judgements to this file.")
@click.option("--resume", is_flag=True, help="Leave out patches that --out has a judgement of, and add to it.")
@root_option
def batch(patches: BinaryIO, severity: str, out: str | None, root: str | None, *, resume: bool, **engine: Any) -> None:
    """Judge many patches by the errors that each would introduce.

    One JSON object a line, from FILE or standard input: {"id", "files": {path: text or null}} or {"id", "diff"}, with
    "base", a commit, where it is not the files as they are. One line for each comes out, in any order: {"id", "state",
    "introduced": [{"file", "line", …}], "fixed", "ms"}. Nothing is written to the workspace.
    Exit code: 0 all judged, 2 some not, 3 wrong use.
    """
    if resume and out is None:
        raise click.UsageError("--resume needs --out FILE.")
    workspace = AbsPath(real_path(root_of(root)))
    known = set(_earlier(out)) if resume and out is not None else set[PatchId]()
    total = _total(patches)
    run = BatchRun(patches, known, total)
    is_long = total is not None and total - len(known) >= LONG
    settings = JudgeSettings(workspace, severity_of(severity), git=find_git(workspace), is_long=is_long)
    made = _engine(settings, **engine)
    # What it has made in the temporary folder goes as after Ctrl-C.
    signal.signal(signal.SIGTERM, _interrupt)
    with _output(out, append=resume) as output:
        anyio.run(run.judge_all, made, output)
    click.get_current_context().exit(run.exit_code)


def _interrupt(_number: int, _frame: object) -> None:
    signal.raise_signal(signal.SIGINT)


def _engine(settings: JudgeSettings, engine: str, address: str, jobs: int | None) -> Engine:
    from pilotfish.library.workspace import computer

    jobs = jobs or os.cpu_count() or 1
    if engine == "ray":
        from pilotfish.batch.ray_engine import RayEngine

        return RayEngine(settings, computer, jobs, address)

    return LocalEngine(settings, computer(os.environ), jobs)


class BatchRun:
    """The patches of an input, and what becomes of them."""

    def __init__(self, lines: BinaryIO, known: set[PatchId], total: int | None) -> None:
        self._lines = lines
        self._known = known
        self._total = total
        self._seen = set[PatchId]()
        self._unread = 0
        self._unjudged = 0

    @property
    def exit_code(self) -> ExitCode:
        if self._unread:
            return ExitCode.USAGE
        return ExitCode.NO_VERDICT if self._unjudged else ExitCode.OK

    async def judge_all(self, engine: Engine, output: BinaryIO) -> None:
        with ProgressBar(max(0, (self._total or 0) - len(self._known))) as bar:

            async def tell(judgement: Judgement) -> None:
                # A line at a time, and at once: whoever reads it may be waiting, and a later run resumes from it.
                await anyio.to_thread.run_sync(_write, output, line_of(judgement))
                self._unjudged += judgement.state == "unavailable"
                bar.step()

            await engine.judge_all(self._patches(), tell)

    async def _patches(self) -> AsyncIterator[Patch]:
        """Of a file, those of a base that move files come after the others: for them a server reads its project anew,
        twice for each that stands alone. A pipe is read as it comes: whoever writes to it may wait for an answer."""
        later, base, number, offset = list[int](), None, 0, 0
        async for line in _lines(self._lines):
            number, offset = number + 1, offset + len(line)
            patch = self._patch(line, number)
            if patch is None:
                continue
            if patch.base != base:
                for held in self._at(later):
                    yield held
                later, base = [], patch.base
            if patch.moves_files and self._lines.seekable():
                later.append(offset - len(line))
            else:
                yield patch
        for held in self._at(later):
            yield held

    def _at(self, offsets: Sequence[int]) -> Iterator[Patch]:
        """The patches that stand there."""
        for offset in offsets:
            here = self._lines.tell()
            self._lines.seek(offset)
            patch = read_patch(self._lines.readline())
            self._lines.seek(here)
            yield patch

    def _patch(self, line: bytes, number: int) -> Patch | None:
        """None for what is not to be judged; what is wrong with it is said."""
        if not line.strip():
            return None
        try:
            patch = read_patch(line)
        except BadPatch as error:
            self._complain(number, str(error))
            return None
        if patch.id in self._known:
            return None
        if patch.id in self._seen:
            self._complain(number, f"there was a patch {patch.id!r} before")
            return None
        self._seen.add(patch.id)
        return patch

    def _complain(self, number: int, why: str) -> None:
        self._unread += 1
        click.echo(f"line {number}: {why}", err=True)


async def _lines(source: BinaryIO) -> AsyncIterator[bytes]:
    """As they come. No thread waits for a pipe: it could not be ended, and would keep the program alive."""
    if source.seekable():
        for line in source:
            yield line
        return
    left = bytearray()
    while True:
        await anyio.wait_readable(source)
        piece = os.read(source.fileno(), READ_BYTES)
        if not piece:
            break
        *whole, rest = (bytes(left) + piece).split(b"\n")
        left[:] = rest
        for line in whole:
            yield line
    if left:
        yield bytes(left)


def _write(output: BinaryIO, line: bytes) -> None:
    output.write(line)
    output.flush()


def _total(patches: BinaryIO) -> int | None:
    """How many lines a file has; None for what can be read once only. Raises `Refused` for a diff."""
    if not patches.seekable():
        return None
    begins = patches.read(max(map(len, DIFF)))
    patches.seek(0)
    if begins.startswith(DIFF):
        hint = """One JSON object a line, such as {"id": 1, "diff": "…"}; jq -cRs '{id: 1, diff: .}' makes one."""
        raise Refused(Code.INVALID_INPUT, f"{patches.name} is a diff, and batch reads JSON lines.", hint=hint)
    total = sum(1 for line in patches if line.strip())
    patches.seek(0)
    return total


def _earlier(out: str) -> Iterator[PatchId]:
    """The patches that are judged already. What was cut short at the end is cut off."""
    if not os.path.exists(out):
        return
    with open(out, "r+b") as file:
        lines = file.readlines()
        if lines and not lines[-1].endswith(b"\n"):
            file.truncate(sum(map(len, lines[:-1])))
    yield from judged_ids(lines)


@contextmanager
def _output(out: str | None, *, append: bool) -> Generator[BinaryIO]:
    if out is None:
        # Ray tells of its workers on standard output, where judgements and nothing else belong.
        kept = os.dup(sys.stdout.fileno())
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        try:
            with open(kept, "wb", closefd=False) as file:
                yield file
        finally:
            sys.stdout.flush()
            os.dup2(kept, sys.stdout.fileno())
            os.close(kept)
        return
    with open(out, "ab" if append else "wb") as file:
        yield file
