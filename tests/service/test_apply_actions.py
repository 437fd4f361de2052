"""Code actions: listed, shown, done; their edits, their commands, and what those ask for."""

from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from pilotfish.api.answers import Action, Changes, State
from pilotfish.errors import Code
from support.servers.editing import EditingServer
from support.services.editing import EditingService, action, changes, editing_service, feedback, refusal
from support.values.edits import created, edited, text_edit

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """Real time: files are written in a worker thread, which a clock that jumps does not wait for."""
    return "trio"


TWO = {"a.fake": "old = 1\n", "b.fake": "use old\nx\n"}


def whole(service: EditingService, name: str, before: str, after: str) -> dict[str, Any]:
    return {"documentChanges": [edited(service.root, name, text_edit(0, 0, len(before), after))]}


@pytest.mark.proves("OPS-3", "C109")
async def test_an_action_is_listed_then_shown_then_done(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO) as service:
        service.mind.actions = [
            {"title": "Other", "kind": "refactor"},
            {"title": "Fix", "kind": "quickfix", "isPreferred": True, "data": 1},
        ]
        service.mind.resolved["Fix"] = {"edit": whole(service, "a.fake", "old", "fixed")}
        listed = await service.act(None)
        shown = await service.act("1")
        assert service.files() == TWO
        done = await service.act("Fix", apply=True)
        assert service.files() == {**TWO, "a.fake": "fixed = 1\n"}
        assert service.heard("codeAction/resolve")[-1]["data"] == 1
    titles = [(one.number, one.title) for one in cast("tuple[Action, ...]", listed.data)]
    assert titles == [(1, "Fix"), (2, "Other")]
    assert (action(shown).number, action(shown).title) == (1, "Fix")
    assert not changes(shown).applied
    assert "+fixed = 1" in (changes(shown).files[0].diff or "")
    assert changes(done).applied
    assert feedback(done).state is State.FRESH


@pytest.mark.proves("C109")
@pytest.mark.parametrize(
    ("offered", "code"),
    [
        pytest.param({"title": "Off", "disabled": {"reason": "not here"}}, Code.UNSUPPORTED, id="disabled"),
        pytest.param({"title": "Foreign", "command": {"command": "other"}}, Code.UNSUPPORTED, id="command not offered"),
        pytest.param({"title": "Bare", "command": "other"}, Code.UNSUPPORTED, id="bare command not offered"),
        pytest.param({"title": "Empty"}, Code.UNSUPPORTED, id="nothing in it"),
    ],
)
async def test_an_action_that_cannot_be_done_is_refused(tmp_path: Path, offered: dict[str, Any], code: Code) -> None:
    async with editing_service(tmp_path, TWO) as service:
        service.mind.actions = [offered]
        assert refusal(await service.act(offered["title"], apply=True))[0] is code
        assert service.heard("workspace/executeCommand") == []
        assert service.files() == TWO


@pytest.mark.proves("OPS-5")
async def test_an_action_must_be_named_to_be_done(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO) as service:
        service.mind.actions = [{"title": "Fix"}]
        assert refusal(await service.act(None, apply=True))[0] is Code.INVALID_INPUT
        assert refusal(await service.act("Fxi", apply=True)) == (
            Code.INVALID_INPUT,
            "no action is called 'Fxi' here. Nearest: 1 'Fix'.",
        )


@pytest.mark.proves("C109", "C61")
async def test_the_edit_comes_before_the_command_and_what_the_command_asks_for_after_it(tmp_path: Path) -> None:
    """The server sees its own edit before the command runs, and each edit of the command before the next."""
    seen: list[dict[str, str]] = []

    def command(mind: EditingServer, params: Any) -> None:
        seen.append(mind.open_texts())
        mind.apply(whole_of(mind, "a.fake", "edited", "first"))
        mind.apply(whole_of(mind, "b.fake", "use", "second"))

    async with editing_service(tmp_path, TWO) as service:
        service.mind.on_command = command
        edit = whole(service, "a.fake", "old", "edited")
        service.mind.actions = [{"title": "Do", "edit": edit, "command": {"command": "do", "arguments": [1]}}]
        answer = await service.act("Do", apply=True)
        assert service.files() == {"a.fake": "first = 1\n", "b.fake": "second old\nx\n"}
        assert service.heard("workspace/executeCommand") == [{"command": "do", "arguments": [1]}]
        assert [*service.server.answers.values()] == [{"applied": True}, {"applied": True}]
        assert service.mind.open_texts() == {"a.fake": "first = 1\n", "b.fake": "second old\nx\n"}
    assert seen == [{"a.fake": "edited = 1\n"}]
    assert changes(answer).applied
    assert [one.path for one in changes(answer).files] == ["a.fake", "b.fake"]


