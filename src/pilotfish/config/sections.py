"""From one section of a file, whole and under the file's own names, to its value."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from pilotfish.config.values import FeedbackSettings, SecuritySettings
from pilotfish.model import Severity

Value = TypeVar("Value")

SEVERITIES: Mapping[str, Severity] = {
    "error": Severity.ERROR,
    "warning": Severity.WARNING,
    "info": Severity.INFORMATION,
    "hint": Severity.HINT,
}


def feedback_of(section: Mapping[str, Any]) -> FeedbackSettings:
    """The rules of feedback; a preset has been laid out by now, and its name is no rule."""
    rules = {key: value for key, value in section.items() if key != "preset"}
    return value_of(FeedbackSettings, {**rules, "includeSeverities": _severities(rules["includeSeverities"])})


def security_of(section: Mapping[str, Any]) -> SecuritySettings:
    return value_of(SecuritySettings, section)


def value_of(kind: type[Value], section: Mapping[str, Any]) -> Value:
    return msgspec.convert({snake(key): value for key, value in section.items()}, type=kind)


def snake(key: str) -> str:
    """Our name of a key."""
    return re.sub(r"[A-Z]", lambda letter: f"_{letter.group().lower()}", key.replace("MiB", "Mib"))


def _severities(names: Sequence[str]) -> list[int]:
    return [SEVERITIES[name] for name in names]
