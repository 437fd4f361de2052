"""Files of git that are read without git: `.git`, `commondir`, the log of HEAD, the stash; commits, or nothing. And its
configuration, as far as that includes files: where it may include a pipe, git is not run."""

import os
import re
import tempfile
from pathlib import Path

from fuzz.pieces import Pieces
from pilotfish.model import AbsPath
from pilotfish.system.git import is_readable
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
    b"[include]\n\tpath = pipe\n",
    b'[includeIf "gitdir:**"]\n\tpath = "../.real/pipe"\n',
    b"[INCLUDE] path = config.worktree ; x\n",
    b"\\\n",
)
SEEDS = (
    b"\x00\x0egitdir: .real\n\x01\x02..\x02\x30" + b"0" * 40 + b" a b\tcommit: x\n" + b"1 2 c\tcheckout: moving\n",
    b"\x03\x05abcde\x02\x04\n\n\t\n",
    b"\x05\x19[include]\n\tpath = pipe\n\x06\x05[core",
)
PLACES = (
    ".git",
    ".real/commondir",
    ".real/logs/HEAD",
    ".real/refs/stash",
    ".real/MERGE_HEAD",
    ".real/config",
    ".real/x",
)
SHARE = 8


def run(data: bytes) -> None:
    pieces = Pieces(data)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("logs", "refs"):
            (root / ".real" / name).mkdir(parents=True)
        (root / ".git").write_text("gitdir: .real\n")
        os.mkfifo(root / ".real" / "pipe")
        before = git_state(AbsPath(folder))
        while pieces.more:
            (root / pieces.choice(PLACES)).write_bytes(os.fsencode(pieces.text()))
        config = root / ".real" / "config"
        if is_readable(folder) and config.exists():
            assert not re.search(rb"(?m)^\[include\]\n\tpath = pipe$", config.read_bytes())
        now = git_state(AbsPath(folder))
        assert isinstance(before, GitState)
        if now is not None:
            move = git_move(before, now)
            given = () if move is None else (move.target or "HEAD", move.base, *move.stashes)
            assert all(one in {":", "HEAD"} or re.fullmatch("[0-9a-f]{40,64}", one) for one in given), given
