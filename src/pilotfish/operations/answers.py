"""Answers read back from JSON, by a program that shows what another process answered."""

from collections.abc import Mapping
from typing import Any

import msgspec

from pilotfish.api.answers import Answer
from pilotfish.operations.rows import ROWS


def answer_of(plain: Mapping[str, Any]) -> Answer[Any]:
    """Raises `msgspec.ValidationError`: for an answer that lies about its state, too."""
    return msgspec.convert(plain, Answer[_DATA.get(str(plain.get("operation")), Any)])


_DATA: Mapping[str, Any] = {operation: row.data for operation, row in ROWS.items()}
