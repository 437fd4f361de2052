"""Checking files through the service, in virtual time: side by side, within one time limit, and never a lie."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from pilotfish.api.answers import Feedback, State
from pilotfish.api.questions import Touch
from pilotfish.errors import Code
from pilotfish.pool.plan import Broken
from support.servers.script import SILENCE, Script
from support.servers.scripted import Scenario, ScriptedServer
from support.services.checks import full, server_with
from support.services.several import BY_LINE, MUTE, PROGRAM, WallClock, answering, custom, dying, hanging, service_on

pytestmark = pytest.mark.anyio

FIRST, LATER = 10_000, 3_000
"""Milliseconds: the limits of the first touch of a server, and of every other."""


# --- Time ------------------------------------------------------------------------------------------------------------


@pytest.mark.proves("DIAG-4", "DIAG-2")
async def test_a_patch_of_twenty_files_costs_the_slowest_and_not_the_sum(tmp_path: Path) -> None:
    mute = server_with(diagnosticProvider={})
    feedback: list[Feedback] = []
    async with service_on(tmp_path, {"one": mute}) as ground, anyio.create_task_group() as tasks:
        names = [ground.write(f"{number}.x") for number in range(20)]

        async def patch() -> None:
            feedback.append(await ground.touched(*names, kind="patch"))

        tasks.start_soon(patch)
        await anyio.sleep(0.001)
        asked = [message for message in ground.server("one").received if message.method == "textDocument/diagnostic"]
        assert len(asked) == 20
        # All texts were sent before the first question, so that all are judged together.
        methods = [message.method for message in ground.server("one").received]
        assert "textDocument/didOpen" not in methods[methods.index("textDocument/diagnostic") :]
        for message in asked:
            assert message.id is not None
            ground.server("one").reply(message.id, full("wrong"))
            await anyio.sleep(0.1)
    (said,) = feedback
    assert said.state is State.FRESH
    assert said.duration_ms == 1_901
    assert said.text.count("<diagnostics file=") == 20


PYTHON = {
    "lsp": {
        "basedpyright": {"command": [PROGRAM]},
        "ruff": {"command": [PROGRAM]},
    }
}


@pytest.mark.proves("REG-2", "DIAG-1", "DIAG-4")
async def test_all_servers_of_a_file_are_asked_side_by_side_and_their_words_are_one_list(tmp_path: Path) -> None:
    scenarios = {"basedpyright": answering("a type error", "said twice"), "ruff": answering("a lint", "said twice")}
    async with service_on(tmp_path, scenarios, PYTHON) as ground:
        ground.write("a.py")
        answer = await ground.check("a.py")
    assert answer.meta.state is State.FRESH
    assert answer.meta.server_hits == 2
    assert answer.data is not None
    assert sorted(found.message for found in answer.data["a.py"]) == ["a lint", "a type error", "said twice"]


@pytest.mark.proves("POOL-3", "DIAG-4", "OPS-6")
@pytest.mark.parametrize(
    ("broken", "milliseconds", "reason"),
    [
        pytest.param(dying, 0, "basedpyright exited with code 1", id="dies at its start"),
        pytest.param(hanging, FIRST, "basedpyright did not start within 10 s", id="does not start in time"),
    ],
)
async def test_one_server_failing_leaves_the_answer_of_the_other(
    tmp_path: Path, broken: Scenario, milliseconds: int, reason: str
) -> None:
    scenarios = {"basedpyright": broken, "ruff": answering("a lint")}
    async with service_on(tmp_path, scenarios, PYTHON) as ground:
        ground.write("a.py")
        feedback = await ground.touched("a.py")
        assert feedback.state is State.PARTIAL
        assert feedback.duration_ms == milliseconds
        assert reason in (feedback.reason or "")
        assert "a lint" in feedback.text
        assert "basedpyright" not in feedback.text
        assert ground.service.pool.counters.checks == {"basedpyright": 1, "ruff": 1}


async def test_one_file_that_times_out_leaves_the_answers_of_the_others(tmp_path: Path) -> None:
    def scenario(script: Script) -> None:
        BY_LINE(script)
        script.on("textDocument/diagnostic", lambda params: SILENCE if "b.x" in str(params) else full("wrong"))

    async with service_on(tmp_path, {"one": scenario}) as ground:
        feedback = await ground.touched(ground.write("a.x"), ground.write("b.x"), kind="patch")
    assert feedback.state is State.PARTIAL
    assert feedback.duration_ms == FIRST
    assert 'file="a.x"' in feedback.text
    assert 'file="b.x"' not in feedback.text


@pytest.mark.proves("DIAG-5", "CFG-5")
@pytest.mark.parametrize(
    ("first", "milliseconds"),
    [
        pytest.param(answering(), 0, id="after a success"),
        pytest.param(MUTE, FIRST, id="after a time-out"),
        pytest.param(dying, 0, id="after a failure"),
    ],
)
async def test_the_first_touch_of_a_server_has_its_own_limit_once(
    tmp_path: Path, first: Scenario, milliseconds: int
) -> None:
    async with service_on(tmp_path, {"one": [first, MUTE]}) as ground:
        ground.write("a.x", "one")
        assert (await ground.touched("a.x")).duration_ms == milliseconds
        if first is not MUTE:
            ground.server("one").leave(1)
        # Longer than the back-off after a failed start.
        await anyio.sleep(10)
        ground.write("a.x", "two")
        assert (await ground.touched("a.x")).duration_ms == LATER


@pytest.mark.proves("DIAG-5", "DIAG-11")
async def test_a_server_that_still_loads_after_its_first_answer_has_the_rest_of_the_limit(tmp_path: Path) -> None:
    """gopls answered of the file that was read after 2 s, and of the edit 3 s later."""

    def loading(script: Script) -> None:
        BY_LINE(script)
        script.on("textDocument/diagnostic", lambda params: SILENCE if "b.x" in str(params) else full())

    async with service_on(tmp_path, {"one": loading}) as ground:
        await ground.touched(ground.write("a.x"))
        await anyio.sleep(2)
        assert (await ground.touched(ground.write("b.x"))).duration_ms > LATER


@pytest.mark.proves("DIAG-5", "POOL-1")
async def test_a_start_goes_on_in_the_background_after_the_first_touch_gave_up(tmp_path: Path) -> None:
    def slow(script: Script) -> None:
        BY_LINE(script)
        script.on("initialize", lambda params: SILENCE)

    async with service_on(tmp_path, {"one": slow}) as ground:
        ground.write("a.x", "bad\n")
        feedback = await ground.touched("a.x")
        assert (feedback.text, feedback.state) == ("", State.UNAVAILABLE)
        assert feedback.duration_ms == FIRST
        (request,) = ground.server("one").received
        assert request.id is not None
        ground.server("one").reply(request.id, {"capabilities": ground.server("one").capabilities})
        feedback = await ground.touched("a.x")
        assert feedback.state is State.FRESH
        assert "bad" in feedback.text
        assert len(ground.launches) == 1


@pytest.mark.proves("CFG-5")
async def test_a_server_may_have_limits_of_its_own(tmp_path: Path) -> None:
    entry = custom(timeouts={"firstTouchTimeoutMs": 1234, "diagnosticsWaitTimeoutMs": 567})
    async with service_on(tmp_path, {"one": MUTE}, {"lsp": {"one": entry}}) as ground:
        ground.write("a.x")
        assert (await ground.touched("a.x")).duration_ms == 1234
        assert (await ground.touched("a.x")).duration_ms == 567


@pytest.mark.proves("CFG-5", "OPS-6")
async def test_a_question_for_a_verdict_waits_as_long_as_is_configured(tmp_path: Path) -> None:
    config = {"lsp": {"one": custom()}, "timing": {"requestTimeoutMs": 1200}}
    async with service_on(tmp_path, {"one": MUTE}, config) as ground:
        ground.write("a.x")
        assert (await ground.check("a.x")).meta.duration_ms == 7200
        await ground.touched("a.x")
        assert (await ground.check("a.x")).meta.duration_ms == 3600


# --- No verdict ------------------------------------------------------------------------------------------------------


@pytest.mark.proves("C86", "FMT-8", "OPS-6", "DIAG-2")
async def test_a_time_out_adds_no_text_and_is_never_an_empty_list(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": MUTE}) as ground:
        ground.write("a.x")
        feedback = await ground.touched("a.x")
        assert feedback.text == ""
        assert feedback.state is State.UNAVAILABLE
        assert feedback.reason == "one: the server has said nothing about this text"
        answer = await ground.check("a.x")
    assert not answer.ok
    assert answer.data is None
    assert answer.meta.timed_out
    assert not answer.meta.empty
    assert answer.meta.duration_ms == 30_000


@pytest.mark.proves("F6", "POOL-2", "C43")
async def test_a_crash_in_the_middle_of_a_check_is_followed_by_a_restart_that_answers_it(tmp_path: Path) -> None:
    def crashing(script: Script) -> None:
        assert isinstance(script, ScriptedServer)
        BY_LINE(script)

        def answer(params: Any) -> Any:
            if len([message for message in script.received if message.method == "textDocument/diagnostic"]) == 1:
                return full()
            return script.leave(-11) or SILENCE

        script.on("textDocument/diagnostic", answer)

    async with service_on(tmp_path, {"one": [crashing, BY_LINE]}) as ground:
        ground.write("a.x", "good\n")
        assert (await ground.touched("a.x")).state is State.FRESH
        ground.write("a.x", "bad\n")
        feedback = await ground.touched("a.x")
        assert feedback.state is State.FRESH
        assert "bad" in feedback.text
        assert len(ground.launches) == 2


@pytest.mark.proves("FMT-8", "POOL-2")
async def test_a_server_that_dies_at_its_start_adds_no_text_and_the_state_says_what_it_said_last(
    tmp_path: Path,
) -> None:
    async with service_on(tmp_path, {"one": dying}) as ground:
        ground.write("a.x")
        feedback = await ground.touched("a.x")
        assert (feedback.text, feedback.state) == ("", State.UNAVAILABLE)
        assert feedback.reason is not None
        assert feedback.reason.startswith("one ")
        (entry,) = ground.service.pool.entries().values()
        assert isinstance(entry.slot, Broken)
        assert entry.slot.failure.scene.stderr == ("cannot find module",)


@pytest.mark.proves("DOC-6", "FMT-8", "PATH-4", "PATH-2")
@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        pytest.param("a.x", b"text\0more", "binary file", id="binary"),
        pytest.param("a.x", b"\xff\xfea", "unsupported encoding", id="not UTF-8"),
        pytest.param("a.x", b"x" * (8 * 1024 * 1024 + 1), "larger than", id="too large"),
        pytest.param("missing.x", None, "", id="missing"),
        pytest.param("../outside.x", None, "outside the workspace", id="outside"),
        pytest.param("a.unknown", b"x", "No LSP server configured", id="served by nobody"),
    ],
)
async def test_what_cannot_be_checked_adds_no_text_starts_nothing_and_says_why(
    tmp_path: Path, name: str, content: bytes | None, reason: str
) -> None:
    async with service_on(tmp_path, {"one": answering("wrong")}) as ground:
        if content is not None:
            ground.write(name, content)
        feedback = await ground.touched(name)
        assert feedback.text == ""
        assert feedback.state is State.UNAVAILABLE
        assert feedback.reason
        assert reason in feedback.reason
        assert ground.launches == []


@pytest.mark.proves("FMT-8")
async def test_one_file_of_a_patch_that_cannot_be_read_does_not_make_the_edit_fail(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": answering("wrong")}) as ground:
        feedback = await ground.touched(ground.write("a.x"), ground.write("b.x", b"\0"), kind="patch")
    assert feedback.state is not State.FRESH
    assert feedback.reason


@pytest.mark.proves("REG-5", "FMT-8")
async def test_a_server_that_is_not_installed_adds_no_text_and_the_state_says_which(tmp_path: Path) -> None:
    missing = {"lsp": {"one": custom(command=["/nowhere/at/all"])}}
    async with service_on(tmp_path, {"one": answering()}, missing) as ground:
        ground.write("a.x")
        feedback = await ground.touched("a.x")
        assert (feedback.text, feedback.state) == ("", State.UNAVAILABLE)
        assert feedback.reason is not None
        assert "one" in feedback.reason
        answer = await ground.check("a.x")
        assert [error.code for error in answer.errors] == [Code.SERVER_MISSING]
        assert ground.launches == []


@pytest.mark.proves("TRUST-1", "TRUST-6", "FMT-8")
async def test_a_command_of_an_untrusted_project_is_not_run_and_the_state_says_why(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": answering()}, {}) as ground:
        ground.write(".pilotfish/lsp.json", '{"lsp": {"one": {"command": ["/bin/true"], "extensions": [".x"]}}}')
        ground.write("a.x")
        feedback = await ground.touched("a.x")
        assert (feedback.text, feedback.state) == ("", State.UNAVAILABLE)
        assert feedback.reason
        assert ground.launches == []


@pytest.mark.proves("CFG-3")
async def test_switched_off_means_that_nothing_starts(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": answering("wrong")}, {"lsp": False}) as ground:
        ground.write("a.x")
        feedback = await ground.touched("a.x")
        assert (feedback.text, feedback.state) == ("", State.UNAVAILABLE)
        assert feedback.reason == "LSP disabled by configuration"
        assert ground.launches == []


# --- Counters --------------------------------------------------------------------------------------------------------


@pytest.mark.proves("OBS-1")
async def test_checks_time_outs_and_what_was_found_are_counted(tmp_path: Path) -> None:
    def scenario(script: Script) -> None:
        BY_LINE(script)
        script.on("textDocument/diagnostic", lambda params: SILENCE if "mute" in str(params) else full("one", "two"))

    async with service_on(tmp_path, {"one": scenario}) as ground:
        await ground.touched(ground.write("a.x"))
        await anyio.sleep(FIRST / 1000)
        await ground.touched(ground.write("mute.x"))
        counters = ground.service.pool.counters
        assert counters.starts == {"one": 1}
        assert counters.checks == {"one": 2}
        assert counters.time_outs == {"one": 1}
        assert counters.diagnostics == {"one": 2}
        assert counters.latency["one"].count == 2
        assert counters.latency["one"].total == pytest.approx(LATER / 1000)
        assert counters.crashes() == {}
        ground.server("one").leave(-11)
        await anyio.sleep(1)
        assert counters.crashes() == {"one": 1}


async def test_two_client_sessions_on_one_root_share_one_server(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        ground.write("a.x", "bad\n")
        other = type(ground.client)("another", ground.client.root, ground.client.cwd)
        touch = Touch(("a.x",), "edit")
        both = [await ground.service.touched(touch, client) for client in (ground.client, other)]
        assert [feedback.state for feedback in both] == [State.FRESH] * 2
        assert len(ground.launches) == 1


@pytest.mark.proves("DIAG-10")
async def test_many_edits_of_one_file_in_flight_end_with_the_newest_text_at_the_server(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        found: dict[int, str] = {}

        async def edit(number: int) -> None:
            texts = {"a.x": f"bad {number:02}\n"}
            found[number] = (await ground.touched("a.x", texts=texts)).text

        async with anyio.create_task_group() as tasks:
            # All wait for the start of the server, and go on at the same moment.
            for number in range(30):
                tasks.start_soon(edit, number)
                await anyio.lowlevel.checkpoint()
        for number, text in found.items():
            (said,) = [line for line in text.splitlines() if line.startswith("ERROR")]
            assert int(said.split()[-1]) >= number
        (entry,) = ground.service.pool.entries().values()
        assert entry.session is not None
        assert entry.session.documents.text(entry.session.documents.paths[0]).string == "bad 29\n"
        assert len(ground.sent("one", "textDocument/didOpen")) == 1


def early(_clock: WallClock) -> float:
    return 0.0


def starting_while(act: Callable[[], object]) -> Scenario:
    """A server that judges by line; while it starts, somebody acts."""

    def scenario(script: Script) -> None:
        BY_LINE(script)
        script.on("initialize", lambda params: (act(), {"capabilities": script.capabilities})[1])

    return scenario


@pytest.mark.proves("F95", "DIAG-2", "WATCH-5")
@pytest.mark.parametrize("given", [{}, {"texts": {"a.x": "good\n"}}], ids=["read", "given"])
async def test_what_others_write_while_a_server_starts_is_what_it_is_sent(
    tmp_path: Path, given: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No watcher is there yet to tell of it, and the text was read before."""
    # Nothing takes virtual time here; by this clock the file was written after the call.
    monkeypatch.setattr(WallClock, "wall", early)
    async with service_on(tmp_path, {"one": starting_while(lambda: ground.write("a.x", "bad\n"))}) as ground:
        ground.write("a.x", "good\n")
        feedback = await ground.touched("a.x", **given)
        assert "bad" in feedback.text
        assert feedback.state is State.FRESH
        (opened,) = ground.sent("one", "textDocument/didOpen")
        assert opened["textDocument"]["text"] == "bad\n"


