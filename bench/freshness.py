"""Random edits on real servers: how often the answer is wrong, and how long it takes.

`python bench/freshness.py [--edits 100] [--seed 1] [--servers basedpyright,ty,…]` prints a table and judges nothing.

The truth is known by construction: a file is a list of lines, each fine or broken on purpose, so the lines that must
have an error are those that the generator broke. Three columns of time, in milliseconds from the change:
- *server*: when the last message that counts for that text arrived,
- *pilotfish*: when the answer was given,
- *debounce*: "150 ms without a new publish, 3 s at the most" replayed on the same edits with a second server of the
  same kind and a client that takes publishes only; its wrong answers are counted beside ours.
"""

import os
import random
import shutil
import tempfile
import time
import tomllib
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from harness.numbers import percentile
from harness.pages import head, line, options

from pilotfish.client import handshake
from pilotfish.client.session import Session, open_session
from pilotfish.model import AbsPath
from pilotfish.protocol.diagnostics import Push
from pilotfish.system.process import spawn
from support.services.real import PROGRAMS, RealService, real_service

LINES = 12
DEBOUNCE, CAP = 0.15, 3.0
LIMITS = {"diagnosticsWaitTimeoutMs": 20_000, "firstTouchTimeoutMs": 60_000}
HEAD = (
    *("server", "server's own", "pilotfish", "clean edit", "broken edit", "wrong", "no verdict"),
    *("across files", "wrong", "no verdict", "debounce", "its wrong"),
)


@dataclass(frozen=True)
class Language:
    """A row of `freshness.toml`."""

    suffix: str
    fine: str
    broken: str
    head: str = ""
    tail: str = ""
    code: str = ""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    fits: str = ""
    breaks: str = ""
    user: str = ""
    library: str = ""


ROWS: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
LANGUAGES = {name: Language(**ROWS[row.get("like", name)]) for name, row in ROWS.items()}


@dataclass
class Document:
    """A file whose truth is known."""

    language: Language
    name: str
    broken: set[int] = field(default_factory=set[int])
    shift: int = 0

    def text(self) -> str:
        language = self.language
        lines = [(language.broken if i in self.broken else language.fine).replace("{i}", str(i)) for i in range(LINES)]
        around = [[one] if one else [] for one in (language.head, language.tail)]
        return "\n".join([*around[0], *([""] * self.shift), *lines, *around[1]]) + "\n"

    def truth(self) -> set[int]:
        """1-based lines that must have an error."""
        first = 1 + bool(self.language.head) + self.shift
        return {first + i for i in self.broken}

    def edit(self, chance: random.Random) -> None:
        """Change it in one of the ways that agents do."""
        kind = chance.choice(["introduce", "introduce", "fix", "fix", "swap", "no-op", "shift"])
        place = chance.randrange(LINES)
        if kind == "introduce":
            self.broken.add(place)
        elif kind == "fix" and self.broken:
            self.broken.discard(chance.choice(sorted(self.broken)))
        elif kind == "swap":
            self.broken.discard(min(self.broken, default=0))
            self.broken.add(place)
        elif kind == "shift":
            self.shift = (self.shift + 1) % 4


@dataclass
class Tally:
    server: list[float] = field(default_factory=list[float])
    ours: list[float] = field(default_factory=list[float])
    clean: list[float] = field(default_factory=list[float])
    dirty: list[float] = field(default_factory=list[float])
    debounce: list[float] = field(default_factory=list[float])
    cross: list[float] = field(default_factory=list[float])
    wrong: int = 0
    cross_wrong: int = 0
    cross_unsure: int = 0
    unsure: int = 0
    debounce_wrong: int = 0


