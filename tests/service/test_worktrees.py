"""Several worktrees of a repository at one server: each is answered as by a server of its own.

The judge is a second pool in which every worktree has its own. Both see the same folders: a scripted life of edits,
new and deleted files and questions goes through three worktrees in turn, and after each step both are asked the same.
"""

import platform
import random
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilotfish.api.questions import Operation, Question
from pilotfish.model import AbsPath
from pilotfish.pool.plan import Limits
from pilotfish.servers.catalogue import load
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from support.servers.real import require
from support.services.real import only, real_service

pytestmark = [pytest.mark.anyio, pytest.mark.proves("POOL-1")]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


TREES = ("workspace", "one", "two", "three")
"""The first has a server of its own, the others share one."""

BESIDE = "."
INSIDE = "workspace/.worktrees"


@dataclass(frozen=True)
class Project:
    files: dict[str, str]
    variants: dict[str, tuple[str | None, ...]]
    """Texts that a file may get; None: it is deleted."""
    places: tuple[Question, ...]
    """Asked while the file of each is as in the beginning."""

    asked: tuple[str, ...]
    """Files whose diagnostics are asked for. The others are read from disk, until a place in them is asked about."""


def _at(operation: Operation, name: str, line: int, character: int, **more: Any) -> Question:
    return Question(operation=operation, file_path=name, line=line, character=character, **more)


PYTHON_FILES = {
    "pyproject.toml": "[project]\nname = 'p'\nversion = '1'\n",
    ".gitignore": "made_*.py\n",
    "pack/__init__.py": "",
    "pack/base.py": "def give(number: int) -> int:\n    return number\n\n\nclass Base:\n    name: str = ''\n",
    "pack/middle.py": "from pack.base import Base, give\n\n\nclass Middle(Base):\n"
    "    def size(self):\n        return give(1)\n",
    "pack/user.py": "from pack.middle import Middle\n\nfound: int = Middle().size()\nname: str = Middle().name\n",
    "pack/other.py": "import pack.base\n\nshown = pack.base.give(2)\n",
}

PYTHON = Project(
    PYTHON_FILES,
    {
        "pack/base.py": (
            PYTHON_FILES["pack/base.py"],
            PYTHON_FILES["pack/base.py"].replace("-> int:\n    return number", "-> str:\n    return str(number)"),
            PYTHON_FILES["pack/base.py"].replace("name: str = ''", "title: str = ''"),
            PYTHON_FILES["pack/base.py"].replace("def give", "def given"),
        ),
        "pack/middle.py": (
            PYTHON_FILES["pack/middle.py"],
            PYTHON_FILES["pack/middle.py"].replace("give(1)", "give('x')"),
            "broken = (\n",
        ),
        "pack/user.py": (
            PYTHON_FILES["pack/user.py"],
            PYTHON_FILES["pack/user.py"] + "import pack.extra\n",
            "from pack.made_one import x\n",
        ),
        "pack/extra.py": ("x: int = ''\n", "x = 1\n", None),
        "pack/made_one.py": ("x = 1\n", None),
        "pack/other.py": (PYTHON_FILES["pack/other.py"], None),
    },
    (
        _at(Operation.DEFINITION, "pack/user.py", 1, 27),
        _at(Operation.REFERENCES, "pack/base.py", 1, 5),
        _at(Operation.HOVER, "pack/middle.py", 4, 9),
        _at(Operation.RENAME, "pack/base.py", 5, 7, new_name="Root"),
    ),
    ("pack/user.py", "pack/other.py"),
)

TYPESCRIPT_FILES = {
    "package.json": '{"name": "p", "version": "1.0.0"}\n',
    "tsconfig.json": '{"compilerOptions": {"strict": true, "noEmit": true}, "include": ["src"]}\n',
    ".gitignore": "made_*.ts\n",
    "src/base.ts": "export function give(n: number): number {\n  return n;\n}\nexport class Base {\n  name = '';\n}\n",
    "src/middle.ts": "import { Base, give } from './base';\nexport class Middle extends Base {\n"
    "  size() {\n    return give(1);\n  }\n}\n",
    "src/user.ts": "import { Middle } from './middle';\nexport const found: number = new Middle().size();\n"
    "export const named: string = new Middle().name;\n",
    "src/other.ts": "import * as base from './base';\nexport const shown = base.give(2);\n",
}

