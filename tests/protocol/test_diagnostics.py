"""What a server said about a file, kept by channel and version, and merged when read."""

from typing import Any

import msgspec
import pytest
from lsprotocol import converters, types
from msgspec.structs import replace

from pilotfish.model import AbsPath, Diagnostic, Encoding, Position, Range, Severity
from pilotfish.protocol import diagnostics
from pilotfish.protocol.codec import decode, encode
from pilotfish.protocol.diagnostics import Pull, Push, Report, Reports, as_compiled, diagnostics_of, merged
from pilotfish.protocol.positions import Text
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.wire import (
    DocumentDiagnosticReport,
    PublishDiagnosticsParams,
    WireDiagnostic,
)

A, B = AbsPath("/w/a.py"), AbsPath("/w/b.py")


def item(message: str, line: int = 0, start: int = 0, end: int = 1, **more: Any) -> dict[str, Any]:
    place = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
    return {"range": place, "message": message, **more}


def publish(reports: Reports, path: str, items: object, version: int | None = None) -> AbsPath | None:
    params = {"uri": f"file://{path}", "diagnostics": items, "version": version}
    return reports.publish(decode(msgspec.json.encode(params), PublishDiagnosticsParams))


def document_report(**fields: Any) -> DocumentDiagnosticReport:
    return decode(msgspec.json.encode({"kind": "full", **fields}), DocumentDiagnosticReport)


def messages(report: Report) -> list[Any]:
    return [diagnostic.message for diagnostic in report.items]


# --- Push -------------------------------------------------------------------------------------------------------------


def result_id(reports: Reports, path: AbsPath, identifier: str | None) -> str | None:
    report = reports.of(path).get(Pull(identifier))
    return report.result_id if report else None


@pytest.mark.proves("P5", "P7", "A12.9")
def test_an_answer_without_a_list_does_not_mean_that_a_file_is_clean() -> None:
    reports = Reports()
    assert reports.pulled(A, None, 1, document_report(items=None)) == ()
    assert reports.of(A) == {}
    assert publish(reports, A, None) == A


@pytest.mark.proves("C83")
def test_pushes_after_an_arrival_are_named_also_those_that_take_something_back() -> None:
    reports = Reports()
    publish(reports, A, [item("old")])
    arrival = reports.arrivals
    assert reports.pushed_since(arrival) == {}
    publish(reports, B, [item("new")])
    publish(reports, "/w/c.py", [])
    assert {path: len(push.items) for path, push in reports.pushed_since(arrival).items()} == {B: 1, "/w/c.py": 0}
    assert reports.pushed_since(0).keys() == {A, B, "/w/c.py"}


@pytest.mark.proves("C83", "C84")
def test_a_publish_replaces_the_one_before_and_keeps_its_version() -> None:
    reports = Reports()
    assert publish(reports, A, [item("one")], version=3) == A
    publish(reports, A, [item("two")])
    report = reports.of(A)[Push()]
    assert messages(report) == ["two"]
    assert report.version is None
    assert report.arrival == reports.arrivals == 2


def test_a_report_knows_when_it_came() -> None:
    reports = Reports()
    params: dict[str, object] = {"uri": "file:///w/a.py", "diagnostics": []}
    reports.publish(decode(msgspec.json.encode(params), PublishDiagnosticsParams), 7.5)
    reports.pulled(A, None, 1, document_report(items=[]), 8.5)
    assert [report.at for report in reports.of(A).values()] == [7.5, 8.5]


@pytest.mark.proves("C83", "DIAG-6")
def test_an_empty_publish_clears_and_the_file_leaves_the_known_ones() -> None:
    reports = Reports()
    publish(reports, B, [item("one")])
    publish(reports, A, [item("one")])
    assert reports.files_with_items() == (A, B)
    publish(reports, A, [])
    assert reports.files_with_items() == (B,)
    assert reports.of(A)[Push()].items == ()


