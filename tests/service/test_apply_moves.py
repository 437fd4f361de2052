"""Moving files and folders: which imports follow, and who hears of it."""

from pathlib import Path
from typing import Any

import pytest

from pilotfish.api.answers import State
from pilotfish.errors import Code
from pilotfish.operations.render import text_of
from support.servers.editing import CAPABILITIES, never
from support.services.editing import changes, editing_service, feedback, refusal

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """Real time: files are written in a worker thread, which a clock that jumps does not wait for."""
    return "trio"


IMPORTS = {"a.fake": "a\n", "b.fake": "use a.fake\nbad line\n"}


@pytest.mark.proves("OPS-3", "C112")
async def test_a_moved_file_takes_its_imports_along(tmp_path: Path) -> None:
    async with editing_service(tmp_path, IMPORTS) as service:
        preview = await service.move("a.fake", "lib/c.fake", apply=False)
        assert service.files() == IMPORTS
        answer = await service.move("a.fake", "lib/c.fake")
        assert service.files() == {"lib/c.fake": "a\n", "b.fake": "use lib/c.fake\nbad line\n"}
        uris = {"oldUri": service.uri("a.fake"), "newUri": service.uri("lib/c.fake")}
        assert service.heard("workspace/willRenameFiles")[-1] == {"files": [uris]}
        assert service.heard("workspace/didRenameFiles") == [{"files": [uris]}]
        assert service.mind.open_texts() == {"lib/c.fake": "a\n", "b.fake": "use lib/c.fake\nbad line\n"}
    assert [(one.kind, one.path, one.new_path) for one in changes(answer).files] == [
        ("edit", "b.fake", None),
        ("rename", "a.fake", "lib/c.fake"),
    ]
    assert changes(preview).files == changes(answer).files
    assert not changes(preview).applied
    assert feedback(answer).state is State.FRESH
    assert feedback(answer).text == ""  # the bad line was there before


@pytest.mark.proves("C112")
@pytest.mark.parametrize(
    "filters",
    [
        pytest.param(None, id="not offered"),
        pytest.param([{"pattern": {"glob": "**/*.other"}}], id="for other files"),
        pytest.param([{"scheme": "untitled", "pattern": {"glob": "**/*"}}], id="for another scheme"),
        pytest.param([{"pattern": {"glob": "**/*", "matches": "folder"}}], id="for folders"),
    ],
)
async def test_a_move_that_no_server_follows_says_so(tmp_path: Path, filters: list[Any] | None) -> None:
    offer = {} if filters is None else {"fileOperations": {"willRename": {"filters": filters}}}
    async with editing_service(tmp_path, IMPORTS, capabilities={**CAPABILITIES, "workspace": offer}) as service:
        answer = await service.move("a.fake", "c.fake")
        assert service.files() == {"c.fake": "a\n", "b.fake": IMPORTS["b.fake"]}
        assert service.heard("workspace/willRenameFiles") == service.heard("workspace/didRenameFiles") == []
    assert changes(answer).applied
    assert answer.meta.state is State.PARTIAL
    assert "imports were not updated" in (answer.meta.reason or "")


@pytest.mark.proves("C112")
async def test_a_folder_is_moved_with_all_that_is_in_it(tmp_path: Path) -> None:
    files = {"lib/a.fake": "a\n", "lib/deep/image.bin": "\0", "b.fake": "use lib\n"}
    async with editing_service(tmp_path, files) as service:
        await service.service.check(service.session(), ("b.fake",))
        answer = await service.move("lib", "core")
        assert service.files() == {"core/a.fake": "a\n", "core/deep/image.bin": "\0", "b.fake": "use core\n"}
        assert not (service.root / "lib").exists()
        (told,) = service.heard("workspace/didRenameFiles")
        assert {"oldUri": service.uri("lib"), "newUri": service.uri("core")} in told["files"]
    assert changes(answer).applied


