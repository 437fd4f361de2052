"""What apt can install here, by the lists that it has on disk: nothing is fetched."""

import os
from functools import lru_cache

LISTS = "/var/lib/apt/lists"

PROGRAM = "/usr/bin/apt-cache"
"""Never one that `PATH` leads to: a project may be on it."""

SECONDS = 10.0
"""It answers in a hundredth of that, unless it has to read all lists first."""


def offers(package: str) -> bool:
    """False only where apt has lists, and the package is in none of them."""
    try:
        names = _names(LISTS, os.stat(LISTS).st_mtime_ns)
    except OSError:
        return True
    return not names or package in names


@lru_cache(maxsize=1)
def _names(lists: str, _changed: int) -> frozenset[str]:
    """Every package of the lists; none where there are no lists, as in most containers."""
    if not any("_Packages" in name for name in os.listdir(lists)):
        return frozenset()
    import subprocess  # Few have to ask.

    quiet, pipe = subprocess.DEVNULL, subprocess.PIPE
    try:
        asked = [PROGRAM, "pkgnames"]
        # Of the variables one names a file of settings, which may be a project's.
        plain = {"PATH": os.defpath}
        answer = subprocess.run(asked, stdin=quiet, stdout=pipe, stderr=quiet, timeout=SECONDS, check=True, env=plain)
    except subprocess.SubprocessError:
        return frozenset()
    return frozenset(answer.stdout.decode(errors="replace").split())
