"""A check of files and folders as values: what was asked, which files it is about, and one answer about all of them.

Named files must be checked. Of a folder, every file that some server is for must be: one that cannot be read or reached
is named, and where a server is missing its files are counted; the answer about the folder is then partial. Pure.
"""

import os
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.api.answers import (
    OURSELVES,
    DiagnosticsAnswer,
    Effort,
    Error,
    State,
    answer_from,
    error_text,
    with_data,
    with_warnings,
)
from pilotfish.api.questions import Operation
from pilotfish.config.trust import trust_advice
from pilotfish.counting import counted
from pilotfish.errors import Code
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside

MAX_NAMED = 5
"""Files or folders that one line names; the others are counted."""

MAX_REASONS = 5
"""Different reasons in one answer; the others are counted."""

SOME_STALE = "some of it is about an older text"
NO_FILES = "no file here can be checked"
ALL_SKIPPED = "no server is for these files"
LATE = "ask again in a while; what the servers do, says: pilotfish status"
"""A project that is loaded for the first time may take longer than anybody waits."""


class FilesToCheck(Struct, frozen=True):
    """The files to check, each once, and what was left out."""

    named: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    """Found in a folder."""
    unserved: tuple[tuple[Error, int], ...] = ()
    """Why files of folders have no server, and how many."""
    unreached: tuple[Error, ...] = ()
    """Files and folders that were found and could not be reached."""
    ignored: tuple[str, ...] = ()
    """Folders that were skipped on purpose."""
    minor: tuple[tuple[Error, int], ...] = ()
    """The same of styles, scripts and build files beside other code: good to know."""

    @property
    def files(self) -> tuple[str, ...]:
        return (*self.named, *self.listed)

    @property
    def missing(self) -> list[Error]:
        """Servers that are not here, and how many files each would have checked."""
        return [
            Error(why.server_id, f"{counted(count, 'file was', 'files were')} not checked: {why.message}", why.code)
            for why, count in self.unserved
        ]

    @property
    def skipped(self) -> list[str]:
        """What was left out on purpose, in a line each; `doctor` says how to get a server for the rest."""
        files = counted(sum(count for _, count in self.minor), "file beside the code was", "files beside the code were")
        servers = first_of([*dict.fromkeys(why.server_id for why, _ in self.minor)])
        minor = [f"{files} not checked, for want of a server ({servers}): pilotfish doctor"] if self.minor else []
        kind = counted(len(self.ignored), "ignored or hidden folder")
        return [*minor, *([f"skipped {kind}: {first_of(self.ignored)}"] if self.ignored else [])]

    def sorted_by(self, is_auxiliary: Callable[[str], bool]) -> "FilesToCheck":
        """With what is missing for other languages than the main ones apart; all of it is main where there is none."""
        minor = tuple(one for one in self.unserved if is_auxiliary(one[0].server_id))
        if len(minor) == len(self.unserved) and not self.files:
            return self
        return replace(self, unserved=tuple(one for one in self.unserved if one not in minor), minor=minor)


class CheckedFile(Struct, frozen=True):
    """The answer about one file, by the name that it was given or found under."""

    path: str
    answer: DiagnosticsAnswer


CheckEvent = FilesToCheck | CheckedFile
"""What a check tells while it runs: first which files it is about, then each file as soon as it is known."""


class CheckRequest(Struct, frozen=True, rename="camel"):
    """What to check. `changed`: of these files and folders, only the files listed there."""

    paths: tuple[str, ...]
    changed: tuple[str, ...] | None = None
    skip_missing: bool = False
    """Files of folders whose server is not here are a note, and the answer may be fresh without them."""


class CheckCount:
    """Counts the files of a project, or a folder of it, that were checked."""

    def __init__(self, done: Callable[[int, int], None], of_what: str = "project") -> None:
        self._done = done
        self._of_what = of_what
        self._total = 0
        self._checked = -1

    def add(self, event: CheckEvent) -> None:
        self._checked += 1
        if isinstance(event, FilesToCheck):
            self._total = len(event.files)
        self._done(self._checked, self._total)

    def listed(self, answer: DiagnosticsAnswer) -> DiagnosticsAnswer:
        """The answer with the files that have diagnostics alone, and a note when every file was checked."""
        found = {path: listed for path, listed in (answer.data or {}).items() if listed}
        # A caller that reads no more than the beginning reads the errors.
        first = sorted(found, key=lambda path: (all(one.severity != "error" for one in found[path]), path))
        whole = f"the whole {self._of_what} was checked: {counted(self._total, 'file')}"
        notes = (whole,) if self._total and self._checked == self._total else ()
        return with_warnings(with_data(answer, {path: found[path] for path in first}), notes)