def test_a_file_that_nobody_spoke_of_is_unknown_not_clean() -> None:
    assert dict(Reports().of(A)) == {}


@pytest.mark.proves("C115")
def test_a_publish_for_something_that_is_no_file_is_nobodys() -> None:
    reports = Reports()
    params = {"uri": "untitled:Untitled-1", "diagnostics": [item("x")]}
    assert reports.publish(decode(msgspec.json.encode(params), PublishDiagnosticsParams)) is None
    assert reports.files_with_items() == ()


@pytest.mark.proves("F40")
def test_items_that_are_no_diagnostics_are_skipped_and_counted() -> None:
    reports = Reports()
    publish(reports, A, [item("good"), 7, {"message": "no range"}])
    report = reports.of(A)[Push()]
    assert (messages(report), report.skipped) == (["good"], 2)


@pytest.mark.proves("F40")
def test_a_publish_without_a_list_leaves_what_was_known() -> None:
    reports = Reports()
    publish(reports, A, [item("old")])
    publish(reports, A, "nonsense")
    assert messages(reports.of(A)[Push()]) == ["old"]


@pytest.mark.proves("F23")
def test_a_flood_of_files_is_bounded_and_the_forgotten_become_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnostics, "MAX_FILES", 3)
    reports = Reports()
    for name in "abcd":
        publish(reports, f"/w/{name}", [item("x")])
    publish(reports, "/w/b", [item("again")])
    publish(reports, "/w/e", [item("x")])
    assert reports.files_with_items() == (AbsPath("/w/b"), AbsPath("/w/d"), AbsPath("/w/e"))
    assert dict(reports.of(AbsPath("/w/a"))) == {}


# --- Pull -------------------------------------------------------------------------------------------------------------


@pytest.mark.proves("C89")
def test_each_identifier_has_its_own_list_and_result_id() -> None:
    reports = Reports()
    assert reports.pulled(A, "types", 4, document_report(items=[item("t")], resultId="1")) == (A,)
    reports.pulled(A, None, 4, document_report(items=[item("n")]))
    assert {channel: messages(report) for channel, report in reports.of(A).items()} == {
        Pull("types"): ["t"],
        Pull(None): ["n"],
    }
    assert result_id(reports, A, "types") == "1"
    assert result_id(reports, A, None) is None
    assert result_id(reports, B, "types") is None


@pytest.mark.proves("C89")
def test_unchanged_keeps_the_list_and_moves_it_to_the_new_version() -> None:
    reports = Reports()
    reports.pulled(A, None, 1, document_report(items=[item("kept")], resultId="r1"))
    assert reports.pulled(A, None, 2, document_report(kind="unchanged", resultId="r2")) == (A,)
    report = reports.of(A)[Pull(None)]
    assert (messages(report), report.version, report.result_id) == (["kept"], 2, "r2")


@pytest.mark.proves("C89", "P7")
def test_unchanged_is_about_the_list_that_was_held_when_it_was_asked() -> None:
    reports = Reports()
    reports.pulled(A, None, 1, document_report(items=[item("asked with")], resultId="r1"))
    held = reports.of(A)[Pull(None)]
    related = {uri_of(A): {"kind": "full", "items": [item("told with another file")], "resultId": "r2"}}
    reports.pulled(B, None, 1, document_report(items=[], relatedDocuments=related))
    reports.pulled(A, None, 2, document_report(kind="unchanged", resultId="r1"), held=held)
    report = reports.of(A)[Pull(None)]
    assert (messages(report), report.version, report.result_id) == (["asked with"], 2, "r1")


def test_unchanged_without_a_list_before_leaves_the_file_unknown() -> None:
    reports = Reports()
    assert reports.pulled(A, None, 1, document_report(kind="unchanged", resultId="r")) == ()
    assert dict(reports.of(A)) == {}


@pytest.mark.parametrize("fields", [{}, {"items": 3}])
def test_a_full_report_without_a_list_is_no_answer(fields: dict[str, Any]) -> None:
    reports = Reports()
    assert reports.pulled(A, None, 1, document_report(**fields)) == ()
    assert dict(reports.of(A)) == {}


