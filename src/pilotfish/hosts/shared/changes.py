"""Plans and makes the changes of hosts' files.

Every change starts from the file *without* our part: so `setup` twice is the same as once, and after an update it
replaces what an earlier version wrote. A file that has our part already, in whatever order, is not changed.

A file is read as it is, and written whole or not at all. A link stays a link: its target is changed, as long as that
lies where the host's files lie. A link that leads elsewhere is refused, because other people write into a project's
folder, too (T28). Modes are kept.

A receipt says what `setup` has done to a file: its content before, and a digest of what was written. With a receipt,
removing our part restores the file byte for byte. Without one, or when the file has been changed since, our part is
searched for in the text.
"""

import difflib
import hashlib
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from pilotfish.config.host_trust import receipt_name
from pilotfish.errors import Code, Failure, Refused, Unavailable
from pilotfish.hosts.edits.edit import unreadable
from pilotfish.hosts.shared.host_spec import WiredFile
from pilotfish.protocol.codec import Malformed, decode, encode
from pilotfish.sanitise import sanitised_lines
from pilotfish.system import calls
from pilotfish.system.real_path import real_path
from pilotfish.system.regular_files import replace_file

MAX_BYTES = 16 * 1024 * 1024
"""Of a host's file. Claude Code keeps its history in the file that its MCP servers are in, and that may be large."""


@dataclass(frozen=True, slots=True)
class HostFile:
    path: str
    """As the host spells it."""
    target: str
    """Its real path: another one where there are links on the way."""
    content: bytes | None
    """None: there is no such file."""
    mode: int | None = None


