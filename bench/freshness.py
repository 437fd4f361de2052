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
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from harness.pages import options

CLONE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CLONE / "tests"))

from pilotfish.client.session import Session
from pilotfish.model import AbsPath
from pilotfish.protocol.diagnostics import Push
from pilotfish.system.process import spawn
from support.services.real import PROGRAMS, RealService, real_service

LINES = 12
DEBOUNCE, CAP = 0.15, 3.0


@dataclass(frozen=True)
class Language:
    """How a file of this kind is written: `fine(i)` and `broken(i)` are one line each, the i-th of a file."""

    suffix: str
    fine: Callable[[int], str]
    broken: Callable[[int], str]
    head: str = ""
    tail: str = ""
    code: str | None = None
    """Count only diagnostics with this code."""
    files: tuple[tuple[str, str], ...] = ()
    project: "Project | None" = None
    """Files that depend on each other, where the server looks across files."""


@dataclass(frozen=True)
class Project:
    """A library with two shapes, and a user that fits the first one only; `{library}` in it is the library's name."""

    fits: str
    breaks: str
    user: str
    suffix: str | None = None
    """Of the library, where it is not that of the users."""


PYTHON_PROJECT = Project(
    "def shared(number: int) -> int:\n    return number\n",
    "def shared(number: str) -> str:\n    return number\n",
    "from {library} import shared\n\nshared(1)\n",
)
TYPESCRIPT_PROJECT = Project(
    "export function shared(value: number): number {{ return value; }}\n".replace("{{", "{").replace("}}", "}"),
    "export function shared(value: string): string {{ return value; }}\n".replace("{{", "{").replace("}}", "}"),
    'import {{ shared }} from "./{library}";\nshared(1);\n',
)
C_PROJECT = Project(
    "int shared(int number);\n",
    "int shared(int number, int other);\n",
    '#include "{library}.h"\n\nint used(void) {{ return shared(1); }}\n',
    suffix=".h",
)

PYTHON = Language(".py", lambda i: f"value_{i}: int = {i}", lambda i: f'value_{i}: int = "{i}"', project=PYTHON_PROJECT)
LANGUAGES: dict[str, Language] = {
    "basedpyright": PYTHON,
    "ty": PYTHON,
    "pyrefly": PYTHON,
    "ruff": Language(".py", lambda i: f"value_{i} = {i}", lambda i: f"value_{i} = missing_{i}", code="F821"),
    "typescript": Language(
        ".ts",
        lambda i: f"export const value_{i}: number = {i};",
        lambda i: f'export const value_{i}: number = "{i}";',
        files=(("tsconfig.json", '{"compilerOptions": {"strict": true}}'), ("package.json", "{}")),
        project=TYPESCRIPT_PROJECT,
    ),
    "clangd": Language(
        ".c",
        lambda i: f"int value_{i} = {i};",
        lambda i: f"int value_{i} = missing_{i};",
        project=C_PROJECT,
    ),
    "json": Language(
        ".json", lambda i: f'  "key_{i}": {i},', lambda i: f'  "key_{i}": oops,', head="{", tail='  "end": 0\n}'
    ),
    "eslint": Language(
        ".js",
        lambda i: f"const value_{i} = {i}; export {{ value_{i} }};",
        lambda i: f"const value_{i} = missing_{i}; export {{ value_{i} }};",
        code="no-undef",
        files=(("eslint.config.mjs", 'export default [{rules: {"no-undef": "error"}}];\n'), ("package.json", "{}")),
    ),
}


@dataclass
class Document:
    """A file whose truth is known."""

    language: Language
    name: str
    broken: set[int] = field(default_factory=set)
    shift: int = 0

    def text(self) -> str:
        lines = [self.language.broken(i) if i in self.broken else self.language.fine(i) for i in range(LINES)]
        head = [self.language.head] if self.language.head else []
        tail = [self.language.tail] if self.language.tail else []
        return "\n".join([*head, *([""] * self.shift), *lines, *tail]) + "\n"

    def truth(self) -> set[int]:
        """1-based lines that must have an error."""
        first = 1 + bool(self.language.head) + self.shift
        return {first + i for i in self.broken}


