"""Diagnostics and checked files in few words."""

from collections.abc import Sequence

from pilotfish.feedback.delta import Delta, NoBaseline
from pilotfish.feedback.select import Checked
from pilotfish.model import AbsPath, Diagnostic, Position, Range, Severity

WORKSPACE = AbsPath("/project")


def diagnostic(
    message: str = "wrong",
    *,
    line: int = 0,
    character: int = 0,
    severity: Severity = Severity.ERROR,
    code: str | None = None,
    source: str | None = None,
    server: str = "fake",
) -> Diagnostic:
    """A diagnostic at a 0-based place, one character long."""
    place = Range(Position(line, character), Position(line, character + 1))
    return Diagnostic(place, severity, message, server, code=code, source=source)


def errors(count: int, *, first_line: int = 0, word: str = "wrong") -> tuple[Diagnostic, ...]:
    """One error a line."""
    return tuple(diagnostic(f"{word} {number}", line=first_line + number) for number in range(count))


def checked(path: str, diagnostics: Sequence[Diagnostic] = ()) -> Checked:
    """A file of the workspace about which nothing was known before."""
    return Checked(AbsPath(f"{WORKSPACE}/{path}"), NoBaseline(tuple(diagnostics)))


def compared(
    path: str,
    *,
    introduced: Sequence[Diagnostic] = (),
    older: Sequence[Diagnostic] = (),
    fixed: Sequence[Diagnostic] = (),
) -> Checked:
    """A file of the workspace that has a baseline."""
    return Checked(AbsPath(f"{WORKSPACE}/{path}"), Delta(tuple(introduced), tuple(older), tuple(fixed)))
