"""Renames through the service: what is shown, what is written, what the servers hear."""

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from pilotfish.api.answers import Answer, Changes, Feedback, FileChange, State
from pilotfish.api.questions import Operation, Question
from pilotfish.config.places import user_places
from pilotfish.errors import Code
from support.servers.editing import CAPABILITIES, EditingServer
from support.servers.script import Script
from support.services.editing import changes, editing_service, feedback, refusal
from support.services.scripted import scripted_service
from support.values.edits import created, deleted, edited, renamed, text_edit

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """Real time: files are written in a worker thread, which a clock that jumps does not wait for."""
    return "trio"


TWO = {"a.fake": "old = 1\n", "b.fake": "use old\nx\n"}
NEW = {"a.fake": "new = 1\n", "b.fake": "use new\nx\n"}


@pytest.mark.proves("OPS-4", "T37")
async def test_a_rename_is_shown_and_nothing_is_written(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO) as service:
        answer = await service.rename()
        assert service.files() == TWO
    assert answer.meta.state is State.FRESH
    assert answer.data == Changes(
        applied=False,
        files=(
            FileChange("a.fake", edits=1, diff="--- a/a.fake\n+++ b/a.fake\n@@ -1 +1 @@\n-old = 1\n+new = 1\n"),
            FileChange("b.fake", edits=1, diff="--- a/b.fake\n+++ b/b.fake\n@@ -1,2 +1,2 @@\n-use old\n+use new\n x\n"),
        ),
    )


@pytest.mark.proves("OPS-4")
async def test_a_rename_is_written_where_it_was_asked_for(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO) as service:
        shown = await service.rename()
        answer = await service.rename(apply=True)
        assert service.files() == NEW
        assert service.mind.open_texts() == NEW
        assert {"a.fake", "b.fake"} <= set(service.mind.saved)
    assert changes(answer).applied
    assert changes(answer).files == changes(shown).files
    assert feedback(answer) == Feedback("", State.FRESH, feedback(answer).duration_ms)


class Chosen(EditingServer):
    """It renames in one file alone where it is started with `narrow`."""

    def __call__(self, script: Script) -> None:
        super().__call__(script)
        script.on("initialize", self._initialize)

    def _initialize(self, params: Any) -> Any:
        self.narrow = params["initializationOptions"]["narrow"]
        return {"capabilities": self.capabilities}

    def texts(self) -> dict[str, str]:
        return {uri: text for uri, text in super().texts().items() if uri == self.uri("a.fake") or not self.narrow}


@pytest.mark.proves("OPS-4")
@pytest.mark.parametrize("narrow", ["one", "two"])
async def test_of_two_servers_the_one_renames_that_knows_of_more_places(tmp_path: Path, narrow: str) -> None:
    """The server of a framework sees templates, which that of the language would leave as they are."""
    root = tmp_path.resolve() / "workspace"
    server = {"command": [sys.executable], "extensions": [".fake"]}
    both = {name: {**server, "initialization": {"narrow": name == narrow}} for name in ("one", "two")}
    async with scripted_service(tmp_path, Chosen(root), Chosen(root), config={"lsp": both}) as scripted:
        for name, text in TWO.items():
            scripted.write(name, text)
        place = Question(operation=Operation.RENAME, file_path="a.fake", line=1, character=1, new_name="new")
        answer = await scripted.service.ask(place, scripted.session())
        assert len(scripted.servers) == len(both)
    assert [one.path for one in changes(answer).files] == ["a.fake", "b.fake"]


@pytest.mark.proves("OPS-4", "DIAG-8")
async def test_the_answer_says_what_became_of_the_changed_files(tmp_path: Path) -> None:
    files = {"a.fake": "old = 1\n", "b.fake": "old\nbad before\n"}
    async with editing_service(tmp_path, files) as service:
        answer = await service.rename(new_name="bad", apply=True)
    found = feedback(answer)
    assert found.state is State.FRESH
    assert (found.introduced, found.fixed) == (2, 0)
    assert '<diagnostics file="a.fake">' in found.text
    assert "bad = 1" in found.text
    assert "bad before" not in found.text
    assert "1 older error in these files is not shown." in found.text


