"""A `WorkspaceEdit`: malformed, or a plan whose text changes give what the slow implementation gives."""

from fuzz.pieces import Pieces
from pilotfish.model import Encoding
from pilotfish.protocol.codec import Malformed
from pilotfish.protocol.edits import Create, Delete, EditPlan, Overlapping, Rename, TextChange, apply_edits, edit_plan
from pilotfish.protocol.positions import Text, range_from_wire
from support.oracles import naive_text

WORDS = (
    b'"documentChanges":[',
    b'"changes":{',
    b'"kind":"create"',
    b'"kind":"rename"',
    b'"kind":"delete"',
    b'"uri":"file:///w/a"',
    b'"range":{"start":{"line":0,"character":0},"end":{"line":9,"character":9}}',
    b'"newText":"',
    b'"snippet":{"value":"${1:x}$0"}',
    b'"annotationId":"n"',
    b'"changeAnnotations":{"n":{"label":"l","needsConfirmation":true}}',
    b"\\ud83d",
    b"%2e%2e",
)
SEEDS = (
    (
        b'\x00\x0ba\xf0\x9f\x98\x80\r\nb\r\nc{"changes":{"file:///w/a":[{"range":{"start":{"line":0,"character":1},'
        b'"end":{"line":1,"character":0}},"newText":"x\\n"}]}}'
    ),
    (
        b'\x01\x02ab{"documentChanges":[{"kind":"rename","oldUri":"file:///w/a","newUri":"file:///w/b"},'
        b'{"textDocument":{"uri":"file:///w/b","version":null},"edits":[{"range":{"start":{"line":0,"character":0},'
        b'"end":{"line":0,"character":0}},"newText":"y"},{"range":{"start":{"line":0,"character":0},"end":{"line":0,'
        b'"character":2}},"snippet":{"kind":"snippet","value":"${1|a,b|}"}}]}]}'
    ),
)


def run(data: bytes) -> None:
    pieces = Pieces(data)
    encoding = pieces.choice(tuple(Encoding))
    text = Text(pieces.text())
    try:
        plan = edit_plan(pieces.rest())
    except Malformed:
        return
    _check(plan, text, encoding)


def _check(plan: EditPlan, text: Text, encoding: Encoding) -> None:
    for operation in plan.operations:
        match operation:
            case TextChange(_, _, edits):
                places = [range_from_wire(edit.range, text, encoding) for edit in edits]
                wanted = naive_text.apply(
                    text.string,
                    [
                        naive_text.NaiveEdit(
                            naive_text.offset(text.string, place.start.line, place.start.character),
                            naive_text.offset(text.string, place.end.line, place.end.character),
                            naive_text.with_line_endings_of(text.string, edit.new_text),
                        )
                        for place, edit in zip(places, edits, strict=True)
                    ],
                )
                try:
                    made = apply_edits(text, edits, encoding)
                except Overlapping:
                    made = None
                assert made == wanted, (made, wanted)
            case Create() | Rename() | Delete():
                pass
