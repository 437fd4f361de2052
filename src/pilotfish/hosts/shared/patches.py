"""Which files an `apply_patch` envelope leaves with a new text. Pure.

    *** Begin Patch
    *** Update File: src/a.py
    *** Move to: src/b.py
    @@
    -old
    +new
    *** End Patch

Only the headers are read, and whether lines follow them that change anything: a file that is deleted or merely moved
has no new text. The text around the envelope (a shell's here-document) is ignored.
"""

from collections.abc import Iterator

BEGIN, END = "*** Begin Patch", "*** End Patch"
ADD, UPDATE, DELETE, MOVE = "*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "


def patched_files(patch: str) -> tuple[str, ...]:
    """The files in the order of the patch, each once, as the patch spells them."""
    return tuple(dict.fromkeys(path for path in _rewritten(patch) if path))


def _rewritten(patch: str) -> Iterator[str]:
    path, changed = "", False
    for line in _inside(patch):
        if line.startswith((ADD, UPDATE, DELETE)):
            yield path if changed else ""
            # A new file may be empty, and is a new text all the same.
            changed = line.startswith(ADD)
            path = "" if line.startswith(DELETE) else line.partition(": ")[2].strip()
        elif line.startswith(MOVE):
            path = line[len(MOVE) :].strip() if path else ""
        elif line.startswith(("+", "-")):
            changed = True
    yield path if changed else ""


def _inside(patch: str) -> Iterator[str]:
    inside = False
    for line in patch.splitlines():
        if line.strip() == BEGIN:
            inside = True
        elif line.strip() == END:
            inside = False
        elif inside:
            yield line
