"""Answers read back from JSON, by a program that shows what another process answered."""

from collections.abc import Mapping
from typing import Any

import msgspec

from pilotfish.api.answers import Answer
from pilotfish.operations.rows import ROWS


def read_answer(data: bytes) -> Answer[Any]:
    """Read an answer, or raise `msgspec.DecodeError`: for one that lies about its state, too."""
    return answer_of(msgspec.json.decode(data, type=dict[str, Any]))


def answer_of(plain: Mapping[str, Any]) -> Answer[Any]:
    """The same of JSON that is decoded already; raises `msgspec.ValidationError`."""
    return msgspec.convert(plain, Answer[_DATA.get(str(plain.get("operation")), Any)])


_DATA: Mapping[str, Any] = {operation: row.data for operation, row in ROWS.items()}
