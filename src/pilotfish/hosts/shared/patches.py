"""What an `apply_patch` envelope does to each file. Pure.

    *** Begin Patch
    *** Update File: src/a.py
    *** Move to: src/b.py
    @@
    -old
    +new
    *** End Patch

The text around the envelope (a shell's here-document) is ignored.
"""

from collections.abc import Iterator

from msgspec import Struct

BEGIN, END = "*** Begin Patch", "*** End Patch"
ADD, UPDATE, DELETE, MOVE = "*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "


class PatchSection(Struct, frozen=True):
    """The part of an envelope that is about one file."""

    kind: str
    """`ADD`, `UPDATE` or `DELETE`."""
    path: str
    """Where its text is afterwards, as the patch spells it; empty for a file that is deleted."""
    lines: tuple[str, ...]

    @property
    def changes_text(self) -> bool:
        """Whether a file is left with a new text: not when it is deleted, nor when it is only moved."""
        # A new file may be empty, and its text is new all the same.
        changed = self.kind == ADD or any(line.startswith(("+", "-")) for line in self.lines)
        return changed and bool(self.path)


def patched_files(patch: str) -> tuple[str, ...]:
    """The files that a patch leaves with a new text, in its order, each once, as it spells them."""
    return tuple(dict.fromkeys(section.path for section in patch_sections(patch) if section.changes_text))


def only_renames(patch: str) -> bool:
    """Whether a unified diff, as git writes it, moves a file and leaves its text as it was."""
    lines = patch.splitlines()
    return any(line.startswith("rename to ") for line in lines) and not any(line.startswith("@@") for line in lines)


def patch_sections(patch: str) -> Iterator[PatchSection]:
    kind, path = "", ""
    lines: list[str] = []
    for line in _inside(patch):
        header = next((word for word in (ADD, UPDATE, DELETE) if line.startswith(word)), None)
        if header is not None:
            if kind:
                yield PatchSection(kind, path, tuple(lines))
            kind, path, lines = header, "" if header == DELETE else line[len(header) :].strip(), []
        elif line.startswith(MOVE):
            path = line[len(MOVE) :].strip() if path else ""
        else:
            lines.append(line)
    if kind:
        yield PatchSection(kind, path, tuple(lines))


def _inside(patch: str) -> Iterator[str]:
    inside = False
    for line in patch.splitlines():
        if line.strip() == BEGIN:
            inside = True
        elif line.strip() == END:
            inside = False
        elif inside:
            yield line
