"""What the words of the marker tests mean: the question that each asks, and what is wrong with an answer.

diagnostic("text", "pattern"[, severity])   exactly one diagnostic at the text; an error unless said otherwise
no_verdict("pattern")                       the file cannot be checked, and the reason says so
definition("text", label…)                  exactly these places; also declaration, type_definition, implementation,
                                            references, calls_in, calls_out, supertypes, subtypes
definition_of("Class.method", label…)       the same for a symbol of the file, asked for by its name
workspace_symbol("query", label…)           exactly these symbols
hover("text", "pattern" or @golden)         also signature (asked at the end of the text) and actions (by title)
symbols(@golden)                            the outline of the file
rename("text", "new name", @golden)         the diff
rename_file("new/path", @golden)            the diff of moving the file

The label `external` stands for any place outside the workspace. An answer that is not fresh is always wrong.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pilotfish.api import answers
from pilotfish.api.answers import (
    Action,
    Changes,
    Diagnostic,
    Edge,
    Extent,
    HierarchyItem,
    Hover,
    Location,
    Signature,
    State,
    Symbol,
)
from pilotfish.api.questions import Operation, Question
from support.markers.comments import Golden, Label, Marker, Place

LOC = "loc"
DIAGNOSTIC = "diagnostic"
NO_VERDICT = "no_verdict"
EXTERNAL = "external"
SEVERITIES = ("error", "warning", "information", "hint")

Answer = answers.Answer[Any]


@dataclass(frozen=True)
class Expected:
    """What an answer is held against."""

    labels: Mapping[str, Place]
    goldens: Mapping[str, str]
    texts: Mapping[str, str]
    severity: str
    """The least bad that counts among diagnostics."""
    ends: bool = True
    """Whether a diagnostic says where it ends."""

    def place(self, file: str, extent: Extent) -> Place:
        """The extent; one over several lines counts up to the end of its first line."""
        line = extent.line - 1
        one_line = extent.end_line == extent.line
        end = extent.end_character - 1 if one_line else len(self.texts[file].split("\n")[line])
        return Place(file, line, extent.character - 1, end)


@dataclass(frozen=True)
class Word:
    operation: Operation
    usage: str
    fits: Callable[[Marker], bool]
    question: Callable[[Marker], Question]
    problem: Callable[[Marker, Answer, Expected], str | None]
    """What is wrong with the data of a fresh answer."""
    shown: Callable[[Any], str] = field(default=str)
    """The data as a golden has it."""


def problem(marker: Marker, answer: Answer, expected: Expected) -> str | None:
    """What is wrong with the answer to a marker's question; None when nothing is."""
    return not_fresh(answer) or WORDS[marker.name].problem(marker, answer, expected)


def golden_of(marker: Marker) -> Golden | None:
    return next((argument for argument in marker.arguments if isinstance(argument, Golden)), None)


def visible(text: str) -> str:
    """A text as it can stand in a golden: the archive has plain line endings."""
    return text.replace("\r", "␍")


def not_fresh(answer: Answer) -> str | None:
    if answer.meta.state is State.FRESH:
        return None
    return f"the answer is {answer.meta.state}: {answer.meta.reason} {answer.errors or ''}"


# --- Diagnostics --------------------------------------------------------------------------------------------------


def diagnostics_problem(
    file: str, markers: Sequence[Marker], answer: Answer, expected: Expected, *, may_be_partial: bool = False
) -> str | None:
    """Match diagnostics and markers one to one."""
    reasons = [str(marker.arguments[0]) for marker in markers if marker.name == NO_VERDICT]
    stale = not_fresh(answer)
    if reasons:
        told = all(re.search(reason, stale or "") for reason in reasons)
        return None if told else f"expected no verdict because of {reasons}, found {stale or answer.data}"
    if stale is not None and not (may_be_partial and answer.meta.partial):
        return stale
    counted = SEVERITIES[: SEVERITIES.index(expected.severity) + 1]
    data = cast("Mapping[str, Sequence[Diagnostic]]", answer.data)
    unexpected = [one for one in data.get(file, ()) if one.severity in counted]
    missing: list[Marker] = []
    for marker in markers:
        match = next((one for one in unexpected if _is_meant(marker, one, expected)), None)
        if match is None:
            missing.append(marker)
        else:
            unexpected.remove(match)
    told = [f"  missing: {marker}" for marker in missing]
    told += [f"  unexpected: {expected.place(file, one)} {one.severity} {one.message!r}" for one in unexpected]
    return "\n".join(["diagnostics:", *told]) if told else None


