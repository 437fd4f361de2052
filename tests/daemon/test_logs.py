"""The daemon's log: bounded, private, and readable to people."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotfish.ipc.logs import TAIL_BYTES, LogFile, last_lines


@pytest.fixture
def spare(tmp_path: Path) -> Iterator[int]:
    """A descriptor that stands for standard error."""
    descriptor = os.open(os.devnull, os.O_WRONLY)
    yield descriptor
    os.close(descriptor)


def record(message: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord("pilotfish.test", logging.INFO, "", 0, message, arguments, None)


@pytest.mark.proves("F91", "T42")
def test_a_log_that_has_grown_begins_anew_and_takes_standard_error_along(tmp_path: Path, spare: int) -> None:
    path = tmp_path / "daemon.log"
    log = LogFile(str(path), max_bytes=1000, standard=(spare,))
    for number in range(100):
        log.emit(record("line %d", number))
        assert path.stat().st_size <= 1100
    os.write(spare, b"the interpreter's own words\n")
    log.close()
    assert path.read_text().endswith("the interpreter's own words\n")
    assert {name.name for name in tmp_path.iterdir()} == {"daemon.log", "daemon.log.1"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
    assert "line 99" in path.read_text()


@pytest.mark.proves("T32")
def test_what_a_server_said_cannot_paint_the_log(tmp_path: Path, spare: int) -> None:
    log = LogFile(str(tmp_path / "log"), standard=(spare,))
    log.emit(record("said %s", "\x1b[2J\x1b]0;title\x07red\u202eevil"))
    log.close()
    assert (tmp_path / "log").read_text().endswith("said red[U+202E]evil\n")


def test_a_log_that_cannot_be_written_stops_nobody(tmp_path: Path, spare: int) -> None:
    log = LogFile(str(tmp_path / "log"), standard=(spare,))
    log.close()
    log.emit(record("lost"))


def test_a_link_in_place_of_the_log_is_not_followed(tmp_path: Path, spare: int) -> None:
    (tmp_path / "log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        LogFile(str(tmp_path / "log"), standard=(spare,))


@pytest.mark.parametrize(
    ("before", "now", "count", "lines"),
    [
        pytest.param(None, None, 3, (), id="no log"),
        pytest.param(None, "1\n2\n", 3, ("1", "2"), id="short"),
        pytest.param("1\n2\n3\n", "4\n", 3, ("2", "3", "4"), id="over two files"),
        pytest.param("1\n", "2\n3\n4\n5\n", 3, ("3", "4", "5"), id="long"),
        pytest.param(None, "1\n", 0, (), id="none wanted"),
        pytest.param(None, "x" * TAIL_BYTES + "\n1\n", 3, ("1",), id="only whole lines of a large file"),
    ],
)
def test_the_last_lines(
    tmp_path: Path, before: str | None, now: str | None, count: int, lines: tuple[str, ...]
) -> None:
    for name, text in (("log", now), ("log.1", before)):
        if text is not None:
            (tmp_path / name).write_text(text)
    assert last_lines(str(tmp_path / "log"), count) == lines
