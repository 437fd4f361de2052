"""What a check of files says, seen from a conversation. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from pilotfish.feedback.conversation_text import Group, chosen, command_heading
from pilotfish.feedback.delta import CheckedText, Comparison, Delta
from pilotfish.model import AbsPath, Diagnostic, Severity
from pilotfish.service.diagnostics.edit_feedback import Judged
from pilotfish.service.diagnostics.runner import FileVerdict


def command_groups(judged: Judged, wanted: Iterable[Severity]) -> list[Group]:
    severities = frozenset(wanted)

    def files(verdicts: Iterable[FileVerdict], changes: Mapping[AbsPath, object], *, own: bool) -> Group:
        shown = list[tuple[AbsPath, list[Diagnostic]]]()
        for verdict in verdicts:
            change = changes.get(verdict.path)
            if verdict.is_fresh and isinstance(change, Delta) and verdict.path not in judged.uncompared:
                shown.append((verdict.path, [one for one in change.introduced if one.severity in severities]))
        return Group(command_heading(others=not own), tuple(chosen(path, found) for path, found in shown if found))

    return [
        files(judged.edited, judged.changes, own=True),
        files(judged.others.verdicts, judged.others.changes, own=False),
    ]


def introduced_in(changes: Mapping[AbsPath, Comparison]) -> dict[AbsPath, tuple[Diagnostic, ...]]:
    found = {path: change.introduced for path, change in changes.items() if isinstance(change, Delta)}
    return {path: introduced for path, introduced in found.items() if introduced}


def told_files(judged: Judged) -> int:
    """How many files the feedback of an edit speaks of."""
    edited = [change for path, change in judged.changes.items() if path not in judged.uncompared]
    found = [one.introduced if isinstance(one, Delta) else one.diagnostics for one in edited]
    found += introduced_in(judged.others.changes).values()
    return sum(any(one.severity in judged.limits.severities for one in each) for each in found)


def without(now: CheckedText, found: Sequence[Diagnostic]) -> CheckedText:
    return CheckedText(now.text, tuple(one for one in now.diagnostics if one not in found))


def checked_text(verdict: FileVerdict) -> CheckedText:
    return CheckedText(verdict.text, verdict.diagnostics)
