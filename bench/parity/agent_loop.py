"""OpenCode's real agent loop on a scripted model: alone, with its own language servers, and with ours instead.

The model writes a file that is broken, then one that is mended, and so on. A time is from the model's answer until the
host comes back with the tool's result: the edit, and whatever the host waits for after it. An answer is right if the
result of a broken edit names what is broken, and that of a mended one does not.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from parity.fixtures import GRAMMARS
from parity.measures import Bench
from parity.subjects import CLONE

sys.path.insert(0, str(CLONE / "tests"))

from support.hosts import host_home, pilotfish, run
from support.model_server import Call, ModelServer, Turn
from support.opencode_agents import opencode

LANGUAGE = "python"
SERVER = {"command": list(GRAMMARS[LANGUAGE].command), "extensions": [".py"]}

SUBJECTS: dict[str, tuple[dict[str, Any], bool]] = {
    "opencode, no diagnostics": ({"lsp": False}, False),
    "opencode": ({"lsp": {"basedpyright": SERVER, "pyright": {"disabled": True}, "ty": {"disabled": True}}}, False),
    "opencode + ours": ({"lsp": False}, True),
}
"""Name → OpenCode's own settings, and whether our plugin is there."""


class Clock(ModelServer):
    """A model that looks at the clock when it is asked and when it answers."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        super().__init__(turns)
        self.asked: dict[int, float] = {}
        self.answered_at: dict[int, float] = {}

    def answered(self, path: str, body: dict[str, Any]) -> Any:
        now = time.perf_counter()
        answer = super().answered(path, body)
        if self.requests and self.requests[-1].body is body and self.requests[-1].heard.tools:
            position = self.requests[-1].position
            self.asked.setdefault(position, now)
            self.answered_at.setdefault(position, time.perf_counter())
        return answer


def loops(bench: Bench) -> None:
    for _ in range(bench.plan.cold):
        for name, (settings, ours) in SUBJECTS.items():
            with tempfile.TemporaryDirectory() as folder, host_home(Path(folder), ("basedpyright",)) as home:
                if ours:
                    pilotfish(home, "setup", "opencode", "--global")
                with Clock(_turns(home.root / "a.py", 2 * max(2, bench.plan.edits // 2))) as model:
                    run(opencode(**settings), home, model)
                _count(bench, name, model)


def _turns(file: Path, many: int) -> list[Turn]:
    texts = [f"print(missing_{number})\n" if number % 2 == 0 else f"print({number})\n" for number in range(many)]
    return [Call("write", {"filePath": str(file), "content": text}) for text in texts]


def _count(bench: Bench, name: str, model: Clock) -> None:
    results = model.requests[-1].heard.results
    for number, result in enumerate(results):
        measure = "first edit in the agent loop" if number == 0 else "edit in the agent loop"
        record = bench.record(measure, LANGUAGE, name)
        record.milliseconds.append((model.asked[number + 1] - model.answered_at[number]) * 1000)
        broken = number % 2 == 0
        if name != "opencode, no diagnostics":
            record.wrong += (f"missing_{number}" in result) != broken
