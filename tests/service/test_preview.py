"""Diagnostics of texts that nobody has written: right, compared, and without a trace."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from pilotfish.api.answers import Answer, Diagnostic, Hover, State
from pilotfish.api.questions import Operation, Question
from pilotfish.errors import Code
from pilotfish.service.diagnostics.runner import Patience
from support.servers.editing import CAPABILITIES
from support.servers.script import SILENCE
from support.services.editing import editing_service

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-9")]


@pytest.fixture
def anyio_backend() -> str:
    """Real time: dependents are looked for in a worker thread, which a clock that jumps does not wait for."""
    return "trio"


FILES = {"a.fake": "good\nbad old\n", "b.fake": "use a.fake\n"}


def found(answer: Answer[Any], name: str = "a.fake") -> list[tuple[str, bool | None]]:
    """What was found in a file, and whether the text brought it."""
    assert answer.meta.state is State.FRESH, answer
    listed = cast("Mapping[str, tuple[Diagnostic, ...]]", answer.data)[name]
    return [(one.message, one.introduced) for one in listed]


async def test_a_proposed_text_is_judged_and_compared_with_what_is_on_disk(tmp_path: Path) -> None:
    async with editing_service(tmp_path, FILES) as service:
        answer = await service.preview("good\nbad old\nbad new\n")
        assert (service.root / "a.fake").read_text() == FILES["a.fake"]
    assert found(answer) == [("bad old", False), ("bad new", True)]


async def test_the_server_is_put_back_and_never_told_that_anything_was_saved(tmp_path: Path) -> None:
    async with editing_service(tmp_path, FILES) as service:
        await service.check("a.fake")
        saved = list(service.mind.saved)
        await service.preview("bad new\n")
        await anyio.wait_all_tasks_blocked()
        assert service.texts_of("a.fake") == [FILES["a.fake"], "bad new\n", FILES["a.fake"]]
        assert service.mind.open_texts()["a.fake"] == FILES["a.fake"]
        assert [name for name in service.mind.saved[len(saved) :] if name == "a.fake"] == []


@pytest.mark.proves("DIAG-8")
async def test_a_preview_is_no_baseline(tmp_path: Path) -> None:
    """The same text, once proposed and then written, is compared with what was there before both."""
    async with editing_service(tmp_path, FILES) as service:
        proposed = "good\nbad old\nbad new\n"
        first = await service.preview(proposed)
        again = await service.preview(proposed)
        service.write("a.fake", proposed)
        written = await service.check("a.fake")
    assert found(first) == found(again) == found(written) == [("bad old", False), ("bad new", True)]


async def test_what_the_text_would_break_elsewhere_is_told(tmp_path: Path) -> None:
    async with editing_service(tmp_path, FILES) as service:
        await service.check("a.fake", "b.fake")
        worse = await service.preview("good\nbad old\nbad new\n")
        better = await service.preview("good\n")
        await anyio.wait_all_tasks_blocked()
        after = await service.check("b.fake")
    assert sorted(found(worse, "b.fake")) == [("use a.fake: bad new", True), ("use a.fake: bad old", False)]
    assert list(cast("Mapping[str, object]", better.data)) == ["a.fake"]
    assert found(after, "b.fake") == [("use a.fake: bad old", False)]


async def test_several_texts_are_judged_together(tmp_path: Path) -> None:
    async with editing_service(tmp_path, FILES) as service:
        texts = {"a.fake": "good\n", "b.fake": "use a.fake\nbad b\n"}
        answer = await service.check("a.fake", "b.fake", texts=texts)
        await anyio.wait_all_tasks_blocked()
        assert service.mind.open_texts() == FILES
    assert found(answer) == []
    assert found(answer, "b.fake") == [("bad b", True)]


async def test_a_file_without_a_text_is_judged_under_the_texts_of_others(tmp_path: Path) -> None:
    async with editing_service(tmp_path, FILES) as service:
        answer = await service.check("b.fake", texts={"a.fake": "bad new\n"})
    assert found(answer, "b.fake") == [("use a.fake: bad new", True)]


async def test_a_file_that_is_not_there_yet_is_all_new_and_closed_afterwards(tmp_path: Path) -> None:
    async with editing_service(tmp_path, FILES) as service:
        answer = await service.preview("bad new\n", "c.fake")
        await anyio.wait_all_tasks_blocked()
        assert "c.fake" not in service.mind.open_texts()
        assert not (service.root / "c.fake").exists()
    assert found(answer, "c.fake") == [("bad new", True)]


async def test_a_text_that_is_on_disk_costs_nothing(tmp_path: Path) -> None:
    async with editing_service(tmp_path, FILES) as service:
        await service.check("a.fake")
        pulls = len(service.heard("textDocument/diagnostic"))
        answer = await service.preview(FILES["a.fake"])
        assert service.texts_of("a.fake") == [FILES["a.fake"]]
        about_it = [one for one in service.heard("textDocument/diagnostic")[pulls:] if "a.fake" in str(one)]
    assert about_it == []
    assert found(answer) == [("bad old", False)]


async def test_a_caller_who_leaves_does_not_leave_the_text_behind(tmp_path: Path) -> None:
    async with editing_service(tmp_path, FILES) as service:
        await service.check("a.fake")
        service.server.on("textDocument/diagnostic", lambda params: SILENCE)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(service.preview, "bad new\n")
            await service.server.until("textDocument/didChange")
            tasks.cancel_scope.cancel()
        await service.server.until("textDocument/didChange", 2)
        assert service.mind.open_texts()["a.fake"] == FILES["a.fake"]


@pytest.mark.proves("F8", "POOL-2")
async def test_a_server_that_dies_under_a_preview_comes_back_with_what_is_on_disk(tmp_path: Path) -> None:
    async with editing_service(tmp_path, FILES) as service:
        await service.check("a.fake")
        first = service.server

        def die(params: Any) -> Any:
            first.leave(1)
            return SILENCE

        first.on("textDocument/diagnostic", die)
        answer = await service.preview("bad new\n")
        await anyio.wait_all_tasks_blocked()
        assert len(service.servers) == 2
        assert service.texts_of("a.fake") == [FILES["a.fake"], "bad new\n", FILES["a.fake"]]
    assert found(answer) == [("bad new", True)]


async def test_a_preview_that_runs_out_of_time_is_no_verdict_and_puts_back(tmp_path: Path) -> None:
    async with editing_service(tmp_path, FILES) as service:
        await service.check("a.fake")
        pull = service.mind.diagnose

        def mute(params: Any) -> Any:
            return SILENCE if "bad new" in service.mind.open_texts()["a.fake"] else pull(params)

        service.server.on("textDocument/diagnostic", mute)
        texts = {"a.fake": "bad new\n"}
        answer = await service.service.preview(service.session(), (), texts, patience=Patience(0.1, 0.1))
        await anyio.wait_all_tasks_blocked()
        assert service.mind.open_texts()["a.fake"] == FILES["a.fake"]
    assert not answer.ok
    assert answer.meta.timed_out


@pytest.mark.proves("DIAG-10")
async def test_previews_and_edits_at_once_do_not_mix(tmp_path: Path) -> None:
    """Every answer is about its own text, whatever the others ask at the same time; in the end the disk's stands."""
    async with editing_service(tmp_path, FILES) as service:
        await service.check("a.fake", "b.fake")
        answers: dict[str, Answer[Any]] = {}

        async def preview(word: str) -> None:
            answers[word] = await service.preview(f"bad {word}\n")

        async def edit() -> None:
            service.write("a.fake", "bad edit\n")
            answers["edit"] = await service.check("a.fake")

        for _ in range(5):
            async with anyio.create_task_group() as tasks:
                for word in ("one", "two", "three"):
                    tasks.start_soon(preview, word)
                tasks.start_soon(edit)
                tasks.start_soon(preview, "four")
            await anyio.wait_all_tasks_blocked()
            assert service.mind.open_texts()["a.fake"] == "bad edit\n"
            for word, answer in answers.items():
                assert [message for message, _ in found(answer)] == [f"bad {word}"]


