"""Are these the diagnostics of the text just sent? One pure verdict over what is known about a server and a file.

The order of belief: an answer to our own question (pull, on-demand command), a publish that names our version, silence
behind a barrier or after the server's work has ended, a publish without a version that stays unreplaced.
What only a pause can tell is told by a pause; what not even a pause can tell is *assumed*, and said to be.

Invariants: an older version is never an answer; a failure or a time-out is never a clean file; nothing counts before
the server is ready.
"""

from enum import StrEnum
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.servers.spec import Freshness, Phases

FIRST_GAP_SECONDS = 0.15
"""The settling pause before anything is learned about a server."""

DISTURBED_SECONDS = 0.5
"""How long a server usually takes to speak again of an unchanged file after another one changed."""

ECHO_SECONDS = 3.0
"""What a server says again because of a change, it says within this time. A publish that follows a change sooner after
something else was sent or said may still be the echo of that."""

LOADS_AGAIN = frozenset({Phases.AFTER_PROGRESS, Phases.UNTIL_QUIESCENT})
"""Servers whose answers mean nothing while they work. Of the others, work and phases tell of publishes only: an answer
is the whole of it, and pyright tells of work that it has dropped and never ends."""


class Asked(StrEnum):
    """How our own question about the file stands."""

    IMPOSSIBLE = "impossible"
    """The server takes no such question: only publishes can tell."""
    EXPECTED = "expected"
    """The server offers it some time after its start, and has not yet."""
    PENDING = "pending"
    ANSWERED = "answered"


class Behind(StrEnum):
    """How the request stands that a server answers only after its diagnostics."""

    NONE = "none"
    PENDING = "pending"
    PASSED = "passed"


class Published(Struct, frozen=True):
    """The last publish for the file."""

    version: int | None
    at: float
    within: float = float("-inf")
    """When the work began during which the server said so, and which has ended."""
    alone: bool = False
    """No change was sent during that work, for which it may have been broken off."""


class Facts(Struct, frozen=True):
    """What is known now about one server, one file and one version of its text."""

    version: int
    sent_at: float
    ready: bool
    """The server is past loading: work that it began before its first answer has ended."""
    working: bool
    """It has told of work that has not ended."""
    finished: bool
    """Some work that it told of has ended since the text was sent."""
    ended_at: float = float("-inf")
    """When the last work that it told of has ended."""
    opened: bool = False
    """The text is that with which the file was opened: the server has had no other one of it."""
    on_disk: bool = True
    """The file has it, too: what is said of the file is said of it."""
    asked: Asked = Asked.IMPOSSIBLE
    published: Published | None = None
    barrier: Behind = Behind.NONE
    disturbed_at: float | None = None
    """When another document last changed, after this text was sent and before it was asked about: what was said of this
    file until then may not hold any more."""
    stirred_at: float = float("inf")
    """When, before that, anything was last sent, or said of this text; never settled: for ever."""


class Traits(Struct, frozen=True):
    """What is known about the server itself: from the catalogue, and learned."""

    phases: Phases = Phases.ONE
    floor_seconds: float = 0.0
    """A publish without a version that comes sooner after the change is about an older text."""
    floor_for_opened: bool = True
    """Whether that is so of a file that was opened, too: else the first publish about it must stay for so long."""
    names_versions: bool = False
    """A publish without a version is of the text that the file was opened with, or has on disk."""
    gap_seconds: float = FIRST_GAP_SECONDS
    """How long a publish must stay unreplaced that has no version, or that need not be the only one for its version."""
    silent_when_unchanged: bool = False
    """It publishes nothing when the result is the same as before."""
    silence_seconds: float | None = None
    """Silence for this long after a change has always meant that nothing changed; None before that was learned."""


class Fresh(Struct, frozen=True):
    """What the server holds for the file is the answer for this text."""

    assumed: bool = False
    """Only a pause or habit says so: the answer is partial, not fresh."""


class Waiting(Struct, frozen=True):
    """Decide again when something happens, and at `until` at the latest."""

    until: float


class GaveUp(Struct, frozen=True):
    """The time is over without an answer. This is not a clean file."""

    why: str


Verdict = Fresh | Waiting | GaveUp


def verdict(facts: Facts, traits: Traits, *, now: float, deadline: float) -> Verdict:
    """What can be said now; never `Waiting` at or after the deadline."""
    said = _said(facts, traits, now)
    if isinstance(said, Fresh):
        return said
    if now < deadline:
        return Waiting(min(said.until, deadline))
    unsettled = _version_matches(facts, traits) and _may_be_replaced(facts, traits) and facts.disturbed_at is None
    if _unversioned_answer(facts, traits) or unsettled:
        # The settling pause never passes the deadline: what stands there is given, and said to be unsettled.
        return Fresh(assumed=True)
    return GaveUp(_why(facts))


