"""What setup has done to a file: how it was before, and how we left it. It lies in our own folder, for our user alone.

With it, taking our part out again gives back the very bytes. Without it, or when somebody has changed the file since,
our part is looked for in the text.
"""

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from pilotfish.errors import Code, Unavailable
from pilotfish.protocol.codec import Malformed, decode, encode


@dataclass(frozen=True, slots=True)
class Receipt:
    file: str
    existed: bool
    after: str
    """Digest of what we wrote."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A receipt, and the file as it was without us."""

    receipt: Receipt
    before: bytes | None


class Receipts:
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find(self, file: str) -> Kept | None:
        """The receipt of a file; None when there is none, or none that can be read."""
        try:
            with open(self._place(file, "json"), "rb") as written:
                receipt = decode(written.read(), Receipt)
            if not receipt.existed:
                return Kept(receipt, None)
            with open(self.backup(file), "rb") as kept:
                return Kept(receipt, kept.read())
        except (OSError, Malformed):
            return None

    def backup(self, file: str) -> str:
        """Where the file is kept as it was."""
        return self._place(file, "backup")

    def keep(self, file: str, before: bytes | None, after: bytes, made: Sequence[str] = ()) -> None:
        """Before the file is written, for which the folders `made` will be. Raises `Unavailable`."""
        receipt = Receipt(file, before is not None, digest(after))
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            if before is not None:
                _write(self.backup(file), before)
            _write(self._place(file, "json"), encode(receipt))
            if made:
                self.remember(sorted({*self.folders(), *made}))
        except OSError as error:
            message = f"no backup can be written in {self._folder}: {error.strerror}"
            raise Unavailable(Code.FILE_UNREADABLE, message, hint="Nothing was changed.") from None

    def folders(self) -> tuple[str, ...]:
        """The folders that we made. One is listed while something is in it; removing the last file removes it."""
        try:
            with open(self._folders, "rb") as written:
                return decode(written.read(), tuple[str, ...])
        except (OSError, Malformed):
            return ()

    def remember(self, folders: Sequence[str]) -> None:
        if folders:
            _write(self._folders, encode(list(folders)))
        else:
            with suppress(FileNotFoundError):
                os.unlink(self._folders)

    @property
    def _folders(self) -> str:
        return os.path.join(self._folder, "folders.json")

    def forget(self, file: str) -> None:
        for kind in ("json", "backup"):
            with suppress(FileNotFoundError):
                os.unlink(self._place(file, kind))

    def _place(self, file: str, kind: str) -> str:
        name = hashlib.sha256(os.fsencode(file)).hexdigest()[:24]
        return os.path.join(self._folder, f"{name}.{kind}")


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write(path: str, content: bytes) -> None:
    # Settings hold keys of model providers: nobody else may read a copy of them.
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
