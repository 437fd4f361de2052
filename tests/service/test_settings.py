"""What a change of the files that configure a server broke is told: of files that were judged before (DIAG-11)."""

import json
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import anyio
import pytest

from pilotfish.api.answers import State
from pilotfish.api.questions import Moment, Operation, Question, Touch
from pilotfish.client.session import Session
from pilotfish.model import AbsPath
from pilotfish.pool.entry import Key
from pilotfish.service.diagnostics.check import Check
from pilotfish.service.diagnostics.runner import CheckRunner
from pilotfish.service.diagnostics.verdicts import Outcome
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.ports import Launch, OpenWatcher, Process
from pilotfish.system.process import spawn
from pilotfish.system.watching.watcher import open_watcher
from support.files.repositories import commit_everything, run_git
from support.services import real
from support.services.real import RealService, only, real_service

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-11"), pytest.mark.proves("DIAG-15")]

LOOSE, STRICT = '{"typeCheckingMode": "off"}\n', '{"typeCheckingMode": "standard"}\n'
PYTHON = {
    "pyproject.toml": "[project]\nname = 'x'\nversion = '1'\n",
    "pyrightconfig.json": LOOSE,
    "lib.py": "import os\n\n\ndef one():\n    return None if os.sep else 1\n",
    "user.py": "from lib import one\n\nvalue: int = one()\nolder = 1 +\n",
}
"""The last line is wrong whatever the settings say."""

DATABASE = "build/compile_commands.json"


@pytest.fixture
def anyio_backend() -> str:
    """Real processes have no virtual time."""
    return "asyncio"


@asynccontextmanager
async def project(
    folder: Path, server: str, files: dict[str, str], read: str, watch: OpenWatcher | None = open_watcher
) -> AsyncGenerator[RealService]:
    """A repository with these files, one of which a conversation has read."""
    timing = {"timing": {"diagnosticsWaitTimeoutMs": 30_000, "firstTouchTimeoutMs": 60_000}}
    feedback = {"feedback": {"onlyNew": True, "otherFilesAfter": ["edit", "write", "patch"]}}
    async with real_service(folder, {**only(server), **timing, **feedback}, watch=watch) as ground:
        for name, text in files.items():
            (ground.root / name).parent.mkdir(parents=True, exist_ok=True)
            ground.write(name, text)
        commit_everything(ground.root)
        ground.service.conversations.begin(ground.client)
        await ground.service.touched(Touch((read,), "read"), ground.client)
        yield ground


async def reach(ground: RealService, kind: Literal["call", "prompt", "stop"]) -> str:
    return (await ground.service.reached(Moment(kind), ground.client)).text


def is_told(text: str) -> bool:
    """Of the one error that the settings hid, and not of the older one."""
    assert "Expected expression" not in text
    return '<diagnostics file="user.py">' in text and "reportAssignmentType" in text


async def test_an_edit_of_settings_tells_what_it_broke(tmp_path: Path) -> None:
    async with project(tmp_path, "basedpyright", PYTHON, "user.py") as ground:
        ground.write("pyrightconfig.json", STRICT)
        touch = Touch(("pyrightconfig.json",), "edit", before={"pyrightconfig.json": LOOSE})
        feedback = await ground.service.touched(touch, ground.client)
        assert is_told(feedback.text)
        # What nobody has judged before cannot be compared.
        assert feedback.others is not None
        assert feedback.others.complete == "no"
        assert feedback.state is not State.FRESH
        assert is_told(await reach(ground, "stop"))
        ground.write("pyrightconfig.json", LOOSE)
        touch = Touch(("pyrightconfig.json",), "edit", before={"pyrightconfig.json": STRICT})
        assert (await ground.service.touched(touch, ground.client)).text == ""
        assert await reach(ground, "stop") == ""


@pytest.mark.proves("DIAG-14")
async def test_an_edit_of_settings_that_makes_errors_of_warnings_tells_them(tmp_path: Path) -> None:
    soft, hard = (json.dumps({"reportAssignmentType": severity}) + "\n" for severity in ("warning", "error"))
    async with project(tmp_path, "basedpyright", PYTHON | {"pyrightconfig.json": soft}, "user.py") as ground:
        ground.write("pyrightconfig.json", hard)
        touch = Touch(("pyrightconfig.json",), "edit", before={"pyrightconfig.json": soft})
        assert is_told((await ground.service.touched(touch, ground.client)).text)
        assert is_told(await reach(ground, "stop"))


