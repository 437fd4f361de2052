"""What one server has said about each file, and how several servers' words become one list.

Every report remembers the document version it is for and the order in which it arrived; whether that makes it fresh is
decided elsewhere.
Push and pull are separate channels, kept apart per server, file and pull identifier, and merged only when read:
rust-analyzer's two are disjoint, verible's are the same twice.
Positions stay in the server's units until a reader supplies the text they are about.

Invariant: a file without a report is *unknown*, never clean. Forgetting a report makes the file unknown again.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.model import AbsPath, Diagnostic, Encoding, Range, Severity
from pilotfish.protocol.codec import Malformed, decode, decode_items, maybe_fields
from pilotfish.protocol.notebooks import cell_at, is_allowed, is_notebook
from pilotfish.protocol.positions import Text, range_from_wire
from pilotfish.protocol.uris import path_of
from pilotfish.protocol.wire import (
    UNSET,
    DocumentDiagnosticReport,
    PublishDiagnosticsParams,
    Raw,
    UnsetType,
    WireDiagnostic,
)

MAX_FILES = 20_000
"""A server that reports on more files than this has the least recently reported ones forgotten, so that a flood of
distinct URIs cannot grow without bound. Serious projects stay below: 20,000 files *with* reports."""


class Report(Struct, frozen=True):
    items: tuple[WireDiagnostic, ...]
    version: int | None
    """The document version it was computed from, where the server or the order of messages tells; else None."""
    arrival: int
    """Rises with every report taken in by one `Reports`; orders reports against each other."""
    at: float = 0.0
    """When it arrived, on the caller's clock."""
    result_id: str | None = None
    skipped: int = 0
    """Items that were not diagnostics at all: the list is then incomplete, and the answer partial."""


class Push(Struct, frozen=True):
    """The channel of `textDocument/publishDiagnostics`."""


class Pull(Struct, frozen=True):
    """The channel of one pull provider: `identifier` tells apart several of one server."""

    identifier: str | None


Channel = Push | Pull


class Reports:
    def __init__(self) -> None:
        self._files: dict[AbsPath, dict[Channel, Report]] = {}
        self.arrivals = 0
        self.refreshes = 0
        """How often the server said that its earlier pull answers may be old."""

    def of(self, path: AbsPath) -> Mapping[Channel, Report]:
        return self._files.get(path, {})

    def files_with_items(self) -> tuple[AbsPath, ...]:
        """Files for which any channel holds something, in path order."""
        files = self._files.items()
        return tuple(sorted(path for path, channels in files if any(one.items for one in channels.values())))

    def pushed_since(self, arrival: int) -> dict[AbsPath, Report]:
        """The last word about each file that came after this arrival and that nobody asked for.

        It is a push, or what the answer to a pull of another file told beside.
        """
        found: dict[AbsPath, Report] = {}
        for path, channels in self._files.items():
            told = [one for channel, one in channels.items() if channel == Push() or one.version is None]
            last = max(told, key=lambda one: one.arrival, default=None)
            if last is not None and last.arrival > arrival:
                found[path] = last
        return found

    def publish(self, params: PublishDiagnosticsParams, now: float = 0.0) -> AbsPath | None:
        """Take in a push; returns the file it is about, None when it names no file. It replaces the push before it."""
        path = path_of(params.uri)
        if path is not None:
            self._store(path, Push(), params.diagnostics, params.version, now)
        return path

    def pulled(
        self,
        path: AbsPath,
        identifier: str | None,
        version: int,
        report: DocumentDiagnosticReport,
        now: float = 0.0,
        held: Report | None = None,
    ) -> tuple[AbsPath, ...]:
        """Take in a pull answer for `path` at `version`; returns every file it told about.

        `held`: what was held when it was asked, which `unchanged` is about: the answer to a pull of another file may
        have told of this one since.
        """
        told: list[AbsPath] = []
        channel = Pull(identifier)
        if self._take(path, channel, report, version, now, held):
            told.append(path)
        for uri, raw in (report.related_documents or {}).items():
            related_path = path_of(uri)
            with suppress(Malformed):
                related = decode(raw, DocumentDiagnosticReport)
                # The answer says nothing about which version of a related document it read.
                if related_path is not None and self._take(related_path, channel, related, None, now):
                    told.append(related_path)
        return tuple(told)

    def forget(self, path: AbsPath) -> None:
        """The file was closed or is gone: nothing is known about it any more."""
        self._files.pop(path, None)

    def refresh(self) -> None:
        """The server asked for a new pull: the result ids it gave before mean nothing now."""
        self.refreshes += 1

    def _take(
        self,
        path: AbsPath,
        channel: Pull,
        report: DocumentDiagnosticReport,
        version: int | None,
        now: float,
        held: Report | None = None,
    ) -> bool:
        if report.kind == "unchanged":
            before = held or self.of(path).get(channel)
            if before is not None:
                self._keep(path, channel, replace(before, version=version, at=now, result_id=report.result_id))
            # Without one the server thinks that we hold a list which we do not: the file stays unknown.
            return before is not None
        if isinstance(report.items, Raw) and bytes(report.items).strip() == b"null":
            # No list is not an empty one. What is published is read leniently: gopls says so of a clean file.
            return False
        return self._store(path, channel, report.items, version, now, report.result_id)

    def _store(
        self,
        path: AbsPath,
        channel: Channel,
        items: Raw | UnsetType,
        version: int | None,
        now: float,
        result_id: str | None = None,
    ) -> bool:
        if items is UNSET:
            return False
        try:
            decoded = decode_items(items, WireDiagnostic)
        except Malformed:
            return False
        self._keep(path, channel, Report(decoded.items, version, 0, now, result_id, decoded.skipped))
        return True

    def _keep(self, path: AbsPath, channel: Channel, report: Report) -> None:
        self.arrivals += 1
        self._files[path] = {**self._files.pop(path, {}), channel: replace(report, arrival=self.arrivals)}
        if len(self._files) > MAX_FILES:
            del self._files[next(iter(self._files))]


