"""The text of an edit of a symbol: its lines end as those of the file do, and nothing else of it changes."""

import pytest

from pilotfish.api.questions import Operation, Question
from pilotfish.operations.symbols import Lines
from pilotfish.protocol.positions import Text
from pilotfish.service.changes.symbol_edits import edit_of

KEPT = 'x = "a\u2028b\x0cc\x85d"'


@pytest.mark.proves("OPS-5")
@pytest.mark.parametrize("given", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF file", "CRLF file"])
def test_what_is_no_line_end_of_lsp_stays(given: str, end: str) -> None:
    question = Question(operation=Operation.EDIT_SYMBOL, edit="replace", text=given.join((KEPT, "y = 1", "")))
    made = edit_of(question, Lines(0, 0), Text(f"old = 1{end}other = 2{end}"))
    assert made.new_text == f"{KEPT}{end}y = 1"
