"""What we add to a warm question: `python bench/latency.py [ROUNDS] [--peers NAME,…] [--hooks N]` prints, never judges.

Everybody asks for the same definitions in the same files of the same kind of language server (basedpyright), each with
a server process of its own, in turns. The bare client is the least that can ask: a frame out, a frame in, JSON by the
standard library, no timeouts, no freshness, no places in code points. What differs is what we cost: through the
library, over the daemon's socket, and through `pilotfish mcp`, which is a process, the socket and the SDK's server.
The library and the daemon race against the bare client alone, and again with everybody: the more processes take turns
on a few cores, the colder are the caches of each, and the slower are all.

Other programs (`--peers all`, or some of `parity/peers.json`) are installed into `.tools/bench` and asked beside them.
Then: what a second session on the same root waits for, what the daemon holds, and what the hook program takes.
`--evidence` measures only what each question pays for the proof that nothing was missed: a look at all that the servers
have read besides sources, and at what the watcher is not told of, in a project of 1,000 files with 200 packages.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import hook
from parity import ours, peers
from parity.fixtures import Fixture, Place, make
from parity.floor import bare
from parity.subjects import Kind, Scratch, Subject, environment

from pilotfish.ipc.client import Introduction, Link, Terms, open_link
from pilotfish.model import AbsPath
from pilotfish.protocol.watching import watch_registrations
from pilotfish.servers.catalogue import load
from pilotfish.servers.inputs import input_evidence
from pilotfish.system.clock import WallClock
from pilotfish.system.ports import Interest
from pilotfish.system.watching.inotify import open_inotify_watcher

MODULES = 12
FUNCTIONS = 40
WARM_UP = 60
"""Rounds that are not counted: the servers fill their caches in them."""

IDLE_SESSIONS = 50
SECOND_SESSIONS = 20

Ask = Callable[[Place], Awaitable[object]]


# --- The race ------------------------------------------------------------------------------------------------------


@dataclass
class Racer:
    name: str
    ask: Ask
    times: list[float] = field(default_factory=list)
    wrong: int = 0

    async def run(self, place: Place, *, counts: bool) -> None:
        started = time.perf_counter()
        found = str(await self.ask(place))
        spent = (time.perf_counter() - started) * 1000
        if counts:
            self.times.append(spent)
            self.wrong += place.target not in found


async def race(racers: list[Racer], fixture: Fixture, rounds: int) -> None:
    for number in range(WARM_UP + rounds):
        place = fixture.places[(number * 7) % len(fixture.places)]
        turn = number % len(racers)
        for racer in racers[turn:] + racers[:turn]:
            await racer.run(place, counts=number >= WARM_UP)
    print_table(racers, rounds)


def print_table(racers: list[Racer], rounds: int) -> None:
    base = racers[0]
    print(f"{'warm definition, ms':22}{'p50':>9}{'p95':>9}{'p50 over bare':>15}{'ratio p50':>11}{'wrong':>7}")
    for racer in racers:
        p50, p95 = statistics.median(racer.times), statistics.quantiles(racer.times, n=20)[-1]
        over = p50 - statistics.median(base.times)
        ratio = p50 / statistics.median(base.times)
        print(f"{racer.name:22}{p50:9.3f}{p95:9.3f}{over:+15.3f}{ratio:11.2f}{racer.wrong:7}")
    print(f"{rounds} rounds in turns; targets over bare at p50: library 1 ms, daemon + MCP 3 ms\n")


# --- Who races -----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def over_socket(fixture: Fixture, scratch: Path) -> AsyncGenerator[Link]:
    """A session at the daemon of this scratch folder."""
    with await asyncio.to_thread(linked, fixture, scratch) as link:
        yield link


def linked(fixture: Fixture, scratch: Path) -> Link:
    return open_link(Introduction(cwd=str(fixture.root)), Terms(environment(scratch)))


def alone(floor: Subject, library: Subject) -> list[Racer]:
    return [Racer("bare client", floor.definition), Racer("library", library.definition)]


def asking(link: Link) -> Ask:
    async def ask(place: Place) -> object:
        return link.request("ask", question(place))

    return ask


def question(place: Place) -> dict[str, Any]:
    where = {"filePath": place.file, "line": place.line + 1, "character": place.character + 1}
    return {"operation": "goToDefinition", **where}


def installed(names: str) -> list[Kind]:
    """The other programs; what a registry does not give is left out, and said."""
    wanted = list(peers.KINDS) if names == "all" else [name for name in names.split(",") if name]
    found: list[Kind] = []
    for name in wanted:
        try:
            peers.install(name)
            found.append(peers.KINDS[name])
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"{name} cannot be installed here: {error}")
    return found


# --- Beside the race -----------------------------------------------------------------------------------------------


def second_sessions(fixture: Fixture, scratch: Path) -> None:
    """From connecting to the first answer, while another session has the root open."""
    with linked(fixture, scratch) as watcher:
        before = watcher.request("about")["servers"]
        times: list[float] = []
        for number in range(SECOND_SESSIONS):
            started = time.perf_counter()
            with linked(fixture, scratch) as link:
                link.request("ask", question(fixture.places[number]))
                times.append((time.perf_counter() - started) * 1000)
        after = watcher.request("about")["servers"]
    new = sum(after.values()) - sum(before.values())
    print(f"second session: first answer p50 {statistics.median(times):.1f} ms, max {max(times):.1f} ms (target 50);")
    print(f"  new servers {new} (target 0)\n")


def memory(fixture: Fixture, scratch: Path, fresh: Path) -> None:
    """What the daemon holds: with nothing running, per idle session, and after the race."""
    with open_link(None, Terms(environment(fresh))) as link:
        pid = int(link.welcome["pid"])
        idle = hook.memory(pid)
        links = [linked(fixture, fresh) for _ in range(IDLE_SESSIONS)]
        each = (hook.memory(pid) - idle) * 1024 / IDLE_SESSIONS
        for one in links:
            one.close()
        link.request("stop")
    with linked(fixture, scratch) as link:
        busy = hook.memory(int(link.welcome["pid"]))
    print(f"daemon: {idle:.1f} MB with nothing running (target 90), {each:.0f} KB per idle session (target 200),")
    print(f"  {busy:.1f} MB after the race, the MCP SDK in it\n")


async def evidence(rounds: int) -> None:
    """What the proof costs that no answer rests on something that has changed unseen."""
    with tempfile.TemporaryDirectory() as folder:
        root = AbsPath(str(Path(folder).resolve()))
        site = lay_out(Path(root))
        everything = watch_registrations({"watchers": [{"globPattern": "**/*"}]})
        async with open_inotify_watcher(WallClock()) as watcher:
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
    print(f"  together at most {most:.3f} (target 0.3)\n")


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


# --- All of it -----------------------------------------------------------------------------------------------------


async def main(rounds: int, names: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        scratch = Scratch(Path(folder).resolve())
        fixture = make("python", scratch.fresh("project"), seed=1, modules=MODULES, functions=FUNCTIONS)
        shared = scratch.fresh("daemon")
        others = installed(names)
        try:
            async with AsyncExitStack() as stack:
                floor = await stack.enter_async_context(bare(fixture, scratch.fresh("bare")))
                library = await stack.enter_async_context(ours.library(fixture, scratch.fresh("library")))
                await race(alone(floor, library), fixture, rounds)
                link = await stack.enter_async_context(over_socket(fixture, shared))
                await race([Racer("bare client", floor.definition), Racer("daemon", asking(link))], fixture, rounds)
                mcp = await stack.enter_async_context(ours.mcp(fixture, shared))
                racers = [
                    *alone(floor, library),
                    Racer("daemon", asking(link)),
                    Racer("daemon + MCP", mcp.definition),
                ]
                for kind in others:
                    peer = await stack.enter_async_context(kind.open(fixture, scratch.fresh(kind.name)))
                    racers.append(Racer(kind.name, peer.definition))
                await race(racers, fixture, rounds)
                second_sessions(fixture, shared)
                memory(fixture, shared, scratch.fresh("idle"))
        finally:
            ours.run([sys.executable, "-m", "pilotfish", "daemon", "stop"], shared)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("rounds", type=int, nargs="?", default=1000)
    arguments.add_argument("--peers", default="", metavar="NAME,…", help="beside us: all, or some of cclsp, …")
    arguments.add_argument("--hooks", type=int, default=100, help="runs of the hook program")
    arguments.add_argument("--evidence", action="store_true", help="only what the proof of freshness costs")
    given = arguments.parse_args()
    asyncio.run(evidence(given.rounds))
    if not given.evidence:
        asyncio.run(main(given.rounds, given.peers))
        hook.measure(given.hooks)
