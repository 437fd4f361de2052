"""Files that configuration and sources name (`extends`, `go:embed`): inputs that hold while nothing changes."""

import tempfile
from pathlib import Path

from fuzz.pieces import Pieces
from pilotfish.model import AbsPath
from pilotfish.servers.inputs import MAX_NAMED, input_evidence, outside_folders
from pilotfish.servers.spec import Inputs

WORDS = (
    b'{"extends": "./a.json"}',
    b'{"extends": ["./a", "b", "@c/d"], "references": [{"path": ".."}]}',
    b"//go:embed ",
    b'//go:embed all:a "b c" `d` *.txt\n',
    b"..",
    b"*",
    b"[",
    b"\\u0000",
    b"\x00",
    b"// c\n",
    b"-I../x\n",
    b"=> ../y\n",
    b"/" * 50,
)
SEEDS = (
    b"\x00\x30" + b'{"extends": ["./a", "b"], "references": [{"path": "."}]}' + b"\x02\x15//go:embed a/*.txt b\n",
    b"\x03\x0a-I ../x -I/\x01\x17" + b'{"extends": "tsconfig"}',
)
PLACES = ("tsconfig.json", "a.json", "a.go", "compile_flags.txt")
INPUTS = Inputs(
    steering=("tsconfig.json",),
    extends=("extends", "references.path"),
    mentions=r"(?m)^//go:embed[ \t]+(.+)$",
    folders={"compile_flags.txt": r"-(?:I|isystem|iquote)\s*(\S+)"},
)
SHARE = 8


def run(data: bytes) -> None:
    pieces = Pieces(data)
    with tempfile.TemporaryDirectory() as folder:
        root, texts = AbsPath(folder), dict[str, str]()
        while pieces.more:
            texts[pieces.choice(PLACES)] = pieces.text()
        for name, text in texts.items():
            Path(folder, name).write_bytes(text.encode("utf-8", "surrogateescape"))
        found = input_evidence(INPUTS, root, root)
        assert found is not None
        assert found.holds()
        found.mention(AbsPath(f"{folder}/a.go"), texts.get("a.go", ""))
        assert len(outside_folders(INPUTS, root)) <= MAX_NAMED