@pytest.mark.proves("T37", "DOC-4", "C106")
async def test_a_server_that_remembers_an_older_text_is_shown_the_file_first(tmp_path: Path) -> None:
    """It has read `b.fake` before somebody put a line above: its places would be off by one. It mentions the name."""
    async with editing_service(tmp_path, TWO) as service:
        service.write("b.fake", "one more line\nuse old\nx\n")
        answer = await service.rename(apply=True)
        assert service.files() == {"a.fake": "new = 1\n", "b.fake": "one more line\nuse new\nx\n"}
        assert len(service.heard("textDocument/rename")) == 1
    assert changes(answer).applied


@pytest.mark.proves("WATCH-5", "DOC-4")
async def test_an_open_document_that_changed_on_disk_is_sent_before_the_question(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO) as service:
        await service.service.check(service.session(), ("a.fake", "b.fake"))
        service.write("b.fake", "one more line\nuse old\nx\n")
        answer = await service.rename(apply=True)
        assert service.files()["b.fake"] == "one more line\nuse new\nx\n"
        assert len(service.heard("textDocument/rename")) == 1
    assert changes(answer).applied


@pytest.mark.proves("C60", "C106", "F76", "OPS-4")
async def test_a_file_that_changes_while_the_server_thinks_is_never_written_over(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO) as service:
        await service.rename()
        count = iter(range(100))
        service.mind.before_answer = lambda: service.write("b.fake", f"{next(count)}\nuse old\n")
        code, message = refusal(await service.rename(apply=True))
        assert service.files()["a.fake"] == "old = 1\n"
        assert service.files()["b.fake"].endswith("use old\n")
    assert code is Code.STALE
    assert "change" in message


@pytest.mark.proves("C60")
async def test_a_file_that_changes_once_meanwhile_is_asked_about_again(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO) as service:
        await service.rename()
        service.mind.before_answer = lambda: service.write("b.fake", "one more line\nuse old\nx\n")
        answer = await service.rename(apply=True)
        assert service.files()["b.fake"] == "one more line\nuse new\nx\n"
    assert changes(answer).applied


@pytest.mark.proves("C60")
async def test_an_edit_for_another_version_is_not_believed(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO) as service:
        await service.rename()
        service.mind.versions = {uri: version - 1 for uri, version in service.mind.versions.items()}
        assert refusal(await service.rename(apply=True))[0] is Code.STALE
        assert service.files() == TWO


@pytest.mark.proves("C60", "F76")
async def test_of_two_renames_at_once_one_is_done_and_the_other_refused(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO) as service:
        await service.rename()
        answers: list[Answer[Any]] = []

        async def rename(new_name: str) -> None:
            answers.append(await service.rename(new_name=new_name, apply=True))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rename, "one")
            tasks.start_soon(rename, "two")
        done = [answer for answer in answers if answer.ok]
        refused = [refusal(answer)[0] for answer in answers if not answer.ok]
        assert service.files() in (
            {name: text.replace("old", new) for name, text in TWO.items()} for new in ("one", "two")
        )
    assert len(done) == 1
    assert refused == [Code.STALE]


@pytest.mark.proves("RPC-5", "F51", "F49", "F50")
async def test_what_is_before_the_word_and_around_it_stays_as_it_is(tmp_path: Path) -> None:
    files = {"a.fake": "\ufeff'😀é' old = 1\r\nold\r\n", "b [id] #%.fake": "\told"}
    async with editing_service(tmp_path, files) as service:
        answer = await service.rename(line=1, character=6, apply=True)
        assert service.files() == {"a.fake": "\ufeff'😀é' new = 1\r\nnew\r\n", "b [id] #%.fake": "\tnew"}
    assert changes(answer).applied


@pytest.mark.proves("T28", "T37", "A17.18")
@pytest.mark.parametrize(
    ("name", "code"),
    [
        pytest.param("../outside.fake", Code.OUTSIDE_WORKSPACE, id="outside"),
        pytest.param(".git/hooks/pre-commit", Code.PROTECTED, id="git hook"),
        pytest.param(".vscode/tasks.json", Code.PROTECTED, id="editor"),
        pytest.param("CLAUDE.md", Code.PROTECTED, id="agent"),
        pytest.param("node_modules/x/old.fake", Code.EXTERNAL, id="library"),
    ],
)
async def test_what_may_not_be_changed_refuses_the_whole(tmp_path: Path, name: str, code: Code) -> None:
    async with editing_service(tmp_path, {**TWO, name: "old\n"}) as service:
        preview = await service.rename()
        found, message = refusal(await service.rename(apply=True))
        assert service.files()["a.fake"] == "old = 1\n"
    assert found is code
    assert any("cannot be applied" in warning for warning in preview.meta.warnings)
    assert not changes(preview).applied
    assert Path(name).name in message


