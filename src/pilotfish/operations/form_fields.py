"""What a question may say: the fields, and the forms in which they belong together.

Validation and tool schemas are both made from this, so they cannot disagree. Descriptions are short because every model
that has the tools pays for them in every request.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Literal

from msgspec import Struct

Type = Literal["string", "integer", "boolean", "object"]


class Field(Struct, frozen=True):
    """One field of a question, in the name that it has on the wire."""

    name: str
    type: Type
    description: str = ""
    is_listed: bool = True
    """Whether schemas name it. What few need is taken without: every byte of a schema is paid for in every request."""


FIELDS = {
    field.name: field
    for field in (
        Field("filePath", "string"),
        Field("line", "integer"),
        Field("character", "integer"),
        Field("symbol", "string"),
        Field("query", "string", "Name or part of it"),
        Field("includeDeclaration", "boolean", "Default true"),
        Field("callHierarchyItem", "object", "From an earlier answer", is_listed=False),
        Field("typeHierarchyItem", "object", "From an earlier answer", is_listed=False),
        Field("newName", "string"),
        Field("newPath", "string"),
        Field("action", "string", "Id or title: shows its diff"),
        Field("kind", "string", "Such as quickfix"),
        Field("apply", "boolean", "Default: preview"),
        Field("text", "string", "Text, not on disk"),
        Field("edit", "string", "replace, before, after or delete"),
        Field("digest", "string", "From source: refuses if the text changed"),
        Field("limit", "integer", is_listed=False),
        Field("offset", "integer"),
        Field("depth", "integer", "Levels"),
        Field("severity", "string", "Least: error, warning, information, hint"),
        Field("kinds", "string", "class,method; all: locals too"),
    )
}


class QuestionForm(Struct, frozen=True):
    """Fields that make a question together: all of `required`, any of `optional`."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()

    def fitting(self) -> Iterator[tuple[str, ...]]:
        """Every choice of fields that has all that it needs, and nothing else."""
        for count in range(len(self.optional) + 1):
            for chosen in combinations(self.optional, count):
                yield (*self.required, *chosen)


NOTHING = QuestionForm(())
AT = QuestionForm(("filePath", "line", "character"))
ON_LINE = QuestionForm(("filePath", "line"))
NAMED = QuestionForm(("filePath", "symbol"), ("line", "character"))
ANYWHERE = QuestionForm(("symbol",))

PLACE = (AT, ON_LINE, NAMED, ANYWHERE)
"""How a place is given: by numbers, by a line (the name that it is about), by name in a file (and on a line of it), or
by name anywhere in the workspace."""