async def test_an_edit_does_not_wait_for_a_server_that_will_not_be_back_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it finds follows with the next event."""
    learned, took = CheckRunner.seconds_of_starting, list[float]()

    def seconds(runner: CheckRunner, workspace: Workspace, paths: Iterable[AbsPath]) -> float:
        """As on a slow machine: more than an edit has, and less than the background."""
        took.append(learned(runner, workspace, paths))
        return 45.0

    monkeypatch.setattr(CheckRunner, "seconds_of_starting", seconds)
    async with project(tmp_path, "basedpyright", PYTHON, "user.py") as ground:
        judged = anyio.Event()
        ground.service.conversations.on_late(ground.client, judged.set)
        ground.write("pyrightconfig.json", STRICT)
        touch = Touch(("pyrightconfig.json",), "edit", before={"pyrightconfig.json": LOOSE})
        feedback = await ground.service.touched(touch, ground.client)
        assert feedback.text == ""
        assert "1 of 1 possibly affected files were not checked" in (feedback.reason or "")
        assert took[0] > 0, "it was started for the first verdict"
        await judged.wait()
        assert is_told(await reach(ground, "call"))


async def test_settings_that_are_changed_before_an_earlier_change_of_others_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it was is known from before both."""
    extending = '{"extends": "./base.json"}\n'
    files = {**PYTHON, "pyrightconfig.json": extending, "base.json": LOOSE}
    left = [45.0]

    def seconds(_runner: CheckRunner, _workspace: Workspace, _paths: Iterable[AbsPath]) -> float:
        return left.pop() if left else 0.0

    monkeypatch.setattr(CheckRunner, "seconds_of_starting", seconds)
    async with project(tmp_path, "basedpyright", files, "user.py") as ground:
        ground.write("base.json", STRICT)
        touch = Touch(("base.json",), "edit", before={"base.json": LOOSE})
        assert (await ground.service.touched(touch, ground.client)).text == "", "it is owed"
        ground.write("pyrightconfig.json", f"{extending}\n")
        touch = Touch(("pyrightconfig.json",), "edit", before={"pyrightconfig.json": extending})
        assert is_told((await ground.service.touched(touch, ground.client)).text)


async def test_a_verdict_that_may_have_been_reached_with_new_settings_is_no_state_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are changed when the server is ready and has not read them, and nobody watches."""
    run, files = Check.run, {name: text for name, text in TYPES.items() if not name.startswith("node_modules")}
    loose = '{"compilerOptions": {"noEmit": true}}\n'

    async def run_late(check: Check, deadline: float) -> Outcome:
        (tmp_path / "workspace/tsconfig.json").write_text(TYPES["tsconfig.json"])
        return await run(check, deadline)

    files |= {"tsconfig.json": loose, "user.ts": "export function one(two) { return two }\n"}
    monkeypatch.setattr(Check, "run", run_late)
    async with project(tmp_path, "typescript", files, "user.ts", watch=None) as ground:
        touch = Touch(("tsconfig.json",), "edit", before={"tsconfig.json": loose})
        feedback = await ground.service.touched(touch, ground.client)
        assert feedback.text == "What tsconfig.json changes for other files is not known: none was checked before."


async def test_settings_that_are_changed_while_a_server_starts_are_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is judged by then, so nothing can be compared: that is said, also of a server that is not there yet."""
    starts, may_start = anyio.Event(), anyio.Event()

    @asynccontextmanager
    async def spawn_late(launch: Launch) -> AsyncGenerator[Process]:
        starts.set()
        await may_start.wait()
        async with spawn(launch) as process:
            yield process

    monkeypatch.setattr(real, "spawn", spawn_late)
    async with (
        project(tmp_path, "basedpyright", PYTHON, "pyrightconfig.json") as ground,
        anyio.create_task_group() as it,
    ):
        it.start_soon(ground.service.touched, Touch(("user.py",), "read"), ground.client)
        await starts.wait()
        ground.write("pyrightconfig.json", STRICT)
        touch = Touch(("pyrightconfig.json",), "edit", before={"pyrightconfig.json": LOOSE})
        feedback = await ground.service.touched(touch, ground.client)
        assert feedback.text == "What pyrightconfig.json changes for other files is not known: none was checked before."
        may_start.set()


async def test_the_files_of_another_project_are_no_part_of_it(tmp_path: Path) -> None:
    async with project(tmp_path, "basedpyright", PYTHON, "user.py") as ground:
        (other := tmp_path / "other").mkdir()
        for name, text in PYTHON.items():
            (other / name).write_text(text)
        client = ClientSession("other", AbsPath(str(other)), AbsPath(str(other)))
        await ground.service.touched(Touch(("user.py",), "read"), client)
        ground.write("pyrightconfig.json", STRICT)
        touch = Touch(("pyrightconfig.json",), "edit", before={"pyrightconfig.json": LOOSE})
        feedback = await ground.service.touched(touch, ground.client)
        assert is_told(feedback.text)
        assert feedback.others is not None
        assert (feedback.others.checked, feedback.others.candidates) == (1, 1)


