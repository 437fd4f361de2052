"""The real path of a name, also while somebody else swaps the links in it."""

import os
from contextlib import suppress

_TRIES = 50
"""A link has to be swapped within the same microseconds each time before these are used up."""


def real_path(path: str) -> str:
    """`path` without symbolic links; what is not there is left as it is named.

    `os.path.realpath` looks whether a name is a link and then reads it: a link that is removed or replaced between
    the two raises, and the next look finds what is there instead.
    """
    for _ in range(_TRIES):
        with suppress(OSError):
            return os.path.realpath(path)  # noqa: TID251 - the one place
    return os.path.realpath(path)  # noqa: TID251
