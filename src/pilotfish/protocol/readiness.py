"""Is the server still working on something? Facts from progress and status messages, no judgement.

A token that was begun and not ended means that the server is busy; `experimental/serverStatus` may say so too.
Both are bounded elsewhere by a deadline: a progress that never ends must not hold anything up for ever.
"""

from collections import deque
from math import inf
from typing import Any

from pilotfish.protocol.codec import Malformed, decode
from pilotfish.protocol.wire import ProgressParams, Raw, WorkDoneProgress

MAX_TOKENS = 1_000
"""A server that begins more than this and ends none is leaking; the oldest are forgotten."""

MAX_SPANS = 100
"""Work that has ended, which is remembered: a list is judged within seconds."""

TOGETHER_SECONDS = 0.0005
"""Saves of one patch are sent together, and a server that begins after one of them has them all."""

CROSSING_SECONDS = 0.0008
"""The message that work begins may have been on its way when a save was sent that makes the server begin anew."""


RESTART_SECONDS = 0.3
"""A server that has begun after the first of several saves ends that work for the next one, and begins anew. Measured
with rust-analyzer, 80 to 100 ms lie between."""


class Readiness:
    def __init__(self, loaded_by: str | None = None) -> None:
        """`loaded_by`: the notification by which it says that it has loaded its project."""
        self._loaded_by = loaded_by
        self._running: dict[int | str, str] = {}
        """The titles of work that has begun and not ended, by its token."""
        self.quiescent: bool | None = None if loaded_by is None else False
        """What it last said, by `experimental/serverStatus` or in its own way; None for a server that never says."""
        self.health: str | None = None
        """`ok`, `warning` or `error`: whether it can work, as `experimental/serverStatus` last said."""
        self.complaint: str | None = None
        """What it said together with that."""
        self.refusals = 0
        """How often `experimental/serverStatus` has said that it does not work: not quiescent, or in bad health."""
        self._begun: set[str] = set()
        """Tokens of work that began after the last save."""
        self._lost: set[str] = set()
        """Those of them that were forgotten as they ran: whether they still do is not known."""
        self._saved_at = -inf
        """When the last save was sent."""
        self._awaits = True
        """No work has begun since a save, or since the start."""
        self._awaited_before = False
        """Nor had it when the last save was sent: the next to begin may be that of an earlier save."""
        self._saves = 0
        self._saves_before: dict[str, int] = {}
        """How many saves there had been when work of a token last began."""
        self._repeated: set[str] = set()
        """Tokens of work that began after more than one save."""
        self.sure_at = -inf
        """Until then, work that has ended may begin once more."""
        self.ended = 0
        """How many pieces of work have ended so far; a rise means that something was finished."""
        self.ended_at = -inf
        """When the last of them did."""
        self._begun_at: dict[int | str, float] = {}  # of work that has not ended
        self._disturbed = set[int | str]()
        """Tokens of such work that a change came into."""
        self._spans = deque[tuple[float, float, bool]](maxlen=MAX_SPANS)
        """Of work that has ended: when it began and ended, and whether no change came into it."""

    @property
    def busy(self) -> bool:
        return bool(self._running) or self.quiescent is False

    def running(self) -> tuple[str, ...]:
        return tuple(self._running.values())

    def saved(self, now: float) -> None:
        """A save was sent, by whomever: work that had begun by now does not tell of it."""
        self._saves += 1
        self._awaited_before = self._awaits and (self._awaited_before or now - self._saved_at > TOGETHER_SECONDS)
        self._saved_at, self._awaits = now, True
        self._begun.clear()
        self._lost.clear()

    def disturbed(self) -> None:
        """Some change was sent: what is under way may end for that, to be begun anew."""
        self._disturbed.update(self._begun_at)

    def has_begun(self, prefix: str) -> bool:
        """Whether work whose token starts so has begun since the last save."""
        return any(token.startswith(prefix) for token in self._begun)

    def is_behind(self, prefix: str) -> bool:
        """Whether a save was sent and the work that it starts, whose token starts so, has not begun or not ended."""
        return self._is_running(prefix) or (self._saves > 0 and not self.has_ended(prefix))

    def has_ended(self, prefix: str) -> bool:
        """Whether work whose token starts so has begun since the last save, and all of it has ended."""
        is_lost = any(token.startswith(prefix) for token in self._lost)
        return self.has_begun(prefix) and not self._is_running(prefix) and not is_lost

    def _is_running(self, prefix: str) -> bool:
        return any(str(token).startswith(prefix) for token in self._running)

    def last_end(self, *, restarts: bool) -> float:
        """Until then, work that has ended may begin once more. `restarts`: it does so for reasons of its own."""
        return max(self.sure_at, self.ended_at + RESTART_SECONDS) if restarts else self.sure_at

    def work_at(self, moment: float) -> tuple[float, bool]:
        """When the work began that was under way then and has ended since, and whether no change came into it."""
        spans = ((begun, alone) for begun, ended, alone in self._spans if begun <= moment <= ended)
        return max(spans, default=(-inf, False))

    def progress(self, params: Raw, now: float = inf) -> None:
        """Take in `$/progress`; partial results and malformed ones are not ours and pass."""
        try:
            note = decode(params, ProgressParams)
            work = decode(note.value, WorkDoneProgress)
        except Malformed:
            return
        if work.kind == "end":
            if note.token in self._running:
                del self._running[note.token]
                self.ended += 1
                self.ended_at = now
                self._lost.discard(str(note.token))
                if note.token in self._begun_at:
                    self._spans.append((self._begun_at.pop(note.token), now, note.token not in self._disturbed))
                self._disturbed.discard(note.token)
                if str(note.token) in self._repeated:
                    self.sure_at = now + RESTART_SECONDS
        elif work.kind in {"begin", "report"}:
            if work.kind == "begin":
                self._begin(str(note.token), now)
                self._begun_at[note.token] = now
            self._running[note.token] = work.title or self._running.get(note.token, "")
            if len(self._running) > MAX_TOKENS:
                dropped = next(iter(self._running))
                del self._running[dropped]
                self._begun_at.pop(dropped, None)
                self._lost |= self._begun & {str(dropped)}

    def _begin(self, token: str, now: float) -> None:
        crossed = self._awaited_before and now - self._saved_at < CROSSING_SECONDS
        self._awaits = self._awaited_before = False
        if len(self._saves_before) >= MAX_TOKENS:
            self._saves_before.clear()
        if self._saves - self._saves_before.get(token, 0) > 1:
            self._repeated.add(token)
        else:
            self._repeated.discard(token)
        self._saves_before[token] = self._saves
        if not crossed and len(self._begun) < MAX_TOKENS:
            self._begun.add(token)
            self._lost.discard(token)

    def heard(self, method: str, params: Raw) -> bool:
        """Whether this notification, which is no standard one, says that the project is loaded."""
        wanted, _, kind = (self._loaded_by or "").partition(" ")
        if method != wanted:
            return False
        try:
            is_loaded = not kind or decode(params, dict[str, Any]).get("type") == kind
        except Malformed:
            return False
        self.quiescent = True if is_loaded else self.quiescent
        return is_loaded

    def status(self, params: Raw) -> None:
        try:
            status = decode(params, dict[str, Any])
        except Malformed:
            return
        quiescent, health = status.get("quiescent"), status.get("health")
        self.refusals += quiescent is False or health == "error"
        if isinstance(quiescent, bool):
            self.quiescent = quiescent
        if isinstance(health, str):
            self.health = health
            message = status.get("message")
            self.complaint = message if isinstance(message, str) and message else None
