"""The model of freshness: a schedule of edits against an honest server, and the oracle that judges every outcome.

The oracle knows what the server had at every moment. An outcome that is called fresh must be what is true of some state
that the server was in since the check began, with the text of the check or one that was edited later (DIAG-10). So a
result of an older text is never passed off as fresh, and nothing is called clean that was not.
"""

import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import anyio
import trio.testing
from anyio.abc import TaskGroup

from pilotfish.client.handshake import SessionOptions
from pilotfish.client.session import Session
from pilotfish.config.load import ServerConfig
from pilotfish.config.schema import TimingSettings
from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.policy.boundary import Boundary, boundary_of
from pilotfish.pool.entry import Recipe, Restore
from pilotfish.pool.plan import Key
from pilotfish.pool.pool import Pool
from pilotfish.protocol.watching import watch_registrations
from pilotfish.servers.inputs import input_evidence
from pilotfish.servers.resolve import Candidate, ServerChoice
from pilotfish.servers.spec import Environment, FileRule, Inputs, Restricted, RootRule, ServerSpec
from pilotfish.service.diagnostics.ledgers import Ledgers
from pilotfish.service.diagnostics.runner import CheckRunner, Patience
from pilotfish.service.diagnostics.verdicts import Outcome
from pilotfish.service.disk_changes import CATCH_UP_SECONDS, DiskChanges
from pilotfish.service.texts import Texts
from pilotfish.service.use_server import Access
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession, Visit
from pilotfish.system.ports import FileText, Identity, Launch
from support.servers.honest import CONFIGURATION, IGNORED, PACKAGE, Honest, Kind, Whims, truth
from support.servers.pools import FakeVitals
from support.servers.script import Script
from support.servers.scripted import ScriptedServer, spawning
from support.watching.virtual import Loss, VirtualWatcher

TEXTS = ("fine\n", "bad one\n", "bad two\n", "bad one\nbad two\n", "")
PATIENCE = 3.0
"""Seconds for each check: some of the delays are longer."""


@dataclass(frozen=True)
class Edit:
    """After `wait` seconds write these texts (file → which of `TEXTS`; None: as it is) and check the files at once."""

    wait: float
    files: Mapping[str, int | None]
    cancel_after: float | None = None
    given: bool = False
    """The text is handed in; else it is read from the disk."""


@dataclass(frozen=True)
class Crash:
    wait: float


@dataclass(frozen=True)
class Foreign:
    """After `wait` seconds others write these files; the watcher may notice."""

    wait: float
    files: Mapping[str, int]


@dataclass(frozen=True)
class Input:
    """After `wait` seconds others write what servers read at their start and never again: configuration or package."""

    wait: float
    name: str
    text: int


@dataclass(frozen=True)
class Lose:
    """After `wait` seconds the watcher loses what it had not told, and has another fault than before, or none."""

    wait: float
    loss: Loss


Step = Edit | Crash | Foreign | Input | Lose


@dataclass(frozen=True)
class Schedule:
    kind: Kind
    steps: Sequence[Step]
    tape: Sequence[int]


@dataclass(frozen=True)
class State:
    """What one server could see from a moment on."""

    at: float
    texts: Mapping[AbsPath, str]


@dataclass(frozen=True)
class Checked:
    """One file of one check: what was asked, and what came of it."""

    path: AbsPath
    order: int
    """Its place among all edits of the file."""
    together: Mapping[AbsPath, int]
    """All files of the same edit, with their orders."""
    began: float
    ended: float
    outcome: Outcome
    written: Mapping[AbsPath, int] = field(default_factory=dict[AbsPath, int])
    """Files that others had written when it began, with their orders."""
    on_disk: Mapping[AbsPath, int] = field(default_factory=dict[AbsPath, int])
    """All files, with their orders when it began."""


@dataclass
class Life:
    """One process of the server, and every state it was in."""

    server: Honest
    states: list[State] = field(default_factory=list[State])