UNTRUSTED: dict[str, Any] = {"security": {}}


@pytest.mark.proves("T7", "A5.1")
@pytest.mark.parametrize(
    "action",
    [{"command": "do"}, {"command": {"command": "do"}}, {"command": {"command": "do"}, "edit": {}}],
    ids=["bare", "of an action", "with an edit of nothing"],
)
async def test_no_command_runs_where_nobody_trusts_the_workspace(tmp_path: Path, action: dict[str, Any]) -> None:
    """gopls runs the tests of a project by one, and other servers whatever the project names."""
    async with editing_service(tmp_path, TWO, UNTRUSTED) as service:
        service.mind.actions = [{"title": "Run tests", "kind": "goTest", **action}]
        code, message = refusal(await service.act("Run tests", apply=True))
        assert service.heard("workspace/executeCommand") == []
    assert (code, "not trusted" in message) == (Code.UNTRUSTED, True)


@pytest.mark.proves("T7")
async def test_there_the_edit_of_an_action_is_made_without_its_command(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO, UNTRUSTED) as service:
        edit = whole(service, "a.fake", "old", "edited")
        service.mind.actions = [{"title": "Do", "edit": edit, "command": {"command": "do"}}]
        answer = await service.act("Do", apply=True)
        assert service.files() == {**TWO, "a.fake": "edited = 1\n"}
        assert service.heard("workspace/executeCommand") == []
    assert "not trusted" in str(answer)


def whole_of(mind: EditingServer, name: str, before: str, after: str) -> dict[str, Any]:
    return {"documentChanges": [edited(mind.root, name, text_edit(0, 0, len(before), after))]}


@pytest.mark.proves("C105", "C60", "T28")
async def test_one_refused_edit_of_a_command_refuses_all_of_it(tmp_path: Path) -> None:
    def command(mind: EditingServer, params: Any) -> None:
        mind.apply(whole_of(mind, "a.fake", "old", "first"))
        mind.apply({"documentChanges": [created(mind.root, ".git/hooks/pre-commit")]})

    async with editing_service(tmp_path, TWO) as service:
        service.mind.on_command = command
        service.mind.actions = [{"title": "Do", "command": {"command": "do"}}]
        code, _ = refusal(await service.act("Do", apply=True))
        assert service.files() == TWO
        await anyio.wait_all_tasks_blocked()
        first, second = service.server.answers.values()
        assert service.mind.open_texts() == {"a.fake": "old = 1\n"}
    assert code is Code.PROTECTED
    assert first == {"applied": True}
    assert isinstance(second, dict)
    assert second["applied"] is False
    assert ".git" in second["failureReason"]


@pytest.mark.proves("C61")
async def test_an_edit_that_nobody_asked_for_is_refused(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO) as service:
        await service.rename()
        answered = await service.server.answered(service.mind.apply(whole(service, "a.fake", "old", "mine")))
        assert service.files() == TWO
    assert isinstance(answered, dict)
    assert answered["applied"] is False


@pytest.mark.proves("C109")
async def test_what_a_command_does_is_not_tried_out_for_a_preview(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO) as service:
        service.mind.actions = [{"title": "Do", "command": {"command": "do"}}]
        shown = await service.act("Do")
        assert service.heard("workspace/executeCommand") == []
    assert changes(shown) == Changes(applied=False, files=())
    assert any("'do'" in warning for warning in shown.meta.warnings)


@pytest.mark.proves("C109", "F8")
async def test_a_command_is_not_run_twice_when_the_server_dies_under_it(tmp_path: Path) -> None:
    async with editing_service(tmp_path, TWO) as service:
        service.mind.on_command = lambda mind, params: service.server.leave(1)
        service.mind.actions = [{"title": "Do", "command": {"command": "do"}}]
        answer = await service.act("Do", apply=True)
        ran = [message for server in service.servers for message in server.received if "execute" in message.method]
        assert service.files() == TWO
    assert not answer.ok
    assert len(ran) == 1