def _said(facts: Facts, traits: Traits, now: float) -> Fresh | Waiting:
    forever = Waiting(float("inf"))
    if not facts.ready:
        return forever
    match facts.asked:
        case Asked.ANSWERED:
            return forever if facts.working and traits.phases in LOADS_AGAIN else Fresh()
        case Asked.PENDING | Asked.EXPECTED:
            return forever
        case Asked.IMPOSSIBLE:
            pass
    if _version_matches(facts, traits):
        return _versioned(facts, traits, now)
    if _unversioned_answer(facts, traits):
        return _settled(facts, traits, now)
    if _of_an_earlier_text(facts, traits):
        assert facts.published is not None
        # It may be of this text, too, and then nothing follows.
        quiet_at = facts.published.at + traits.gap_seconds
        return Fresh(assumed=True) if now >= quiet_at else Waiting(quiet_at)
    return _silence(facts, traits, now)


def _version_matches(facts: Facts, traits: Traits) -> bool:
    """A newer version than ours is the answer to a newer text, which is as good; an older one never is."""
    published = _valid(facts, traits)
    return published is not None and published.version is not None and published.version >= facts.version


def _valid(facts: Facts, traits: Traits) -> Published | None:
    """The last publish, unless the work that the server tells of makes it void."""
    published = facts.published
    if published is None:
        return None
    is_early = {
        Phases.AFTER_PROGRESS: published.at < facts.ended_at,
        Phases.WITHIN_PROGRESS: published.within <= facts.sent_at,
    }
    return None if is_early.get(traits.phases, False) else published


def _versioned(facts: Facts, traits: Traits, now: float) -> Fresh | Waiting:
    """A publish for this text, once no other for the same text can replace it.

    If another file changed after it, the server must have had time to say more.
    """
    assert facts.published is not None
    if not _phases_over(facts, traits):
        return Waiting(float("inf"))
    if _may_be_replaced(facts, traits) and now < facts.published.at + traits.gap_seconds:
        return Waiting(facts.published.at + traits.gap_seconds)
    disturbed_at = facts.disturbed_at
    if traits.phases is Phases.WITHIN_PROGRESS:
        is_whole = facts.published.alone and facts.published.within > (disturbed_at or facts.sent_at)
        return Fresh() if is_whole else _quiet(max(disturbed_at or 0.0, facts.ended_at), traits, now)
    if disturbed_at is None:
        return Fresh()
    is_echo = facts.stirred_at > disturbed_at - ECHO_SECONDS
    if facts.published.at >= disturbed_at and not is_echo:
        return Fresh()
    return _quiet(disturbed_at, traits, now)


def _may_be_replaced(facts: Facts, traits: Traits) -> bool:
    """Some servers publish what they find at once, and all of it a little later, for the same version."""
    is_open = facts.ready and facts.asked is Asked.IMPOSSIBLE and facts.barrier is not Behind.PASSED
    return is_open and traits.phases is Phases.UNKNOWN


def _quiet(disturbed_at: float, traits: Traits, now: float) -> Fresh | Waiting:
    """Another file changed, and no sign tells that the server has thought of this one since.

    A barrier is none: clangd answers one for a dependent before it has read the changed header again.
    """
    quiet_at = disturbed_at + max(traits.gap_seconds, DISTURBED_SECONDS)
    return Fresh(assumed=True) if now >= quiet_at else Waiting(quiet_at)


def _unversioned_answer(facts: Facts, traits: Traits) -> bool:
    published = _valid(facts, traits)
    floor = 0.0 if _is_opened(facts, traits) else traits.floor_seconds
    return (
        facts.ready
        and facts.asked is Asked.IMPOSSIBLE
        and published is not None
        and published.version is None
        and (not traits.names_versions or (facts.opened and facts.on_disk))
        and published.at > facts.sent_at + floor
    )


def _of_an_earlier_text(facts: Facts, traits: Traits) -> bool:
    """A publish without a version came after this text, where those that have seen a change name one."""
    published = _valid(facts, traits)
    is_unnamed = published is not None and published.version is None and published.at > facts.sent_at
    return traits.names_versions and facts.asked is Asked.IMPOSSIBLE and facts.on_disk and is_unnamed


def _is_opened(facts: Facts, traits: Traits) -> bool:
    return facts.opened and not traits.floor_for_opened


