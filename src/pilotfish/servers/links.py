"""What leads from our folder of programs to those that we installed: links, or scripts for `cmd` on Windows.

`suffixes`, of `windows.program_suffixes`, tells the two apart.
"""

import os
from collections.abc import Sequence

from pilotfish.system.windows import forwarded, forwarder, program_names


def link_path(folder: str, name: str, suffixes: Sequence[str]) -> str:
    return os.path.join(folder, f"{name}.cmd" if suffixes else name)


def make_link(program: str, path: str, suffixes: Sequence[str]) -> None:
    """Have `path` lead to a program, in place of where it led before."""
    fresh = f"{path}.{os.getpid()}"
    if suffixes:
        with open(fresh, "w", encoding="utf-8", newline="") as file:
            file.write(forwarder(os.path.relpath(program, os.path.dirname(path))))
    else:
        os.symlink(program, fresh)
    os.replace(fresh, path)


def linked_program(path: str, suffixes: Sequence[str]) -> str:
    """Where it leads; empty for what is no link of ours."""
    try:
        if not suffixes:
            return os.readlink(path)
        with open(path, encoding="utf-8", newline="") as file:
            program = forwarded(file.read(MOST))
    except (OSError, ValueError):
        return ""
    return os.path.normpath(os.path.join(os.path.dirname(path), program.replace("\\", "/"))) if program else ""


MOST = 4096
"""Characters of a script: more than any path."""


def program_in(folder: str, name: str, suffixes: Sequence[str]) -> str | None:
    """The program of this name in a folder. `shutil.which` would look into the current one first, on Windows."""
    paths = (os.path.join(folder, file) for file in program_names(name, suffixes))
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)
