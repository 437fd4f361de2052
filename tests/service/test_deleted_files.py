"""A file that is deleted or moved breaks those that import it, and mends them when it comes back."""

import shutil
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from pilotfish.api.answers import Feedback, State
from pilotfish.api.questions import Moment, Touch
from pilotfish.feedback.unresolved_imports import names_file
from pilotfish.model import AbsPath
from support.files.repositories import commit_everything
from support.services.real import RealService, only, real_service

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-11")]

LIB = "def total(values: list[int]) -> int:\n    return sum(values)\n"
OTHER = "from package.lib import total\n\nprint(total([1]))\n\nundefined\n"
"""With an error that is older than everything here."""

CONFIG = {
    "lsp": {one: {"disabled": True} for one in ("ruff", "ty", "pyrefly", "pyright", "pylsp", "jedi", "typos")},
    "feedback": {"onlyNew": True, "otherFilesAfter": ["edit", "write", "patch"]},
    "timing": {"diagnosticsWaitTimeoutMs": 30_000, "firstTouchTimeoutMs": 60_000},
}


@pytest.fixture
def anyio_backend() -> str:
    """Real processes have no virtual time."""
    return "asyncio"


@pytest.fixture
async def project(tmp_path: Path) -> AsyncGenerator[RealService]:
    async with real_service(tmp_path, CONFIG) as ground:
        (ground.root / "package").mkdir()
        ground.write("pyproject.toml", "")
        ground.write("package/__init__.py", "")
        ground.write("package/lib.py", LIB)
        ground.write("near.py", "from package import lib\n\nprint(lib.total([1]))\n")
        ground.write("other.py", OTHER)
        yield ground


async def patched(ground: RealService, *names: str) -> Feedback:
    return await ground.service.touched(Touch(names, "patch"), ground.client)


async def test_importers_of_a_deleted_file_are_told_and_nothing_that_was_broken_before(project: RealService) -> None:
    await project.service.touched(Touch(("package/lib.py",), "read"), project.client)
    (project.root / "package/lib.py").unlink()
    feedback = await patched(project, "package/lib.py")
    assert '"package.lib" could not be resolved' in feedback.text
    assert '"lib" is unknown import symbol' in feedback.text
    assert "undefined" not in feedback.text
    assert feedback.state is State.FRESH
    project.write("package/lib.py", LIB)
    back = await patched(project, "package/lib.py")
    assert (back.text, back.state) == ("", State.FRESH)
    assert back.fixed


@pytest.mark.proves("DIAG-8")
async def test_a_deleted_module_is_no_package_that_is_not_installed(project: RealService) -> None:
    project.write("top.py", "VALUE = 1\n")
    project.write("user.py", "import missing_package\nfrom top import VALUE\n\nprint(VALUE, missing_package)\n")
    await project.service.touched(Touch(("top.py",), "read"), project.client)
    (project.root / "top.py").unlink()
    feedback = await patched(project, "top.py")
    assert '"top" could not be resolved' in feedback.text
    assert "missing_package" not in feedback.text


@pytest.mark.parametrize("is_read", [True, False], ids=["checked before", "never checked"])
async def test_a_file_that_comes_back_brings_no_new_errors_and_breaks_whom_it_no_longer_serves(
    project: RealService, is_read: bool
) -> None:
    project.write("package/lib.py", f"{LIB}\n\nolder_than_everything\n")
    if is_read:
        await project.service.touched(Touch(("package/lib.py",), "read"), project.client)
    before = (project.root / "package/lib.py").read_text()
    (project.root / "package/lib.py").unlink()
    gone = Touch(("package/lib.py",), "patch", before={"package/lib.py": before})
    await project.service.touched(gone, project.client)

    project.write("package/lib.py", before)
    back = await patched(project, "package/lib.py")
    assert (back.text, back.state, back.introduced) == ("", State.FRESH, 0)
    assert back.fixed, "the files that it broke are looked at"

    (project.root / "package/lib.py").unlink()
    await patched(project, "package/lib.py")
    project.write("package/lib.py", before.replace("total", "sum_up") + "brand_new\n")
    other = await patched(project, "package/lib.py")
    assert "brand_new" in other.text
    assert '"total" is unknown import symbol' in other.text
    assert "older_than_everything" not in other.text


async def test_a_moved_file_is_a_deleted_one_and_a_new_one(project: RealService) -> None:
    await project.service.touched(Touch(("package/lib.py",), "edit"), project.client)
    (project.root / "package/lib.py").rename(project.root / "package/moved.py")
    feedback = await patched(project, "package/lib.py", "package/moved.py")
    assert '"package.lib" could not be resolved' in feedback.text
    assert "undefined" not in feedback.text


