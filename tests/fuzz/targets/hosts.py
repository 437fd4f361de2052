"""Events of every host's hooks: refused, or one of four things; and what is printed is the dialect's own shape."""

import msgspec

from fuzz.pieces import Pieces
from pilotfish.errors import Refused
from pilotfish.hosts.registry import dialect_of
from pilotfish.hosts.shared.tool_hooks import TouchEvent
from support.hosts.dialects import dialect_names

WORDS = (
    b'"tool_name":"',
    b'"tool_input":{"file_path":"a.x"}',
    b'"hook_event_name":"PostToolUse"',
    b'"tool_response":',
    b'"session_id":"s"',
    b"*** Begin Patch\\n*** Update File: a.x\\n@@\\n-a\\n+b\\n*** End Patch",
    b"apply_patch",
    b'"files":["a.x"]',
    b"\\ud800",
    b"\\u0000",
    b'"event":"touched"',
    b'"args":{"filePath":"a"}',
    b'"tool_calls":[{',
    b'"hookName":"tool_result"',
    b'"isError":true',
    b"\0",
)
SEEDS = (
    b"\x00a.x\0b.x\0",
    b'\x01{"session_id":"s","cwd":"/w","hook_event_name":"PostToolUse","tool_name":"Edit","tool_input":{"file_path":"a.x"}}',
    b'\x02{"taskId":"t","hookName":"tool_result","workspaceRoots":["/w"],"tool_result":{"name":"editor","input":{"path":"a.x"}}}',
    (
        b'\x03{"hook_event_name":"PostToolUse","tool_name":"apply_patch","tool_input":{"command":"*** Begin Patch\\n'
        b'*** Add File: a.x\\n+b\\n*** End Patch"}}'
    ),
    b'\x06{"event":"touched","tool":"edit","args":{"filePath":"a.x"},"sessionID":"s","directory":"/w"}',
    b'\x08{"files":["a.x"],"session":"7","texts":{"a.x":"t"}}',
)
MAX_FILES = 100
"""No event of a host names more files than this to check; only scripts may."""


def run(data: bytes) -> None:
    pieces = Pieces(data)
    host = pieces.choice(sorted(dialect_names()))
    dialect = dialect_of(host)
    try:
        event = dialect.read(pieces.rest())
    except Refused:
        return
    if isinstance(event, TouchEvent):
        assert event.touch.paths
        assert host == "plain" or len(event.touch.paths) <= MAX_FILES
        printed = dialect.written("a < b & “c”\n\ud800", event.event)
        if printed.startswith(b"{"):
            msgspec.json.decode(printed)
