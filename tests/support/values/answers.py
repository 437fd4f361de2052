"""Answers as another process printed them."""

from typing import Any

import msgspec

from pilotfish.api.answers import Answer
from pilotfish.operations.rows import answer_of


def read_answer(data: bytes) -> Answer[Any]:
    """Read an answer, or raise `msgspec.DecodeError`: for one that lies about its state, too."""
    return answer_of(msgspec.json.decode(data, type=dict[str, Any]))