def _is_meant(marker: Marker, found: Diagnostic, expected: Expected) -> bool:
    text, pattern, *rest = marker.arguments
    assert isinstance(text, str), f"{marker}: diagnostic(text, pattern, severity)"
    assert isinstance(pattern, str), f"{marker}: diagnostic(text, pattern, severity)"
    severity = rest[0].name if rest and isinstance(rest[0], Label) else "error"
    assert severity in SEVERITIES, f"{marker}: severity is one of {SEVERITIES}"
    at, meant = expected.place(marker.file, found), marker.place(text)
    is_there = at == meant if expected.ends else (at.file, at.line, at.start) == (meant.file, meant.line, meant.start)
    return is_there and severity == found.severity and bool(re.search(pattern, found.message))


# --- Places -------------------------------------------------------------------------------------------------------


def _place_word(operation: Operation) -> Word:
    return Word(operation, '("text", label…)', _names_labels, _at_start(operation), _wrong_places)


def _names_labels(marker: Marker) -> bool:
    first, *rest = marker.arguments or (None,)
    return isinstance(first, str) and all(isinstance(argument, Label) for argument in rest)


def _at_start(operation: Operation) -> Callable[[Marker], Question]:
    def question(marker: Marker) -> Question:
        place = marker.place(_text(marker))
        return Question(operation=operation, file_path=marker.file, line=place.line + 1, character=place.start + 1)

    return question


def _by_name(marker: Marker) -> Question:
    return Question(operation=Operation.DEFINITION, symbol=_text(marker), file_path=marker.file)


def _symbol_query(marker: Marker) -> Question:
    return Question(operation=Operation.WORKSPACE_SYMBOL, query=_text(marker), file_path=marker.file)


def _wrong_places(marker: Marker, answer: Answer, expected: Expected) -> str | None:
    wanted = sorted(
        EXTERNAL if label.name == EXTERNAL else str(expected.labels[label.name])
        for label in marker.arguments
        if isinstance(label, Label)
    )
    found = sorted(_told(location, expected) for location in map(_location, answer.data or ()))
    return None if found == wanted else f"expected {wanted}, found {found}"


def _location(item: object) -> Location:
    match item:
        case HierarchyItem(location=location):
            return location
        case Edge(caller=HierarchyItem(location=location)) | Edge(callee=HierarchyItem(location=location)):
            return location
        case _:
            return cast("Location", item)


def _told(location: Location, expected: Expected) -> str:
    return EXTERNAL if location.external else str(expected.place(location.path, location))


# --- Texts --------------------------------------------------------------------------------------------------------


def _text_word(operation: Operation, question: Callable[[Marker], Question], shown: Callable[[Any], str]) -> Word:
    return Word(operation, '("text", "pattern" or @golden)', _has_pattern, question, _wrong_text(shown), shown)


def _golden_word(
    operation: Operation, usage: str, question: Callable[[Marker], Question], shown: Callable[[Any], str]
) -> Word:
    texts = usage.count('"') // 2

    def fits(marker: Marker) -> bool:
        *before, last = marker.arguments or (None,)
        return isinstance(last, Golden) and [type(one) for one in before] == [str] * texts

    return Word(operation, usage, fits, question, _wrong_text(shown), shown)


def _has_pattern(marker: Marker) -> bool:
    return len(marker.arguments) == 2 and not any(isinstance(one, Label) for one in marker.arguments)


