"""Configuration files, ours and other hosts': problems that can be printed, and nothing that runs without trust."""

from fuzz.pieces import Pieces
from pilotfish.config.gate import RUNNING_FIELDS, split
from pilotfish.config.merge import ConfigSource
from pilotfish.config.places import CONFIG_DIALECTS
from pilotfish.config.problems import validated
from pilotfish.config.sheets import Reader
from pilotfish.model import AbsPath

WORDS = (
    b'"lsp":',
    b'"command":["x"]',
    b'"env":{"PATH":"x"}',
    b'"watch":["x"]',
    b'"settings":{"pythonPath":"x"}',
    b"//",
    b"/*",
    b",]",
    b'"extensions":[".x"]',
    b'"disabled":true',
    b'"security":{"projectConfigPolicy":"always"}',
    b'"timing":{"requestTimeoutMs":1}',
    b'"initialization":',
    b'"lspServers":',
    b'"enabled":false',
    b"\\u0000",
    b"1e999",
    b"\xef\xbb\xbf",
    b'"__proto__":',
)
SEEDS = (
    b'\x00{"lsp": {"x": {"command": ["a"], "extensions": [".x"], "env": {"A": "b"}}}} // c',
    b'\x00{"lsp": {"pyright": {"settings": {"python": {"pythonPath": "/x"}}}}, "feedback": {"maxPerFile": 3,},}',
    b'\x01{"lsp": {"ts": {"command": ["a"], "enabled": false, "initializationOptions": {"tsdk": "x"}}}}',
    b'\x02{"servers": {"py": {"command": "x", "args": ["y"], "workspaceRootMarkers": ["a"]}}, "diagnosticTimeout": 1}',
    b'\x03[1, {"lsp": false}]',
)
READERS = (None, *CONFIG_DIALECTS)


def run(data: bytes) -> None:
    pieces = Pieces(data)
    reader = Reader(ConfigSource.PROJECT, lambda name: name, pieces.choice(READERS))
    sheet = reader.sheet(pieces.rest(), AbsPath("/w/lsp.json"))
    if sheet is None:
        return
    for problem in sheet.problems:
        assert str(sheet.placed(problem)).isprintable(), problem
    validated(sheet.value)
    opened = split(sheet.value).open
    validated(opened)
    servers = opened.get("lsp")
    for entry in servers.values() if isinstance(servers, dict) else ():
        assert not isinstance(entry, dict) or not any(entry.get(field) for field in RUNNING_FIELDS), opened
