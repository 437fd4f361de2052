"""Plans and makes the changes of hosts' files.

Every change starts from the file *without* our part: so `setup` twice is the same as once, and after an update it
replaces what an earlier version wrote. A file that has our part already, in whatever order, is not changed.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pilotfish.errors import Code, Failure, Refused, Unavailable
from pilotfish.hosts.edits.edit import unreadable
from pilotfish.hosts.shared.host_files import HostFile, missing_folders, read_host_file, remove_empty, usual_mode, write
from pilotfish.hosts.shared.host_spec import WiredFile
from pilotfish.hosts.shared.receipts import Kept, Receipts, digest
from pilotfish.sanitise import sanitised_lines

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
    kept: Kept | None
    removes: bool = False
    """Whether our part goes."""

    @property
    def is_needed(self) -> bool:
        return self.now.content != self.then or (self.then is not None and self.mode != self.now.mode)

    @property
    def mode(self) -> int:
        if self.now.mode is not None:
            return self.now.mode | (0o100 if self.file.executable else 0)
        return usual_mode(executable=self.file.executable)


def plan_setup(wired: WiredFile, receipts: Receipts) -> HostFileChange | None:
    """The change that puts our part in; None for an optional file that is not ours. Raises `Refused`, with its name."""
    now, kept, without = _read_without(wired, receipts)
    try:
        text = _decoded(now.content)
        if text is not None and wired.edit.is_in(text):
            # The host may have written the file anew, in an order and a layout of its own.
            return HostFileChange(wired, now, without, now.content, kept)
        then = wired.edit.added(_decoded(without)).encode()
    except Refused as refused:
        if wired.optional:
            return None
        raise _named(wired, refused) from None
    return HostFileChange(wired, now, without, then, kept)


def plan_removal(wired: WiredFile, receipts: Receipts) -> HostFileChange:
    """The change that takes our part out; raises `Refused`, with the file's name."""
    now, kept, without = _read_without(wired, receipts)
    return HostFileChange(wired, now, without, without, kept, removes=True)


def read_state(wired: WiredFile, receipts: Receipts) -> WiringState:
    """Whether our part is in the file, and the same as this installation would write."""
    change = plan_setup(wired, receipts)
    if change is None:
        return "unused"
    if not change.is_needed:
        return "wired"
    return "missing" if change.now.content == change.without else "outdated"


def diff_of(change: HostFileChange) -> str:
    """The change as a unified diff."""
    before, after = (_shown(content) for content in (change.now.content, change.then))
    if not before and len(after) > MAX_NEW_LINES:
        return f"+++ {change.now.path} (new, {len(after)} lines)"
    name = change.now.path if change.now.path == change.now.target else f"{change.now.path} -> {change.now.target}"
    lines = difflib.unified_diff(
        before,
        after,
        name if before else "/dev/null",
        name if change.then is not None else "/dev/null",
        n=1,
        lineterm="",
    )
    return sanitised_lines("\n".join(lines), MAX_DIFF)


def carry_out(changes: Sequence[HostFileChange], receipts: Receipts) -> None:
    """Write all of them. When one fails, those before it are undone, and the failure is raised."""
    done: list[HostFileChange] = []
    try:
        for change in changes:
            if change.then is not None and not change.removes:
                receipts.keep(change.now.target, change.without, change.then, missing_folders(change.now.target))
            if change.is_needed:
                _check_unchanged(change)
                write(change.now.target, change.then, change.mode)
                done.append(change)
    except Failure:
        for change in reversed(done):
            write(change.now.target, change.now.content, change.mode)
        raise
    removed = [change for change in changes if change.removes]
    if removed:
        receipts.remember(remove_empty(receipts.folders()))
    for change in removed:
        receipts.forget(change.now.target)


def _check_unchanged(change: HostFileChange) -> None:
    """Hosts write their files themselves, some of them often."""
    if read_host_file(change.file.path, change.file.within) != change.now:
        message = f"{change.now.path} was changed by another program just now"
        raise Unavailable(Code.STALE, message, hint="Nothing was changed by setup. Run it again.")


def _read_without(wired: WiredFile, receipts: Receipts) -> tuple[HostFile, Kept | None, bytes | None]:
    now = read_host_file(wired.path, wired.within)
    kept = receipts.find(now.target)
    if now.content is None:
        return now, kept, None
    if kept is not None and kept.receipt.after == digest(now.content):
        return now, kept, kept.before
    try:
        before = None if kept is None else _decoded(kept.before) or ""
        text = wired.edit.removed(_decoded(now.content) or "", before)
    except Refused as refused:
        raise _named(wired, refused) from None
    return now, kept, None if text is None else text.encode()


def _decoded(content: bytes | None) -> str | None:
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        raise unreadable("text", "it is not UTF-8") from None


def _named(wired: WiredFile, refused: Refused) -> Refused:
    return Refused(refused.code, f"{wired.path}: {refused.message}", hint=refused.hint)


def _shown(content: bytes | None) -> list[str]:
    return [] if content is None else content.decode(errors="replace").splitlines()
