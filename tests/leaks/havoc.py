"""Where daemons, supervisors, servers, hooks and proxies are killed at random, and the kernel is asked what is left.

Run as `python havoc.py CYCLES SEED`; prints one JSON object. Each worker is the child subreaper of all that it starts,
so "no child is left" is a proof and not a search. A daemon is forked from a worker that has imported everything: that
takes milliseconds where starting one takes a second. Servers, supervisors and hooks are the real programs.
"""

import ctypes
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio

from pilotfish.config.places import user_places
from pilotfish.daemon.claim import claim_daemon
from pilotfish.daemon.main import run as serve
from pilotfish.daemon.main import settings_of
from pilotfish.daemon.start import settle
from pilotfish.errors import Failure
from pilotfish.ipc.client import Introduction, Terms, open_link
from pilotfish.ipc.rendezvous import DaemonPlace
from pilotfish.model import AbsPath
from pilotfish.operations.tools import McpOptions
from pilotfish.servers.install import ToolsFolder, bundles
from pilotfish.surfaces import hook
from pilotfish.surfaces.install import install_bundle
from pilotfish.surfaces.mcp import proxy as mcp_proxy
from pilotfish.surfaces.mcp import server as mcp_server
from pilotfish.system.process import TAG
from pilotfish.system.supervisor import PR_SET_CHILD_SUBREAPER
from support.process_tree import below, environment, member, pids

WORKERS = 3
"""Side by side: interpreters start on one processor while another waits."""

GONE_SECONDS = 10.0
"""How long what is left of a cycle has to go: a hundred times what it takes."""

LOOK_SECONDS = 0.2
"""How often to look for a daemon that has just been started."""

MARK_SECONDS = 60.0
"""How long a cycle has to get to its moment, on a machine that is busy with something else."""

SPREAD_SECONDS = 0.03
"""Kills fall anywhere in this time after the moment."""

PHASES = ("init", "running", "indexing", "shutdown", "rename", "install")
VICTIMS = ("daemon", "supervisor", "server", "hook", "proxy")
STUBBORN = Path(__file__).with_name("stubborn.py")
DIED = '{"faults": ["a worker died"], "slowest": 0}'
IMPORTED = (mcp_server.serve, anyio.run)
"""What a forked daemon would import by and by."""