def _wrong_text(shown: Callable[[Any], str]) -> Callable[[Marker, Answer, Expected], str | None]:
    def problem(marker: Marker, answer: Answer, expected: Expected) -> str | None:
        found, wanted = "" if answer.data is None else visible(shown(answer.data)), marker.arguments[-1]
        if isinstance(wanted, Golden):
            golden = expected.goldens.get(wanted.name, "")
            same = found.strip("\n") == golden.strip("\n")
            return None if same else f"expected the golden {wanted.name}:\n{golden}\nfound:\n{found}"
        assert isinstance(wanted, str)
        return None if re.search(wanted, found) else f"expected {wanted!r}, found:\n{found}"

    return problem


def _at_end(marker: Marker) -> Question:
    place = marker.place(_text(marker))
    return Question(operation=Operation.SIGNATURE, file_path=marker.file, line=place.line + 1, character=place.end + 1)


def _of_file(marker: Marker) -> Question:
    return Question(operation=Operation.DOCUMENT_SYMBOL, file_path=marker.file)


def _rename(marker: Marker) -> Question:
    place, new_name = marker.place(_text(marker)), marker.arguments[1]
    assert isinstance(new_name, str)
    return Question(
        operation=Operation.RENAME,
        file_path=marker.file,
        line=place.line + 1,
        character=place.start + 1,
        new_name=new_name,
    )


def _rename_file(marker: Marker) -> Question:
    return Question(operation=Operation.RENAME_FILE, file_path=marker.file, new_path=_text(marker))


def _outline(symbols: Iterable[Symbol]) -> str:
    return "\n".join(
        f"{'  ' * symbol.depth}{symbol.kind} {symbol.name} {symbol.line}:{symbol.character}-{symbol.end_character}"
        f" ({symbol.first_line}-{symbol.last_line})"
        for symbol in symbols
    )


def _titles(actions: Iterable[Action]) -> str:
    return "\n".join(action.title for action in actions)


def _labels(signatures: Iterable[Signature]) -> str:
    return "\n".join(signature.label for signature in signatures)


def _contents(hover: Hover) -> str:
    return "\n\n".join(hover.contents)


def _diff(changes: Changes) -> str:
    return "".join(file.diff or f"{file.kind} {file.path} {file.new_path or ''}\n" for file in changes.files)


def _text(marker: Marker) -> str:
    text = marker.arguments[0]
    assert isinstance(text, str)
    return text


WORDS: Mapping[str, Word] = {
    "definition": _place_word(Operation.DEFINITION),
    "definition_of": Word(Operation.DEFINITION, '("symbol", label…)', _names_labels, _by_name, _wrong_places),
    "declaration": _place_word(Operation.DECLARATION),
    "type_definition": _place_word(Operation.TYPE_DEFINITION),
    "implementation": _place_word(Operation.IMPLEMENTATION),
    "references": _place_word(Operation.REFERENCES),
    "calls_in": _place_word(Operation.INCOMING_CALLS),
    "calls_out": _place_word(Operation.OUTGOING_CALLS),
    "supertypes": _place_word(Operation.SUPERTYPES),
    "subtypes": _place_word(Operation.SUBTYPES),
    "workspace_symbol": Word(
        Operation.WORKSPACE_SYMBOL, '("query", label…)', _names_labels, _symbol_query, _wrong_places
    ),
    "hover": _text_word(Operation.HOVER, _at_start(Operation.HOVER), _contents),
    "signature": _text_word(Operation.SIGNATURE, _at_end, _labels),
    "actions": _text_word(Operation.CODE_ACTIONS, _at_start(Operation.CODE_ACTIONS), _titles),
    "symbols": _golden_word(Operation.DOCUMENT_SYMBOL, "(@golden)", _of_file, _outline),
    "rename": _golden_word(Operation.RENAME, '("text", "new name", @golden)', _rename, _diff),
    "rename_file": _golden_word(Operation.RENAME_FILE, '("new path", @golden)', _rename_file, _diff),
}
