"""Pilotfish as a library, in a program of its own as an agent in Python would be: `python -m told.library ROOT`.

A line of JSON-RPC for each call of a tool (the files, and what was done to them), a line back.
"""

import asyncio
import json
import sys
import time

import pilotfish


async def served(root: str) -> None:
    async with pilotfish.open(root) as workspace:
        while line := await asyncio.to_thread(sys.stdin.readline):
            asked = json.loads(line)
            began = time.perf_counter()
            feedback = await workspace.after_edit(*asked["params"]["files"], kind=asked["params"]["kind"])
            took = (time.perf_counter() - began) * 1000
            about = {"milliseconds": took, "state": str(feedback.state), "reason": feedback.reason or ""}
            print(json.dumps({"id": asked["id"], "result": {"text": feedback.text, **about}}), flush=True)


if __name__ == "__main__":
    asyncio.run(served(sys.argv[1]))
