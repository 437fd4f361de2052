"""What `check` is asked for: which files, and which of their diagnostics are findings, wanted and printed."""

import os
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from pilotfish.api.answers import SEVERITIES, Diagnostic

FORMATS = ("text", "json", "sarif", "github")


class CheckOptions(Struct, frozen=True):
    """What to check, and what to print."""

    paths: tuple[str, ...]
    text: str | None
    changed: bool
    only_new: bool
    severity: str | None
    everything: bool
    skip_missing: bool
    format: str

    @property
    def texts(self) -> dict[str, str]:
        """The text that is not on disk, by the path of its file."""
        return {} if self.text is None else {os.path.normpath(self.paths[0]): self.text}

    def is_finding(self, found: Diagnostic) -> bool:
        return SEVERITIES.index(found.severity) <= SEVERITIES.index(self.severity or "warning")

    def is_wanted(self, found: Diagnostic) -> bool:
        return not (self.only_new and found.introduced is False)

    def is_printed(self, found: Diagnostic) -> bool:
        """Whether a diagnostic is in JSON, SARIF or GitHub's lines."""
        if self.everything or (self.format == "json" and self.severity is None):
            return True
        return self.is_finding(found)


def check_options(paths: tuple[str, ...], text: str | None, chosen: Mapping[str, Any]) -> CheckOptions:
    """From the values of the verb's options, by the names that click has for them."""
    form = "json" if chosen["as_json"] else chosen["form"]
    names = ("changed", "only_new", "severity", "everything", "skip_missing")
    return CheckOptions(paths=paths, text=text, format=form, **{name: chosen[name] for name in names})
