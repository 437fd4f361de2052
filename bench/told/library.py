"""Pilotfish as a library, in a program of its own as an agent in Python would be: a line for a call of a tool, a line
back. A file is read before it is first edited, as by everybody.

`python -m told.library ROOT` is that program.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from harness.servers import CLONE
from harness.setting import HOST_SECONDS, Setting

import pilotfish
from pilotfish.api.answers import Feedback
from told.conversation import Told
from told.edits import Edit


class Library:
    name = "library"
    carries_out = False

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._program: subprocess.Popen[str] | None = None
        self._read: set[str] = set()

    def begin(self) -> None:
        argv = [sys.executable, "-m", __name__, str(self._setting.root)]
        environment = self._setting.environment() | {"PYTHONPATH": str(CLONE / "bench")}
        pipe = subprocess.PIPE
        self._program = subprocess.Popen(
            argv, cwd=self._setting.root, env=environment, stdin=pipe, stdout=pipe, text=True
        )

    def before(self, edit: Edit) -> None:
        for change in edit.changes if edit.tool != "patch" else ():
            if change.path not in self._read and change.before is not None:
                self._read.add(change.path)
                self._called([change.path], "read")
                time.sleep(self._setting.pause)

    def after(self, edit: Edit) -> Told:
        return self._called(edit.paths, edit.tool)

    def _called(self, files: Sequence[str], tool: str) -> Told:
        program = self._program
        assert program is not None
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(json.dumps({"files": list(files), "kind": tool}) + "\n")
        program.stdin.flush()
        line = program.stdout.readline()
        return Told(**json.loads(line)) if line else Told("", 0.0, error="the program has ended")

    def end(self) -> None:
        if self._program is not None:
            self._program.communicate(timeout=HOST_SECONDS)


async def served(root: str) -> None:
    async with pilotfish.open(root) as workspace:
        while line := await asyncio.to_thread(sys.stdin.readline):
            given: dict[str, Any] = json.loads(line)
            began = time.perf_counter()
            feedback = await workspace.after_edit(*given["files"], kind=given["kind"])
            print(json.dumps(_told(feedback, (time.perf_counter() - began) * 1000)), flush=True)


def _told(feedback: Feedback, milliseconds: float) -> dict[str, Any]:
    reason = feedback.reason or ""
    return {"text": feedback.text, "milliseconds": milliseconds, "state": str(feedback.state), "reason": reason}


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    asyncio.run(served(sys.argv[1]))
