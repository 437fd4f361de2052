"""Which text of a file is checked, and what its diagnostics are compared with."""

from pathlib import Path

import anyio
import pytest

from pilotfish.api.answers import Feedback, State
from pilotfish.api.questions import Operation, Question
from pilotfish.pool.plan import Why
from pilotfish.service.diagnostics import ledgers
from support.servers.script import SILENCE, Script
from support.services.several import BY_LINE, answering, custom, service_on

pytestmark = pytest.mark.anyio


# --- Texts -----------------------------------------------------------------------------------------------------------


@pytest.mark.proves("DOC-2")
async def test_a_text_that_is_given_wins_over_the_disk(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        ground.write("a.x", "good\n")
        feedback = await ground.touched("a.x", texts={"a.x": "bad text\n"})
        assert "bad text" in feedback.text
        # The file need not even be there.
        assert "bad text" in (await ground.touched("new.x", texts={"new.x": "bad text\n"})).text


@pytest.mark.proves("DOC-1", "DOC-4")
async def test_a_file_that_changed_on_disk_is_sent_and_one_that_did_not_is_not(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        for text, changes in (("good\n", 0), ("good\n", 0), ("bad\n", 1), ("bad\n", 1)):
            ground.write("a.x", text)
            feedback = await ground.touched("a.x")
            assert ("bad" in feedback.text) == (text == "bad\n")
            assert len(ground.sent("one", "textDocument/didChange")) == changes
        assert len(ground.sent("one", "textDocument/didOpen")) == 1


@pytest.mark.proves("DIAG-4", "F54", "PATH-4")
async def test_a_file_of_a_patch_that_cannot_be_read_takes_nothing_from_the_others(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        ground.write("a.x", "bad text\n")
        feedback = await ground.touched("gone.x", "a.x", "/etc/passwd", kind="patch")
        assert "bad text" in feedback.text
        assert feedback.state is State.PARTIAL
        for name in ("gone.x", "/etc/passwd"):
            assert name in (feedback.reason or "")
        nothing = await ground.touched("gone.x", "/etc/passwd", kind="patch")
        assert (nothing.text, nothing.state) == ("", State.UNAVAILABLE)


@pytest.mark.proves("DOC-5")
async def test_the_documents_used_least_recently_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "MAX_OPEN_DOCUMENTS", 3)
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        for number in (0, 1, 2, 0, 3, 4):
            await ground.touched(ground.write(f"{number}.x", f"bad {number}\n"))
        await anyio.sleep(1)
        closed = [Path(params["textDocument"]["uri"]).name for params in ground.sent("one", "textDocument/didClose")]
        assert closed == ["1.x", "2.x"]
        # What was closed is opened again on use, and its answer is as good.
        assert "bad 1" in (await ground.touched("1.x")).text


@pytest.mark.proves("DOC-5")
async def test_questions_close_the_documents_used_least_recently_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hovering(script: Script) -> None:
        BY_LINE(script)
        script.capabilities["hoverProvider"] = True
        script.on("textDocument/hover", lambda params: {"contents": "a word"})

    monkeypatch.setattr(ledgers, "MAX_OPEN_DOCUMENTS", 3)
    async with service_on(tmp_path, {"one": hovering}) as ground:
        for number in (0, 1, 2, 0, 3, 4):
            file = ground.write(f"{number}.x", "good\n")
            question = Question(operation=Operation.HOVER, file_path=file, line=1, character=1)
            assert (await ground.service.ask(question, ground.client)).ok
        await anyio.sleep(1)
        closed = [Path(params["textDocument"]["uri"]).name for params in ground.sent("one", "textDocument/didClose")]
        assert closed == ["1.x", "2.x"]


@pytest.mark.proves("DOC-5", "DIAG-4")
async def test_a_patch_of_more_files_than_may_be_open_is_answered_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "MAX_OPEN_DOCUMENTS", 3)
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        names = [ground.write(f"{number}.x", f"bad {number}\n") for number in range(10)]
        feedback = await ground.touched(*names, kind="patch")
        assert feedback.state is State.FRESH
        assert feedback.text.count("<diagnostics file=") == 10
        (entry,) = ground.service.pool.entries().values()
        assert entry.session is not None
        assert len(entry.session.documents.paths) == 3


@pytest.mark.proves("POOL-7", "C42", "DOC-4")
async def test_a_restart_opens_the_documents_again_with_the_text_that_is_on_disk_by_then(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        await ground.touched(ground.write("a.x", "good\n"), ground.write("b.x", "good\n"), ground.write("c.x"))
        ground.write("a.x", "bad after the crash\n")
        (ground.root / "c.x").unlink()
        ground.server("one").leave(-9)
        await anyio.sleep(1)
        await ground.touched("b.x")
        opened = [params["textDocument"] for params in ground.sent("one", "textDocument/didOpen")]
        assert {Path(document["uri"]).name: document["text"] for document in opened} == {
            "a.x": "bad after the crash\n",
            "b.x": "good\n",
        }
        assert len(ground.launches) == 2


@pytest.mark.proves("DIAG-5")
async def test_a_server_that_was_sent_away_has_the_time_of_a_first_touch_again(tmp_path: Path) -> None:
    def slow(script: Script) -> None:
        script.on("initialize", lambda params: SILENCE)

    async with service_on(tmp_path, {"one": [BY_LINE, slow]}) as ground:
        ground.write("a.x", "bad\n")
        assert "bad" in (await ground.touched("a.x")).text
        (key,) = ground.service.pool.entries()
        await ground.service.pool.stop(key, Why.UNUSED)
        for limit in (10.0, 3.0):
            before = anyio.current_time()
            assert (await ground.touched("a.x")).state is State.UNAVAILABLE
            assert anyio.current_time() - before == pytest.approx(limit)


@pytest.mark.proves("DIAG-10", "DOC-4")
@pytest.mark.parametrize(
    ("given", "said"), [(None, ""), ({"a.x": "bad, as given\n"}, "bad, as given")], ids=["read", "given"]
)
async def test_a_check_that_a_crash_interrupted_goes_on_with_the_text_that_is_on_disk_by_then(
    tmp_path: Path, given: dict[str, str] | None, said: str
) -> None:
    """Unless it was given one: that stands whatever the disk has."""

    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        ground.write("a.x", "good\n")
        assert (await ground.touched("a.x")).state is State.FRESH
        ground.server("one").on("textDocument/diagnostic", lambda params: SILENCE)
        ground.write("a.x", "bad\n")
        feedback: list[Feedback] = []

        async def edit() -> None:
            feedback.append(await ground.touched("a.x", texts=given))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(edit)
            await anyio.sleep(1)
            ground.write("a.x", "good again\n")
            ground.server("one").leave(-11)
        assert feedback[0].state is State.FRESH
        assert said in feedback[0].text
        assert bool(feedback[0].text) == bool(said)


async def test_what_a_dead_server_said_is_not_the_answer_of_the_next(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": [answering("old"), answering("new")]}) as ground:
        ground.write("a.x")
        assert "old" in (await ground.touched("a.x")).text
        ground.server("one").leave(-9)
        await anyio.sleep(1)
        assert "new" in (await ground.touched("a.x")).text


# --- What changed ----------------------------------------------------------------------------------------------------


@pytest.mark.proves("DIAG-8")
async def test_what_an_edit_introduced_and_fixed_is_counted_against_the_last_fresh_set(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        counts: list[tuple[int, int]] = []
        for text in ("bad a\nbad b\n", "bad b\n", "bad b\nbad c\nbad d\n", "good\n"):
            feedback = await ground.touched(ground.write("a.x", text))
            counts.append((feedback.introduced, feedback.fixed))
    assert counts == [(0, 0), (0, 1), (2, 0), (0, 3)]


@pytest.mark.proves("DIAG-8")
async def test_what_is_never_told_is_not_counted(tmp_path: Path) -> None:
    config = {"lsp": {"one": custom()}, "feedback": {"includeSeverities": ["warning"]}}
    async with service_on(tmp_path, {"one": BY_LINE}, config) as ground:
        await ground.touched(ground.write("a.x", "bad a\n"))
        feedback = await ground.touched(ground.write("a.x", "bad b\n"))
    assert (feedback.introduced, feedback.fixed) == (0, 0)


@pytest.mark.proves("DIAG-8")
async def test_a_verdict_that_is_not_fresh_is_no_baseline(tmp_path: Path) -> None:
    def scenario(script: Script) -> None:
        BY_LINE(script)
        script.on("textDocument/diagnostic", lambda params: SILENCE)

    async with service_on(tmp_path, {"one": [BY_LINE, scenario, BY_LINE]}) as ground:
        await ground.touched(ground.write("a.x", "bad a\n"))
        ground.server("one").leave(-9)
        await anyio.sleep(1)
        assert (await ground.touched(ground.write("a.x", "good\n"))).state is State.UNAVAILABLE
        # Before the background has checked what was not answered: that would be a baseline.
        name = ground.write("a.x", "bad a\nbad b\n")
        ground.server("one").leave(-9)
        await anyio.sleep(10)
        feedback = await ground.touched(name, only_new=True)
    assert (feedback.state, feedback.reason) == (State.FRESH, None)
    # What it had right before this edit nobody has judged in time: that text is judged now.
    assert (feedback.introduced, feedback.fixed) == (2, 0)


@pytest.mark.proves("DIAG-8")
async def test_only_new_shows_what_the_edit_introduced(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        await ground.touched(ground.write("a.x", "bad a\n"))
        feedback = await ground.touched(ground.write("a.x", "bad a\nbad b\n"), only_new=True)
    assert "bad b" in feedback.text
    assert "bad a" not in feedback.text


@pytest.mark.proves("HOOK-1")
async def test_a_file_that_was_only_read_is_made_ready_and_says_nothing(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        feedback = await ground.touched(ground.write("a.x", "bad\n"), kind="read")
        assert feedback.text == ""
        await anyio.sleep(1)
        feedback = await ground.touched(ground.write("a.x", "bad\nbad too\n"), only_new=True)
    assert "bad too" in feedback.text
    assert feedback.introduced == 1