async def test_where_nobody_had_judged_the_other_files_the_edit_is_not_called_clean(tmp_path: Path) -> None:
    """As right after the start of a conversation: the alias of an import was taken away, and nothing was said."""
    async with project(tmp_path, "basedpyright", PYTHON, "pyrightconfig.json") as ground:
        await ground.service.ask(Question(operation=Operation.HOVER, file_path="lib.py", line=4), ground.client)
        for settings, said in (
            (STRICT, "What pyrightconfig.json changes for other files is not known: none was checked before."),
            (LOOSE, ""),
        ):
            before = (ground.root / "pyrightconfig.json").read_text()
            ground.write("pyrightconfig.json", settings)
            touch = Touch(("pyrightconfig.json",), "edit", before={"pyrightconfig.json": before})
            assert (await ground.service.touched(touch, ground.client)).text == said, "once"


async def test_where_somebody_else_was_at_work_the_errors_are_named(tmp_path: Path) -> None:
    """Whether the settings brought them is not known then. A place is named once, whatever is wrong there."""
    twice = PYTHON["user.py"].replace("value: int = one()", "value: int = one(); other: int = one()")
    async with project(tmp_path, "basedpyright", {**PYTHON, "user.py": twice}, "user.py") as ground:
        ground.write("lib.py", f"{PYTHON['lib.py']}\n\ntwo = 2\n")
        ground.write("pyrightconfig.json", STRICT)
        touch = Touch(("pyrightconfig.json",), "edit", before={"pyrightconfig.json": LOOSE})
        said = (await ground.service.touched(touch, ground.client)).text
    assert "Whether pyrightconfig.json brought these errors is not known: user.py:3, user.py:4." in said


async def test_so_does_a_command_that_rewrites_them(tmp_path: Path) -> None:
    async with project(tmp_path, "basedpyright", PYTHON, "user.py") as ground:
        ground.write("pyrightconfig.json", STRICT)
        assert is_told(await reach(ground, "call"))
        assert is_told(await reach(ground, "stop"))


async def test_settings_that_git_brings_are_nobodys(tmp_path: Path) -> None:
    async with project(tmp_path, "basedpyright", PYTHON, "user.py") as ground:
        run_git(ground.root, "checkout", "-qb", "strict")
        ground.write("pyrightconfig.json", STRICT)
        commit_everything(ground.root)
        run_git(ground.root, "checkout", "-q", "-")
        assert await reach(ground, "call") == ""
        run_git(ground.root, "checkout", "-q", "strict")
        assert await reach(ground, "call") == ""
        assert await reach(ground, "stop") == ""


async def test_what_new_settings_bring_to_light_was_wrong_before(tmp_path: Path) -> None:
    without = {name: text for name, text in PYTHON.items() if name != "pyrightconfig.json"}
    hidden = {**without, "pyproject.toml": "[tool.pyright]\ntypeCheckingMode = 'off'\n"}
    async with project(tmp_path, "basedpyright", hidden, "user.py") as ground:
        ground.write("pyrightconfig.json", STRICT)
        assert await reach(ground, "call") == ""
        assert await reach(ground, "stop") == ""
        touch = Touch(("pyrightconfig.json",), "write", before={"pyrightconfig.json": ""})
        feedback = await ground.service.touched(touch, ground.client)
        assert feedback.others is not None
        assert (feedback.text, feedback.others.complete) == ("", "no")


def database(root: Path, *flags: str) -> str:
    return json.dumps([{"directory": str(root), "file": "main.c", "arguments": ["cc", *flags, "-c", "main.c"]}])


@pytest.mark.proves("A6.2")
async def test_a_database_in_a_folder_of_builds_that_git_ignores(tmp_path: Path) -> None:
    first = database(tmp_path / "workspace", "-DMAX=3")
    files = {".gitignore": "build/\n", "main.c": "int numbers[MAX];\n", DATABASE: first}
    async with project(tmp_path, "clangd", files, "main.c") as ground:
        ground.write(DATABASE, database(ground.root))
        assert "undeclared identifier 'MAX'" in await reach(ground, "call")
        assert "undeclared identifier 'MAX'" in await reach(ground, "stop")


def nobody(_runner: CheckRunner, _root: AbsPath | None = None) -> list[tuple[Key, Session]]:
    """No server can be asked now."""
    return []