async def measured(server: str, edits: int, seed: int) -> Tally:
    language, tally = LANGUAGES[server], Tally()
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        # Only the server that is measured may answer.
        others = {other: {"disabled": True} for other in {*LANGUAGES, "pyright", "vtsls", "biome"} - {server}}
        async with real_service(Path(folder), {"lsp": others, "timing": LIMITS}) as running:
            for name, text in language.files.items():
                running.write(name, text)
            if server == "eslint":
                (running.root / "node_modules").symlink_to(PROGRAMS[1].parent)
            documents = [Document(language, f"file_{number}{language.suffix}") for number in range(3)]
            for document in documents:
                running.write(document.name, document.text())
                await running.service.check(running.client, [document.name])
            session = running.entry(server).session
            assert session is not None
            async with push_only(running, server) as listener:
                for document in documents:
                    listener.send(document)
                for _ in range(edits):
                    document = chance.choice(documents)
                    document.edit(chance)
                    await ours(running, session, document, tally)
                    await listener.replay(document, tally)
            if language.user:
                await across(running, language, max(1, edits // 4), chance, tally)
    return tally


async def ours(running: RealService, session: Session, document: Document, tally: Tally) -> None:
    path = running.root / document.name
    path.write_text(document.text())
    changed = anyio.current_time()
    answer = await running.service.check(running.client, [document.name])
    took = (anyio.current_time() - changed) * 1000
    problems, code = (answer.data or {}).get(document.name, ()), document.language.code
    found = {one.line for one in problems if (one.code == code if code else one.severity == "error")}
    # A server for the same language that is not installed makes an answer partial; here only this one counts.
    missing = [one for one in answer.errors if one.code == "server_missing"]
    if answer.meta.state != "fresh" and (answer.data is None or len(missing) != len(answer.errors) or not missing):
        tally.unsure += 1
    elif found != document.truth():
        tally.wrong += 1
        print(f"  wrong: {document.name} expected {sorted(document.truth())} found {sorted(found)}", flush=True)
    tally.ours.append(took)
    (tally.dirty if document.broken else tally.clean).append(took)
    reports = session.reports.of(AbsPath(os.path.realpath(path))).values()
    last = max([report.at for report in reports if report.at >= changed], default=changed)
    tally.server.append((last - changed) * 1000)


async def across(running: RealService, language: Language, edits: int, chance: random.Random, tally: Tally) -> None:
    """Break files from another one: open, not open, and by creating, deleting and moving files on disk."""
    suffix = language.suffix
    shared = f"shared_library{language.library or suffix}"
    users = [f"user_{number}{suffix}" for number in range(2)]
    running.write(shared, language.fits)
    for user in users:
        running.write(user, language.user)
    await running.service.check(running.client, [shared, users[0]])
    for _ in range(edits):
        kind = chance.choice(["open", "closed", "delete", "move"])
        running.write(shared, language.breaks if kind in {"open", "closed"} else language.fits)
        if kind == "closed":
            users = [users[0], f"late_{chance.randrange(10**6)}{suffix}"]
            running.write(users[1], language.user)
        path, aside = running.root / shared, running.root / f"moved_{shared}"
        if kind == "delete":
            path.unlink()
        elif kind == "move":
            path.rename(aside)
        await errors_in(running, users, tally, kind, expected=True)
        if kind == "move":
            aside.rename(path)
        running.write(shared, language.fits)
        await errors_in(running, users, tally, f"{kind}, undone", expected=False)


async def errors_in(running: RealService, users: list[str], tally: Tally, kind: str, *, expected: bool) -> None:
    changed = anyio.current_time()
    answer = await running.service.check(running.client, users)
    tally.cross.append((anyio.current_time() - changed) * 1000)
    for user in users:
        found = any(one.severity == "error" for one in (answer.data or {}).get(user, ()))
        if answer.meta.state == "fresh" and found != expected:
            tally.cross_wrong += 1
            print(f"  wrong: {user} after {kind}: expected {'errors' if expected else 'none'}", flush=True)
    tally.cross_unsure += answer.meta.state != "fresh"


@dataclass(frozen=True)
class Listener:
    """A second server of the same kind with a client that only listens to publishes."""

    session: Session
    root: Path
    language_id: str

    def send(self, document: Document) -> AbsPath:
        path = AbsPath(os.path.realpath(self.root / document.name))
        self.session.sync(path, self.language_id, document.text())
        return path

    async def replay(self, document: Document, tally: Tally) -> None:
        session, changed = self.session, anyio.current_time()
        path, push = self.send(document), None
        while (now := anyio.current_time()) < changed + CAP:
            push = session.reports.of(path).get(Push())
            is_new = push is not None and push.at > changed
            if is_new and now >= push.at + DEBOUNCE:
                break
            until = min(push.at + DEBOUNCE, changed + CAP) if is_new else changed + CAP
            with anyio.move_on_after(max(0.0, until - now)):
                await session.changed.wait()
        tally.debounce.append((anyio.current_time() - changed) * 1000)
        push, code = session.reports.of(path).get(Push()), document.language.code
        items = [
            one for one in (push.items if push else ()) if (one.code == code if code else one.severity in {None, 1})
        ]
        tally.debounce_wrong += {one.range.start.line + 1 for one in items} != document.truth()


@asynccontextmanager
async def push_only(running: RealService, server: str) -> AsyncGenerator[Listener]:
    """A second server whose client claims no pull."""
    workspace = running.service.workspaces.of(running.client)
    first = running.root / f"file_0{LANGUAGES[server].suffix}"
    choice = workspace.servers_for(AbsPath(os.path.realpath(first)))
    (candidate,) = [one for one in choice.servers if one.spec.id == server]
    claims = handshake.client_capabilities
    handshake.client_capabilities = lambda: _without_pull(claims())
    try:
        opened = open_session(workspace.recipe(candidate, _nothing).options(), spawn)
        session = await opened.__aenter__()
    finally:
        handshake.client_capabilities = claims
    try:
        yield Listener(session, running.root, candidate.language_id)
    finally:
        await opened.__aexit__(None, None, None)


async def _nothing(_session: Session, _before: object) -> None:
    return


def _without_pull(claims: Mapping[str, Any]) -> dict[str, Any]:
    text = {name: value for name, value in claims["textDocument"].items() if name != "diagnostic"}
    return {**claims, "textDocument": text}


def shown(values: Sequence[float]) -> str:
    return f"{percentile(values, 0.5):.0f} / {percentile(values, 0.95):.0f}" if values else "–"


def cells(server: str, one: Tally) -> Iterable[object]:
    times = [shown(each) for each in (one.server, one.ours, one.clean, one.dirty)]
    across_files = (shown(one.cross), one.cross_wrong, one.cross_unsure)
    return [server, *times, one.wrong, one.unsure, *across_files, shown(one.debounce), one.debounce_wrong]


def main() -> None:
    chosen = options(__doc__, edits=100, seed=1, servers=",".join(LANGUAGES))
    if shutil.which("node") is None:
        print("node is not here: servers from npm will not start")
    print(f"{chosen.edits} edits a server, seed {chosen.seed}; median / p95 in ms\n{head(HEAD)}")
    for server in chosen.servers.split(","):
        started = time.monotonic()
        tally = anyio.run(measured, server, chosen.edits, chosen.seed)
        print(f"{line(cells(server, tally))}  ({time.monotonic() - started:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
