"""What a server is asked: a question whose names and paths have become a document, a place and an item."""

from typing import TypeVar

from msgspec import Struct

from pilotfish.api.answers import ItemReference
from pilotfish.api.questions import Question
from pilotfish.errors import Bug
from pilotfish.protocol.wire import Raw, WireDiagnostic, WirePosition, WireRange

T = TypeVar("T")


class RequestContext(Struct, frozen=True):
    """A question, and what was found out so that it can be put to one server. Positions are in that server's units."""

    question: Question
    uri: str | None = None
    """The document, spelt as it was opened."""
    position: WirePosition | None = None
    range: WireRange | None = None
    """Where actions are wanted."""
    diagnostics: tuple[WireDiagnostic, ...] = ()
    """What the server itself said about that range, word for word: many fixes hang on it."""
    item: Raw | ItemReference | None = None
    """The item of a hierarchy, as the server gave it or as the caller handed it back."""

    @property
    def document(self) -> str:
        return self._known(self.uri, "a document")

    @property
    def place(self) -> WirePosition:
        return self._known(self.position, "a position")

    @property
    def extent(self) -> WireRange:
        return self._known(self.range, "a range")

    @property
    def hierarchy_item(self) -> Raw | ItemReference:
        return self._known(self.item, "an item")

    @property
    def new_name(self) -> str:
        return self._known(self.question.new_name, "a new name")

    @property
    def query(self) -> str:
        return self._known(self.question.query, "a query")

    def _known(self, value: T | None, what: str) -> T:
        if value is None:
            raise Bug(f"{self.question.operation} was asked without {what}")
        return value
