"""One config file, read: what of it counts, and what is wrong with it. Pure, from the bytes that were read.

A file that cannot be parsed counts for nothing. One with wrong values counts without them: a slip in one place must
not turn a server back on that another place turns off. (`config.load` puts the last good version in its place where
there is one.)
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.config.dialects import ConfigDialect
from pilotfish.config.foreign import translation
from pilotfish.config.jsonc import BadJson, Document, LineColumn, parse
from pilotfish.config.problems import Problem, ProblemGrade
from pilotfish.config.rules import USER_ONLY
from pilotfish.config.validation import problems, without
from pilotfish.config.values import ConfigSource
from pilotfish.model import AbsPath
from pilotfish.protocol.wire import Json

Names = Callable[[str], str]
"""Our id for what another tool calls a server."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """What one file says. `value` is valid whatever the file was."""

    file: AbsPath
    value: dict[str, Json]
    problems: tuple[Problem, ...] = ()
    sound: bool = True
    """False: `value` is not all that the file wanted to say."""
    believable: bool = True
    """False: its security section is not what the person wrote."""
    foreign: bool = False
    """Another host's file."""
    document: Document | None = field(default=None, repr=False)
    """Where its values stand; None when the file has other content by now."""

    def placed(self, problem: Problem) -> Problem:
        """`problem` with the place of its value, where it is about this file and knows none yet."""
        if problem.file != self.file or problem.place or not self.document:
            return problem
        return replace(problem, place=self.document.place(problem.path))


class Reader(Struct, frozen=True):
    """How to read a file: whose it is, and, where it is another host's, in which dialect."""

    source: ConfigSource
    canonical_id: Names
    dialect: ConfigDialect | None = None

    def sheet(self, data: bytes, file: AbsPath) -> Sheet | None:
        """The file's content, or None when it says nothing about language servers."""
        try:
            document = parse(data)
        except BadJson as error:
            return self.broken(file, error.message, error.place)
        if self.dialect is None:
            return _own(document, file, self)
        return _foreign(document, file, self, self.dialect)

    def broken(self, file: AbsPath, message: str, place: LineColumn | None = None) -> Sheet:
        """A file that is there and says nothing that we could read. Another host's is not ours to call wrong."""
        grade = ProblemGrade.WARNING if self.dialect else ProblemGrade.ERROR
        problem = Problem(grade, file, (), f"cannot be read: {message}", place=place)
        return Sheet(file, {}, (problem,), sound=False, believable=False, foreign=self.dialect is not None)


def _own(document: Document, file: AbsPath, reader: Reader) -> Sheet:
    found = [*problems(document.value, file)]
    left = without(document.value, tuple(found))
    value = dict(left) if isinstance(left, dict) else {}
    value.pop("$schema", None)
    found += _renamed(value, file, reader.canonical_id)
    sound = not found
    believable = all(problem.path and problem.path[0] != "security" for problem in found)
    if reader.source is ConfigSource.PROJECT:
        found += _user_only(value, file, ProblemGrade.WARNING)
    return Sheet(file, value, tuple(found), sound, believable, document=document)


def _foreign(document: Document, file: AbsPath, reader: Reader, dialect: ConfigDialect) -> Sheet | None:
    translated = translation(dialect, document.value, file, reader.canonical_id)
    if translated is None:
        return None
    value = dict(translated.value)
    notes = [*translated.notes]
    believable = all(problem.path[:1] != ("security",) for problem in notes)
    if reader.source is ConfigSource.PROJECT:
        notes += _user_only(value, file, ProblemGrade.NOTE)
    return Sheet(file, value, tuple(notes), believable=believable, foreign=True, document=document)


def _user_only(value: dict[str, Json], file: AbsPath, grade: ProblemGrade) -> list[Problem]:
    """Take out what a project may not say."""
    return [
        Problem(grade, file, (key,), "ignored: it is read from the user's own file only")
        for key in USER_ONLY
        if value.pop(key, None) is not None
    ]


def _renamed(value: dict[str, Json], file: AbsPath, canonical_id: Names) -> list[Problem]:
    """Give servers their catalogue ids; one that is there under both names counts under its id only."""
    servers = value.get("lsp")
    if not isinstance(servers, dict):
        return []
    renamed: dict[str, Json] = {}
    twice: list[Problem] = []
    for name, entry in servers.items():
        server = canonical_id(name)
        if server != name and (server in servers or server in renamed):
            message = f"ignored: it is another name for {server}, which is configured too"
            twice.append(Problem(ProblemGrade.ERROR, file, ("lsp", name), message))
        else:
            renamed[server] = entry
    value["lsp"] = renamed
    return twice