class World:
    """The disk, the servers one after the other, and the time."""

    def __init__(self, kind: Kind, tape: Sequence[int], root: AbsPath) -> None:
        self.kind = kind
        self.whims = Whims(tape)
        self.root = root
        self.disk: dict[AbsPath, str] = {}
        self.inputs = frozenset({self.path(CONFIGURATION), self.path(PACKAGE)})
        self.watcher = VirtualWatcher(self._stamps, self._watcher_delay)
        self.foreign: set[AbsPath] = set()
        """Files that others have written."""
        self.edits: dict[AbsPath, list[str]] = {}
        self.written_at: dict[AbsPath, float] = {}
        self.lives: list[Life] = []
        self.checked: list[Checked] = []
        self._tasks: TaskGroup | None = None

    def path(self, name: str) -> AbsPath:
        return AbsPath(f"{self.root}/{name}.x")

    def scenario(self, script: Script) -> None:
        assert isinstance(script, ScriptedServer)
        self.lives.append(Life(self.kind.make(self, script)))
        self.changed()

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        assert self._tasks is not None
        self._tasks.start_soon(self._after, seconds, action)

    def changed(self) -> None:
        life = self.lives[-1]
        life.states.append(State(anyio.current_time(), life.server.texts))

    def write(self, path: AbsPath, text: str | None) -> int:
        """Put a text on the disk; returns its order among the edits of the file."""
        edits = self.edits.setdefault(path, [])
        if text is not None or not edits:
            edits.append(text or "")
            self.disk[path] = edits[-1]
            self.written_at[path] = anyio.current_time()
            if path in self.inputs:
                self._write_input(path)
            if path != self.path(PACKAGE):
                self.watcher.wrote(path)
            if self.lives and path not in self.lives[-1].server.open:
                self.changed()
        return len(edits) - 1

    def write_by_others(self, texts: Mapping[AbsPath, str]) -> None:
        for path, text in texts.items():
            self.write(path, text)
        self.foreign.update(texts)

    def _write_input(self, path: AbsPath) -> None:
        """On the real disk, too: there the evidence is that nothing has changed."""
        if path == self.path(CONFIGURATION):
            with open(path, "w") as file:
                file.write(self.disk[path])
        else:
            replace_package(self.root)

    def _stamps(self) -> dict[AbsPath, tuple[float, int]]:
        watched = [path for path in self.disk if path != self.path(PACKAGE)]
        return {path: (EPOCH + self.written_at[path], len(self.edits[path])) for path in watched}

    def _watcher_delay(self) -> float:
        """Now and then longer than any answer waits."""
        return CATCH_UP_SECONDS + 1 if self.whims.pick(12) == 11 else self.whims.delay(0.2)

    def written(self) -> dict[AbsPath, int]:
        """What others have written, as it is now."""
        return {path: len(self.edits[path]) - 1 for path in self.foreign}

    def orders(self) -> dict[AbsPath, int]:
        """All files as they are now."""
        return {path: len(edits) - 1 for path, edits in self.edits.items()}

    def crash(self) -> None:
        if self.lives:
            self.lives[-1].server.script.leave(-11)

    @asynccontextmanager
    async def at_work(self) -> AsyncGenerator[TaskGroup]:
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            yield tasks
            tasks.cancel_scope.cancel()

    async def _after(self, seconds: float, action: Callable[[], None]) -> None:
        await anyio.sleep(seconds)
        action()


