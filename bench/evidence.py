"""What the proof costs that no answer rests on something that has changed unseen: milliseconds per question.

`python bench/evidence.py [ROUNDS]` prints, never judges. A question pays for a look at all that the servers have read
besides sources, and at what the watcher is not told of; here in a project of 1,000 files with 200 packages. What else a
question costs, beside a bare client and other programs, is a part of `bench/run`.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pilotfish.model import AbsPath
from pilotfish.protocol.watching import watch_registrations
from pilotfish.servers.catalogue import load
from pilotfish.servers.inputs import input_evidence
from pilotfish.system.ports import Interest
from pilotfish.system.watching.watcher import open_watcher


async def evidence(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = AbsPath(str(Path(folder).resolve()))
        site = lay_out(Path(root))
        everything = watch_registrations({"watchers": [{"globPattern": "**/*"}]})
        async with open_watcher() as watcher:
            await watcher.cover(Interest((root,), tuple(everything)))
            await watcher.drain()
            costs: dict[str, Callable[[], object]] = {"watcher": watcher.drain_now}
            for server in ("basedpyright", "typescript"):
                known = input_evidence(load()[server].inputs, root, root, (site,))
                assert known is not None
                costs[server] = known.holds
            await asyncio.sleep(0.2)
            medians = {name: cost_of(look, rounds) for name, look in costs.items()}
    print("evidence per question, ms at p50:", ", ".join(f"{name} {cost:.3f}" for name, cost in medians.items()))
    most = medians["watcher"] + max(medians["basedpyright"], medians["typescript"])
    print(f"  together at most {most:.3f} (target 0.3)")


def lay_out(root: Path) -> AbsPath:
    """1,000 sources, ten of them with a second name; 200 packages of each kind. Returns `site-packages`."""
    site = root / ".venv" / "lib" / "python3.11" / "site-packages"
    for number in range(1000):
        source = root / "src" / str(number // 20) / f"m{number}.py"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text("x = 1\n")
    for number in range(200):
        scope = f"@s{number % 20}/" if number % 4 == 0 else ""
        for package in (site / f"p{number}", root / "node_modules" / f"{scope}p{number}"):
            package.mkdir(parents=True)
            (package / "__init__.py").write_text("")
    for number in range(10):
        os.link(root / "src" / "0" / f"m{number}.py", root / f"other{number}.py")
    (root / "pyrightconfig.json").write_text('{"extends": "base.json"}')
    (root / "base.json").write_text("{}")
    (root / "tsconfig.json").write_text('{"extends": "./base.json"}')
    (root / "node_modules" / ".package-lock.json").write_text("{}")
    return AbsPath(str(site))


def cost_of(look: Callable[[], object], rounds: int) -> float:
    times: list[float] = []
    for _ in range(rounds):
        started = time.perf_counter()
        look()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


if __name__ == "__main__":
    asyncio.run(evidence(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
