"""Where the traceback of an unforeseen error goes: a file of the user's own, bounded."""

import os
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime

from pilotfish.config.places import user_places

MAX_BYTES = 256 * 1024
"""A file that has grown beyond this is begun anew: some hundred tracebacks."""


def kept(error: BaseException, environment: Mapping[str, str]) -> str:
    """Write the traceback down and say where; where that cannot be, give it itself."""
    told = "".join(traceback.format_exception(error))
    file = os.path.join(user_places(environment).state, "logs", "crash.log")
    try:
        os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
        full = os.path.exists(file) and os.path.getsize(file) > MAX_BYTES
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_TRUNC if full else os.O_APPEND)
        with os.fdopen(os.open(file, flags, 0o600), "w", encoding="utf-8", errors="backslashreplace") as log:
            log.write(f"{datetime.now(UTC).isoformat(timespec='seconds')}\n{told}\n")
    except OSError:
        return told
    return f"This is a fault in pilotfish: please report it, with the end of {file}"
