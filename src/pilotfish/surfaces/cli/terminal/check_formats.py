"""A verdict for other programs: SARIF 2.1.0, and the workflow commands of GitHub Actions. Pure.

Paths are relative to the workspace. Everything that is in the answer is printed.
"""

import json
from collections.abc import Iterator
from typing import Any

from pilotfish.api.answers import Diagnostic, DiagnosticsAnswer, State, error_text
from pilotfish.operations.cleaning import MAX_MESSAGE, MAX_NAME
from pilotfish.operations.render import state_line
from pilotfish.protocol.uris import uri_of
from pilotfish.sanitise import sanitised, sanitised_lines
from pilotfish.version import VERSION

SARIF_LEVELS = {"error": "error", "warning": "warning", "information": "note", "hint": "note"}
GITHUB_COMMANDS = {"error": "error", "warning": "warning", "information": "notice", "hint": "notice"}

ROOT = "WORKSPACE"
"""The name of the workspace's folder in a SARIF log."""


def sarif(answer: DiagnosticsAnswer | None, root: str) -> str:
    """One SARIF log with one run; a rule is `SERVER` or `SERVER/CODE`. None: there was nothing to check."""
    rules: dict[str, int] = {}
    data = answer.data if answer else None
    results = [
        _sarif_result(path, found, rules.setdefault(_rule(found), len(rules)), root)
        for path, items in (data or {}).items()
        for found in items
    ]
    run = {
        "tool": {"driver": {"name": "pilotfish", "version": VERSION, "rules": [{"id": rule} for rule in rules]}},
        "invocations": [
            {
                "executionSuccessful": answer is None or answer.meta.state is State.FRESH,
                "toolExecutionNotifications": [
                    {"level": level, "message": {"text": text}} for level, text in (_remarks(answer) if answer else ())
                ],
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    if root:
        run["originalUriBaseIds"] = {ROOT: {"uri": uri_of(root) + "/"}}
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2)


def github_lines(answer: DiagnosticsAnswer) -> Iterator[str]:
    """`::error file=a.py,line=1,col=5,title=…::message`, a line for each diagnostic."""
    for path, items in (answer.data or {}).items():
        for found in items:
            place = {"file": path, "line": str(found.line), "col": str(found.character)}
            if found.end_line == found.line and found.end_character > found.character:
                place["endColumn"] = str(found.end_character - 1)
            place["title"] = sanitised(_rule(found), MAX_NAME)
            properties = ",".join(f"{name}={_property(value)}" for name, value in place.items())
            yield f"::{GITHUB_COMMANDS[found.severity]} {properties}::{_data(found.message)}"


def github_remarks(answer: DiagnosticsAnswer) -> Iterator[str]:
    """A line for each reason for doubt."""
    for level, text in _remarks(answer):
        yield f"::{'notice' if level == 'note' else level}::{_data(f'pilotfish: {text}')}"


def _sarif_result(path: str, found: Diagnostic, rule: int, root: str) -> dict[str, Any]:
    region = {
        "startLine": found.line,
        "startColumn": found.character,
        "endLine": found.end_line,
        "endColumn": found.end_character,
    }
    # A path as a relative URI: that of the file without that of the folder.
    uri = uri_of(f"/{path}")[len(uri_of("/")) :]
    place: dict[str, str] = {"uri": uri, **({"uriBaseId": ROOT} if root else {})}
    result: dict[str, Any] = {
        "ruleId": _rule(found),
        "ruleIndex": rule,
        "level": SARIF_LEVELS[found.severity],
        "message": {"text": sanitised_lines(found.message, MAX_MESSAGE)},
        "locations": [{"physicalLocation": {"artifactLocation": place, "region": region}}],
    }
    if found.introduced is not None:
        result["baselineState"] = "new" if found.introduced else "unchanged"
    return result


def _remarks(answer: DiagnosticsAnswer) -> Iterator[tuple[str, str]]:
    """Why the verdict is not whole, and what else to know, each with its level."""
    if answer.meta.state is not State.FRESH:
        yield "error" if answer.meta.state is State.UNAVAILABLE else "warning", state_line(answer.meta)
    for error in answer.errors:
        if error.message not in (answer.meta.reason or ""):
            yield "warning", sanitised_lines(error_text(error), MAX_MESSAGE)
    yield from (("note", sanitised_lines(note, MAX_MESSAGE)) for note in answer.meta.warnings)


def _rule(found: Diagnostic) -> str:
    return f"{found.server}/{found.code}" if found.code else found.server


def _data(text: str) -> str:
    """Text behind `::`; a line break would end the command."""
    clean = sanitised_lines(text, MAX_MESSAGE)
    return clean.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    escaped = value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return escaped.replace(":", "%3A").replace(",", "%2C")
