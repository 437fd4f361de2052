"""Is the server still working on something? Facts from progress and status messages, no judgement.

A token that was begun and not ended means that the server is busy; `experimental/serverStatus` may say so too.
Both are bounded elsewhere by a deadline: a progress that never ends must not hold anything up for ever.
"""

from collections import Counter
from typing import Any

from msgspec import Struct

from pilotfish.protocol.codec import Malformed, decode
from pilotfish.protocol.wire import ProgressParams, Raw, WorkDoneProgress

MAX_TOKENS = 1_000
"""A server that begins more than this and ends none is leaking; the oldest are forgotten."""


class Progress(Struct, frozen=True):
    """One piece of work the server told us about."""

    title: str
    message: str | None
    percentage: float | None
    cancellable: bool


class Readiness:
    """What one server has said about its own work."""

    def __init__(self) -> None:
        self._running: dict[int | str, Progress] = {}
        self._quiescent: bool | None = None
        self.health: str | None = None
        self._ended: Counter[str] = Counter()
        self.ended = 0
        """How many pieces of work have ended so far; a rise means that something was finished."""

    @property
    def busy(self) -> bool:
        return bool(self._running) or self._quiescent is False

    @property
    def quiescent(self) -> bool | None:
        """What `experimental/serverStatus` last said; None for a server that never says."""
        return self._quiescent

    def running(self) -> tuple[Progress, ...]:
        return tuple(self._running.values())

    def ended_of(self, prefix: str) -> int:
        """How many pieces of work have ended whose token starts so."""
        return sum(count for token, count in self._ended.items() if token.startswith(prefix))

    def progress(self, params: Raw) -> None:
        """Take in `$/progress`; partial results and malformed ones are not ours and pass."""
        try:
            note = decode(params, ProgressParams)
            work = decode(note.value, WorkDoneProgress)
        except Malformed:
            return
        if work.kind == "end":
            if self._running.pop(note.token, None) is not None:
                self.ended += 1
                self._ended[str(note.token)] += 1
                if len(self._ended) > MAX_TOKENS:
                    del self._ended[next(iter(self._ended))]
        elif work.kind in {"begin", "report"}:
            self._note(note.token, work)

    def status(self, params: Raw) -> None:
        """Take in `experimental/serverStatus`."""
        try:
            status = decode(params, dict[str, Any])
        except Malformed:
            return
        if isinstance(quiescent := status.get("quiescent"), bool):
            self._quiescent = quiescent
        if isinstance(health := status.get("health"), str):
            self.health = health

    def _note(self, token: int | str, work: WorkDoneProgress) -> None:
        before = self._running.get(token)
        title = work.title or (before.title if before else "")
        cancellable = work.cancellable or (before.cancellable if before else False)
        self._running[token] = Progress(title, work.message, work.percentage, cancellable)
        if len(self._running) > MAX_TOKENS:
            del self._running[next(iter(self._running))]