async def test_a_server_that_is_started_anew_for_the_change_is_one_that_goes_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the edits of a batch are judged after the last one: the first has begun to restart it by then."""
    async with project(tmp_path, "basedpyright", PYTHON, "user.py") as ground:
        monkeypatch.setattr(CheckRunner, "sessions", nobody)
        ground.write("pyrightconfig.json", STRICT)
        touch = Touch(("pyrightconfig.json",), "edit", before={"pyrightconfig.json": LOOSE})
        assert is_told((await ground.service.touched(touch, ground.client)).text)


# --- Packages ---------------------------------------------------------------------------------------------------------

TYPES = {
    "tsconfig.json": '{"compilerOptions": {"strict": true, "noEmit": true}}\n',
    "package.json": '{"name": "x"}\n',
    ".gitignore": "node_modules\n",
    "node_modules/lib/package.json": '{"name": "lib", "version": "1.0.0", "types": "index.d.ts"}\n',
    "node_modules/lib/index.d.ts": "export declare function one(): number\n",
    "node_modules/other/index.d.ts": "export declare const two: number\n",
    "lib.ts": "export const three = 3\n",
    "user.ts": "import { one } from 'lib'\n\nexport const value: number = one()\nexport const older: string = 1\n",
}
"""The last line is wrong whatever is installed."""


async def test_a_package_that_a_command_removes_breaks_what_imports_it(tmp_path: Path) -> None:
    async with project(tmp_path, "typescript", TYPES, "user.ts") as ground:
        shutil.move(ground.root / "node_modules/lib", tmp_path / "lib")
        text = await reach(ground, "call")
        assert '<diagnostics file="user.ts">' in text
        assert "Cannot find module 'lib'" in text
        assert "not assignable" not in text
        assert "Cannot find module 'lib'" in await reach(ground, "stop")
        shutil.move(tmp_path / "lib", ground.root / "node_modules/lib")
        assert await reach(ground, "call") == ""
        assert await reach(ground, "stop") == ""


async def test_a_package_of_another_version_breaks_what_imports_it_even_if_somebody_has_asked_meanwhile(
    tmp_path: Path,
) -> None:
    """As `npm install lib@2` leaves it, with what that writes besides."""
    async with project(tmp_path, "typescript", TYPES, "user.ts") as ground:
        ground.write("node_modules/lib/index.d.ts", "export declare function one(): string\n")
        ground.write("package.json", '{"name": "x", "dependencies": {"lib": "2"}}\n')
        ground.write("package-lock.json", "{}\n")
        assert (await ground.service.check(ground.another_client(), ("user.ts",))).ok
        text = await reach(ground, "call")
        assert "Type 'string' is not assignable to type 'number'" in text
        assert "Type 'number' is not assignable to type 'string'" not in text


async def test_a_package_that_is_uninstalled_from_an_environment_of_python(tmp_path: Path) -> None:
    packages = f".venv/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    files = {
        ".gitignore": ".venv\n",
        ".venv/pyvenv.cfg": f"home = {os.path.dirname(os.path.realpath(sys.executable))}\n",
        "pyproject.toml": "[project]\nname = 'x'\nversion = '1'\n",
        f"{packages}/lib/__init__.py": "def one() -> int: ...\n",
        f"{packages}/other/__init__.py": "",
        "user.py": "from lib import one\n\nvalue: int = one()\nolder = 1 +\n",
    }
    (tmp_path / "workspace/.venv/bin").mkdir(parents=True)
    (tmp_path / "workspace/.venv/bin/python").symlink_to(os.path.realpath(sys.executable))
    async with project(tmp_path, "basedpyright", files, "user.py") as ground:
        shutil.rmtree(ground.root / packages / "lib")
        for text in (await reach(ground, "call"), await reach(ground, "stop")):
            assert 'Import "lib" could not be resolved' in text
            assert "Expected expression" not in text


async def test_what_a_person_installs_between_two_turns_is_nobodys(tmp_path: Path) -> None:
    async with project(tmp_path, "typescript", TYPES, "user.ts") as ground:
        await reach(ground, "stop")
        shutil.rmtree(ground.root / "node_modules/lib")
        assert await reach(ground, "prompt") == ""
        assert await reach(ground, "call") == ""
        assert await reach(ground, "stop") == ""


async def test_where_nobody_had_judged_what_packages_may_break_that_is_said(tmp_path: Path) -> None:
    async with project(tmp_path, "typescript", TYPES, "package.json") as ground:
        await ground.service.ask(Question(operation=Operation.HOVER, file_path="lib.ts", line=1), ground.client)
        for said in ("What node_modules changes for other files is not known: none was checked before.", ""):
            shutil.rmtree(ground.root / "node_modules/lib", ignore_errors=True)
            (ground.root / f"node_modules/lib{len(said)}").mkdir()
            assert await reach(ground, "call") == said, "once"
