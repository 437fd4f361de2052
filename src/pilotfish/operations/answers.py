"""Answers read back from JSON, by whoever shows what another process answered."""

from collections.abc import Mapping
from typing import Any

import msgspec

from pilotfish.api.answers import (
    Action,
    Answer,
    Changes,
    Diagnostic,
    Edge,
    HierarchyItem,
    Hover,
    Location,
    Signature,
    Symbol,
)
from pilotfish.api.questions import Operation

SHAPES: Mapping[str, Any] = {
    Operation.DEFINITION: tuple[Location, ...],
    Operation.DECLARATION: tuple[Location, ...],
    Operation.TYPE_DEFINITION: tuple[Location, ...],
    Operation.IMPLEMENTATION: tuple[Location, ...],
    Operation.REFERENCES: tuple[Location, ...],
    Operation.HOVER: Hover,
    Operation.SIGNATURE: tuple[Signature, ...],
    Operation.DOCUMENT_SYMBOL: tuple[Symbol, ...],
    Operation.WORKSPACE_SYMBOL: tuple[Symbol, ...],
    Operation.PREPARE_CALLS: tuple[HierarchyItem, ...],
    Operation.INCOMING_CALLS: tuple[Edge, ...],
    Operation.OUTGOING_CALLS: tuple[Edge, ...],
    Operation.SUPERTYPES: tuple[HierarchyItem, ...],
    Operation.SUBTYPES: tuple[HierarchyItem, ...],
    Operation.DIAGNOSTICS: dict[str, tuple[Diagnostic, ...]],
    Operation.RENAME: Changes,
    Operation.RENAME_FILE: Changes,
    Operation.CODE_ACTIONS: tuple[Action, ...],
}
"""What `data` is, by operation; null where nothing was found or nobody answered."""


def read_answer(data: bytes) -> Answer[Any]:
    """Read an answer, or raise `msgspec.DecodeError`: for one that lies about its state, too."""
    return answer_of(msgspec.json.decode(data, type=dict[str, Any]))


def answer_of(plain: Mapping[str, Any]) -> Answer[Any]:
    """The same of JSON that is decoded already; raises `msgspec.ValidationError`."""
    shape = SHAPES.get(str(plain.get("operation")), Any)
    return msgspec.convert(plain, Answer[shape])