@pytest.mark.proves("C115", "T28")
async def test_what_is_no_file_refuses_the_whole(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO) as service:
        service.mind.sent["jdt://contents/old"] = "old"
        await service.rename()
        service.server.on("textDocument/rename", lambda params: edit("jdt://contents/x", text_edit(0, 0, 1, "y")))
        assert refusal(await service.rename(apply=True))[0] is Code.EXTERNAL
        assert service.files() == TWO


def edit(uri: str, *edits: dict[str, Any]) -> dict[str, Any]:
    return {"changes": {uri: list(edits)}}


@pytest.mark.proves("C107")
async def test_what_a_person_should_confirm_is_listed_and_never_done(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO) as service:

        def answer(params: Any) -> Any:
            change = {**text_edit(0, 0, 3, "new"), "annotationId": "risky"}
            annotations = {"risky": {"label": "Rename in comments", "needsConfirmation": True}}
            return {"changes": {service.uri("a.fake"): [change]}, "changeAnnotations": annotations}

        await service.rename()
        service.server.on("textDocument/rename", answer)
        preview = await service.rename()
        code, message = refusal(await service.rename(apply=True))
        assert service.files() == TWO
    assert changes(preview).confirm == ("Rename in comments",)
    assert code is Code.NEEDS_CONFIRMATION
    assert "Rename in comments" in message


@pytest.mark.proves("T37")
async def test_edits_that_contradict_each_other_refuse_the_whole(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO) as service:
        both = [text_edit(0, 0, 3, "x"), text_edit(0, 1, 2, "y")]
        await service.rename()
        service.server.on("textDocument/rename", lambda params: edit(service.uri("a.fake"), *both))
        assert refusal(await service.rename(apply=True))[0] is Code.PROTOCOL_ERROR
        assert service.files() == TWO


@pytest.mark.proves("C103")
async def test_document_changes_win_over_changes(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO) as service:
        both = {
            "documentChanges": [edited(service.root, "a.fake", text_edit(0, 0, 3, "new"))],
            "changes": {service.uri("b.fake"): [text_edit(0, 0, 3, "wrong")]},
        }
        await service.rename()
        service.server.on("textDocument/rename", lambda params: both)
        assert changes(await service.rename(apply=True)).applied
        assert service.files() == {**TWO, "a.fake": "new = 1\n"}


@pytest.mark.proves("C104")
async def test_file_operations_of_a_rename_are_done_in_order_and_told(tmp_path: Path) -> None:
    files = {**TWO, "c/d.fake": "d\n", "gone.fake": "g\n"}
    async with editing_service(tmp_path, files) as service:
        await service.service.check(service.session(), ("gone.fake", "c/d.fake"))
        watchers = {"watchers": [{"globPattern": "**/*.fake"}]}
        registration = {"id": "w", "method": "workspace/didChangeWatchedFiles", "registerOptions": watchers}
        await service.server.answered(
            service.server.ask("client/registerCapability", {"registrations": [registration]})
        )
        operations = [
            edited(service.root, "a.fake", text_edit(0, 0, 3, "new")),
            renamed(service.root, "a.fake", "e/a.fake"),
            created(service.root, "f.fake"),
            edited(service.root, "f.fake", text_edit(0, 0, 0, "f\n")),
            deleted(service.root, "gone.fake"),
            renamed(service.root, "c", "h"),
        ]
        service.server.on("textDocument/rename", lambda params: {"documentChanges": operations})
        answer = await service.rename(apply=True)
        assert service.files() == {
            "e/a.fake": "new = 1\n",
            "b.fake": TWO["b.fake"],
            "f.fake": "f\n",
            "h/d.fake": "d\n",
        }
        kinds = {(change.kind, change.path, change.new_path) for change in changes(answer).files}
        assert kinds == {
            ("rename", "a.fake", "e/a.fake"),
            ("create", "f.fake", None),
            ("delete", "gone.fake", None),
            ("rename", "c/d.fake", "h/d.fake"),
        }
        told, again = service.heard("workspace/didChangeWatchedFiles")
        # Nobody watches here: what looks for importers of files that are gone makes sure that these are known to be.
        gone = {"a.fake", "gone.fake", "c/d.fake"}
        assert {(service.mind.name(one["uri"]), one["type"]) for one in again["changes"]} == {(one, 3) for one in gone}
        assert {(service.mind.name(one["uri"]), one["type"]) for one in told["changes"]} == {
            ("a.fake", 3),
            ("e/a.fake", 1),
            ("f.fake", 1),
            ("gone.fake", 3),
            ("c/d.fake", 3),
            ("h/d.fake", 1),
        }
        closed = {service.mind.name(one["textDocument"]["uri"]) for one in service.heard("textDocument/didClose")}
        assert closed == gone
        assert set(service.mind.open_texts()) == {"b.fake", "e/a.fake", "f.fake", "h/d.fake"}


