"""Regular files: read within a bound and without waiting, because what a project has at a path may be anything; and
replaced whole or not at all."""

import os
import stat
from contextlib import suppress

from pilotfish.system import calls


def read_regular(
    path: str, most: int, *, offset: int = 0, is_whole: bool = False, follows: bool = True
) -> bytes | None:
    """At most so many bytes of a file; None for anything else, and with `is_whole` for a file that has more.

    FIFOs and devices are not even opened (T43). `follows`: a link counts as what it leads to.
    """
    try:
        if not stat.S_ISREG(os.stat(path, follow_symlinks=follows).st_mode):
            return None
        descriptor = os.open(path, os.O_RDONLY | calls.O_NONBLOCK | (0 if follows else calls.O_NOFOLLOW))
    except (OSError, ValueError):  # a NUL in a name that a file of the project says
        return None
    try:
        with open(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or (is_whole and status.st_size > most):
                return None
            stream.seek(offset)
            return stream.read(most)
    except OSError:
        # Some files of `/proc` can be opened, and refuse to be read.
        return None


def replace_file(target: str, content: bytes, mode: int) -> None:
    """Give a file this content, flushed before it has the name: at every moment it is the old one or the new one."""
    import tempfile  # most programs of ours write nothing

    descriptor, name = tempfile.mkstemp(prefix=".pilotfish-", dir=os.path.dirname(target))
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            calls.set_mode(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
