"""What a server says about projects by `workspace/executeCommand`; the catalogue names the requests.

The only shape so far is that of tsserver: a body, 1-based lines, 1-based UTF-16 offsets, kinds as words.
"""

import msgspec
from msgspec import Raw, Struct

from pilotfish.client.session import Session
from pilotfish.errors import Failure
from pilotfish.model import AbsPath
from pilotfish.protocol.codec import Malformed, decode, decode_items
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.wire import WirePlace, WirePosition, WireRange, WireSymbol
from pilotfish.servers.spec import ProjectRequests

COMMAND = "workspace/executeCommand"

_KINDS = {
    "module": 2, "class": 5, "local class": 5, "method": 6, "property": 7, "accessor": 7, "getter": 7, "setter": 7,
    "constructor": 9, "enum": 10, "interface": 11, "type": 11, "function": 12, "local function": 12, "var": 13,
    "let": 13, "local var": 13, "const": 14, "alias": 13, "enum member": 22,
}  # fmt: skip
"""The protocol's number of each kind of tsserver."""


_FUNCTIONS = frozenset({"function", "local function", "method", "constructor", "getter", "setter"})
_VARIABLES = frozenset({"var", "let", "const", "local var", "parameter"})


class _Place(Struct, frozen=True):
    line: int
    offset: int


class _Found(Struct, frozen=True, rename="camel"):
    name: str
    kind: str
    file: str
    start: _Place
    end: _Place
    container_name: str | None = None
    container_kind: str | None = None

    @property
    def is_local(self) -> bool:
        return self.kind in _VARIABLES and self.container_kind in _FUNCTIONS


class _Project(Struct, frozen=True, rename="camel"):
    file_names: tuple[str, ...] = ()


class _Reply(Struct, frozen=True):
    success: bool = True
    body: Raw = Raw(b"null")


async def files_of_project(session: Session, requests: ProjectRequests, path: AbsPath) -> frozenset[AbsPath]:
    """The files of the project that a file belongs to; none where the server does not say."""
    try:
        answer = await _asked(session, requests, requests.files, {"file": path, "needFileNameList": True})
        project = decode(decode(answer, _Reply).body, _Project)
    except (Failure, Malformed):
        return frozenset()
    return frozenset(AbsPath(name) for name in project.file_names)


async def symbols_of_projects(session: Session, requests: ProjectRequests, query: str) -> Raw:
    """The symbols of every open project, as `workspace/symbol` has them. Raises a `Failure`, or `Malformed`."""
    answer = await _asked(session, requests, requests.symbols, {"searchValue": query, "maxResultCount": 1000})
    found = decode_items(decode(answer, _Reply).body, _Found)
    return Raw(msgspec.json.encode([_symbol(one) for one in found.items if not one.is_local]))


async def _asked(session: Session, requests: ProjectRequests, name: str, arguments: object) -> Raw:
    return await session.request(COMMAND, {"command": requests.command, "arguments": [name, arguments]})


def _symbol(found: _Found) -> WireSymbol:
    place = WireRange(_position(found.start), _position(found.end))
    return WireSymbol(
        name=found.name,
        kind=_KINDS.get(found.kind, 13),
        location=WirePlace(uri=uri_of(AbsPath(found.file)), range=place),
        container_name=found.container_name,
    )


def _position(place: _Place) -> WirePosition:
    return WirePosition(place.line - 1, place.offset - 1)