@pytest.mark.proves("C90")
def test_related_documents_are_stored_with_their_own_result_id() -> None:
    reports = Reports()
    reports.pulled(B, None, 1, document_report(items=[item("old b")], resultId="b1"))
    related: dict[str, object] = {
        "file:///w/b.py": {"kind": "unchanged", "resultId": "b2"},
        "file:///w/c.py": {"kind": "full", "items": [item("c")], "resultId": "c1"},
        "untitled:x": {"kind": "full", "items": []},
        "file:///w/d.py": 7,
        "file:///w/e.py": {"kind": "unchanged", "resultId": "e"},
    }
    told = reports.pulled(A, None, 5, document_report(items=[], relatedDocuments=related))
    assert told == (A, B, AbsPath("/w/c.py"))
    # What was told without being asked for counts like a push.
    assert reports.pushed_since(1).keys() == {B, "/w/c.py"}
    assert result_id(reports, B, None) == "b2"
    assert result_id(reports, AbsPath("/w/c.py"), None) == "c1"
    assert reports.of(B)[Pull(None)].version is None


@pytest.mark.proves("C98", "C62")
def test_a_refresh_is_counted_so_that_older_answers_can_be_told() -> None:
    reports = Reports()
    reports.refresh()
    assert reports.refreshes == 1


@pytest.mark.proves("C100")
def test_push_and_pull_of_one_server_stand_side_by_side_until_forgotten() -> None:
    reports = Reports()
    publish(reports, A, [item("pushed")])
    reports.pulled(A, None, 1, document_report(items=[item("pulled")]))
    assert set(reports.of(A)) == {Push(), Pull(None)}
    reports.forget(A)
    reports.forget(A)
    assert dict(reports.of(A)) == {}


# --- Reading ----------------------------------------------------------------------------------------------------------


def read(wire: dict[str, Any], text: str = "x" * 40, encoding: Encoding = Encoding.UTF16) -> Diagnostic:
    report = Report((decode(msgspec.json.encode(wire), WireDiagnostic),), 1, 1)
    (diagnostic,) = diagnostics_of(report, text=Text(text), encoding=encoding, server="s", path=AbsPath("/w/a.py"))
    return diagnostic


@pytest.mark.proves("C87", "C22")
def test_everything_a_diagnostic_says_is_kept_and_goes_back_to_the_server() -> None:
    place = {"start": {"line": 2, "character": 1}, "end": {"line": 2, "character": 4}}
    wire = item(
        "m",
        severity=2,
        code="E1",
        codeDescription={"href": "https://example.org"},
        source="src",
        tags=[1, 42],
        relatedInformation=[{"location": {"uri": "file:///w/b.py", "range": place}, "message": "here"}],
        data={"fix": [1, None]},
        unknown={"kept": "out"},
    )
    kept = encode(decode(msgspec.json.encode(wire), WireDiagnostic))
    assert msgspec.json.decode(kept) == {name: value for name, value in wire.items() if name != "unknown"}
    assert read(wire) == Diagnostic(
        range=Range(Position(0, 0), Position(0, 1)),
        severity=Severity.WARNING,
        message="m",
        server="s",
        code="E1",
        source="src",
    )


@pytest.mark.proves("C22", "C88")
@pytest.mark.parametrize(
    ("wire", "severity"),
    [(None, Severity.ERROR), (1, Severity.ERROR), (4, Severity.HINT), (9, Severity.HINT), (0, Severity.HINT)],
)
def test_a_missing_severity_is_an_error_and_an_unknown_one_a_hint(wire: int | None, severity: Severity) -> None:
    assert read(item("m") if wire is None else item("m", severity=wire)).severity is severity


@pytest.mark.parametrize(
    ("code", "read_as"), [(2322, "2322"), ("E1", "E1"), ({"value": 7, "target": "x"}, "7"), (None, None), ({}, None)]
)
def test_a_code_may_be_a_number_a_string_or_an_object(code: object, read_as: str | None) -> None:
    assert read(item("m", code=code)).code == read_as


