"""What `setup` has done to a file: its content before, and a digest of what was written. Readable by the user alone.

With a receipt, removing our part restores the file byte for byte. Without one, or when the file has been changed since,
our part is searched for in the text.
"""

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from pilotfish.config.host_trust import receipt_name
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
    """A receipt, and the file as it was before."""

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
        """The copy of the file as it was before."""
        return self._place(file, "backup")

    def keep(self, file: str, before: bytes | None, after: bytes, made: Sequence[str] = ()) -> None:
        """Record a change before the file is written; `made` are the folders created for it. Raises `Unavailable`."""
        receipt = Receipt(file, before is not None, digest(after))
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            if before is not None:
                _write(self.backup(file), before)
            _write(self._place(file, "json"), encode(receipt))
            if made:
                self.remember(sorted({*self.folders(), *made}))
        except OSError as error:
            message = f"cannot write a backup in {self._folder}: {error.strerror}"
            raise Unavailable(Code.FILE_UNREADABLE, message, hint="Nothing was changed.") from None

    def folders(self) -> tuple[str, ...]:
        """The folders that `setup` created and that are not empty yet."""
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
        return os.path.join(self._folder, f"{receipt_name(file)}.{kind}")


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write(path: str, content: bytes) -> None:
    # Settings hold keys of model providers: no other user may read a copy of them.
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