async def test_a_question_is_not_answered_from_a_proposed_text(tmp_path: Path) -> None:
    capabilities = {**CAPABILITIES, "hoverProvider": True}
    async with editing_service(tmp_path, FILES, capabilities=capabilities) as service:
        await service.check("a.fake")
        service.server.on("textDocument/hover", lambda params: {"contents": service.mind.open_texts()["a.fake"]})
        settled = {message.id for message in service.server.received}
        service.server.on("textDocument/diagnostic", lambda params: SILENCE)
        answers: list[Answer[Any]] = []

        async def hover() -> None:
            question = Question(operation=Operation.HOVER, file_path="a.fake", line=1, character=1)
            answers.append(await service.service.ask(question, service.session()))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(service.preview, "bad new\n")
            await service.server.until("textDocument/didChange")
            tasks.start_soon(hover)
            await anyio.wait_all_tasks_blocked()
            assert answers == []
            service.server.on("textDocument/diagnostic", service.mind.diagnose)
            for message in service.server.received:
                if message.method == "textDocument/diagnostic" and message.id not in settled:
                    assert message.id is not None
                    service.server.reply(message.id, service.mind.diagnose(message.params))
    (answer,) = answers
    assert cast("Hover", answer.data).contents == (FILES["a.fake"].rstrip("\n"),)


@pytest.mark.proves("PATH-2", "T28")
@pytest.mark.parametrize(
    ("name", "code"),
    [
        pytest.param("../x.fake", Code.OUTSIDE_WORKSPACE, id="outside"),
        pytest.param(".git/hooks/x.fake", Code.PROTECTED, id="protected"),
    ],
)
async def test_a_text_for_a_file_that_may_not_be_written_is_refused(tmp_path: Path, name: str, code: Code) -> None:
    async with editing_service(tmp_path, FILES) as service:
        answer = await service.preview("bad\n", name)
        assert service.servers == []
    assert [error.code for error in answer.errors] == [code]


@pytest.mark.parametrize(
    ("server", "name", "reason"),
    [
        pytest.param("fortls", "x.f90", "it checks a file only once it is saved", id="nothing before saving"),
        pytest.param("rust-analyzer", "x.rs", "it checks more once a file is saved", id="more after saving"),
    ],
)
async def test_a_server_that_checks_saved_files_is_not_said_to_have_found_everything(
    tmp_path: Path, server: str, name: str, reason: str
) -> None:
    config = {"lsp": {server: {"command": [sys.executable]}}}
    async with editing_service(tmp_path, {}, config) as service:
        answers: list[Answer[Any]] = []

        async def preview() -> None:
            answers.append(await service.preview("bad new\n", name))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(preview)
            while not service.servers:
                await anyio.wait_all_tasks_blocked()
            await service.server.until("initialized")
            service.server.notify("experimental/serverStatus", {"health": "ok", "quiescent": True})
    (answer,) = answers
    assert answer.meta.state is not State.FRESH
    assert reason in (answer.meta.reason or "")