@pytest.mark.proves("OPS-6")
async def test_a_server_that_renames_nothing_is_a_refusal_that_says_why(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO) as service:
        await service.rename()
        service.server.on("textDocument/rename", lambda params: None)
        answer = await service.rename(apply=True)
        assert service.files() == TWO
    assert not answer.ok
    assert "can be renamed" in (answer.meta.reason or "") + answer.errors[0].message


@pytest.mark.proves("RPC-7")
async def test_a_server_that_cannot_rename_is_named(tmp_path: Path) -> None:
    without = {name: value for name, value in CAPABILITIES.items() if name != "renameProvider"}
    async with editing_service(tmp_path, TWO, capabilities=without) as service:
        assert refusal(await service.rename(apply=True))[0] is Code.UNSUPPORTED


async def test_a_server_that_is_still_indexing_is_not_trusted_with_a_rename(tmp_path: Path) -> None:
    config = {"timing": {"requestTimeoutMs": 60}}
    async with editing_service(tmp_path, TWO, config) as service:
        await service.rename()
        service.server.notify("experimental/serverStatus", {"health": "ok", "quiescent": False})
        await anyio.wait_all_tasks_blocked()
        preview = await service.rename()
        code, message = refusal(await service.rename(apply=True))
        assert service.files() == TWO
    assert preview.meta.state is State.PARTIAL
    assert code is Code.REQUEST_TIMEOUT
    assert "still indexing" in message


@pytest.mark.proves("F57", "F58", "P24")
async def test_a_disk_that_refuses_changes_nothing_and_says_so(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO) as service:
        blocked = Path(service.system.places.journals)
        blocked.parent.mkdir(parents=True, exist_ok=True)
        blocked.write_text("not a folder")
        code, _ = refusal(await service.rename(apply=True))
        assert service.files() == TWO
    assert code is Code.FILE_UNREADABLE


@pytest.mark.proves("F8", "POOL-2")
async def test_a_server_that_dies_under_the_question_is_asked_again(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO) as service:
        await service.rename()
        deaths: list[int] = []

        def die() -> None:
            if not deaths:
                deaths.append(1)
                service.server.leave(1)

        service.mind.before_answer = die
        answer = await service.rename(apply=True)
        assert service.files() == NEW
    assert changes(answer).applied


@pytest.mark.proves("F72")
async def test_a_caller_who_leaves_leaves_nothing_half_done(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO) as service:
        await service.rename()
        for delay in range(12):
            with anyio.move_on_after(delay / 1000):
                await service.rename(apply=True)
            assert service.files() in (TWO, NEW)
            if service.files() == NEW:
                service.mind.before_answer = lambda: None
                assert changes(await service.rename(new_name="old", apply=True)).applied
        assert not [name for name in service.files() if ".pilotfish" in name]


@pytest.mark.proves("P23")
async def test_what_was_left_half_written_is_put_right_when_the_service_starts(tmp_path: Path) -> None:
    """`recover` runs before anybody can ask."""
    state = Path(user_places({"HOME": "/nowhere", "PILOTFISH_HOME": str(tmp_path.resolve() / "state")}).journals)
    stale = state / ("0" * 16)
    stale.parent.mkdir(parents=True)
    stale.mkdir(mode=0o700)
    async with editing_service(tmp_path, TWO):
        assert not stale.exists()
