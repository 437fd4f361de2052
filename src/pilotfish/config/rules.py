"""What single strings and numbers of a config file must be, for the schema and for the quick look alike."""

import os

MAX_MILLISECONDS = 86_400_000
"""A day: longer is a slip of the keyboard, and far longer overflows timers."""

MAX_COUNT = 1_000_000
"""A bound for counts, so that sums of them stay small numbers."""

SERVER_ID = r"[A-Za-z0-9][A-Za-z0-9._+#-]{0,63}"
EXTENSION = r"\.[^/\\\0\s]+"
MARKER = r"(?!/)(?!(.*/)?\.\.(/|$))[^\0\\]+"
LANGUAGE_ID = r"[A-Za-z0-9][A-Za-z0-9._+#-]{0,63}"
ENV_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
ENV_VALUE = r"[^\0]*"
ABSOLUTE = r"(/|~/|~$)" if os.name != "nt" else r"(/|~/|~$|[A-Za-z]:[/\\])"
TRUST_ENTRY = ABSOLUTE + r"[^\0]*"
"""Each must match the whole string."""

USER_ONLY = ("security", "pool")
"""Read from the user's file only: a project may neither trust itself nor spend the memory that all projects share."""


def is_argv(words: list[str]) -> bool:
    """Whether it is a program and its arguments."""
    return bool(words) and bool(words[0]) and not any("\0" in word for word in words)
