"""The events of hosts as they arrive: whose each one is, whether it came before, and how many could not be read.

Some hosts load the hook files of others: VS Code those of Claude Code and of Copilot CLI, Cursor those of Claude Code.
So the hook program may be started under the name of one host by another, and more than once for the same event. An
event belongs to the host that its keys tell of, is read and answered in that host's dialect, and is answered once.
What cannot be read is not passed over in silence: it is counted, `status`, `doctor` and `setup --status` show it, and
the person is told once where the host has words for that.
"""

from collections.abc import Collection, Mapping

from msgspec import Raw, Struct
from msgspec.structs import replace

from pilotfish.counting import counted
from pilotfish.errors import Refused
from pilotfish.hosts.registry import PLAIN, dialect_of, load_host
from pilotfish.hosts.shared.tool_hooks import HostDialect, HostEvent, MomentEvent, OtherEvent, TouchEvent, UnreadEvent
from pilotfish.protocol.codec import Malformed, decode, encode
from pilotfish.sanitise import sanitised
from pilotfish.service.recent import Recent

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


class Heard(Struct, frozen=True):
    host: str
    dialect: HostDialect
    event: HostEvent


class Unread(Struct, frozen=True):
    """The events of one host that could not be read."""

    count: int
    last: UnreadEvent


class HeardEvents:
    def __init__(self) -> None:
        self._hosts: Recent[str, str] = Recent(MAX_REMEMBERED)
        """By conversation: the host that its events have told of."""
        self._answered: Recent[tuple[str, str, str], bool] = Recent(MAX_REMEMBERED)
        self._unread: dict[str, Unread] = {}
        self._told: set[str] = set()

    def read(self, named: str, event: bytes) -> Heard:
        """The event that the hook program was given under this name; raises `Refused` when it is malformed."""
        keys = _members(event)
        host = self._sender(named, keys)
        dialect = dialect_of(host)
        if (named, host) in ANSWERED_ELSEWHERE:
            return Heard(host, dialect, OtherEvent())
        try:
            found = dialect.read(event)
        except Refused:
            self._count(host, UnreadEvent("", tuple(keys)))
            raise
        match found:
            case UnreadEvent():
                found = replace(found, keys=found.keys or tuple(keys))
                self._count(host, found)
            case TouchEvent() | MomentEvent() if found.id and self._came(host, found):
                found = OtherEvent()
            case _:
                pass
        return Heard(host, dialect, found)

    def lines(self) -> tuple[str, ...]:
        """What could not be read, a sentence for each host."""
        return tuple(_sentence(host, unread) for host, unread in self._unread.items())

    def notice(self, host: str) -> bytes:
        """What tells the person so, once; empty where the host shows nothing to a person."""
        key = "" if host == PLAIN or host in self._told else load_host(host).notice_key
        if not key:
            return b""
        self._told.add(host)
        return encode({key: f"Pilotfish: {_sentence(host, self._unread[host])}"})

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

    def _count(self, host: str, event: UnreadEvent) -> None:
        before = self._unread.get(host)
        self._unread[host] = Unread(1 if before is None else before.count + 1, event)


def _members(event: bytes) -> Mapping[str, Raw]:
    """The members of an event that is an object; none of any other."""
    try:
        return decode(event, dict[str, Raw])
    except Malformed:
        return {}


def _sentence(host: str, unread: Unread) -> str:
    title = host if host == PLAIN else load_host(host).title
    name = f" `{sanitised(unread.last.name, MAX_NAME)}`" if unread.last.name else ""
    keys = f", with the keys {_listed(unread.last.keys)}" if unread.last.keys else ""
    return (
        f"{title} sent {counted(unread.count, 'event')} that this version cannot read, the last one{name}{keys}. "
        "Feedback may be missing: update Pilotfish, or report it."
    )


def _listed(keys: Collection[str]) -> str:
    shown = [sanitised(key, MAX_NAME) for key in keys][:MAX_KEYS]
    return ", ".join(shown) + (", …" if len(keys) > MAX_KEYS else "")
