"""Real servers: a module that is made or deleted in mid-session is known to the next answer about who imports it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from pilotfish.api.answers import State
from pilotfish.model import AbsPath
from pilotfish.service.service import Service, System
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.clock import WallClock
from pilotfish.system.files import DiskFiles
from pilotfish.system.ports import OpenWatcher
from pilotfish.system.process import spawn
from pilotfish.system.vitals import SystemVitals
from pilotfish.system.watching.watcher import open_watcher
from support.servers.real import make_user, require

BOUND_SECONDS = 50.0
"""A cold tsserver on a busy machine."""

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60), pytest.mark.proves("WATCH-1", "WATCH-2", "C73")]


@dataclass(frozen=True)
class Language:
    server: str
    files: dict[str, str]
    """What the workspace holds; the first one imports `later`."""
    module: str
    text: str
    unresolved: str
    """What the server says of an import that leads nowhere."""
    tells: bool = True
    """Whether it lets one know when it has thought of a file that others changed; if not, answers are partial."""

    @property
    def main(self) -> str:
        return next(iter(self.files))


LANGUAGES = [
    Language(
        "basedpyright",
        {
            "main.py": "import later\n\nx: int = later.value\n",
            "pyproject.toml": '[tool.basedpyright]\ntypeCheckingMode = "basic"\n',
        },
        "later.py",
        "value: int = 1\n",
        'Import "later" could not be resolved',
    ),
    Language(
        "ty",
        {"main.py": "import later\n\nx: int = later.value\n", "pyproject.toml": "[project]\nname = 'x'\n"},
        "later.py",
        "value: int = 1\n",
        "Cannot resolve imported module",
    ),
    Language(
        "typescript",
        {
            "main.ts": 'import { value } from "./later";\nexport const x: number = value;\n',
            "tsconfig.json": '{"compilerOptions": {"strict": true}}',
            "package.json": '{"name": "x"}',
        },
        "later.ts",
        "export const value: number = 1;\n",
        "Cannot find module './later'",
    ),
    Language(
        "gopls",
        {"main.go": "package main\n\nfunc main() { println(value) }\n", "go.mod": "module example.com/x\n\ngo 1.19\n"},
        "later.go",
        "package main\n\nconst value = 1\n",
        "undeclared name: value",
        tells=False,
    ),
]
EACH = pytest.mark.parametrize(
    "language", [pytest.param(one, id=one.server, marks=pytest.mark.server(one.server)) for one in LANGUAGES]
)


@dataclass(frozen=True)
class Ground:
    service: Service
    client: ClientSession
    root: Path
    tells: bool

    async def messages(self, name: str) -> list[str]:
        answer = await self.service.check(self.client, [name])
        assert answer.meta.state is State.FRESH or not self.tells, answer
        assert answer.data is not None
        return [diagnostic.message for diagnostic in answer.data[name]]

    async def shows(self, name: str, count: int) -> list[str]:
        """The messages; of a server that does not tell when it is done, as soon as there are so many."""
        while len(found := await self.messages(name)) != count and not self.tells:
            pass
        return found


@asynccontextmanager
async def ground(folder: Path, language: Language, watch: OpenWatcher | None) -> AsyncGenerator[Ground]:
    require([language.server])
    user = make_user(folder, [language.server], {}, trusted=True)
    for name, text in language.files.items():
        (user.workspace / name).write_text(text)
    system = System(spawn, DiskFiles(), WallClock(), SystemVitals(), user.places, user.environment, watch=watch)
    root = AbsPath(str(user.workspace))
    with anyio.fail_after(BOUND_SECONDS):
        async with Service(system).running() as service:
            yield Ground(service, ClientSession("test", root, root), user.workspace, language.tells)


@EACH
async def test_a_module_made_in_mid_session_is_resolved_and_one_deleted_is_not(
    tmp_path: Path, language: Language
) -> None:
    async with ground(tmp_path, language, open_watcher) as work:
        for _ in range(3):
            (unresolved,) = await work.shows(language.main, 1)
            assert language.unresolved in unresolved
            (work.root / language.module).write_text(language.text)
            assert await work.shows(language.main, 0) == []
            (work.root / language.module).unlink()


HEADER = Language(
    "clangd",
    {"main.c": '#include "later.h"\n\nint used(void) { return shared(1); }\n', "later.h": "int shared(int number);\n"},
    "later.h",
    "int shared(int number, int other);\n",
    "Too few arguments to function call",
    tells=False,
)


@pytest.mark.server("clangd")
async def test_a_header_that_somebody_else_changed_is_seen_by_those_that_include_it(tmp_path: Path) -> None:
    """The server reads headers again only after a save. It tells nobody when it is done, so the answer is partial."""
    async with ground(tmp_path, HEADER, open_watcher) as work:
        assert await work.messages(HEADER.main) == []
        (work.root / HEADER.module).write_text(HEADER.text)
        (found,) = await work.shows(HEADER.main, 1)
        assert HEADER.unresolved in found


@EACH
async def test_with_registrations_ignored_it_stays_unresolved(tmp_path: Path, language: Language) -> None:
    """The fault that other clients have, and that the one above would show if it came back."""
    async with ground(tmp_path, language, None) as work:
        await work.messages(language.main)
        (work.root / language.module).write_text(language.text)
        (unresolved,) = await work.messages(language.main)
        assert language.unresolved in unresolved
