"""Removes secrets from traces and bundles: values under names such as `token`, and text that looks like a secret.

No rule knows every secret. When in doubt, the whole value is replaced by a mark.
"""

import re
from collections.abc import Mapping
from typing import cast

MARK = "‹redacted›"

NAMES = (
    r"(?:token|secret|passw|passphrase|api[-_]?key|access[-_]?key|private[-_]?key|authorization|credential|cookie|dsn)"
)

SECRET_NAME = re.compile(NAMES, re.IGNORECASE)

SECRET_TEXT = re.compile(
    r"(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|sk-|npm_|pypi-|AKIA|AIza)[A-Za-z0-9_\-]{12,}"
    r"|eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*"  # JSON web tokens
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?i:bearer|basic)\s+[A-Za-z0-9+/=_\-.]{12,}"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"  # user and password of a URL
)

ASSIGNED = re.compile(
    rf"""([\w.\-]*{NAMES}[\w.\-]*["']?\s*[=:]\s*)(?:"[^"]*"|'[^']*'|[^\s,;]+)""",
    re.IGNORECASE,
)


def redacted(value: object) -> object:
    """A JSON value without secrets."""
    if isinstance(value, str):
        return redacted_text(value)
    if isinstance(value, list):
        return [redacted(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        fields = cast("Mapping[str, object]", value)
        return {name: MARK if _is_secret(name, inner) else redacted(inner) for name, inner in fields.items()}
    return value


def redacted_text(text: str) -> str:
    """Text without what looks like a secret or is assigned to the name of one."""
    return ASSIGNED.sub(rf"\1{MARK}", SECRET_TEXT.sub(MARK, text))


def _is_secret(name: str, value: object) -> bool:
    """Numbers and booleans are not secrets: `maxTokens` is a common setting."""
    return SECRET_NAME.search(name) is not None and isinstance(value, str | list | dict)
