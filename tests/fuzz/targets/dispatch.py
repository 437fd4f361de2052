"""The messages of a server: each is an event, a request is settled once, and every question of its own is answered."""

from collections import deque

from fuzz.pieces import Pieces
from pilotfish.client.inbound import Inbox, answer_request, take_notification
from pilotfish.protocol.capabilities import Capabilities
from pilotfish.protocol.rpc import (
    Answered,
    CancelRequested,
    Dropped,
    ErrorCode,
    Event,
    Failed,
    Notified,
    Peer,
    Requested,
    ResponseError,
)
from pilotfish.protocol.wire import WorkspaceFolder

WORDS = (
    b'"jsonrpc":"2.0"',
    b'"id":',
    b'"method":"',
    b'"params":',
    b'"result":',
    b'"error":{"code":-32800,"message":""}',
    b"workspace/configuration",
    b"client/registerCapability",
    b"client/unregisterCapability",
    b"$/progress",
    b"workspace/applyEdit",
    b"window/showMessageRequest",
    b"textDocument/publishDiagnostics",
    b"$/cancelRequest",
    b"workspace/didChangeWatchedFiles",
    b"\\ud800",
    b"1e400",
    b"[[[[[[[[",
    b"null",
    b'{"uri":"file:///w/a","diagnostics":[]}',
)
SEEDS = (
    b'{"jsonrpc":"2.0","id":0,"result":null}\n{"jsonrpc":"2.0","id":0,"result":1}',
    b'{"id":"x","method":"workspace/configuration","params":{"items":[{"section":"a.b"},{}]}}',
    (
        b'{"id":1,"method":"client/registerCapability","params":{"registrations":[{"id":"r","method":'
        b'"workspace/didChangeWatchedFiles","registerOptions":{"watchers":[{"globPattern":"**/*.py","kind":7}]}}]}}'
    ),
    (
        b'{"method":"textDocument/publishDiagnostics","params":{"uri":"file:///w/a","version":1,"diagnostics":'
        b'[{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":1}},"message":"m"}]}}'
    ),
    b'{"method":"$/progress","params":{"token":1,"value":{"kind":"begin","title":"t"}}}',
    b'{"id":2,"method":"workspace/applyEdit","params":{"edit":{"changes":{}}}}\n[{}]\nnull',
)
REQUESTS = 3
"""Of ours, that wait while the messages come in."""


def run(data: bytes) -> None:
    peer, settled = Peer(), list[object]()
    for number in range(REQUESTS):
        peer.request(f"test/{number}", {})
    inbox = _inbox()
    for body in Pieces(data).rest().split(b"\n"):
        _serve(peer, inbox, peer.receive(body), settled)
    assert len(settled) == len(set(settled)), settled
    assert len(peer.waiting) == REQUESTS - len(settled)
    assert peer.owed == {}


def _serve(peer: Peer, inbox: Inbox, event: Event, settled: list[object]) -> None:
    match event:
        case Requested(identifier, method, params):
            reply = answer_request(inbox, method, params, stopping=False)
            if isinstance(reply, ResponseError):
                assert reply.code != ErrorCode.INTERNAL_ERROR, reply
                peer.fail(identifier, reply)
            else:
                peer.reply(identifier, reply)
        case Notified(method, params):
            take_notification(inbox, method, params)
        case Answered(identifier) | Failed(identifier):
            settled.append(identifier)
        case CancelRequested() | Dropped():
            pass


def _inbox() -> Inbox:
    folders = (WorkspaceFolder("file:///w", "w"),)
    offered = Capabilities({"hoverProvider": True})
    return Inbox({"a": {"b": 1}}, folders, offered, messages=deque(maxlen=10), now=lambda: 0.0)
