"""The content of a regular file, within a bound and without waiting: what a project has at a path may be anything."""

import os
import stat


def read_regular(
    path: str, most: int, *, offset: int = 0, is_whole: bool = False, follows: bool = True
) -> bytes | None:
    """At most so many bytes of a file; None for anything else, and with `is_whole` for a file that has more.

    FIFOs and devices are not even opened (T43). `follows`: a link counts as what it leads to.
    """
    try:
        if not stat.S_ISREG(os.stat(path, follow_symlinks=follows).st_mode):
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follows else os.O_NOFOLLOW))
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