@dataclass
class Cycle:
    """One daemon, one client, one server, one death."""

    phase: str
    victim: str
    folder: Path
    chance: random.Random

    def __post_init__(self) -> None:
        self.root = self.folder / "workspace"
        self.root.mkdir()
        (self.root / "a.x").write_text("old\n")
        self.mark = self.folder / "mark"
        os.mkfifo(self.mark)
        self.environment = {
            "HOME": str(self.folder),
            "PILOTFISH_HOME": str(self.folder / "state"),
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
        }
        command = [sys.executable, "-I", "-S", str(STUBBORN), self.phase, str(self.mark)]
        config = self.folder / ".config" / "pilotfish" / "lsp.json"
        config.parent.mkdir(parents=True)
        # Trusted: an untrusted server may not write to the mark.
        trust = {"trustedProjectRoots": [str(self.root)]}
        settings = {"lsp": {"toy": {"command": command, "extensions": [".x"]}}, "security": trust}
        config.write_text(json.dumps(settings))

    def run(self) -> list[str]:
        """What went wrong."""
        hearing = os.open(self.mark, os.O_RDWR | os.O_NONBLOCK)
        try:
            if self.phase == "install":
                return self._installing(hearing)
            daemon = self._daemon()
            client = self._client()
            if self.phase == "shutdown" and heard(hearing):
                os.kill(daemon, signal.SIGTERM)
            server = heard(hearing)
            if server is None:
                self._clear_up(daemon, client)
                return [f"{self.phase} {self.victim}: the moment never came"]
            tag = environment(server).get(TAG, "")
            self._strike(daemon, client, server)
            if self.victim in {"supervisor", "server"} and not ends(tag):
                return [f"{self.phase} {self.victim}: what the daemon should have ended is there"]
            self._clear_up(daemon, client)
        finally:
            os.close(hearing)
        return self._torn()

    def _strike(self, daemon: int, client: int, server: int) -> None:
        signal.sigtimedwait((), self.chance.random() * SPREAD_SECONDS)
        supervisor = member(server)
        targets = {"daemon": daemon, "server": server, "supervisor": supervisor.parent if supervisor else daemon}
        kill(targets.get(self.victim, client))

    def _clear_up(self, daemon: int, client: int) -> None:
        """End what nobody has killed yet: the client as its host would, then every daemon; nothing below them."""
        kill(client)
        kill(daemon)

    def _torn(self) -> list[str]:
        """Whether the file that a rename was to change is neither the old nor the new one."""
        text = (self.root / "a.x").read_text()
        return [] if text in {"old\n", "new\n"} else [f"{self.phase} {self.victim}: a.x is {text!r}"]

    def _daemon(self) -> int:
        """Its pid, once it holds the place: on a slow disk a client would have started another one before."""
        reading, writing = os.pipe()
        daemon = forked(partial(self._be_daemon, writing))
        os.close(writing)
        select.select((reading,), (), (), MARK_SECONDS)
        os.close(reading)
        return daemon

    # --- Who asks -------------------------------------------------------------------------------------------------

    def _client(self) -> int:
        if self.victim == "proxy":
            return forked(self._be_proxy)
        if self.phase == "rename":
            return forked(self._ask_for_rename)
        return self._hook()

    def _hook(self) -> int:
        reading, writing = os.pipe()
        os.write(writing, b'{"files":["a.x"]}')
        os.close(writing)
        argv = [sys.executable, "-I", "-S", hook.__file__, "plain"]
        process = subprocess.Popen(argv, stdin=reading, stdout=subprocess.DEVNULL, cwd=self.root, env=self.environment)
        os.close(reading)
        process.returncode = 0  # this worker reaps whatever is its child, and no destructor need look for it
        return process.pid

    def _be_daemon(self, held: int) -> None:
        self._move_in()
        place = DaemonPlace(os.environ)
        settle(place)
        claim = claim_daemon(place)
        assert claim is not None
        os.close(held)
        serve(claim)

    def _be_proxy(self) -> None:
        """A host that says all it has to say, and then waits; its words are in the pipe before anybody reads."""
        self._move_in()
        os.chdir(self.root)
        place = {"filePath": "a.x", "line": 1, "character": 1}
        tool = {"name": "lsp_rename", "arguments": {**place, "newName": "new", "apply": True}}
        if self.phase != "rename":
            tool = {"name": "lsp_hover", "arguments": place}
        info = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "havoc", "version": "0"}}
        messages = (
            {"id": 1, "method": "initialize", "params": info},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": tool},
        )
        reading, writing = os.pipe()
        os.write(writing, b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages))
        os.dup2(reading, 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        self._reach()
        mcp_proxy.run(lambda wire: mcp_proxy.by_daemon(McpOptions(), wire))

    def _ask_for_rename(self) -> None:
        self._move_in()
        question = {
            "operation": "rename",
            "filePath": "a.x",
            "line": 1,
            "character": 1,
            "newName": "new",
            "apply": True,
        }
        with (
            suppress(Failure),
            open_link(Introduction(cwd=str(self.root)), Terms(dict(os.environ), True, MARK_SECONDS)) as link,
        ):
            link.request("ask", question)

    def _reach(self) -> None:
        """Wait until the daemon is there, so that the proxy does not start another."""
        with suppress(Failure):
            open_link(None, Terms(dict(os.environ), True, MARK_SECONDS)).close()

    def _move_in(self) -> None:
        os.environ.clear()
        os.environ.update(self.environment)

    # --- Installing -----------------------------------------------------------------------------------------------

    def _installing(self, hearing: int) -> list[str]:
        """The package manager is the stubborn one; killed is who runs it, or itself."""
        program = self.folder / "bin" / "npm"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\nexec {sys.executable} -I -S {STUBBORN} init {self.mark} <{self.folder}/hello\n")
        program.chmod(0o755)
        body = b'{"id":1,"method":"initialize"}'
        (self.folder / "hello").write_bytes(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        installer = forked(self._install)
        manager = heard(hearing)
        if manager is None:
            kill(installer)
            return [f"{self.phase} {self.victim}: the moment never came"]
        signal.sigtimedwait((), self.chance.random() * SPREAD_SECONDS)
        kill(manager if self.victim == "server" else installer)
        os.waitpid(installer, 0)
        return []

    def _install(self) -> None:
        self._move_in()
        bundle = next(one for one in bundles().values() if one.source == "npm")
        with suppress(Failure):
            tools = ToolsFolder(AbsPath(self.environment["PILOTFISH_HOME"]))
            install_bundle(bundle, tools, self.environment, lambda share: None)


def main(cycles: int, seed: int) -> None:
    settings_of(user_places({"HOME": "/nowhere"}), {})  # reads the catalogue and builds the schema here, once
    workers: list[tuple[int, int]] = []
    for number in range(WORKERS):
        reading, writing = os.pipe()
        workers.append((forked(partial(work, range(number, cycles, WORKERS), seed, writing)), reading))
        os.close(writing)
    results = [json.loads(Path(f"/dev/fd/{reading}").read_text() or DIED) for _, reading in workers]
    for pid, _ in workers:
        os.waitpid(pid, 0)
    faults = [fault for result in results for fault in result["faults"]]
    print(json.dumps({"cycles": cycles, "faults": faults, "slowest": max(result["slowest"] for result in results)}))


def work(numbers: range, seed: int, writing: int) -> None:
    """Run these cycles; what was left, and how long the slowest took to go."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    faults, slowest = list[str](), 0.0
    for number in numbers:
        phase, victim = PHASES[number % len(PHASES)], VICTIMS[number // len(PHASES) % len(VICTIMS)]
        folder = Path(tempfile.mkdtemp(prefix="havoc-"))
        faults += Cycle(phase, victim, folder, random.Random(seed * 1_000_003 + number)).run()
        began = time.monotonic()
        faults += [f"{phase} {victim} {number}: {left}" for left in remains(began + GONE_SECONDS)]
        slowest = max(slowest, time.monotonic() - began)
        shutil.rmtree(folder, ignore_errors=True)
    os.write(writing, json.dumps({"faults": faults[:20], "slowest": slowest}).encode())


def remains(deadline: float) -> list[str]:
    """Wait until the kernel says that no child is left; what is there at the deadline is named, and ended.

    A client that found its daemon gone may have started another, which is no leak: it is killed when it shows.
    """
    while time.monotonic() < deadline:
        for each in below(os.getpid()):
            if b"pilotfish.daemon.start" in command(each.pid):
                kill(each.pid)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return []
        signal.sigtimedwait({signal.SIGCHLD}, LOOK_SECONDS)
    named = [str(each) for each in below(os.getpid())]
    while found := below(os.getpid()):
        for each in found:
            kill(each.pid)
        with suppress(ChildProcessError):
            os.waitpid(-1, 0)
    return named


def forked(work: Callable[[], object]) -> int:
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            work()
            code = 0
        finally:
            os._exit(code)
    return pid


def ends(tag: str) -> bool:
    """Wait until nothing of a tree is left, while the daemon lives."""
    deadline = time.monotonic() + GONE_SECONDS
    while any(environment(pid).get(TAG) == tag for pid in pids()):
        if time.monotonic() > deadline:
            return False
        signal.sigtimedwait({signal.SIGCHLD}, 0.01)
    return True


def heard(hearing: int) -> int | None:
    """The pid that the server writes when its moment has come."""
    poller = select.poll()
    poller.register(hearing, select.POLLIN)
    return int(os.read(hearing, 64).split()[0]) if poller.poll(MARK_SECONDS * 1000) else None


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