TYPESCRIPT = Project(
    TYPESCRIPT_FILES,
    {
        "src/base.ts": (
            TYPESCRIPT_FILES["src/base.ts"],
            TYPESCRIPT_FILES["src/base.ts"].replace(
                "number): number {\n  return n", "number): string {\n  return `${n}`"
            ),
            TYPESCRIPT_FILES["src/base.ts"].replace("name = ''", "title = ''"),
            TYPESCRIPT_FILES["src/base.ts"].replace("give", "given"),
        ),
        "src/middle.ts": (
            TYPESCRIPT_FILES["src/middle.ts"],
            TYPESCRIPT_FILES["src/middle.ts"].replace("give(1)", "give('x')"),
            "export const broken = (\n",
        ),
        "src/user.ts": (
            TYPESCRIPT_FILES["src/user.ts"],
            TYPESCRIPT_FILES["src/user.ts"] + "import './extra';\n",
            "export { x } from './made_one';\n",
        ),
        "src/extra.ts": ("export const x: number = '';\n", "export const x = 1;\n", None),
        "src/made_one.ts": ("export const x = 1;\n", None),
        "src/other.ts": (TYPESCRIPT_FILES["src/other.ts"], None),
    },
    (
        _at(Operation.DEFINITION, "src/user.ts", 1, 12),
        _at(Operation.REFERENCES, "src/base.ts", 1, 18),
        _at(Operation.HOVER, "src/middle.ts", 2, 15),
        _at(Operation.RENAME, "src/base.ts", 4, 15, new_name="Root"),
    ),
    ("src/user.ts", "src/other.ts"),
)


@dataclass(frozen=True)
class Trees:
    shared: Service
    alone: Service
    folder: Path
    place: str = BESIDE
    """Where the worktrees are, but for the first."""

    def path(self, tree: str) -> Path:
        return self.folder / ("." if tree == TREES[0] else self.place) / tree

    def client(self, tree: str) -> ClientSession:
        root = AbsPath(str(self.path(tree)))
        return ClientSession(f"agent of {tree}", root, root)

    async def same(self, tree: str, rows: list[Question]) -> list[Any]:
        """What both say; fails where they say something else."""
        found: list[Any] = []
        for question in rows:
            said = [await _asked(service, question, self.client(tree)) for service in (self.shared, self.alone)]
            assert said[0] == said[1], (
                f"{tree}: {question.operation} {question.file_path}\nshared {said[0]}\nalone  {said[1]}"
            )
            assert not any(f"/{other}/" in str(said[0]) for other in TREES[1:] if other != tree), str(said[0])
            found.append(said[0])
        return found

    def processes(self) -> dict[str, set[int]]:
        """Per worktree, of the servers that serve it."""
        found: dict[str, set[int]] = {}
        for key, entry in self.shared.pool.entries().items():
            if entry.session is not None:
                found.setdefault(Path(key.root).name, set()).add(entry.session.pid)
        return found


async def _asked(service: Service, question: Question, client: ClientSession) -> Any:
    answer = await service.ask(question, client)
    said = msgspec.to_builtins(answer)
    if question.operation is Operation.DIAGNOSTICS and said["data"]:
        # Whose they are depends on when a change was noticed, which is not the server's business.
        rows = [(path, row) for path, found in said["data"].items() for row in found]
        said["data"] = [(path, {**row, "introduced": None}) for path, row in rows]
    return {"state": said["meta"]["state"], "data": said["data"], "errors": said["meta"].get("errors")}