def merged(
    chosen: FilesToCheck,
    answers: Mapping[str, DiagnosticsAnswer],
    root: str,
    *,
    duration_ms: int,
    skip_missing: bool = False,
    timed_out: bool = False,
) -> DiagnosticsAnswer:
    """One answer about everything that was selected; of what is not in `answers`, it says how much that is and why.

    `timed_out`: the time was over; otherwise what is unknown was interrupted.
    """
    listed = [path for path in chosen.listed if path in answers]
    gone = {path for path in listed if _codes(answers[path]) == {Code.FILE_MISSING} and _is_text(path)}
    refused = {path: answers[path] for path in listed if path not in gone and _codes(answers[path])}
    without = [path for path in chosen.named if skip_missing and _is_without_server(answers.get(path))]
    judged = answers.keys() - gone - refused.keys() - {*without}
    heard = [answers[path] for path in chosen.files if path in judged]
    unknown = len(chosen.files) - len(answers)
    told, waiting = _faults(chosen, heard, root)
    problems = [*told, *_unread(root, refused), *chosen.unreached, *([] if skip_missing else chosen.missing)]
    some = f"{unknown} of {counted(len(chosen.files), 'file')} were not checked"
    left = f"{some} yet; ask again for them" if timed_out else f"interrupted: {some}"
    nothing = [] if heard or problems else [ALL_SKIPPED if without else NO_FILES]
    caveats = _reasons([left] if unknown else nothing, heard)
    skipped = [error.message for error in chosen.missing if skip_missing]
    skipped += [f"{counted(len(without), 'file has', 'files have')} no server: {first_of(without)}"] if without else []
    notes = [*(note for answer in heard for note in answer.meta.warnings), *waiting, *skipped, *chosen.skipped]
    effort = Effort(
        duration_ms=duration_ms,
        server_hits=sum(answer.meta.server_hits for answer in heard),
        errors=tuple(dict.fromkeys(problems)),
        caveats=tuple(caveats),
        stale=SOME_STALE if any(answer.meta.state is State.STALE for answer in heard) else None,
        timed_out=timed_out or any(answer.meta.timed_out for answer in heard),
        warnings=tuple(dict.fromkeys(notes)),
    )
    data = {path: items for answer in heard for path, items in (answer.data or {}).items()}
    return answer_from(Operation.DIAGNOSTICS, data, effort)


def _unread(root: str, refused: Mapping[str, DiagnosticsAnswer]) -> list[Error]:
    """Files of folders that are not text, too large, or closed to us (DOC-6)."""
    if not refused:
        return []
    named = [f"{relative(path, root)} ({_why(path, answer)})" for path, answer in refused.items()]
    message = f"{counted(len(named), 'file')} could not be read: {first_of(named)}"
    return [Error(OURSELVES, message, Code.UNSUPPORTED)]


def _why(path: str, answer: DiagnosticsAnswer) -> str:
    """The reason of a refusal without the path, which stands before it."""
    if not _is_text(path):
        # JSON cannot carry such a name, and language servers are told names in JSON.
        return "its name is not UTF-8"
    message = answer.errors[0].message
    return message.replace(f": {path}", "").replace(f" {path}", "")


def _is_text(path: str) -> bool:
    """False for a name with bytes that are not UTF-8."""
    return not any("\ud800" <= letter <= "\udfff" for letter in path)


def _codes(answer: DiagnosticsAnswer) -> set[Code]:
    """Why we ourselves did not ask any server about a file; empty where one was asked."""
    if answer.data or not all(error.server_id == OURSELVES for error in answer.errors):
        return set()
    return {error.code for error in answer.errors}


def _is_without_server(answer: DiagnosticsAnswer | None) -> bool:
    """Whether no server is for a file, or none is installed and allowed."""
    if answer is None or answer.ok or answer.meta.timed_out:
        return False
    return {error.code for error in answer.errors} <= {Code.UNSUPPORTED, Code.SERVER_MISSING, Code.UNTRUSTED}


def _faults(chosen: FilesToCheck, heard: Sequence[DiagnosticsAnswer], root: str) -> tuple[list[Error], list[str]]:
    """Why servers gave no answer about files, and which linters wait for trust."""
    # The server of files that others import is told with its own files.
    absent = {why.message for why, _ in chosen.unserved}
    faults = [(error, answer) for answer in heard for error in answer.errors if error.message not in absent]
    withheld = [error.server_id for error, answer in faults if _is_withheld_companion(error, answer)]
    waiting = [f"{server} waits for trust and has checked nothing. {trust_advice(root)}" for server in withheld]
    return [error for error, answer in faults if not _is_withheld_companion(error, answer)], waiting


def _is_withheld_companion(error: Error, answer: DiagnosticsAnswer) -> bool:
    """A linter that waits for trust, of a file that its main server has checked."""
    return error.code is Code.UNTRUSTED and answer.meta.server_hits > 0


def _reasons(first: Sequence[str], heard: Sequence[DiagnosticsAnswer]) -> list[str]:
    """Why the answer is not the whole one, without reasons that only repeat the errors, which are shown anyway."""
    own = (one.meta.reason for one in heard if one.meta.reason != "; ".join(map(error_text, one.errors)))
    distinct = [*dict.fromkeys((*first, *filter(None, own)))]
    more = len(distinct) - MAX_REASONS
    late = [LATE] if any(one.meta.timed_out for one in heard) else []
    return [*distinct[:MAX_REASONS], *([f"and {more} more"] if more > 0 else []), *late]


def first_of(names: Sequence[str]) -> str:
    """Some names of many."""
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def relative(path: str, root: str) -> str:
    """A path as people write it."""
    return os.path.relpath(path, root) if is_inside(AbsPath(path), AbsPath(root)) else path
