"""The bytes of every kind of message that we make: two of our own peers agree even when both are wrong."""

import json

import pytest
from lsprotocol import types as lsp
from lsprotocol.converters import get_converter
from msgspec import UNSET, Raw

from pilotfish.protocol.codec import encode
from pilotfish.protocol.frames import FrameDecoder, frame
from pilotfish.protocol.rpc import ErrorCode, Peer, ResponseError
from pilotfish.protocol.wire import (
    ContentChange,
    DidChangeParams,
    DidOpenParams,
    TextDocumentIdentifier,
    TextDocumentItem,
    TextDocumentPositionParams,
    WirePosition,
    WireRange,
)

URI = "file:///w/a.py"
PLACE = WirePosition(0, 3)


def owing(*identifiers: int | str) -> Peer:
    """A peer that has received a request with each of these ids."""
    peer = Peer()
    for identifier in identifiers:
        peer.receive(encode({"id": identifier, "method": "m"}))
    return peer


def cancelled() -> bytes:
    peer = Peer()
    data = peer.cancel(peer.request("m").id)
    assert data is not None
    return data


def second_request() -> bytes:
    peer = Peer()
    peer.request("m")
    return peer.request("n").data


MESSAGES = [
    pytest.param(
        Peer().request("shutdown").data,
        b'Content-Length: 44\r\n\r\n{"jsonrpc":"2.0","id":0,"method":"shutdown"}',
        id="request without params",
    ),
    pytest.param(
        second_request(),
        b'Content-Length: 37\r\n\r\n{"jsonrpc":"2.0","id":1,"method":"n"}',
        id="second request",
    ),
    pytest.param(
        Peer().request("textDocument/hover", TextDocumentPositionParams(TextDocumentIdentifier(URI), PLACE)).data,
        b"Content-Length: 141\r\n\r\n"
        b'{"jsonrpc":"2.0","id":0,"method":"textDocument/hover","params":'
        b'{"textDocument":{"uri":"file:///w/a.py"},"position":{"line":0,"character":3}}}',
        id="request with params",
    ),
    pytest.param(
        Peer().request("m", None).data,
        b'Content-Length: 51\r\n\r\n{"jsonrpc":"2.0","id":0,"method":"m","params":null}',
        id="request with null, only where it is asked for",
    ),
    pytest.param(
        Peer().notify("exit"),
        b'Content-Length: 33\r\n\r\n{"jsonrpc":"2.0","method":"exit"}',
        id="notification without params",
    ),
    pytest.param(
        Peer().notify("exit", UNSET),
        b'Content-Length: 33\r\n\r\n{"jsonrpc":"2.0","method":"exit"}',
        id="notification with unset params",
    ),
    pytest.param(
        Peer().notify("initialized", {}),
        b'Content-Length: 52\r\n\r\n{"jsonrpc":"2.0","method":"initialized","params":{}}',
        id="notification with empty params",
    ),
    pytest.param(
        Peer().notify("textDocument/didOpen", DidOpenParams(TextDocumentItem(URI, "python", 0, "# é😀\n"))),
        b"Content-Length: 154\r\n\r\n"
        b'{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":'
        b'{"uri":"file:///w/a.py","languageId":"python","version":0,"text":"# \xc3\xa9\xf0\x9f\x98\x80\\n"}}}',
        id="length in bytes",
    ),
    pytest.param(
        Peer().notify(
            "textDocument/didChange",
            DidChangeParams(
                TextDocumentIdentifier(URI, 2),
                [ContentChange("\ud800", WireRange(PLACE, PLACE)), ContentChange("")],
            ),
        ),
        b"Content-Length: 234\r\n\r\n"
        b'{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":'
        b'{"uri":"file:///w/a.py","version":2},"contentChanges":'
        b'[{"text":"\xef\xbf\xbd","range":{"start":{"line":0,"character":3},"end":{"line":0,"character":3}}},'
        b'{"text":""}]}}',
        id="half a surrogate pair",
    ),
    pytest.param(
        owing(7).reply(7, None),
        b'Content-Length: 38\r\n\r\n{"jsonrpc":"2.0","id":7,"result":null}',
        id="null result",
    ),
    pytest.param(
        owing("7").reply("7", [{"a": 1}, None]),
        b'Content-Length: 50\r\n\r\n{"jsonrpc":"2.0","id":"7","result":[{"a":1},null]}',
        id="result for a string id",
    ),
    pytest.param(
        owing(0).reply(0, Raw(b"[1, 2]")),
        b'Content-Length: 40\r\n\r\n{"jsonrpc":"2.0","id":0,"result":[1, 2]}',
        id="result word for word",
    ),
    pytest.param(
        owing(7).fail(7, ResponseError(ErrorCode.METHOD_NOT_FOUND, "no such method")),
        b'Content-Length: 75\r\n\r\n{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no such method"}}',
        id="error",
    ),
    pytest.param(
        owing("a").fail("a", ResponseError(ErrorCode.SERVER_CANCELLED, "", Raw(b'{"retriggerRequest":false}'))),
        b"Content-Length: 97\r\n\r\n"
        b'{"jsonrpc":"2.0","id":"a","error":{"code":-32802,"message":"","data":{"retriggerRequest":false}}}',
        id="error with data",
    ),
    pytest.param(
        cancelled(),
        b'Content-Length: 62\r\n\r\n{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":0}}',
        id="cancellation",
    ),
]


@pytest.mark.proves("RPC-2", "C1", "C6", "C8", "C11", "C12", "C25", "C37", "C64", "C101")
@pytest.mark.parametrize(("made", "expected"), MESSAGES)
def test_these_are_the_bytes(made: bytes, expected: bytes) -> None:
    assert made == expected
    (body,) = FrameDecoder().feed(expected)
    assert made == frame(body)


@pytest.mark.proves("RPC-2", "C6", "C37")
@pytest.mark.parametrize(
    ("data", "shape"),
    [
        (Peer().request("shutdown").data, lsp.ShutdownRequest),
        (Peer().notify("exit"), lsp.ExitNotification),
        (Peer().notify("initialized", {}), lsp.InitializedNotification),
        (
            Peer().request("textDocument/hover", TextDocumentPositionParams(TextDocumentIdentifier(URI), PLACE)).data,
            lsp.HoverRequest,
        ),
        (
            Peer().notify("textDocument/didOpen", DidOpenParams(TextDocumentItem(URI, "python", 1, "x"))),
            lsp.DidOpenTextDocumentNotification,
        ),
        (cancelled(), lsp.CancelNotification),
        (owing(7).fail(7, ResponseError(-32601, "no")), lsp.ResponseErrorMessage),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_lsprotocol_reads_them_and_writes_the_same(data: bytes, shape: type) -> None:
    converter = get_converter()
    (body,) = FrameDecoder().feed(data)
    plain = json.loads(body)
    written = converter.unstructure(converter.structure(plain, shape), unstructure_as=shape)
    assert {name: value for name, value in written.items() if value is not None} == plain
