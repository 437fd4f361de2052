"""The events of hosts as they arrive: whose each one is, whether it came before, and how many could not be read.

Some hosts load the hook files of others: VS Code those of Claude Code and of Copilot CLI, Cursor those of Claude Code.
So the hook program may be started under the name of one host by another, and more than once for the same event. An
event belongs to the host that its keys tell of, is read and answered in that host's dialect, and is answered once.
What cannot be read is not passed over in silence: it is counted, `status`, `doctor` and `setup --status` show it for a
day, and the person is told once where the host has words for that.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from msgspec import Raw, Struct
from msgspec.structs import replace

from pilotfish.counting import counted
from pilotfish.errors import Refused
from pilotfish.hosts.registry import PLAIN, dialect_of, load_host
from pilotfish.hosts.shared.tool_hooks import HostDialect, HostEvent, MomentEvent, OtherEvent, TouchEvent, UnreadEvent
from pilotfish.paths import is_inside
from pilotfish.protocol.codec import Malformed, decode, encode
from pilotfish.sanitise import sanitised
from pilotfish.service.recent import Recent
from pilotfish.system.clock import WallClock

GUESTS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "claude-code": {
        "cursor": frozenset({"cursor_version", "workspace_roots"}),
        "copilot": frozenset({"tool_result", "initial_prompt"}),
        "vscode": frozenset({"hookEventName", "timestamp"}),
    },
    "copilot": {"vscode": frozenset({"hookEventName", "tool_response", "tool_use_id"})},
    "vscode": {"copilot": frozenset({"tool_result", "initial_prompt"})},
}
"""Whose hooks → who else runs them → keys that only the events of that host have, of those which may be meant."""

ANSWERED_ELSEWHERE = frozenset({("vscode", "copilot")})
"""Copilot CLI runs every file in the folder that VS Code's is in, and `setup copilot` writes one for it."""

CONVERSATION_KEYS = ("session_id", "sessionId", "conversation_id")

MAX_REMEMBERED = 512
"""Conversations whose host is known, and events that have come: twice as many as there are client sessions."""

MAX_KEYS = 12
MAX_NAME = 80
"""Of what cannot be read: enough to find it in the reference of the host."""

KEPT_SECONDS = 24 * 60 * 60.0
"""What could not be read yesterday, nobody needs to be warned of."""


class Heard(Struct, frozen=True):
    host: str
    dialect: HostDialect
    event: HostEvent


class Unread(Struct, frozen=True):
    """The events of one host in one folder that could not be read."""

    count: int
    last: UnreadEvent
    at: float
    """When the last one came, by the clock on the wall."""


class HeardEvents:
    def __init__(self, wall: Callable[[], float] | None = None) -> None:
        self._wall = wall or WallClock().wall
        self._hosts: Recent[str, str] = Recent(MAX_REMEMBERED)
        """By conversation: the host that its events have told of."""
        self._answered: Recent[tuple[str, str, str], bool] = Recent(MAX_REMEMBERED)
        self._unread: Recent[tuple[str, str], Unread] = Recent(MAX_REMEMBERED)
        """By host, and by the folder that it worked in."""
        self._told: set[str] = set()

    def read(self, named: str, event: bytes, folder: str = "/") -> Heard:
        """The event that the hook program was given under this name, in a folder; raises `Refused` when malformed."""
        keys: Mapping[str, Raw] = {}
        with suppress(Malformed):
            keys = decode(event, dict[str, Raw])
        host = self._sender(named, keys)
        dialect = dialect_of(host)
        if (named, host) in ANSWERED_ELSEWHERE:
            return Heard(host, dialect, OtherEvent())
        try:
            found = dialect.read(event)
        except Refused:
            self._count((host, folder), UnreadEvent("", tuple(keys)))
            raise
        match found:
            case UnreadEvent():
                found = replace(found, keys=found.keys or tuple(keys))
                self._count((host, folder), found)
            case TouchEvent() | MomentEvent() if found.id and self._came(host, found):
                found = OtherEvent()
            case _:
                pass
        return Heard(host, dialect, found)

    def lines(self, workspace: str = "/") -> tuple[str, ...]:
        """What could not be read below a folder in the last day, a sentence for each host and folder."""
        recent = self._wall() - KEPT_SECONDS
        found = (
            (host, self._unread.get((host, folder))) for host, folder in self._unread if is_inside(folder, workspace)
        )
        return tuple(_sentence(host, unread) for host, unread in found if unread is not None and unread.at > recent)

    def notice(self, host: str, folder: str) -> bytes:
        """What tells the person so, once; empty where the host shows nothing to a person."""
        key = "" if host == PLAIN or host in self._told else load_host(host).notice_key
        unread = self._unread.get((host, folder))
        if not key or unread is None:
            return b""
        self._told.add(host)
        return encode({key: f"Pilotfish: {_sentence(host, unread)}"})

    def _sender(self, named: str, keys: Mapping[str, Raw]) -> str:
        guests = GUESTS.get(named)
        if guests is None:
            return named
        conversation = next((decode(bytes(keys[key]), object) for key in CONVERSATION_KEYS if key in keys), None)
        host = next((guest for guest, marks in guests.items() if not marks.isdisjoint(keys)), None)
        if not isinstance(conversation, str):
            return host or named
        if host is not None:
            self._hosts.put(conversation, host)
        known = self._hosts.get(conversation)
        return named if known is None or known not in guests else known

    def _came(self, host: str, event: TouchEvent | MomentEvent) -> bool:
        key = (host, event.conversation, event.id)
        came = self._answered.get(key) is not None
        self._answered.put(key, value=True)
        return came

    def _count(self, key: tuple[str, str], event: UnreadEvent) -> None:
        before = self._unread.get(key)
        self._unread.put(key, Unread(1 if before is None else before.count + 1, event, self._wall()))


def _sentence(host: str, unread: Unread) -> str:
    title = f"A program that ran `pilotfish hook {PLAIN}`" if host == PLAIN else load_host(host).title
    at = time.strftime("%H:%M", time.localtime(unread.at))
    name = f" `{sanitised(unread.last.name, MAX_NAME)}`" if unread.last.name else ""
    shown = [sanitised(key, MAX_NAME) for key in unread.last.keys[:MAX_KEYS]]
    shown += ["…"] if len(unread.last.keys) > MAX_KEYS else []
    keys = f", with the keys {', '.join(shown)}" if shown else ""
    events = counted(unread.count, "event")
    sent = f"{title} sent {events} that this version cannot read, the last one{name} at {at}{keys}"
    return f"{sent}. Feedback may be missing: update Pilotfish, or report it."
