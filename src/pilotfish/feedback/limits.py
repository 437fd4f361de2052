"""How much feedback may say: the limits of a selection, the presets, and the caps on single fields.

The names of the fields are those of the configuration, and so are the numbers of the presets.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal

from pilotfish.config.values import Feedback
from pilotfish.model import Severity

TouchKind = Literal["edit", "write", "patch"]
"""What a host did: changed part of a file, wrote a whole one, or changed several at once."""

MESSAGE_LIMIT = 500
"""Code points of one message. TypeScript explains a mismatch in up to some thousand; the cause stands at the front."""

CODE_LIMIT = 80
"""Code points of one code: the longest rule names of ESLint's plugins have about 60."""

PATH_LIMIT = 1024
"""Code points of one path. A path that is longer than this names no file that an agent could open by it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What is shown of what is known. None means: no limit."""

    include_severities: tuple[Severity, ...] = (Severity.ERROR,)
    max_per_file: int = 20
    max_other_files: int = 5
    max_total_lines: int | None = 50
    """Diagnostic lines over all files; the lines that count what was left out are not among them."""
    max_bytes: int | None = None
    """UTF-8 bytes of the whole text."""
    other_files_order: Literal["path", "severity"] = "path"
    other_files_after: tuple[TouchKind, ...] = ("write",)
    """After which kinds of change other files than the changed ones are shown."""
    only_new: bool = False


DEFAULT = Limits()

PRESETS: Mapping[str, Limits] = {
    "llxprt": DEFAULT,
    # OpenCode bounds files and lines per file, and nothing else.
    "opencode": replace(DEFAULT, max_total_lines=None),
    "pi": replace(
        DEFAULT,
        include_severities=(Severity.ERROR, Severity.WARNING),
        max_other_files=3,
        max_bytes=2048,
        other_files_order="severity",
        other_files_after=("edit", "write", "patch"),
    ),
}


def limits_of(rules: Feedback) -> Limits:
    """What the configuration in force says."""
    return Limits(**{name.name: getattr(rules, name.name) for name in fields(Limits)})
