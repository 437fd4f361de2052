"""Arguments of tools, as models write them: a question, or a refusal that says what is wrong and what is taken."""

from fuzz.pieces import Pieces
from pilotfish.errors import Code, Refused
from pilotfish.operations.validate import question_of
from pilotfish.protocol.codec import Malformed, decode

WORDS = (
    b'"operation":"',
    b"goToDefinition",
    b"findReferences",
    b"rename",
    b"codeActions",
    b'"filePath":"a"',
    b'"line":1',
    b'"character":1',
    b'"symbol":"A.b"',
    b'"query":',
    b'"item":{',
    b'"newName":"n"',
    b'"apply":true',
    b"-1",
    b"1e9",
    b"null",
    b"\\u0000",
    b'"command":["x"]',
)
SEEDS = (
    b'{"operation":"hover","filePath":"a.x","line":1,"character":1}',
    b'{"operation":"rename","filePath":"a.x","symbol":"x","newName":"y","apply":true}',
    b'{"operation":"incomingCalls","item":{"name":"n"}}',
    b'{"operation":"goToDefinitions"}',
)


def run(data: bytes) -> None:
    try:
        arguments = decode(Pieces(data).rest(), dict[str, object])
    except Malformed:
        return
    refused = _refusal(arguments)
    if refused is not None:
        assert refused.code is Code.INVALID_INPUT
        assert refused.hint
        assert len(refused.message) < 20_000


def _refusal(arguments: dict[str, object]) -> Refused | None:
    try:
        question_of(arguments)
    except Refused as refused:
        return refused
    return None