@pytest.mark.parametrize(
    ("message", "read_as"), [("plain", "plain"), ({"kind": "markdown", "value": "**m**"}, "**m**"), ({}, ""), (7, "7")]
)
def test_a_message_may_be_a_string_or_markup(message: Any, read_as: str) -> None:
    assert read(item(message)).message == read_as


@pytest.mark.proves("RPC-5", "C75")
@pytest.mark.parametrize(
    ("encoding", "start", "end"), [(Encoding.UTF8, 22, 36), (Encoding.UTF16, 17, 31), (Encoding.UTF32, 15, 29)]
)
def test_columns_become_code_points_in_every_encoding(encoding: Encoding, start: int, end: int) -> None:
    text = 'x = "😀é𝒳"; y = undefined_name'
    found = read(item("m", start=start, end=end), text, encoding).range
    assert text[found.start.character : found.end.character] == "undefined_name"


def test_our_reading_agrees_with_lsprotocol_on_a_plain_diagnostic() -> None:
    wire = item("m", line=1, start=2, end=3, severity=2, code=5, source="s")
    oracle = converters.get_converter().structure(wire, types.Diagnostic)
    ours = read(wire, "a\nbcdef")
    assert (ours.message, ours.severity, ours.code) == (oracle.message, oracle.severity, str(oracle.code))
    assert (ours.range.start.line, ours.range.start.character) == (
        oracle.range.start.line,
        oracle.range.start.character,
    )


# --- Merging ----------------------------------------------------------------------------------------------------------


def diagnostic(message: str, line: int = 0, server: str = "s", severity: Severity = Severity.ERROR) -> Diagnostic:
    return Diagnostic(Range(Position(line, 0), Position(line, 1)), severity, message, server)


@pytest.mark.proves("DIAG-1", "C100")
def test_the_same_message_at_the_same_range_is_said_once_by_the_first() -> None:
    both = merged([[diagnostic("m", server="first")], [diagnostic("m", server="second"), diagnostic("other")]])
    assert [(each.message, each.server) for each in both] == [("m", "first"), ("other", "s")]


@pytest.mark.proves("DIAG-1")
def test_another_range_is_kept_and_the_list_is_ordered_by_place() -> None:
    both = merged([[diagnostic("m", line=5), diagnostic("m", line=2)], [diagnostic("w", 2, severity=Severity.WARNING)]])
    assert [(each.message, each.range.start.line) for each in both] == [("m", 2), ("w", 2), ("m", 5)]


@pytest.mark.proves("DIAG-1")
def test_what_the_compiler_of_a_server_has_found_is_said_in_its_words_alone() -> None:
    """rust-analyzer counts the arguments of a call with a code of its own, beside what rustc says of the call."""
    own = replace(diagnostic("expected 2 arguments", line=3), code="E1", source="server", severity=Severity.ERROR)
    elsewhere, hint = replace(own, range=diagnostic("", 5).range), replace(own, severity=Severity.HINT)
    around = replace(own, range=Range(Position(2, 0), Position(3, 1)))
    compiled = replace(own, message="takes 2 arguments", code="E2", source="compiler")
    found = (around, own, hint, compiled, elsewhere)
    assert as_compiled(found, "compiler") == (hint, compiled, elsewhere)
    assert as_compiled(found, None) == found
    assert as_compiled((own, hint), "compiler") == (own, hint)


@pytest.mark.proves("DIAG-1")
def test_without_a_code_or_a_source_two_messages_are_two() -> None:
    plain = [replace(diagnostic(message, line=1), source=source) for message, source in (("a", "x"), ("b", "y"))]
    coded = [replace(diagnostic(message, line=2), code="E1") for message in "cd"]
    assert merged([plain[:1], plain[1:], coded[:1], coded[1:]]) == (*plain, *coded)