@asynccontextmanager
async def trees(
    folder: Path, server: str, files: dict[str, str], *, trusted: bool = True, place: str = BESIDE
) -> AsyncGenerator[Trees]:
    require([server])
    root = folder / "workspace"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    _git(root, "init", "-q")
    _git(root, "add", "-A")
    _git(root, "-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-qm", "begin")
    for name in TREES[1:]:
        _git(root, "worktree", "add", "-q", "--detach", str(folder / place / name))
    config = {**only(server), "timing": {"diagnosticsWaitTimeoutMs": 90_000, "firstTouchTimeoutMs": 90_000}}
    roots = [str(root), *(str(folder / place / name) for name in TREES[1:])]
    config["security"] = {"trustedProjectRoots": roots if trusted else []}
    # The others are shared where that is asked for.
    config["pool"] = {} if load()[server].shares_worktrees == "auto" else {"shareWorktrees": True}
    variables = {"VIRTUAL_ENV": str(_small_environment(folder / "environment"))}
    async with (
        real_service(folder, config, variables=variables) as shared,
        real_service(folder, config, Limits(share_worktrees=False), variables=variables) as alone,
    ):
        yield Trees(shared.service, alone.service, folder, place)


def _small_environment(folder: Path) -> Path:
    """Not that of the tests: where there is no inotify, its 50,000 files are looked at before each question."""
    base, library = folder / "base", Path("lib") / f"python3.{sys.version_info.minor}"
    for prefix in (folder, base):
        (prefix / library / "site-packages").mkdir(parents=True)
        (prefix / "bin").mkdir()
        (prefix / "bin" / "python").symlink_to(sys.executable)
    (folder / "pyvenv.cfg").write_text(f"home = {base / 'bin'}\nversion = {platform.python_version()}\n")
    return folder


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True)


def _diagnostics(name: str) -> Question:
    return Question(operation=Operation.DIAGNOSTICS, file_path=name)


async def live(ground: Trees, project: Project, steps: int, seed: int) -> None:
    """A life of so many steps, each in any worktree."""
    chosen, names = random.Random(seed), project.asked
    for tree in TREES:
        await ground.same(tree, [_diagnostics(name) for name in names])
    for steps_done in range(steps):
        tree, name = chosen.choice(TREES), chosen.choice(list(project.variants))
        path, text = ground.path(tree) / name, chosen.choice(project.variants[name])
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(text)
        there = [one for one in names if (ground.path(tree) / one).exists()]
        asked = [_diagnostics(one) for one in there]
        place = chosen.choice(project.places)
        if (
            chosen.random() < steps_done / steps
            and (ground.path(tree) / str(place.file_path)).read_text() == project.files[str(place.file_path)]
        ):
            asked.append(place)
        await ground.same(tree, asked)
    owned = ground.processes()
    assert owned["one"] == owned["two"] == owned["three"] != owned["workspace"]
    shown = await ground.shared.inspect(ground.client("one"))
    (instance,) = (one for row in shown.rows for one in row.instances)
    assert [Path(root).name for root in instance.shared_with] == ["three", "two"]
    assert sorted(len(row.roots) for row in shown.processes) == [1, 3]


@pytest.mark.parametrize(
    ("server", "project", "steps", "trusted", "place"),
    [
        ("ty", PYTHON, 12, True, BESIDE),
        ("ty", PYTHON, 4, False, BESIDE),
        ("ty", PYTHON, 6, True, INSIDE),
        ("basedpyright", PYTHON, 4, True, BESIDE),
        ("typescript", TYPESCRIPT, 6, True, BESIDE),
        ("typescript", TYPESCRIPT, 6, True, INSIDE),
    ],
    ids=["ty", "ty confined", "ty inside", "basedpyright", "typescript", "typescript inside"],
)
async def test_three_worktrees_at_one_server_are_answered_as_by_their_own(
    server: str, project: Project, steps: int, trusted: bool, place: str, tmp_path: Path
) -> None:
    async with trees(tmp_path, server, project.files, trusted=trusted, place=place) as ground:
        await live(ground, project, steps, 1)
