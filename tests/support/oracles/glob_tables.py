"""What VS Code's glob engine says about patterns and paths, as `tools/glob-tables.mjs` wrote it down."""

import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from msgspec import Struct
from msgspec.json import decode

TABLES = Path(__file__).parents[2] / "protocol" / "tables"


class Table(Struct, frozen=True, rename="camel"):
    name: str
    paths: list[str]
    rows: list[tuple[str, str]]
    ignore_case: bool = False
    base: str | None = None

    def verdicts(self) -> Iterator[tuple[str, dict[str, bool]]]:
        """Each pattern, with what the engine says of each path."""
        for pattern, bits in self.rows:
            yield pattern, {path: bit == "1" for path, bit in zip(self.paths, bits, strict=True)}


class Tables(Struct, frozen=True):
    engine: str
    tables: list[Table]


def tables(engine: str) -> dict[str, Table]:
    found = decode((TABLES / f"{engine}.json").read_bytes(), type=Tables)
    return {table.name: table for table in found.tables}


@contextmanager
def seconds_of_work(limit: float) -> Generator[None]:
    """Fail when the block uses more processor time than this; how busy the machine is does not matter."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"more than {limit} s of work")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