class Disk:
    """The `Files` port over the world's disk."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def read_text(self, path: AbsPath) -> FileText:
        if path not in self._world.disk:
            raise Refused(Code.FILE_MISSING, path)
        text = self._world.disk[path]
        identity = await self.identity(path)
        assert identity is not None
        await anyio.sleep(self._world.whims.delay(0.02))
        return FileText(path, text, bom=False, identity=identity, content=text.encode())

    async def identity(self, path: AbsPath) -> Identity | None:
        edits = self._world.edits.get(path)
        if edits is None:
            return None
        # Two writes at one moment differ all the same.
        written_ns = round((EPOCH + self._world.written_at[path]) * 1e9) + len(edits)
        return Identity(1, 1, written_ns, len(edits[-1]))


EPOCH = 1e9


class WorldClock:
    """The time of day of the world: its files are as old as they are."""

    def wall(self) -> float:
        return EPOCH + anyio.current_time()


TIMING = TimingSettings(15_000, 10_000, 3_000, 10_000)


class OneServer(Workspace):
    """A workspace with one server for everything."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.boundary: Boundary = boundary_of(world.root)
        self._spec = ServerSpec(
            "honest", "Honest", ("x",), ("honest",), FileRule((".x",)), RootRule(), freshness=world.kind.freshness
        )

    def require_enabled(self) -> None:
        pass

    def settings(self, server: str) -> ServerConfig:
        return ServerConfig(id=server, command=("honest",), extensions=(".x",), restart="backoff", timing=TIMING)

    def restriction(self, spec: ServerSpec, root: object = None) -> Restricted | None:
        return None

    def servers_for(self, path: AbsPath, first_line: str | None = None, *, looked: bool = False) -> ServerChoice:
        return ServerChoice((Candidate(self._spec, self._world.root, "x"),))

    def recipe(self, candidate: Candidate, restore: Restore) -> Recipe:
        root = self._world.root
        launch = Launch(argv=("/bin/honest",), cwd=root, environment={}, name="honest")

        def options() -> SessionOptions:
            inputs = input_evidence(INPUTS, root, root, (AbsPath(f"{root}/packages"),))
            known = self._world.kind.freshness
            return SessionOptions("honest", root, launch, watches=EVERY_FILE, freshness=known, inputs=inputs)

        return Recipe(Key("honest", root), options, restore)


EVERY_FILE = tuple(watch_registrations({"watchers": [{"globPattern": "**/*.x"}]}))


INPUTS = Inputs(steering=(f"{CONFIGURATION}.x",), environment=Environment.PYTHON)


def make_ground(root: Path) -> None:
    """The files that must be there for real: sources for the boundary, inputs for the evidence about them."""
    for name in ("a", "b", "c", IGNORED, CONFIGURATION, PACKAGE):
        path = root / f"{name}.x"
        path.parent.mkdir(exist_ok=True)
        path.touch()


def replace_package(root: AbsPath) -> None:
    """As an installer does: another version, another name of the folder with its metadata."""
    number = next(VERSIONS)
    os.mkdir(f"{root}/packages/package-{number}.dist-info")
    with suppress(FileNotFoundError):
        os.rmdir(f"{root}/packages/package-{number - 1}.dist-info")


VERSIONS = count(1)


def seed_scheduling(seed: float) -> None:
    """Tasks that are ready at one moment run in either order, and in the same one after the same seed."""
    trio._core._run._r.seed(seed)  # pyright: ignore[reportPrivateUsage]


def play(schedule: Schedule, root: str) -> World:
    """Run a schedule to its end, in virtual time; returns all that happened."""
    clock = trio.testing.MockClock(autojump_threshold=0)
    return anyio.run(_play, schedule, AbsPath(root), backend="trio", backend_options={"clock": clock})