def read_host_file(path: str, within: str) -> HostFile:
    """Read a file; raises `Refused` for what is not a file, leads out of `within`, or is too large."""
    target = real_path(path)
    border = real_path(within)
    if os.path.commonpath([target, border]) != border:
        hint = f"It must lead to a file below {border}. Change {target} by hand, or replace the link."
        raise Refused(Code.OUTSIDE_WORKSPACE, f"{path} leads to {target}", hint=hint)
    try:
        descriptor = os.open(target, os.O_RDONLY | calls.O_NOFOLLOW | calls.O_NONBLOCK)
    except FileNotFoundError:
        return HostFile(path, target, None)
    except OSError as error:
        raise Refused(Code.FILE_UNREADABLE, f"{path} cannot be read: {error.strerror}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Refused(Code.NOT_A_FILE, f"{path} is not a file", hint="Move it away, then run setup again.")
        if status.st_size > MAX_BYTES:
            raise Refused(Code.LIMIT_EXCEEDED, f"{path} has {status.st_size} bytes, more than {MAX_BYTES}")
        with open(descriptor, "rb", closefd=False) as file:
            return HostFile(path, target, file.read(), stat.S_IMODE(status.st_mode))
    finally:
        os.close(descriptor)


def write(target: str, content: bytes | None, mode: int) -> None:
    """Replace the content atomically, or remove the file for None; raises `Unavailable` when nothing has changed."""
    try:
        if content is None:
            with suppress(FileNotFoundError):
                os.unlink(target)
            return
        os.makedirs(os.path.dirname(target), exist_ok=True)
        replace_file(target, content, mode)
    except OSError as error:
        raise Unavailable(Code.FILE_UNREADABLE, f"{target} cannot be written: {error.strerror}") from None


@dataclass(frozen=True, slots=True)
class Receipt:
    file: str
    existed: bool
    after: str


@dataclass(frozen=True, slots=True)
class Kept:
    """What a receipt says of a file."""

    before: bytes | None
    """The file as it was; None where there was none."""
    after: str
    """Digest of what we wrote."""


class Receipts:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._folders = os.path.join(folder, "folders.json")

    def find(self, file: str) -> Kept | None:
        """The receipt of a file; None when there is none, or none that can be read."""
        try:
            with open(self._place(file, "json"), "rb") as written:
                receipt = decode(written.read(), Receipt)
            if not receipt.existed:
                return Kept(None, receipt.after)
            with open(self.backup(file), "rb") as kept:
                return Kept(kept.read(), receipt.after)
        except (OSError, Malformed):
            return None

    def files(self) -> list[str]:
        found: list[str] = []
        with suppress(FileNotFoundError):
            for name in sorted(os.listdir(self._folder)):
                with suppress(OSError, Malformed), open(os.path.join(self._folder, name), "rb") as written:
                    found.append(decode(written.read(), Receipt).file)
        return found

    def backup(self, file: str) -> str:
        """The copy of the file as it was before."""
        return self._place(file, "backup")

    def keep(self, file: str, before: bytes | None, after: bytes) -> None:
        """Record a change, and the folders that it needs, before the file is written. Raises `Unavailable`."""
        receipt = Receipt(file, before is not None, digest(after))
        made, folder = set[str](), os.path.dirname(file)
        while not os.path.isdir(folder):
            made.add(folder)
            folder = os.path.dirname(folder)
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            if before is not None:
                _write(self.backup(file), before)
            _write(self._place(file, "json"), encode(receipt))
            if made:
                self._remember(sorted({*self.folders(), *made}))
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

    def remove_empty_folders(self) -> None:
        """Remove those of `folders` that are empty, the innermost first."""
        folders = self.folders()
        for folder in sorted(folders, key=len, reverse=True):
            with suppress(OSError):
                os.rmdir(folder)
        self._remember([folder for folder in folders if os.path.isdir(folder)])

    def _remember(self, folders: Sequence[str]) -> None:
        if folders:
            _write(self._folders, encode(folders))
        else:
            with suppress(FileNotFoundError):
                os.unlink(self._folders)

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


MAX_DIFF = 20_000
"""Code points of a shown change; our part of a file has some hundred, and a plugin some thousand."""

MAX_NEW_LINES = 120
"""Of a new file that is shown whole; our plugins are longer, and the same for everybody."""

WiringState = Literal["wired", "outdated", "missing", "unused"]


@dataclass(frozen=True, slots=True)
class HostFileChange:
    """One file: as it is, without our part, and as it shall be."""

    file: WiredFile
    now: HostFile
    without: bytes | None
    then: bytes | None
    removes: bool = False
    """Whether our part goes."""

    @property
    def is_needed(self) -> bool:
        return self.now.content != self.then or (self.then is not None and self.mode != self.now.mode)

    @property
    def mode(self) -> int:
        if self.now.mode is not None:
            return self.now.mode | (0o100 if self.file.executable else 0)
        # Of a new file, under the user's umask.
        mask = os.umask(0)
        os.umask(mask)
        return (0o777 if self.file.executable else 0o666) & ~mask


def plan_setup(wired: WiredFile, receipts: Receipts) -> HostFileChange | None:
    """The change that puts our part in; None for an optional file that is not ours. Raises `Refused`, with its name."""
    now, without = _read_without(wired, receipts)
    try:
        text = _decoded(now.content)
        # The host may have written the file anew, in an order and a layout of its own.
        is_in = text is not None and wired.edit.is_in(text)
        then = now.content if is_in else wired.edit.added(_decoded(without)).encode()
    except Refused as refused:
        if wired.optional:
            return None
        raise _named(wired, refused) from None
    return HostFileChange(wired, now, without, then)


def plan_removal(wired: WiredFile, receipts: Receipts) -> HostFileChange:
    """The change that takes our part out; raises `Refused`, with the file's name."""
    now, without = _read_without(wired, receipts)
    return HostFileChange(wired, now, without, without, removes=True)


def read_state(wired: WiredFile, receipts: Receipts) -> WiringState:
    """Whether our part is in the file, and the same as this installation would write."""
    change = plan_setup(wired, receipts)
    if change is None:
        return "unused"
    if not change.is_needed:
        return "wired"
    return "missing" if change.now.content == change.without else "outdated"


def diff_of(change: HostFileChange) -> str:
    contents = change.now.content, change.then
    before, after = ([] if one is None else one.decode(errors="replace").splitlines() for one in contents)
    if not before and len(after) > MAX_NEW_LINES:
        return f"+++ {change.now.path} (new, {len(after)} lines)"
    name = change.now.path if change.now.path == change.now.target else f"{change.now.path} -> {change.now.target}"
    names = name if before else "/dev/null", name if change.then is not None else "/dev/null"
    return sanitised_lines("\n".join(difflib.unified_diff(before, after, *names, n=1, lineterm="")), MAX_DIFF)


def carry_out(changes: Sequence[HostFileChange], receipts: Receipts) -> None:
    """Write all of them. When one fails, those before it are undone, and the failure is raised."""
    done: list[HostFileChange] = []
    try:
        for change in changes:
            if change.then is not None and not change.removes:
                receipts.keep(change.now.target, change.without, change.then)
            if change.is_needed:
                if read_host_file(change.file.path, change.file.within) != change.now:
                    # Hosts write their files themselves, some of them often.
                    message = f"{change.now.path} was changed by another program just now"
                    raise Unavailable(Code.STALE, message, hint="Nothing was changed by setup. Run it again.")
                write(change.now.target, change.then, change.mode)
                done.append(change)
    except Failure:
        for change in reversed(done):
            write(change.now.target, change.now.content, change.mode)
        raise
    removed = [change for change in changes if change.removes]
    if removed:
        receipts.remove_empty_folders()
    for change in removed:
        receipts.forget(change.now.target)


def _read_without(wired: WiredFile, receipts: Receipts) -> tuple[HostFile, bytes | None]:
    now = read_host_file(wired.path, wired.within)
    kept = receipts.find(now.target)
    if now.content is None:
        return now, None
    if kept is not None and kept.after == digest(now.content):
        return now, kept.before
    try:
        before = None if kept is None else _decoded(kept.before) or ""
        text = wired.edit.removed(_decoded(now.content) or "", before)
    except Refused as refused:
        raise _named(wired, refused) from None
    return now, None if text is None else text.encode()


def _decoded(content: bytes | None) -> str | None:
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        raise unreadable("text", "it is not UTF-8") from None


def _named(wired: WiredFile, refused: Refused) -> Refused:
    return Refused(refused.code, f"{wired.path}: {refused.message}", hint=refused.hint)
