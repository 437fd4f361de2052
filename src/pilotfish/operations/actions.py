"""Code actions: what a server offers to do, and in which order that is done.

An action may come as a bare command, with an edit, with a command to be run after the edit, or with neither until it is
resolved. `step_of` decides; the caller carries it out, and nothing is done unless asked for.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.api.answers import Action
from pilotfish.errors import Code, Refused
from pilotfish.operations.results import Reading, RequestContext, ServerResult, View, is_null, is_string, one_or_many
from pilotfish.protocol.codec import Malformed, decode
from pilotfish.protocol.wire import Raw, UnsetType, WireAction, WireCommand, WireDiagnostic, WirePosition, WireRange

ID_DIGITS = 8
_ID = re.compile(rf"a[0-9a-f]{{{ID_DIGITS}}}")


class FoundAction(ServerResult, frozen=True):
    """An action as offered, by its title; `raw` is what a server wants back to resolve it."""

    raw: Raw
    kind: str | None = None
    preferred: bool = False
    disabled: str | None = None
    edit: Raw | None = None
    command: WireCommand | None = None
    is_command: bool = False
    """A bare command of the oldest shape: it cannot be resolved."""

    @property
    def is_unresolved(self) -> bool:
        """Whether the server may have left its edit to `codeAction/resolve`."""
        return self.disabled is None and self.edit is None and not self.is_command

    def resolved(self, view: View) -> Action:
        """As surfaces see it; its number is given when all servers' actions stand in one list."""
        return Action(0, self.name, view.server, self.kind, self.preferred, self.disabled)


class Perform(Struct, frozen=True):
    """Apply the edit, if any, then run the command, if any."""

    edit: Raw | None
    command: WireCommand | None
    warning: str | None = None


def read_actions(raw: Raw, _asked: RequestContext) -> Reading[FoundAction]:
    """Read `(Command | CodeAction)[] | null`."""
    raws = one_or_many(raw, Raw)
    found = [action for action in map(read_action, raws.items) if action is not None]
    return Reading(tuple(found), len(raws.items) - len(found))


def joined_actions(offers: Sequence[Sequence[FoundAction]]) -> tuple[FoundAction, ...]:
    """The actions of several ranges, each as the first range has it that offers it."""
    found: list[FoundAction] = []
    for offered in offers:
        known = {(one.name, one.kind, one.preferred) for one in found}
        found += (one for one in offered if (one.name, one.kind, one.preferred) not in known)
    return tuple(found)


def read_action(raw: Raw) -> FoundAction | None:
    """Read one `Command | CodeAction`; None when it is neither."""
    try:
        action = decode(raw, WireAction)
        command = _command(action)
    except Malformed:
        return None
    return FoundAction(
        raw=raw,
        name=action.title,
        kind=action.kind,
        preferred=bool(action.is_preferred),
        disabled=None if action.disabled is None else action.disabled.reason or "the server does not say why",
        edit=None if isinstance(action.edit, UnsetType) or is_null(action.edit) else action.edit,
        command=command,
        is_command=not isinstance(action.command, UnsetType) and is_string(action.command),
    )


def step_of(action: FoundAction, commands: Collection[str]) -> Perform:
    """What doing `action` takes, by a server with these commands; raises `Refused` when it cannot be done."""
    if action.disabled is not None:
        raise Refused(Code.UNSUPPORTED, f"the action {action.name!r} is disabled: {action.disabled}")
    if action.command is None or action.command.command in commands:
        if action.edit is None and action.command is None:
            raise Refused(Code.UNSUPPORTED, f"the action {action.name!r} has neither an edit nor a command")
        return Perform(action.edit, action.command)
    missing = f"the server does not offer the command {action.command.command!r}"
    if action.edit is None:
        raise Refused(Code.UNSUPPORTED, f"the action {action.name!r} cannot be done: {missing}")
    return Perform(action.edit, None, f"{missing}, so it was left out")


def overlapping(diagnostics: Iterable[WireDiagnostic], extent: WireRange) -> tuple[WireDiagnostic, ...]:
    """The diagnostics that touch a range: what a server wants to hear of when it is asked for fixes there."""
    start, end = _point(extent.start), _point(extent.end)
    return tuple(one for one in diagnostics if _point(one.range.start) <= end and start <= _point(one.range.end))


def with_ids(actions: Iterable[Action], text: str) -> tuple[Action, ...]:
    """The actions, each with an id that no other action and no other text has."""
    seen: Counter[tuple[str, str, str | None]] = Counter()
    named: list[Action] = []
    for action in actions:
        look = action.server, action.title, action.kind
        digest = hashlib.sha256("\0".join((*map(str, look), str(seen[look]), text)).encode(errors="surrogatepass"))
        seen[look] += 1
        named.append(replace(action, id=f"a{digest.hexdigest()[:ID_DIGITS]}"))
    return tuple(named)


def chosen(actions: Sequence[Action], wanted: str) -> int:
    """The index of the action that `wanted` names, by id, number (from 1) or title; raises `Refused`."""
    for index, action in enumerate(actions):
        if wanted == action.id or (wanted.isdecimal() and int(wanted) == action.number > 0):
            return index
    if _ID.fullmatch(wanted):
        message = f"there is no action {wanted} any more: the text has changed since it was listed"
        raise Refused(Code.STALE, message, hint="List the actions again.")
    same = [action for action in actions if action.title == wanted]
    if len(same) == 1:
        return actions.index(same[0])
    if same:
        ids = ", ".join(f"{action.number} ({action.id})" for action in same)
        raise Refused(Code.INVALID_INPUT, f"several actions have this title: {ids}", hint="Give a number or an id.")
    titles = {action.title: action for action in actions}
    nearest = [f"{titles[title].number} {title!r}" for title in get_close_matches(wanted, titles, 3, 0.5)]
    hint = f"Nearest: {', '.join(nearest)}." if nearest else f"There are {len(actions)} actions here: list them first."
    raise Refused(Code.INVALID_INPUT, f"no action is called {wanted!r} here", hint=hint)


def _point(position: WirePosition) -> tuple[int, int]:
    return position.line, position.character


def _command(action: WireAction) -> WireCommand | None:
    command = action.command
    if isinstance(command, UnsetType) or is_null(command):
        return None
    if is_string(command):
        return WireCommand(decode(command, str), action.title, action.arguments)
    return decode(command, WireCommand)