def diagnostics_of(
    report: Report, *, text: Text, encoding: Encoding, server: str, path: AbsPath
) -> tuple[Diagnostic, ...]:
    """The report's items as values, their positions counted in the code points of `text`."""
    found = tuple(_diagnostic(item, text, encoding, server) for item in report.items)
    if not is_notebook(path):
        return found
    return tuple(
        replace(one, cell=cell_at(text.string, one.range.start.line))
        for one in found
        if not is_allowed(text.string, one.range, one.severity)
    )


def merged(lists: Iterable[Iterable[Diagnostic]]) -> tuple[Diagnostic, ...]:
    """One list, by place: the same message at the same range is listed once, from the server that reported it first."""
    seen: dict[tuple[Range, str], Diagnostic] = {}
    for diagnostic in (one for diagnostics in lists for one in diagnostics):
        seen.setdefault((diagnostic.range, diagnostic.message), diagnostic)
    return tuple(sorted(seen.values(), key=lambda item: (item.range.start, item.severity, item.range.end)))


def as_compiled(diagnostics: Sequence[Diagnostic], compiler: str | None) -> tuple[Diagnostic, ...]:
    """Without the errors that the server's own analysis found where its `compiler` has found one: it words the same
    error, often with another code and a little beside it."""
    found = {one.range.start.line for one in diagnostics if one.source == compiler and one.severity is Severity.ERROR}

    def is_worded(one: Diagnostic) -> bool:
        lines = range(one.range.start.line, one.range.end.line + 1)
        return one.source != compiler and one.severity is Severity.ERROR and any(line in found for line in lines)

    return tuple(one for one in diagnostics if compiler is None or not is_worded(one))


def words_of(item: WireDiagnostic) -> tuple[str | None, str]:
    """Its code and message, as a `Diagnostic` has them."""
    code, message = _value(item.code), _value(item.message)
    return None if code is None else str(code), "" if message is None else str(message)


def _diagnostic(item: WireDiagnostic, text: Text, encoding: Encoding, server: str) -> Diagnostic:
    code, message = words_of(item)
    # Absent means that the client decides: an agent should see it, so it is an error. Unknown numbers are hints.
    value = Severity.ERROR if item.severity is None else item.severity
    severity = Severity(value) if 1 <= value <= Severity.HINT else Severity.HINT
    return Diagnostic(range_from_wire(item.range, text, encoding), severity, message, server, code, item.source)


def _value(given: object) -> object:
    """A code is a number, a string, or in old servers an object; a message a string, or since 3.18 markup: each of
    these objects has it as `value`."""
    found = maybe_fields(given)
    return given if found is None else found.get("value")
