"""Files of git that are read without git: `.git`, `commondir`, the log of HEAD, the stash; commits, or nothing."""

import os
import re
import tempfile
from pathlib import Path

from fuzz.pieces import Pieces
from pilotfish.model import AbsPath
from pilotfish.system.git_state import GitState, git_move, git_state

WORDS = (
    b"gitdir: ",
    b"gitdir: .real",
    b"..",
    b"\x00",
    b"\n",
    b"\t",
    b"0" * 40,
    b" commit: x\n",
    b"checkout: moving from a to b\n",
    b"\xff\xfe",
    b"/" * 300,
)
SEEDS = (
    b"\x00\x0egitdir: .real\n\x01\x02..\x02\x30" + b"0" * 40 + b" a b\tcommit: x\n" + b"1 2 c\tcheckout: moving\n",
    b"\x03\x05abcde\x02\x04\n\n\t\n",
)
PLACES = (".git", ".real/commondir", ".real/logs/HEAD", ".real/refs/stash", ".real/MERGE_HEAD")
SHARE = 8


def run(data: bytes) -> None:
    pieces = Pieces(data)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("logs", "refs"):
            (root / ".real" / name).mkdir(parents=True)
        (root / ".git").write_text("gitdir: .real\n")
        before = git_state(AbsPath(folder))
        while pieces.more:
            (root / pieces.choice(PLACES)).write_bytes(os.fsencode(pieces.text()))
        now = git_state(AbsPath(folder))
        assert isinstance(before, GitState)
        if now is not None:
            move = git_move(before, now)
            given = () if move is None else (move.target or "HEAD", move.base, *move.stashes)
            assert all(one in {":", "HEAD"} or re.fullmatch("[0-9a-f]{40,64}", one) for one in given), given
