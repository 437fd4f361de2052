"""The daemon at work: the composition root of everything that clients reach over the socket.

Stopping is a ladder, and bounded: no new client is accepted, clients are notified and disconnected, sessions end,
servers are stopped in parallel. What is left after `STOP_SECONDS` ends with the process, which the supervisors of all
servers notice.
"""

import atexit
import faulthandler
import logging
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from functools import cache, partial
from importlib import import_module
from typing import Never

import anyio
from msgspec import Struct
from msgspec.structs import replace

from pilotfish.config.host_trust import deciding_files
from pilotfish.config.places import Places
from pilotfish.config.problems import validated
from pilotfish.config.schema import PoolSettings
from pilotfish.config.sheets import read_user_sheet
from pilotfish.daemon.claim import DaemonClaim
from pilotfish.daemon.connection import Acceptor, ClientConnection
from pilotfish.daemon.lifetime import GONE, Lifetime, wait_for_process
from pilotfish.daemon.methods import SocketMethods
from pilotfish.daemon.tracing import trace
from pilotfish.ipc.client_sessions import ClientSessions, DaemonContext, Upgrade, Upgraded, Upgrades
from pilotfish.ipc.logs import LogFile
from pilotfish.ipc.messages import About, Attendee
from pilotfish.ipc.rendezvous import BUILD, PROTOCOL
from pilotfish.library.workspace import computer
from pilotfish.model import AbsPath
from pilotfish.paths import ancestors
from pilotfish.pool.plan import Limits, Running
from pilotfish.servers.catalogue import canonical_id
from pilotfish.service.service import Service, System
from pilotfish.store import Store
from pilotfish.surfaces.mcp import connection as mcp
from pilotfish.system import calls
from pilotfish.system.clock import current_time
from pilotfish.system.ownership import make_private_folders
from pilotfish.system.ports import Interest, OpenWatcher
from pilotfish.system.vitals import machine_memory_mib

logger = logging.getLogger(__name__)

STOP_SECONDS = 10.0
"""For everything: 8 s are the servers', whose ladders run side by side, 1 s the clients'."""

HANG_UP_SECONDS = 1.5
"""For all clients at once: each has 1 s to hear the last word."""

DESCRIPTORS = 4096
"""64 servers with five each, 256 clients, watches; far below what makes programs slow that close them all at start."""

LATER = {"lsp": "pilotfish.surfaces.lsp.face", "serve": "pilotfish_http.serve"}
"""Upgrades that few clients ask for, and the modules that make them of a `DaemonContext`, imported then."""

FAILED = 70
"""The exit code of a fault of ours."""


# --- The user's settings for the daemon as a whole --------------------------------------------------------------------

IDLE_VARIABLE = "PILOTFISH_IDLE_SECONDS"
"""Overrides how long the daemon stays without client sessions; `pool.idleMinutes` says it otherwise."""

SHORTEST_IDLE = 1.0
"""Seconds: the client that started the daemon is about to call it."""


class Settings(Struct, frozen=True):
    limits: Limits
    idle_seconds: float


def settings_of(places: Places, environment: Mapping[str, str]) -> Settings:
    """Read once, when the daemon starts. No error in a file keeps it from starting."""
    # `pool` counts in this file alone, so no workspace is opened: the home would be taken for one that holds the file.
    sheet = read_user_sheet(places, None, canonical_id)
    pool = PoolSettings() if sheet is None else validated(sheet.value).pool
    idle_seconds = pool.idle_minutes * 60.0
    limits = Limits(
        idle_seconds=idle_seconds,
        unused_seconds=idle_seconds,
        memory_mib_per_server=pool.memory_mib_per_server,
        memory_mib=machine_memory_mib() / 2 if pool.memory_mib == "half" else pool.memory_mib,
    )
    with suppress(ValueError):
        idle_seconds = max(SHORTEST_IDLE, float(environment.get(IDLE_VARIABLE, "")))
    return Settings(limits, idle_seconds)


async def watch_trust(watch: OpenWatcher, places: Places, reload: Callable[[], None]) -> None:
    """Call `reload` when the user's configuration or a record of trust, ours or a host's, may have changed, for ever.

    Servers of a project that is no longer trusted are then stopped at once, not at the next request (F81).
    """
    # The folder of the records is ours to make. That of the configuration is not: until it exists, watch its parent.
    make_private_folders(places.pins)
    async with watch() as watcher:
        while True:
            deciding = (places.global_file, *filter(os.path.exists, deciding_files(places)))
            # The folder that each file is in, or the nearest one above it that exists.
            there = (next(filter(os.path.isdir, ancestors(os.path.dirname(file))), "/") for file in deciding)
            await watcher.cover(Interest((), folders=frozenset({places.pins, *map(AbsPath, there)})))
            await watcher.drain()
            reload()
            await watcher.wait_for_changes()


# --- Its life ---------------------------------------------------------------------------------------------------------