@pytest.mark.proves("C112", "F18")
async def test_a_server_that_does_not_say_which_imports_follow_keeps_the_file_where_it_is(tmp_path: Path) -> None:
    async with editing_service(tmp_path, IMPORTS, {"timing": {"requestTimeoutMs": 50}}) as service:
        await service.move("a.fake", "c.fake", apply=False)
        service.server.on("workspace/willRenameFiles", never)
        preview = text_of(await service.move("a.fake", "c.fake", apply=False))
        code, _ = refusal(await service.move("a.fake", "c.fake"))
        assert service.files() == IMPORTS
        assert service.heard("workspace/didRenameFiles") == []
    assert code is Code.REQUEST_TIMEOUT
    assert "Preview: 1 file; which edits the importing files need is not known yet. Nothing was written." in preview
    assert "0 edits" not in preview


@pytest.mark.proves("C112")
@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        pytest.param("a.fake", "b.fake", Code.INVALID_INPUT, id="taken"),
        pytest.param("missing.fake", "c.fake", Code.FILE_MISSING, id="missing"),
        pytest.param("a.fake", "../c.fake", Code.OUTSIDE_WORKSPACE, id="outside"),
        pytest.param("a.fake", ".git/hooks/a", Code.PROTECTED, id="into git"),
        pytest.param(".git", "git", Code.PROTECTED, id="git itself"),
        pytest.param("lib", "lib/inner", Code.INVALID_INPUT, id="into itself"),
        pytest.param("a.fake", "lib", Code.NOT_A_FILE, id="a folder"),
    ],
)
async def test_a_move_that_cannot_be_is_refused(tmp_path: Path, old: str, new: str, code: Code) -> None:
    files = {**IMPORTS, ".git/config": "x", "lib/x.fake": "x\n"}
    async with editing_service(tmp_path, files) as service:
        assert refusal(await service.move(old, new))[0] is code
        assert service.files() == files


@pytest.mark.proves("OPS-3")
@pytest.mark.parametrize(("old", "taken"), [("a.fake", "b.fake"), ("a.fake", "a.fake"), ("lib", "notes")])
@pytest.mark.parametrize("apply", [False, True])
async def test_no_server_is_asked_about_a_move_to_where_something_is(
    tmp_path: Path, old: str, taken: str, *, apply: bool
) -> None:
    async with editing_service(tmp_path, {**IMPORTS, "lib/x.fake": "x\n", "notes": "n\n"}) as service:
        answer = await service.move(old, taken, apply=apply)
        assert refusal(answer) == (Code.INVALID_INPUT, f"{service.root / taken} is there already")
        assert service.servers == []


@pytest.mark.proves("OPS-4")
@pytest.mark.parametrize("target", ["c.fake", "lib/inner"])
async def test_a_preview_has_no_file_without_an_edit(tmp_path: Path, target: str) -> None:
    """Some servers name every file that they have looked at; also where the move is refused by its plan."""
    files = {"a.fake": "a\n", "b.fake": "b\n", "lib/x.fake": "x\n"}
    async with editing_service(tmp_path, files) as service:
        old = "lib" if target.startswith("lib") else "a.fake"
        await service.check("b.fake")
        looked: dict[str, Any] = {"textDocument": {"uri": service.uri("b.fake"), "version": None}, "edits": []}
        service.server.on("workspace/willRenameFiles", lambda params: {"documentChanges": [looked]})
        answer = await service.move(old, target, apply=False)
        assert [one.path for one in changes(answer).files] in (["a.fake"], ["lib"])
        assert service.texts_of("b.fake") == ["b\n"]


async def test_a_file_of_nobody_can_be_moved(tmp_path: Path) -> None:
    async with editing_service(tmp_path, {"notes.txt": "n\n"}) as service:
        answer = await service.move("notes.txt", "docs/notes.txt")
        assert service.files() == {"docs/notes.txt": "n\n"}
        assert service.servers == []
    assert changes(answer).applied
    assert changes(answer).feedback is None