def remove(folder: Path) -> None:
    shutil.rmtree(folder)


def rename(folder: Path) -> None:
    folder.rename(folder.with_name("renamed"))


@pytest.mark.proves("DIAG-14", "A11.3")
@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("command", [remove, rename])
async def test_importers_of_a_folder_that_a_command_takes_away_are_told_at_once(
    project: RealService, command: Callable[[Path], None], is_committed: bool
) -> None:
    if is_committed:
        commit_everything(project.root)
    client = replace(project.client, host="claude-code")
    project.service.conversations.begin(client)
    project.write("unrelated.py", "value = 1\n")
    await project.service.touched(Touch(("unrelated.py",), "edit", before={"unrelated.py": ""}), client)
    command(project.root / "package")
    told = await project.service.reached(Moment("call"), client)
    assert '"package.lib" could not be resolved' in told.text
    assert "near.py" in told.text
    assert "undefined" not in told.text
    left = await project.service.reached(Moment("stop"), client)
    assert '"package.lib" could not be resolved' in left.text


async def test_a_file_that_nobody_has_seen_is_missing_as_ever(project: RealService) -> None:
    feedback = await patched(project, "package/never.py")
    assert feedback.state is State.UNAVAILABLE
    assert feedback.text == ""


@pytest.mark.parametrize(
    ("module", "path", "is_meant"),
    [
        ("._decoders", "/srv/p/httpx/_decoders.py", True),
        ("httpx._decoders", "/srv/p/httpx/_decoders.py", True),
        ("other._decoders", "/srv/p/httpx/_decoders.py", False),
        ("../ajax/AjaxResponse", "/srv/p/src/ajax/AjaxResponse.ts", True),
        ("./lib.js", "/srv/p/src/lib.js", True),
        ("./lib", "/srv/p/src/lib.d.ts", True),
        ("package", "/srv/p/package/__init__.py", True),
        (".", "/srv/p/package/__init__.py", True),
        (".", "/srv/p/package/helper.py", False),
        ("decoders", "/srv/p/httpx/_decoders.py", False),
        ("@/use/calendar", "/srv/p/src/use/calendar.ts", True),
        ("@models/user", "/srv/p/app/models/user.ts", True),
        ("$lib/a.svelte", "/srv/p/src/lib/a.svelte", True),
        ("#internal", "/srv/p/src/internal.ts", False),
        ("@models/user", "/srv/p/app/models/users.ts", False),
        ("@/calendar", "/srv/p/src/use/calendar/index.ts", True),
    ],
)
def test_which_file_an_import_means(module: str, path: str, *, is_meant: bool) -> None:
    assert names_file(module, AbsPath(path)) is is_meant


GO = {
    "go.mod": "module example.com/x\n\ngo 1.19\n",
    "lib/lib.go": "package lib\n\nfunc One() int { return 1 }\n",
    "lib/two.go": "package lib\n\nfunc Two() int { return 2 }\n",
    "main.go": 'package main\n\nimport "example.com/x/lib"\n\nfunc main() { println(lib.One(), lib.Two(), older) }\n',
}
"""With an error that is older than everything here."""


@pytest.mark.server("gopls")
@pytest.mark.proves("DIAG-15")
@pytest.mark.parametrize(
    ("old", "new", "error"),
    [("lib/two.go", "lib/two.go.orig", "Two not declared"), ("lib", "away", "could not import")],
    ids=["a source renamed to what nobody compiles", "a package"],
)
async def test_go_is_shown_what_was_there_before_a_command_moved_it(
    tmp_path: Path, old: str, new: str, error: str
) -> None:
    async with real_service(tmp_path, {**CONFIG, **only("gopls")}) as ground:
        for name, text in GO.items():
            (ground.root / name).parent.mkdir(exist_ok=True)
            ground.write(name, text)
        commit_everything(ground.root)
        ground.service.conversations.begin(ground.client)
        await ground.service.touched(Touch(("main.go",), "read"), ground.client)
        (ground.root / old).rename(ground.root / new)
        told = await ground.service.reached(Moment("call"), ground.client)
        left = await ground.service.reached(Moment("stop"), ground.client)
        for text in (told.text, left.text):
            assert '<diagnostics file="main.go">' in text
            assert error in text
            assert "older" not in text.replace(GO["main.go"].splitlines()[-1], "")
