"""What one conversation was told about the files that it changed, and what it has still to be told. Pure.

An edit whose check did not end in time leaves the file *pending*: the check goes on in the background. What that finds
is *late* until the next event of the conversation, which tells it if it still holds for the text as it is then. Every
transition is a row of `NEXT`; whatever ends in nothing without having been told is counted under a reason.

A conversation also knows what is of its making (`introduced`): the diagnostics that its changes brought, as long as
each judgement finds them still there. What came from anywhere else is never among them. So it can be told before it
ends its turn what it has left, and nothing else.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from copy import copy
from enum import StrEnum
from hashlib import blake2b
from typing import Self

from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.feedback.delta import CheckedText, Comparison, Delta, delta, lasting_words, place
from pilotfish.model import AbsPath, Diagnostic, Severity

MAX_FILES = 200
"""Of one conversation whose texts are kept; of a file beyond it, nothing is told late or before a stop."""

MAX_FINISHED = 20
"""Of one turn that are kept for servers that are late."""

MAX_MENDED = 5
"""Of one file whose old errors went away several times, the last ones."""

MAX_OWN_TEXTS = 20
"""Of one file that are known again when git brings them back, the last ones."""


TextsBefore = Mapping[AbsPath, str | None]
"""Files that a change was of, with their texts before it; None where nobody knows it."""

NO_TEXTS: TextsBefore = {}


class Standing(StrEnum):
    """How far a file is that the conversation is owed something about."""

    PENDING = "pending"
    LATE = "late"


class Fate(StrEnum):
    """What became of it at one step."""

    TIME_OVER = "time over"
    FOUND = "found"
    CLEAN = "clean"
    NO_VERDICT = "no verdict"
    JUDGED = "judged with a later change"
    TOLD = "told"
    OVER = "no longer holds"


NEXT: Mapping[tuple[Standing | None, Fate], Standing | None] = {
    (None, Fate.TIME_OVER): Standing.PENDING,
    (None, Fate.FOUND): Standing.LATE,
    (Standing.PENDING, Fate.TIME_OVER): Standing.PENDING,
    (Standing.PENDING, Fate.FOUND): Standing.LATE,
    (Standing.PENDING, Fate.CLEAN): None,
    (Standing.PENDING, Fate.NO_VERDICT): None,
    (Standing.PENDING, Fate.JUDGED): None,
    (Standing.PENDING, Fate.TOLD): None,
    (Standing.PENDING, Fate.OVER): None,
    (Standing.LATE, Fate.TIME_OVER): Standing.PENDING,
    (Standing.LATE, Fate.FOUND): Standing.LATE,
    (Standing.LATE, Fate.JUDGED): None,
    (Standing.LATE, Fate.TOLD): None,
    (Standing.LATE, Fate.OVER): None,
}

DROPPED = frozenset({Fate.NO_VERDICT, Fate.OVER})
"""Ends without a word."""


class Debt(Struct, frozen=True):
    """What a conversation is owed about one file."""

    standing: Standing
    call: int
    """The number of the call that changed it, or that changed what broke it."""
    edited: bool
    """Changed by the conversation itself; else broken by one of its changes."""
    before: str | None = None
    """Its text before the first change that was not judged."""
    unfinished: str | None = None
    """Its text before the first change whose effect on other files is not known."""
    heard: CheckedText | None = None
    """What was told of it although not every server had answered."""
    found: CheckedText | None = None
    """What was found late and is to be told, with the text that it was found in."""
    certain: bool = True
    """Whether it is known that a change of the conversation brought it."""
    by_git: bool = False
    """It was there before, and came back with what git brought."""


class Hidden(Struct, frozen=True):
    """What a file had before a change of the conversation, and not after it."""

    digest: str
    """Of the text that the file had."""
    diagnostics: tuple[Diagnostic, ...]
    causes: frozenset[tuple[AbsPath, str]]
    """The files that were changed, with the digests of their texts before."""
    is_covered: bool
    """The change brought errors to the file, and these may have covered it."""

    def is_back(self, now: CheckedText) -> bool:
        known = CheckedText(now.text, self.diagnostics)
        return self.digest == _digest(now.text) and len(still_there(known, now)) == len(self.diagnostics)


class Conversation(Struct):
    """One conversation. `calls` counts what its host reported, `told` the files that it heard of."""

    calls: int = 0
    told: int = 0
    debts: dict[AbsPath, Debt] = field(default_factory=dict[AbsPath, Debt])
    dropped: dict[str, int] = field(default_factory=dict[str, int])
    introduced: dict[AbsPath, CheckedText] = field(default_factory=dict[AbsPath, CheckedText])
    """What it introduced in these files and was there when each was judged last, with the text of then."""
    gone: dict[AbsPath, CheckedText] = field(default_factory=dict[AbsPath, CheckedText])
    """What it introduced in these files and was not there when each was judged last, with the text that had it."""
    mended: dict[AbsPath, tuple[CheckedText, ...]] = field(default_factory=dict[AbsPath, tuple[CheckedText, ...]])
    """What was in these files before it and went away with its changes, in this turn, each with the text that had it.

    One half of a refactoring may take an old error away and the other half bring it back: then it is not left by it.
    """
    hidden: dict[AbsPath, tuple[Hidden, ...]] = field(default_factory=dict[AbsPath, tuple[Hidden, ...]])
    """The same in whatever turn, until it is there again."""
    first: dict[AbsPath, str | None] | None = field(default_factory=dict[AbsPath, str | None])
    """Of the files that it changed in this turn, the digests of the texts before that; None: git has changed some."""
    original: dict[AbsPath, str | None] | None = field(default_factory=dict[AbsPath, str | None])
    """The same of all turns."""
    own_texts: dict[AbsPath, tuple[str, ...]] = field(default_factory=dict[AbsPath, tuple[str, ...]])
    """Digests of the texts that it gave these files."""
    changed: set[AbsPath] = field(default_factory=set[AbsPath])
    """The files that it changed or broke in this turn."""
    finished: dict[AbsPath, str] = field(default_factory=dict[AbsPath, str])
    """Of those that it changed, the texts before the first change whose effect on other files is known: unless a
    server speaks of it later."""
    heard: set[AbsPath] = field(default_factory=set[AbsPath])
    """Files of which one did, and which have not been looked at since."""
    stopped: set[str] = field(default_factory=set[str])
    """The agents that were told before they stopped, in this turn: the main one is called ``""``."""
    unsure: set[str] = field(default_factory=set[str])
    """Those of them that were told only what could not be checked in time."""

    def copied(self) -> Self:
        """To try something on: what it holds is frozen."""
        return replace(self, **{name: copy(getattr(self, name)) for name in self.__struct_fields__})

    # --- What is owed -----------------------------------------------------------------------------------------------

    def owe(self, path: AbsPath, before: str | None, *, call: int, heard: CheckedText | None = None) -> None:
        """A change was not judged in time. The text before the first such change is what it will be compared with."""
        self._owe(path, Debt(Standing.PENDING, call, edited=True, before=before, unfinished=before, heard=heard))

    def owe_others(self, path: AbsPath, before: str | None, *, call: int) -> None:
        """A change was judged, but not all of the files that it may have broken."""
        self._owe(path, Debt(Standing.PENDING, call, edited=True, unfinished=before))

    def finish(self, path: AbsPath, before: str | None) -> None:
        """What a change broke in other files is known, as far as anybody has said by now."""
        if before is not None and len(self.finished) < MAX_FINISHED:
            self.finished.setdefault(path, before)

    def hear(self, paths: Collection[AbsPath], latest_text: Callable[[AbsPath], str | None]) -> None:
        """Servers have spoken of other files, and may have been late: that is owed for what has its own texts still."""
        texts = {path: latest_text(path) for path in self.finished}
        own = {path for path, text in texts.items() if text is not None and self.has_written(path, text)}
        causes = {path: before for path, before in self.finished.items() if path in own}
        if causes and len(self.heard) < MAX_FILES:
            self.heard.update(paths)
            for path, before in causes.items():
                self.owe_others(path, before, call=self.calls)

    def _owe(self, path: AbsPath, debt: Debt) -> None:
        known = self.debts.get(path)
        if known is not None:
            before = debt.before if known.before is None else known.before
            unfinished = debt.unfinished if known.unfinished is None else known.unfinished
            debt = replace(debt, before=before, unfinished=unfinished, found=known.found, certain=known.certain)
        self._move(path, Fate.TIME_OVER, debt)

    def found(
        self,
        path: AbsPath,
        found: CheckedText,
        *,
        call: int,
        edited: bool,
        certain: bool = True,
        unfinished: str | None = None,
    ) -> None:
        """The background found something that the conversation has not heard of."""
        self._move(path, Fate.FOUND, Debt(Standing.LATE, call, edited, None, unfinished, None, found, certain))

    def settle(self, path: AbsPath, fate: Fate) -> None:
        """Nothing more is owed about this file; what it broke elsewhere, if that is not known yet, is."""
        known = self.debts.get(path)
        if known is None or (known.standing, fate) not in NEXT:
            return
        self._move(path, fate, known)
        if known.standing is Standing.LATE and fate is not Fate.JUDGED and known.unfinished is not None:
            self.owe_others(path, known.unfinished, call=known.call)

    def drop_undone(self, texts: Mapping[AbsPath, str]) -> None:
        """These files have these texts now: nothing is owed of one that is as it was, nor where all of this turn is."""
        is_all_undone = bool(self.first) and self._has_back((self.first or {}).items())
        for path, debt in self.standing(Standing.PENDING).items():
            was = {text for text in (debt.before, debt.unfinished) if text is not None}
            is_undone = was == {texts.get(path)} or (is_all_undone and path in (self.first or {}))
            if is_undone and debt.found is None:
                self.settle(path, Fate.CLEAN)

    def heard_of(self, path: AbsPath) -> None:
        """Another edit broke this file, or might have, and that was judged with what had been found late in it.

        What its own changes did, to itself and elsewhere, is no part of that: it is owed as before.
        """
        known = self.debts.get(path)
        if known is not None and known.standing is Standing.LATE:
            self.settle(path, Fate.JUDGED)
            if known.unfinished is not None:
                self.owe_others(path, known.unfinished, call=known.call)

    def standing(self, standing: Standing) -> dict[AbsPath, Debt]:
        return {path: debt for path, debt in self.debts.items() if debt.standing is standing}

    @property
    def unjudged(self) -> dict[AbsPath, str]:
        """Texts before changes that were never judged."""
        return {path: debt.before for path, debt in self.debts.items() if debt.before is not None}

    @property
    def settled(self) -> frozenset[AbsPath]:
        """Files whose own changes were judged, and not yet what these broke elsewhere."""
        debts = self.debts.items()
        return frozenset(path for path, debt in debts if debt.before is None and debt.unfinished is not None)

    def without_told(self, path: AbsPath, now: CheckedText, change: Comparison) -> Comparison:
        """The change without what the conversation was told of and is still there.

        A later check may compare with a text from before the edit that was told of, and finds it new again.
        """
        told = still_there(self.introduced.get(path), now)
        if not told or not isinstance(change, Delta):
            return change
        older = tuple(sorted({*change.older, *(one for one in change.introduced if one in told)}, key=place))
        return replace(change, introduced=tuple(one for one in change.introduced if one not in told), older=older)

    @property
    def untold(self) -> dict[AbsPath, CheckedText]:
        """What was found late and has not been told, by file."""
        return {path: debt.found for path, debt in self.debts.items() if debt.found is not None and debt.certain}

    @property
    def unfinished(self) -> dict[AbsPath, str]:
        """Texts before changes whose effect on other files is not known."""
        return {path: debt.unfinished for path, debt in self.debts.items() if debt.unfinished is not None}

    def _move(self, path: AbsPath, fate: Fate, debt: Debt) -> None:
        known = self.debts.get(path)
        following = NEXT[known.standing if known else None, fate]
        if fate in DROPPED:
            self._count_dropped(fate)
        if following is None:
            del self.debts[path]
        elif known is None and len(self.debts) >= MAX_FILES:
            self._count_dropped("too many files")
        else:
            self.debts[path] = replace(debt, standing=following)

    def _count_dropped(self, why: str) -> None:
        self.dropped[why] = self.dropped.get(why, 0) + 1

    # --- What is of its making --------------------------------------------------------------------------------------

    def judged(
        self,
        path: AbsPath,
        now: CheckedText,
        change: Comparison,
        *,
        edited: bool,
        before: str | None = None,
        causes: TextsBefore = NO_TEXTS,
    ) -> None:
        """A file has a fresh verdict that the conversation knows of from now on.

        `before`: the text that the change began with, where it is known; `causes`: those of all files that it was of.
        """
        known = self.introduced.get(path)
        hidden = tuple(one for one in self.hidden.pop(path, ()) if not one.is_back(now))
        self.hidden |= {path: hidden} if hidden else {}
        if before is not None:
            self.mend(path, before, change, causes)
        kept = still_there(known, now)
        if still_there(self.gone.get(path), now):
            del self.gone[path]
        if known is not None and len(kept) < len(known.diagnostics) and len(self.gone) < MAX_FILES:
            self.gone[path] = known
        mine = tuple(sorted({*kept, *change.introduced}, key=place))
        if edited or mine:
            self.changed.add(path)
        if mine and (path in self.introduced or len(self.introduced) < MAX_FILES):
            self.introduced[path] = CheckedText(now.text, mine)
        else:
            self.introduced.pop(path, None)

    def mend(self, path: AbsPath, before: str, change: Comparison, causes: TextsBefore) -> None:
        """What a change took away in a file that had this text was there before the conversation, or is its own."""
        own = still_there(self.introduced.get(path), CheckedText(before, change.fixed))
        if had := tuple(one for one in change.fixed if one not in own):
            if path in self.mended or len(self.mended) < MAX_FILES:
                old = [one for one in self.mended.get(path, ()) if one != CheckedText(before, had)]
                self.mended[path] = (*old, CheckedText(before, had))[-MAX_MENDED:]
            digests = frozenset((one, _digest(text)) for one, text in causes.items() if text is not None)
            # What was there with texts of its own may be its own, also where nobody could tell at that time.
            is_own = any(digest in self.own_texts.get(one, ()) for one, digest in digests)
            if not is_own and (path in self.hidden or len(self.hidden) < MAX_FILES):
                new = Hidden(_digest(before), had, digests, is_covered=bool(change.introduced))
                known = [one for one in self.hidden.get(path, ()) if one != new]
                self.hidden[path] = (*known, new)[-MAX_MENDED:]

    def without_older(self, path: AbsPath, now: CheckedText, change: Comparison) -> Comparison:
        """The change without what the file had before a change that is taken back by now, or that had only covered it;
        without all of it where nothing is left of the changes of this turn.

        It is in the world after this change and not in that before it, and is older than the conversation all the same.
        """
        if not isinstance(change, Delta):
            return change
        if self.first and self._has_back(self.first.items()):
            return replace(change, introduced=(), older=tuple(sorted({*change.older, *change.introduced}, key=place)))
        same = [one for one in self.hidden.get(path, ()) if one.digest == _digest(now.text)]
        back = [one for one in same if one.is_covered or (bool(one.causes) and self._has_back(one.causes))]
        older = {one for each in back for one in still_there(CheckedText(now.text, each.diagnostics), now)}
        news = tuple(one for one in change.introduced if one not in older)
        return replace(change, introduced=news, older=tuple(sorted({*change.older, *older}, key=place)))

    @property
    def is_undone(self) -> bool:
        """Whether all that it has changed is as it was before it: then nothing is broken by it."""
        known = self.original or {}
        return bool(known) and known.keys() >= self.own_texts.keys() and self._has_back(known.items())

    def _has_back(self, digests: Iterable[tuple[AbsPath, str | None]]) -> bool:
        """Whether it gave these files their old texts again."""
        return all(self.own_texts.get(path, ("",))[-1] == digest for path, digest in digests)

    def remaining(self, path: AbsPath, now: CheckedText, severities: Collection[Severity]) -> tuple[Diagnostic, ...]:
        """What it introduced in a file and is there now, without what was there before it, too."""
        older = {one for had in self.mended.get(path, ()) for one in still_there(had, now)}
        there = still_there(self.introduced.get(path), now)
        return tuple(one for one in there if one.severity in severities and one not in older)

    # --- What git takes away and brings back ------------------------------------------------------------------------

    def wrote(self, path: AbsPath, text: str, before: str | None = None) -> None:
        """It gave a file this text in place of another one, where that is known."""
        was = None if before is None else _digest(before)
        if self.first is not None:
            self.first.setdefault(path, was)
            self.first = self.first if len(self.first) <= MAX_FILES else None
        if self.original is not None:
            self.original.setdefault(path, was)
            self.original = self.original if len(self.original) <= MAX_FILES else None
        if path in self.own_texts or len(self.own_texts) < MAX_FILES:
            known, digest = self.own_texts.get(path, ()), _digest(text)
            self.own_texts[path] = (*(one for one in known if one != digest), digest)[-MAX_OWN_TEXTS:]

    def has_written(self, path: AbsPath, text: str) -> bool:
        return _digest(text) in self.own_texts.get(path, ())

    def came_back(self) -> None:
        """Git brought back what the conversation had written, from a stash or a branch: perhaps with what that broke.

        What was left before that is of this turn again; what was gone is looked for, and told if it is there.
        """
        self.changed.update(self.introduced)
        for path, known in self.gone.items():
            if path not in self.debts:
                debt = Debt(Standing.LATE, self.calls, edited=path in self.own_texts, found=known, by_git=True)
                self._move(path, Fate.FOUND, debt)

    # --- Turns ------------------------------------------------------------------------------------------------------

    def may_tell_before_stop(self, agent: str, *, again: bool) -> bool:
        """Once per turn and agent, and once more where it heard only that nobody knew.

        `again`: the host says that this agent goes on because it was told.
        """
        return agent in self.unsure or (not again and agent not in self.stopped)

    def stop_told(self, agent: str, *, is_known: bool) -> None:
        """`is_known`: it was told of errors, and not only of files that could not be checked."""
        if is_known or agent in self.stopped:
            self.unsure.discard(agent)
        else:
            self.unsure.add(agent)
        self.stopped.add(agent)

    def prompted(self) -> None:
        """A turn that was told before its stop and was interrupted then has ended: no other stop of it comes."""
        if "" in self.stopped - self.unsure:
            self.turn_ended()

    def turn_ended(self) -> None:
        """What was left by then was told, or left on purpose."""
        for known in (self.changed, self.mended, self.finished, self.heard):
            known.clear()
        self.stopped.clear()
        self.unsure.clear()
        self.first = {}


def untold(now: CheckedText, change: Comparison, heard: CheckedText | None = None) -> tuple[Diagnostic, ...]:
    """What of a change has not been told: what it introduced, or all where nobody knows that."""
    found = change.introduced if isinstance(change, Delta) else change.diagnostics
    told = still_there(heard, now)
    return tuple(one for one in found if one not in told)


def still_there(known: CheckedText | None, now: CheckedText) -> tuple[Diagnostic, ...]:
    """Of diagnostics that a file had, those that it has now, as they are now."""
    if known is None or not known.diagnostics:
        return ()
    change = delta(known, now)
    return change.older if isinstance(change, Delta) else ()


def credited(change: Comparison, brought: CheckedText | None, *, only_new: bool) -> Comparison:
    """A change that counts as fixed only what the conversation itself had brought.

    `only_new`: nor is what it brought, and was told of, older than its edits. What says something else than it was
    told, is told again.
    """
    if not isinstance(change, Delta):
        return change
    known = brought.diagnostics if brought is not None else ()

    def of_own(items: tuple[Diagnostic, ...], sign: Callable[[Diagnostic], Hashable] = _sign) -> list[Diagnostic]:
        found, left = list[Diagnostic](), Counter(map(sign, known))
        for one in items:
            if left[sign(one)]:
                left[sign(one)] -= 1
                found.append(one)
        return found

    told = of_own(change.older) if only_new else []
    again = [one for one in of_own(change.reworded, _rule) if one not in told] if only_new else []
    return Delta(
        tuple(sorted({*change.introduced, *again}, key=place)) if again else change.introduced,
        tuple(one for one in change.older if one not in told and one not in again),
        tuple(of_own(change.fixed)),
    )


def _digest(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def _sign(diagnostic: Diagnostic) -> tuple[str, str | None, str]:
    return lasting_words(diagnostic.message), diagnostic.code, diagnostic.server


def _rule(diagnostic: Diagnostic) -> tuple[str | None, str]:
    return diagnostic.code, diagnostic.server


def with_late(change: Comparison, found: CheckedText | None, now: CheckedText) -> Comparison:
    """A change in which what was found late and is still there counts as introduced: it was never told."""
    if not isinstance(change, Delta):
        return change
    late = still_there(found, now)
    introduced = tuple(sorted({*change.introduced, *late}, key=place))
    return replace(change, introduced=introduced, older=tuple(one for one in change.older if one not in late))
