"""The documents that a client has open, compared with the disk. Pure.

Answers come from the disk. Coding agents write a file and then report its text, so the two agree; a text editor reports
text that nobody has saved, about which we know nothing. One report that differs may be a file that is written at this
moment; from the second one on the client is told that this is not for editors.
"""

from msgspec import Struct

from pilotfish.model import AbsPath

PATIENCE = 2
"""Reports in a row that may differ from the disk before the client is told."""

UNSAVED = (
    "{name} has text that is not on disk. `pilotfish lsp` serves coding agents: it answers from the files on disk and "
    "does not check unsaved text. Save the file, or use the language server itself in this editor."
)


class OpenDocument(Struct):
    text: str | None = None
    """As the client reported it last; None where it reported a part only."""
    differing: int = 0
    """How many reports in a row were not what is on disk."""


class OpenDocuments:
    def __init__(self) -> None:
        self._open: dict[AbsPath, OpenDocument] = {}

    def report(self, path: AbsPath, text: str | None) -> None:
        """The client says what a document holds."""
        self._open.setdefault(path, OpenDocument()).text = text

    def close(self, path: AbsPath) -> None:
        self._open.pop(path, None)

    def is_saved(self, path: AbsPath, on_disk: str | None) -> bool:
        """Whether the client's text is the one on disk, as far as it is known. None: there is no such file."""
        known = self._open.get(path)
        return known is None or known.text is None or (on_disk is not None and _same(known.text, on_disk))

    def compare(self, path: AbsPath, on_disk: str | None) -> bool:
        """After a report: whether it is saved. Counts those that are not."""
        saved = self.is_saved(path, on_disk)
        if path in self._open:
            self._open[path].differing = 0 if saved else self._open[path].differing + 1
        return saved

    def is_to_be_told(self, path: AbsPath) -> bool:
        """Whether the client is told now that its text is not served: once, until it is saved."""
        return path in self._open and self._open[path].differing == PATIENCE


def _same(one: str, other: str) -> bool:
    """Byte-order marks and line endings are the editor's business."""
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
