"""From what a host's files shall be to what has to be written, and back.

Every change starts from the file *without* our part, so that setup twice is setup once, and setup after an update
replaces what is old.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pilotfish.errors import Code, Failure, Refused, Unavailable
from pilotfish.hosts.edits.edit import unreadable
from pilotfish.hosts.shared.disk import Found, found, missing_folders, remove_empty, usual_mode, write
from pilotfish.hosts.shared.host_row import Wiring
from pilotfish.hosts.shared.receipts import Kept, Receipts, digest
from pilotfish.sanitise import sanitised_lines

MAX_DIFF = 20_000
"""Code points of a shown change; our part of a file has some hundred, and a plugin some thousand."""

MAX_NEW_LINES = 80
"""Of a new file that is shown whole; our plugins are longer, and the same for everybody."""

State = Literal["wired", "outdated", "missing", "unused"]


@dataclass(frozen=True, slots=True)
class Change:
    """One file: how it is, how it was or would be without us, and how it shall be."""

    wiring: Wiring
    now: Found
    without: bytes | None
    then: bytes | None
    kept: Kept | None

    @property
    def is_needed(self) -> bool:
        return self.now.content != self.then or (self.then is not None and self.mode != self.now.mode)

    @property
    def mode(self) -> int:
        if self.now.mode is not None:
            return self.now.mode | (0o100 if self.wiring.executable else 0)
        return usual_mode(executable=self.wiring.executable)


def setting_up(wiring: Wiring, receipts: Receipts) -> Change | None:
    """What puts our part in; None where we do without. Raises `Refused`, with the file's name."""
    now, kept, without = _without(wiring, receipts)
    try:
        then = wiring.edit.added(_decoded(without)).encode()
    except Refused as refused:
        if wiring.optional:
            return None
        raise _about(wiring, refused) from None
    return Change(wiring, now, without, then, kept)


def taking_out(wiring: Wiring, receipts: Receipts) -> Change:
    """What takes our part out; raises `Refused`, with the file's name."""
    now, kept, without = _without(wiring, receipts)
    return Change(wiring, now, without, without, kept)


def state_of(wiring: Wiring, receipts: Receipts) -> State:
    """Whether our part is in a file, and as this installation would write it."""
    change = setting_up(wiring, receipts)
    if change is None:
        return "unused"
    if not change.is_needed:
        return "wired"
    return "missing" if change.now.content == change.without else "outdated"


def diff(change: Change) -> str:
    """The change as people read it."""
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


def carry_out(changes: Sequence[Change], receipts: Receipts, *, remove: bool) -> None:
    """Write all of them. When one fails, those before it are as they were, and the failure is raised."""
    done: list[Change] = []
    try:
        for change in changes:
            if change.then is not None and not remove:
                receipts.keep(change.now.target, change.without, change.then, missing_folders(change.now.target))
            if change.is_needed:
                _check_unchanged(change)
                write(change.now.target, change.then, change.mode)
                done.append(change)
    except Failure:
        for change in reversed(done):
            write(change.now.target, change.now.content, change.mode)
        raise
    if remove:
        receipts.remember(remove_empty(receipts.folders()))
        for change in changes:
            receipts.forget(change.now.target)


def _check_unchanged(change: Change) -> None:
    """Hosts write their files themselves, some all the time."""
    if found(change.wiring.path, change.wiring.within) != change.now:
        message = f"{change.now.path} was changed just now by somebody else"
        raise Unavailable(Code.STALE, message, hint="Nothing was changed by us. Run setup again.")


def _without(wiring: Wiring, receipts: Receipts) -> tuple[Found, Kept | None, bytes | None]:
    now = found(wiring.path, wiring.within)
    kept = receipts.find(now.target)
    if now.content is None:
        return now, kept, None
    if kept is not None and kept.receipt.after == digest(now.content):
        return now, kept, kept.before
    try:
        before = None if kept is None else _decoded(kept.before) or ""
        text = wiring.edit.removed(_decoded(now.content) or "", before)
    except Refused as refused:
        raise _about(wiring, refused) from None
    return now, kept, None if text is None else text.encode()


def _decoded(content: bytes | None) -> str | None:
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        raise unreadable("text", "it is not UTF-8") from None


def _about(wiring: Wiring, refused: Refused) -> Refused:
    return Refused(refused.code, f"{wiring.path}: {refused.message}", hint=refused.hint)


def _shown(content: bytes | None) -> list[str]:
    return [] if content is None else content.decode(errors="replace").splitlines()