async def _play(schedule: Schedule, root: AbsPath) -> World:
    world = World(schedule.kind, schedule.tape, root)
    with open(world.path(CONFIGURATION), "w"):
        """Empty, as the world's is."""
    pool = Pool(spawning(world.scenario), FakeVitals(), jitter=lambda: 0.0)
    texts = Texts(Disk(world), WorldClock())

    def started(session: Session) -> None:
        disk_changes.join(session)

    ledgers = Ledgers(texts, started)
    disk_changes = DiskChanges(world.watcher.opened, ledgers, WorldClock())
    runner = CheckRunner(Access(pool, ledgers, texts))
    workspace, client = OneServer(world), ClientSession("model", root, root)

    async def check(edit: Edit, orders: Mapping[AbsPath, int]) -> None:
        began, written, on_disk = anyio.current_time(), world.written(), world.orders()
        given: dict[str, str] = {path: world.edits[path][order] for path, order in orders.items()}
        with anyio.move_on_after(edit.cancel_after if edit.cancel_after is not None else 1000):
            taken = await runner.take(workspace, given if edit.given else None)
            await disk_changes.catch_up(lambda _root: True)
            patience = Patience(PATIENCE, PATIENCE)
            verdicts = await runner.run(Visit(client, workspace), tuple(orders), given=taken, patience=patience)
            for verdict in verdicts:
                (outcome,) = verdict.outcomes
                ended = anyio.current_time()
                order = orders[verdict.path]
                world.checked.append(Checked(verdict.path, order, orders, began, ended, outcome, written, on_disk))

    async with world.at_work(), disk_changes.running(), pool.running(), anyio.create_task_group() as running:
        for step in schedule.steps:
            await anyio.sleep(step.wait)
            match step:
                case Crash():
                    world.crash()
                case Input(name=name, text=number):
                    world.write_by_others({world.path(name): TEXTS[number]})
                case Foreign(files=files):
                    world.write_by_others({world.path(name): TEXTS[number] for name, number in files.items()})
                case Lose(loss=loss):
                    world.watcher.lose(loss)
                case Edit(files=edited):
                    texts_of = {world.path(name): number for name, number in edited.items()}
                    orders = {
                        path: world.write(path, None if number is None else TEXTS[number])
                        for path, number in texts_of.items()
                    }
                    running.start_soon(check, step, orders)
    return world


def wrong(world: World) -> list[str]:
    """Every outcome that says more than is true."""
    return [found for checked in world.checked if (found := _wrong(world, checked)) is not None]


def _wrong(world: World, checked: Checked) -> str | None:
    outcome = checked.outcome
    if outcome.diagnostics is None:
        return None if outcome.why else f"no verdict on {checked.path}, and no reason"
    if not outcome.is_fresh:
        return None if outcome.why else f"{checked.path} is not fresh, and no reason"
    said = tuple(sorted(diagnostic.message for diagnostic in outcome.diagnostics))
    allowed = {truth(state.texts, checked.path) for state in _states(world, checked)}
    if said in allowed:
        return None
    fault = "false clean" if not said else "stale as fresh"
    return f"{fault}: at {checked.ended:.3f} {checked.path} #{checked.order} said {said}, true was {sorted(allowed)}"


def _states(world: World, checked: Checked) -> list[State]:
    """The states of every server of that time, from the first that held the texts of the check up to the answer."""
    together = checked.on_disk if world.kind.asked else {**checked.written, checked.path: checked.order}
    found: list[State] = []
    for number, life in enumerate(world.lives):
        over = world.lives[number + 1].states[0].at if number + 1 < len(world.lives) else checked.ended
        if life.states[0].at <= checked.ended and over >= checked.began:
            since = [state for state in life.states if state.at < checked.began][-1:]
            since += [state for state in life.states if checked.began <= state.at <= checked.ended]
            found += _from_first(since, lambda state: _holds(world, state, together), checked.began)
    return found


def _from_first(states: list[State], holds: Callable[[State], bool], began: float) -> list[State]:
    """Those that hold the texts. What stood before the check began counts only if nothing changed at that moment."""
    changed = [state for state in states if state.at == began]
    return [state for state in states if holds(state) and (state.at >= began or not changed)]


def _holds(world: World, state: State, orders: Mapping[AbsPath, int]) -> bool:
    return all(state.texts.get(path) in world.edits[path][order:] for path, order in orders.items())