def _settled(facts: Facts, traits: Traits, now: float) -> Fresh | Waiting:
    assert facts.published is not None
    if facts.barrier is Behind.PENDING or not _phases_over(facts, traits):
        return Waiting(float("inf"))
    disturbed_at = facts.disturbed_at
    if disturbed_at is not None and facts.published.at <= disturbed_at + traits.floor_seconds:
        return _quiet(disturbed_at, traits, now)
    # Where a file was closed before, the list that is emptied then comes first.
    pause = max(traits.gap_seconds, traits.floor_seconds) if _is_opened(facts, traits) else traits.gap_seconds
    quiet_at = facts.published.at + pause
    return Fresh() if facts.barrier is Behind.PASSED or now >= quiet_at else Waiting(quiet_at)


def _silence(facts: Facts, traits: Traits, now: float) -> Fresh | Waiting:
    """Nothing was published for this text. Only of a server that is known to be silent does that mean something."""
    if facts.barrier is Behind.PASSED and traits.silent_when_unchanged:
        return Fresh() if facts.disturbed_at is None else _quiet(facts.disturbed_at, traits, now)
    if facts.barrier is Behind.PENDING:
        # It will tell for certain what the end of some work and a habit only let assume.
        return Waiting(float("inf"))
    if traits.silent_when_unchanged and facts.finished and not facts.working:
        # It may be the work of an earlier change that has ended.
        return Fresh(assumed=True)
    if traits.silence_seconds is not None:
        assumed_at = facts.sent_at + traits.silence_seconds
        return Fresh(assumed=True) if now >= assumed_at else Waiting(assumed_at)
    return Waiting(float("inf"))


def _phases_over(facts: Facts, traits: Traits) -> bool:
    return traits.phases in {Phases.UNKNOWN, Phases.ONE} or not facts.working


def _why(facts: Facts) -> str:
    if not facts.ready:
        return "the server is still loading"
    if facts.asked is Asked.PENDING:
        return "the server has not answered"
    if facts.asked is Asked.EXPECTED:
        return "the server does not offer its diagnostics yet"
    if facts.working:
        return "the server is still working"
    return "the server has said nothing about this text"


# --- Habits -----------------------------------------------------------------------------------------------------------
# What was learned about a server whose publishes carry no version: the widest gap between two publishes for one change,
# and the longest time to the last publish. One observation is enough to wait longer. Several are needed to take silence
# for an answer.

ENOUGH = 5
"""Changes to observe before silence counts as an answer."""

MARGIN = 2.0
"""How many times the longest observed time we wait."""

LONGEST_GAP_SECONDS = 1.0
"""A wider gap means that the server was busy with something else, and is not learned."""


class Habits(Struct, frozen=True):
    """What was observed; times in seconds."""

    changes: int = 0
    slowest: float = 0.0
    """From a change to its last publish."""
    widest_gap: float = 0.0
    silences: int = 0
    """Changes in a row without a publish, not even a late one."""


def observed(habits: Habits, *, sent_at: float, publishes: tuple[float, ...]) -> Habits:
    """The habits after one change that has settled; `publishes` are its times, in order."""
    if not publishes:
        return habits
    gaps = [later - earlier for earlier, later in pairwise(publishes)]
    return Habits(
        habits.changes + 1,
        max(habits.slowest, publishes[-1] - sent_at),
        max([habits.widest_gap, *gaps]),
        habits.silences,
    )


def heard_late(habits: Habits, gap: float) -> Habits:
    """The habits after a publish that came `gap` seconds after its change had settled.

    Without it no gap wider than the pause could be learned, because the pause ends the observation.
    """
    return habits if gap > LONGEST_GAP_SECONDS else replace(habits, widest_gap=max(habits.widest_gap, gap))


def unheard(habits: Habits, *, spoke_later: bool) -> Habits:
    """The habits after a change without a publish in time, when the next text is sent.

    Only then is it known whether the server was silent or slow. After one slow answer, silence means nothing.
    """
    return replace(habits, silences=0 if spoke_later else habits.silences + 1)


def traits_of(freshness: Freshness, habits: Habits) -> Traits:
    """What the catalogue says, and what was learned where the catalogue is silent."""
    silent = freshness.publishes_unchanged is False
    learned = freshness.publishes_unchanged is None and habits.silences >= ENOUGH
    enough = habits.changes >= ENOUGH
    gap = min(LONGEST_GAP_SECONDS, max(FIRST_GAP_SECONDS, habits.widest_gap * MARGIN))
    return Traits(
        phases=freshness.phases,
        # Half of the server's debounce: an earlier publish cannot be about this change.
        floor_seconds=(freshness.debounce_ms or 0) / 2000,
        floor_for_opened=freshness.debounces_opens,
        names_versions=freshness.names_versions,
        gap_seconds=gap,
        silent_when_unchanged=silent,
        silence_seconds=habits.slowest * MARGIN if enough and (silent or learned) else None,
    )