def run(claim: DaemonClaim) -> Never:
    """Serve until the end of the daemon's life, which is that of the process."""
    logging.raiseExceptions = False
    root = logging.getLogger("pilotfish")
    root.addHandler(LogFile(claim.place.log))
    root.setLevel(logging.getLevelNamesMapping().get(os.environ.get("PILOTFISH_LOG", "").upper(), logging.INFO))
    faulthandler.enable()
    if sys.platform != "win32":
        faulthandler.register(signal.SIGUSR1)
    calls.allow_descriptors(DESCRIPTORS)
    calls.give_back_memory()
    code = FAILED
    try:
        if left := claim.begin():
            logger.warning("the daemon before this one ended without a word: killed, or out of memory pid=%s", left)
        system = computer(os.environ)
        anyio.run(_live, claim, system, settings_of(system.places, os.environ))
        code = 0
    except BaseException:
        logger.exception("the daemon failed")
    finally:
        claim.end()
        # Folders that last as long as the process: `os._exit`, which waits for no thread, would leave them.
        with suppress(Exception):
            # There is no public name for it.
            atexit._run_exitfuncs()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        os._exit(code)


async def _live(claim: DaemonClaim, system: System, settings: Settings) -> None:
    daemon = Daemon(claim, system, settings)
    # Runs in its own thread, so it works even when the loop hangs.
    await daemon.live(lambda: faulthandler.dump_traceback_later(STOP_SECONDS, exit=True))
    faulthandler.cancel_dump_traceback_later()


def _later(module: str, context: DaemonContext) -> Upgrade:
    """The upgrade of a module that is imported when a client asks for it."""
    found = cache(lambda: import_module(module).upgrade_of(context))

    async def upgrade(upgraded: Upgraded) -> None:
        await found()(upgraded)

    return upgrade


class Daemon:
    """The parts, and what the socket's methods need of them."""

    def __init__(
        self, claim: DaemonClaim, system: System, settings: Settings, upgrades: Upgrades | None = None
    ) -> None:
        self._claim = claim
        self._settings = settings
        self._store = Store(system.places.store)
        context = DaemonContext(self._store, self.about, system.clock, system.places.state)
        self._upgrades: Upgrades = {
            "mcp": mcp.upgrade,
            "trace": partial(trace, clock=system.clock),
            **{name: _later(module, context) for name, module in LATER.items()},
            **(upgrades or {}),
        }
        self._system = system
        self._service = Service(replace(system, memory=self._store), settings.limits)
        self._sessions = ClientSessions(self._service.end, wait_for_process)
        self.life = Lifetime(self._sessions, settings.idle_seconds, can_be_found=claim.holds)
        self._started = current_time()

    async def live(self, bounded: Callable[[], None]) -> None:
        """From the first client to the end; `bounded` is called when that begins, and sees to it that it ends."""
        logger.info("started pid=%d socket=%s build=%d", os.getpid(), self._claim.place.socket, BUILD)
        service, sessions, watch, life = self._service, self._sessions, self._system.watch, self.life
        with closing(self._store):
            async with service.running(), sessions.running(), anyio.create_task_group() as tasks:
                methods = SocketMethods(service, sessions, life, self.about, tasks)
                acceptor = Acceptor(
                    self._claim, lambda stream, is_full: ClientConnection(stream, methods, self._upgrades, is_full)
                )

                async def end_when_gone() -> None:
                    # Nobody can find this daemon any more, and the next client starts another one: two must not run.
                    await acceptor.wait_until_gone(watch)
                    life.stop(GONE)

                tasks.start_soon(self._handle_signals)
                tasks.start_soon(life.run)
                tasks.start_soon(acceptor.run, tasks)
                tasks.start_soon(end_when_gone)
                if watch is not None:
                    tasks.start_soon(watch_trust, watch, self._system.places, service.workspaces.look_again)
                try:
                    await life.ending.wait()
                finally:
                    bounded()
                    acceptor.close()
                with anyio.move_on_after(HANG_UP_SECONDS):
                    await acceptor.close_all(f"the daemon is ending: {life.why}")
                tasks.cancel_scope.cancel()
        logger.info("ended why=%s", life.why)

    def about(self) -> About:
        entries = self._service.pool.entries().items()
        attendees = (
            Attendee(
                session=session.client.id,
                host=session.client.host,
                conversation=session.client.conversation,
                root=session.client.root,
                attached=session.hang_up is not None,
                calls=session.calls,
            )
            for session in self._sessions.all()
        )
        return About(
            pid=os.getpid(),
            protocol=PROTOCOL,
            build=BUILD,
            seconds=current_time() - self._started,
            socket=self._claim.place.socket,
            log=self._claim.place.log,
            superseded=self.life.superseded,
            sessions=tuple(attendees),
            servers=Counter(key.server for key, entry in entries if isinstance(entry.slot, Running)),
        )

    async def _handle_signals(self) -> None:
        if sys.platform == "win32":
            return  # the daemon has no console, and nothing else brings it a signal
        with anyio.open_signal_receiver(*calls.ENDING) as signals:
            async for number in signals:
                if self.life.ending.is_set():
                    # The second signal: the supervisors end the servers as soon as this process is gone.
                    logger.warning("ending at once signal=%s", number.name)
                    self._claim.end()
                    os._exit(FAILED)
                self.life.stop(number.name)