@pytest.mark.proves("DIAG-2")
async def test_a_text_that_was_given_stands_while_nobody_writes_the_file(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        ground.write("a.x", "good\n")
        feedback = await ground.touched("a.x", texts={"a.x": "bad\n"})
        assert "bad" in feedback.text


@pytest.mark.proves("F95", "DIAG-2")
@pytest.mark.parametrize(("meanwhile", "expected"), [(None, "bad 1"), ("bad 2\n", "bad 2")], ids=["stands", "written"])
async def test_times_of_files_are_too_coarse_for_a_text_that_is_given_just_after_the_file_was_written(
    tmp_path: Path, meanwhile: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it happens at the very time that the file has, so that its text must tell whether anybody wrote it."""

    def write(text: str | None) -> None:
        if text is not None:
            ground.write("a.x", text)

    async with service_on(tmp_path, {"one": starting_while(lambda: write(meanwhile))}) as ground:
        path = ground.root / ground.write("a.x", "good\n")

        def now(_clock: WallClock) -> float:
            return path.stat().st_mtime

        monkeypatch.setattr(WallClock, "wall", now)
        feedback = await ground.touched("a.x", texts={"a.x": "bad 1\n"})
        assert expected in feedback.text


# --- Certainty -------------------------------------------------------------------------------------------------------


@pytest.mark.proves("DIAG-3", "DIAG-13")
async def test_a_check_after_a_change_elsewhere_opens_a_file_anew_of_which_the_server_says_nothing(
    tmp_path: Path,
) -> None:
    """gopls and clangd publish nothing where nothing is new: every check after the first change was partial."""

    def publishing(script: Script) -> None:
        def take(params: Any) -> None:
            script.publish(params["textDocument"]["uri"], [], params["textDocument"]["version"])

        server_with()(script)
        script.on("textDocument/didOpen", take)
        script.on("textDocument/didChange", take)

    async with service_on(tmp_path, {"one": publishing}) as ground:
        for name in ("a.x", "b.x"):
            assert (await ground.check(ground.write(name, "one\n"))).meta.state is State.FRESH
        ground.write("a.x", "two\n")
        for name in ("a.x", "b.x"):
            assert (await ground.check(name)).meta.state is State.FRESH
        opened = [one for one in ground.server("one").received if one.method == "textDocument/didOpen"]
        assert [os.path.basename(one.params["textDocument"]["uri"]) for one in opened] == ["a.x", "b.x", "b.x"]


@pytest.mark.proves("DIAG-1", "C100")
async def test_what_a_server_publishes_and_what_it_answers_are_one_list(tmp_path: Path) -> None:
    def both(script: Script) -> None:
        server_with(diagnosticProvider={})(script)

        def publish(params: Any) -> None:
            script.publish(params["textDocument"]["uri"], ["same", "published"], params["textDocument"]["version"])

        script.on("textDocument/didOpen", publish)
        script.on("textDocument/diagnostic", lambda _: full("same", "asked"))

    async with service_on(tmp_path, {"one": both}) as ground:
        answer = await ground.check(ground.write("a.x"))
    assert sorted(one.message for one in (answer.data or {})["a.x"]) == ["asked", "published", "same"]