def edited(document: Document, chance: random.Random) -> str:
    """Change the document in one of the ways that agents do; returns which."""
    kind = chance.choice(["introduce", "introduce", "fix", "fix", "swap", "no-op", "shift"])
    line = chance.randrange(LINES)
    if kind == "introduce":
        document.broken.add(line)
    elif kind == "fix" and document.broken:
        document.broken.discard(chance.choice(sorted(document.broken)))
    elif kind == "swap":
        document.broken.discard(min(document.broken, default=0))
        document.broken.add(line)
    elif kind == "shift":
        document.shift = (document.shift + 1) % 4
    return kind


@dataclass
class Tally:
    server: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)
    clean: list[float] = field(default_factory=list)
    dirty: list[float] = field(default_factory=list)
    debounce: list[float] = field(default_factory=list)
    cross: list[float] = field(default_factory=list)
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
        config = {"lsp": others, "timing": {"diagnosticsWaitTimeoutMs": 20_000, "firstTouchTimeoutMs": 60_000}}
        async with real_service(Path(folder), config) as running:
            for name, text in language.files:
                running.write(name, text)
            if server == "eslint":
                (running.root / "node_modules").symlink_to(PROGRAMS[1].parent)
            documents = [Document(language, f"file_{number}{language.suffix}") for number in range(3)]
            for document in documents:
                running.write(document.name, document.text())
                await running.service.check(running.client, [document.name])
            session = running.entry(server).session
            assert session is not None
            async with push_only(running, server) as bare:
                for document in documents:
                    bare.open(document)
                for _ in range(edits):
                    document = chance.choice(documents)
                    edited(document, chance)
                    await ours(running, session, document, tally)
                    if bare.session is not None:
                        await bare.replay(document, tally)
            await across(running, language, max(1, edits // 4), chance, tally)
    return tally


async def ours(running: RealService, session: Session, document: Document, tally: Tally) -> None:
    path = running.root / document.name
    path.write_text(document.text())
    changed = anyio.current_time()
    answer = await running.service.check(running.client, [document.name])
    took = (anyio.current_time() - changed) * 1000
    found = {
        one.line
        for one in (answer.data or {}).get(document.name, ())
        if one.severity == "error" or document.language.code is not None
        if document.language.code is None or one.code == document.language.code
    }
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
    tally.server.append(
        max([report.at for report in reports if report.at >= changed], default=changed) * 1000 - changed * 1000
    )


async def across(running: RealService, language: Language, edits: int, chance: random.Random, tally: Tally) -> None:
    """Break files from another one: open, not open, and by creating, deleting and moving files on disk."""
    project = language.project
    if project is None:
        return
    library, suffix = "shared_library", language.suffix
    shared = f"{library}{project.suffix or suffix}"
    users = [f"user_{number}{suffix}" for number in range(2)]
    running.write(shared, project.fits)
    for user in users:
        running.write(user, project.user.format(library=library))
    await running.service.check(running.client, [shared, users[0]])
    for _ in range(edits):
        kind = chance.choice(["open", "closed", "delete", "move"])
        running.write(shared, project.breaks if kind in {"open", "closed"} else project.fits)
        if kind == "closed":
            fresh = f"late_{chance.randrange(10**6)}{suffix}"
            running.write(fresh, project.user.format(library=library))
            users = [users[0], fresh]
        path, aside = running.root / shared, running.root / f"moved_{shared}"
        if kind == "delete":
            path.unlink()
        elif kind == "move":
            path.rename(aside)
        await errors_in(running, users, tally, kind, expected=True)
        if kind == "move":
            aside.rename(path)
        running.write(shared, project.fits)
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


class Bare:
    """A second server of the same kind with a client that only listens to publishes."""

    def __init__(self, session: Session | None, root: Path, language_id: str) -> None:
        self.session = session
        self.root = root
        self.language_id = language_id

    def open(self, document: Document) -> None:
        if self.session is not None:
            self.session.sync(self._path(document), self.language_id, document.text())

    async def replay(self, document: Document, tally: Tally) -> None:
        session, path = self.session, self._path(document)
        assert session is not None
        changed = anyio.current_time()
        session.sync(path, self.language_id, document.text())
        last = None
        while (now := anyio.current_time()) < changed + CAP:
            push = session.reports.of(path).get(Push())
            if push is not None and push.at > changed:
                last = push
                if now >= push.at + DEBOUNCE:
                    break
            until = changed + CAP if last is None else min(last.at + DEBOUNCE, changed + CAP)
            with anyio.move_on_after(max(0.0, until - now)):
                await session.changed.wait()
        tally.debounce.append((anyio.current_time() - changed) * 1000)
        push = session.reports.of(path).get(Push())
        lines = {item.range.start.line + 1 for item in (push.items if push else ()) if (item.severity or 1) == 1}
        if document.language.code is not None:
            lines = {
                item.range.start.line + 1
                for item in (push.items if push else ())
                if item.code == document.language.code
            }
        tally.debounce_wrong += lines != document.truth()

    def _path(self, document: Document) -> AbsPath:
        return AbsPath(os.path.realpath(self.root / document.name))


class push_only:  # noqa: N801 -- used like a function
    """Runs a second server whose client claims no pull; none where the first one's recipe is not at hand."""

    def __init__(self, running: RealService, server: str) -> None:
        self._running = running
        self._server = server

    async def __aenter__(self) -> Bare:
        from pilotfish.client import handshake
        from pilotfish.client.session import open_session

        workspace = self._running.service.workspaces.of(self._running.client)
        first = next(self._running.root.glob(f"file_0{LANGUAGES[self._server].suffix}"))
        choice = workspace.servers_for(AbsPath(os.path.realpath(first)))
        (candidate,) = [one for one in choice.servers if one.spec.id == self._server]
        options = workspace.recipe(candidate, _nothing).options()
        claims = handshake.client_capabilities
        handshake.client_capabilities = lambda: _without_pull(claims())
        try:
            self._opened = open_session(options, spawn)
            session = await self._opened.__aenter__()
        finally:
            handshake.client_capabilities = claims
        return Bare(session, self._running.root, candidate.language_id)

    async def __aexit__(self, *error: object) -> None:
        await self._opened.__aexit__(None, None, None)


async def _nothing(_session: Session, _before: object) -> None:
    return


def _without_pull(claims: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
    text = {name: value for name, value in claims["textDocument"].items() if name != "diagnostic"}
    return {**claims, "textDocument": text}


def shown(values: Sequence[float]) -> str:
    if not values:
        return "–"
    ordered = sorted(values)
    return f"{statistics.median(ordered):.0f} / {ordered[int(len(ordered) * 0.95) - 1]:.0f}"


def main() -> None:
    chosen = options(__doc__, edits=100, seed=1, servers=",".join(LANGUAGES))
    print(f"{chosen.edits} edits a server, seed {chosen.seed}; median / p95 in ms")
    print(
        "| server | server's own | pilotfish | clean edit | broken edit | wrong | no verdict "
        "| across files | wrong | no verdict | debounce | its wrong |"
    )
    print("|" + "---|" * 12)
    for server in chosen.servers.split(","):
        started = time.monotonic()
        tally = anyio.run(measured, server, chosen.edits, chosen.seed)
        print(
            f"| {server} | {shown(tally.server)} | {shown(tally.ours)} | {shown(tally.clean)} | {shown(tally.dirty)} "
            f"| {tally.wrong} | {tally.unsure} | {shown(tally.cross)} | {tally.cross_wrong} | {tally.cross_unsure} "
            f"| {shown(tally.debounce)} | {tally.debounce_wrong} |"
            f"  ({time.monotonic() - started:.0f} s)",
            flush=True,
        )


if __name__ == "__main__":
    if shutil.which("node") is None:
        print("node is not here: servers from npm will not start")
    main()
