"""Which other files an edit broke: complete, or said to be not; and nothing that was broken before."""

import os
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from pilotfish.api.answers import Feedback, State
from pilotfish.api.questions import Moment, Touch
from pilotfish.errors import Code, Unavailable
from pilotfish.feedback.conversation import Conversation
from pilotfish.model import AbsPath
from pilotfish.protocol.uris import uri_of
from pilotfish.service.conversations import conversations
from pilotfish.service.conversations.news import scope_of
from pilotfish.service.diagnostics import broken_files
from pilotfish.service.diagnostics.edit_feedback import Scope
from pilotfish.service.diagnostics.proposals import ProposalRunner
from pilotfish.service.diagnostics.runner import MAX_SPOKEN, CheckRunner
from pilotfish.service.diagnostics.verdicts import FileVerdict, no_verdict
from pilotfish.system.clock import WallClock, current_time
from pilotfish.system.watching.watcher import open_watcher
from support.daemon.desks import eventually
from support.servers.linker import linker, told
from support.servers.script import Script
from support.services.several import Ground, service_on

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-11")]

ALL_KINDS = {"feedback": {"onlyNew": True, "otherFilesAfter": ["edit", "write", "patch"]}}


@pytest.fixture
def anyio_backend() -> str:
    """Files are read in threads, which virtual time does not wait for."""
    return "asyncio"


MODULES = {"lsp": {"one": {"command": ["/bin/true"], "extensions": [".ts"]}}}
"""Files of which imports tell who uses what."""


def config(**feedback: Any) -> dict[str, Any]:
    server = {"command": ["/bin/true"], "extensions": [".rb"]}
    return {"lsp": {"one": server}, "feedback": {**ALL_KINDS["feedback"], **feedback}}


async def edited(
    ground: Ground, name: str, text: str, kind: Any = "edit", *, seconds: float = inf, **more: Any
) -> Feedback:
    touch = Touch((name,), kind, before={name: (ground.root / name).read_text()}, **more)
    ground.write(name, text)
    return await ground.service.touched(touch, ground.client, seconds=seconds)


async def test_a_file_that_is_proposed_and_on_disk_is_judged_as_it_is_proposed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is where an earlier edit changed a file that a later one broke."""
    found: list[FileVerdict] = []
    original = ProposalRunner.run

    async def run(self: ProposalRunner, visit: Any, proposed: Any, others: Any, *seconds: float) -> Any:
        found.extend(await original(self, visit, proposed, {**others, **dict.fromkeys(proposed, "")}, *seconds))
        return found

    monkeypatch.setattr(ProposalRunner, "run", run)
    async with service_on(tmp_path, {"one": linker}, config()) as ground:
        ground.write("lib.rb", "def total\n")
        ground.write("a.rb", "use total\nuse nothing\n")
        await edited(ground, "lib.rb", "def sum\n")
    assert {one.text for one in found if one.path.endswith("lib.rb")} == {"def total\n"}


@pytest.mark.parametrize("kind", ["edit", "write", "patch"])
async def test_every_file_that_an_edit_broke_is_told_after_every_kind_of_change(tmp_path: Path, kind: str) -> None:
    async with service_on(tmp_path, {"one": linker}, config()) as ground:
        ground.write("lib.rb", "def total\ndef count\n")
        ground.write("a.rb", "use total\n")
        ground.write("deep/er/b.rb", "use total\nuse count\n")
        ground.write("c.rb", "use count\n")
        feedback = await edited(ground, "lib.rb", "def sum\ndef count\n", kind=kind)
        assert told(feedback) == {"a.rb": ["no total"], "deep/er/b.rb": ["no total"]}
        assert (feedback.state, feedback.introduced) == (State.FRESH, 2)
        assert feedback.others is not None
        assert (feedback.others.checked, feedback.others.complete) == (feedback.others.candidates, "candidates")


async def test_what_was_broken_before_is_not_what_the_edit_broke(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": linker}, config()) as ground:
        ground.write("lib.rb", "def total\n")
        ground.write("a.rb", "use total\nuse nothing\n")
        ground.write("b.rb", "use nothing\n# total\n")
        assert told(await edited(ground, "lib.rb", "def sum\n")) == {"a.rb": ["no total"]}
        # Once told, it is not told again.
        assert told(await edited(ground, "lib.rb", "def sum\ndef more\n")) == {}


async def test_a_fix_is_followed_by_silence_and_the_next_break_is_told(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": linker}, config()) as ground:
        ground.write("lib.rb", "def total\n")
        ground.write("a.rb", "use total\n")
        assert told(await edited(ground, "lib.rb", "def sum\n")) == {"a.rb": ["no total"]}
        fixed = await edited(ground, "lib.rb", "def total\n")
        assert (fixed.text, fixed.fixed) == ("", 1)
        assert told(await edited(ground, "lib.rb", "def sum\n")) == {"a.rb": ["no total"]}


async def test_an_edit_of_a_comment_checks_nothing_else(tmp_path: Path) -> None:
    settings = config() | {"lsp": {"one": {"command": ["/bin/true"], "extensions": [".py"]}}}
    async with service_on(tmp_path, {"one": linker}, settings) as ground:
        ground.write("lib.py", "def total\n")
        ground.write("a.py", "use total\n")
        feedback = await edited(ground, "lib.py", "def total  # total\n")
        assert (feedback.text, feedback.others) == ("", None)
        assert len(ground.sent("one", "textDocument/didOpen")) == 1


async def test_files_without_room_are_named(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": linker}, config(maxOtherFiles=1)) as ground:
        ground.write("lib.rb", "def total\n")
        for name in ("a.rb", "b.rb", "c.rb"):
            ground.write(name, "use total\n")
        feedback = await edited(ground, "lib.rb", "def sum\n")
        assert told(feedback) == {"a.rb": ["no total"]}
        assert "2 more files have new errors: b.rb, c.rb" in feedback.text


@pytest.mark.proves("F102")
async def test_what_is_not_checked_in_time_is_counted_and_the_answer_is_partial(tmp_path: Path) -> None:
    settings = {**config(), "timing": {"diagnosticsWaitTimeoutMs": 300, "firstTouchTimeoutMs": 5000}}
    async with service_on(tmp_path, {"one": partial(linker, silent_about="slow.rb")}, settings) as ground:
        ground.write("lib.rb", "def total\n")
        ground.write("a.rb", "use total\n")
        ground.write("slow.rb", "use total\n")
        feedback = await edited(ground, "lib.rb", "def sum\n")
        assert told(feedback) == {"a.rb": ["no total"]}
        assert feedback.state is State.PARTIAL
        assert feedback.others is not None
        assert (feedback.others.checked, feedback.others.candidates, feedback.others.complete) == (1, 2, "no")
        # Of what is not finished nothing is said: it follows if it is broken (FMT-10).
        assert "not checked" not in feedback.text
        assert "1 of 2 possibly affected files were not checked" in (feedback.reason or "")


@pytest.mark.proves("DIAG-5")
async def test_other_files_have_the_time_of_a_first_use_while_a_server_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hurried(state: Conversation) -> Scope:
        return replace(scope_of(state), others_seconds=0.0)

    monkeypatch.setattr(conversations, "scope_of", hurried)
    settings = {**config(), "timing": {"diagnosticsWaitTimeoutMs": 1, "firstTouchTimeoutMs": 60_000}}
    async with service_on(tmp_path, {"one": linker}, settings) as ground:
        ground.write("lib.rb", "def total\n")
        ground.write("a.rb", "use total\n")
        feedback = await edited(ground, "lib.rb", "def sum\n")
    assert (told(feedback), feedback.state) == ({"a.rb": ["no total"]}, State.FRESH)


@pytest.mark.proves("DIAG-4")
async def test_where_no_time_is_left_for_other_files_the_edited_one_is_told_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "LAST_SECONDS", 60.0)
    async with service_on(tmp_path, {"one": linker}, config()) as ground:
        ground.write("lib.rb", "def total\n")
        ground.write("a.rb", "use total\n")
        feedback = await edited(ground, "lib.rb", "def sum\nuse nothing\n", seconds=50.0)
    assert (told(feedback), feedback.state) == ({"lib.rb": ["no nothing"]}, State.PARTIAL)


@pytest.mark.proves("DIAG-12")
async def test_a_file_that_mentions_nothing_of_what_was_changed_is_not_waited_for_and_follows(tmp_path: Path) -> None:
    """The linker reads documentation, by which nobody sees anything; the limit is longer than any test may take."""
    settings = {**config(), "timing": {"diagnosticsWaitTimeoutMs": 600_000, "firstTouchTimeoutMs": 600_000}}
    settings["lsp"] = {"one": {"command": ["/bin/true"], "extensions": [".py"]}}
    asked = list[bool]()

    def is_third() -> bool:
        asked.append(True)
        return len(asked) == 3

    async with service_on(tmp_path, {"one": partial(linker, is_silent=is_third)}, settings) as ground:
        ground.write("lib.py", '"""\ndef total\n"""\ntotal = 1\n')
        ground.write("near.py", "from lib import total\n\nmade = total\n")
        ground.write("far.py", '"""\nuse total\n"""\nfrom near import made\n\nprint(made)\n')
        feedback = await edited(ground, "lib.py", '"""\ndef sum\n"""\nsum = 1\n')
        assert (told(feedback), feedback.state) == ({}, State.PARTIAL)
        assert feedback.others is not None
        assert (feedback.others.checked, feedback.others.candidates, feedback.others.complete) == (1, 2, "no")
        found = anyio.Event()
        ground.service.conversations.on_late(ground.client, found.set)
        await found.wait()
        late = await ground.service.reached(Moment("call"), ground.client)
        assert told(late) == {"far.py": ["no total"]}


async def test_what_was_told_is_not_told_again_while_the_other_files_are_awaited(tmp_path: Path) -> None:
    settings = {**config(), "timing": {"diagnosticsWaitTimeoutMs": 300, "firstTouchTimeoutMs": 5000}}
    async with service_on(tmp_path, {"one": partial(linker, silent_about="slow.rb")}, settings) as ground:
        ground.write("lib.rb", "def total\n")
        ground.write("slow.rb", "use total\n")
        assert told(await edited(ground, "lib.rb", "def sum\nuse nothing\n")) == {"lib.rb": ["no nothing"]}
        assert told(await edited(ground, "lib.rb", "def sum\nuse nothing\nuse more\n")) == {"lib.rb": ["no more"]}
        assert told(await edited(ground, "lib.rb", "def sum\nuse nothing\nuse more\n\n")) == {}


@pytest.mark.proves("DIAG-12")
async def test_what_the_background_has_found_is_told_with_the_next_event_whatever_it_still_looks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broken_files, "FIRST_PART", 1)
    monkeypatch.setattr(conversations, "LAST_SECONDS", 60.0)
    async with service_on(tmp_path, {"one": partial(linker, silent_about="slow.rb")}, config()) as ground:
        ground.write("lib.rb", "def total\n")
        ground.write("a.rb", "use total\n")
        ground.write("deep/er/slow.rb", "use total\n")
        assert told(await edited(ground, "lib.rb", "def sum\n", seconds=50.0)) == {}
        await eventually(lambda: ground.service.status(ground.client).conversations[0].late > 0)
        late = await ground.service.reached(Moment("call"), ground.client)
        assert told(late) == {"a.rb": ["no total"]}


async def test_a_stop_asks_nobody_about_verdicts_that_stand(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": linker}, config(), watch=open_watcher, clock=WallClock()) as ground:
        ground.write("lib.rb", "def total\n")
        ground.write("a.rb", "use total\n")
        assert told(await edited(ground, "lib.rb", "def sum\n")) == {"a.rb": ["no total"]}
        asked = len(ground.sent("one", "textDocument/diagnostic"))
        stop = await ground.service.reached(Moment("stop"), ground.client)
        assert told(stop) == {"a.rb": ["no total"]}
        assert len(ground.sent("one", "textDocument/diagnostic")) == asked


async def test_files_that_were_cut_off_for_the_sake_of_comparing_come_first_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broken_files, "FIRST_PART", 1)
    parts, passed, check = list[list[str]](), list[float](), broken_files.checked
    monkeypatch.setattr(broken_files, "current_time", lambda: current_time() + sum(passed))

    async def slow(checking: Any, paths: Any, deadline: float) -> Any:
        parts.append([os.path.basename(path) for path in paths])
        if len(parts) == 1:
            passed.append(deadline - current_time())
            return {}
        return await check(checking, paths, deadline)

    monkeypatch.setattr(broken_files, "checked", slow)
    settings = {**config(), "timing": {"diagnosticsWaitTimeoutMs": 60_000, "firstTouchTimeoutMs": 60_000}}
    async with service_on(tmp_path, {"one": linker}, settings) as ground:
        ground.write("lib.rb", "def total\n")
        ground.write("a.rb", "use total\n")
        ground.write("b.rb", "use total\n")
        ground.write("c.rb", "use total\n")
        feedback = await edited(ground, "lib.rb", "def sum\n")
    assert sorted(told(feedback)) == ["a.rb", "b.rb", "c.rb"]
    assert parts[1][0] == parts[0][0]


@pytest.mark.proves("DIAG-12")
@pytest.mark.parametrize("after", ["the edit", "the background has given up"])
async def test_what_could_not_be_compared_in_time_is_not_taken_for_older(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    settings = config(noVerdict="say")
    async with service_on(tmp_path, {"one": linker}, settings) as ground:
        ground.write("lib.rb", "def total\n")
        ground.write("a.rb", "use total\n")

        async def nothing(*_arguments: object) -> tuple[FileVerdict, ...]:
            """The server has not answered for the texts before the edit."""
            return ()

        with monkeypatch.context() as patch:
            patch.setattr(ProposalRunner, "run", nothing)
            given_up = anyio.Event()
            ground.service.conversations.on_late(ground.client, given_up.set)
            late = await edited(ground, "lib.rb", "def sum\n")
            assert (told(late), late.state) == ({}, State.PARTIAL)
            if after != "the edit":
                await given_up.wait()
            stop = await ground.service.reached(Moment("stop"), ground.client)
            assert stop.text == "Not all files that lib.rb may have broken could be checked in time."
        assert told(await edited(ground, "lib.rb", "def sum\ndef more\n")) == {"a.rb": ["no total"]}


@pytest.mark.proves("DIAG-12")
@pytest.mark.parametrize("is_back", [True, False])
async def test_a_stop_is_not_held_up_by_what_a_file_may_have_broken_that_is_as_it_was(
    tmp_path: Path, is_back: bool
) -> None:
    settings = {**config(noVerdict="say"), "timing": {"diagnosticsWaitTimeoutMs": 300, "firstTouchTimeoutMs": 5000}}
    hangs = list[bool]()
    server = partial(linker, silent_about="a.rb", is_silent=lambda: bool(hangs))
    async with service_on(tmp_path, {"one": server}, settings) as ground:
        ground.write("a.rb", "use total\n")
        ground.write("lib.rb", "def total\n")
        await edited(ground, "lib.rb", "def sum\n")
        hangs.append(True)
        if is_back:
            ground.write("lib.rb", "def total\n")
        stop = await ground.service.reached(Moment("stop"), ground.client)
        assert bool(stop.text) is not is_back


@pytest.mark.proves("DIAG-12")
@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("", ""),
        ("def total\n", "Not all files that the removal of lib.rb may have broken could be checked in time: a.rb."),
    ],
    ids=["made in this conversation", "there before"],
)
async def test_a_file_that_is_gone_before_the_stop_is_not_spoken_of_as_if_it_were_there(
    tmp_path: Path, old: str, said: str
) -> None:
    settings = {**config(noVerdict="say"), "timing": {"diagnosticsWaitTimeoutMs": 300, "firstTouchTimeoutMs": 5000}}
    async with service_on(tmp_path, {"one": partial(linker, silent_about="a.rb")}, settings) as ground:
        ground.write("a.rb", "use total\n")
        if old:
            ground.write("lib.rb", old)
        ground.write("lib.rb", "def sum\n")
        touch = Touch(("lib.rb",), "write", before={"lib.rb": old})
        await ground.service.touched(touch, ground.client)
        (ground.root / "lib.rb").unlink()
        await ground.service.touched(Touch(("lib.rb",), "patch"), ground.client)
        assert (await ground.service.reached(Moment("stop"), ground.client)).text == said


@pytest.mark.proves("DIAG-12", "TRUST-6")
async def test_a_file_that_waits_for_trust_is_named_with_the_reason_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a component whose server is not trusted: the stop said that it could not be checked in time."""
    run, why = CheckRunner.run, Unavailable(Code.UNTRUSTED, "It is not trusted.", hint="pilotfish trust .")

    async def withheld(self: CheckRunner, visit: Any, paths: Any, **more: Any) -> Any:
        if [os.path.basename(path) for path in paths] != ["a.rb"]:
            return await run(self, visit, paths, **more)
        return (FileVerdict(paths[0], "use total\n", (no_verdict("one", why, 0.0),)),)

    monkeypatch.setattr(CheckRunner, "run", withheld)
    async with service_on(tmp_path, {"one": linker}, config(noVerdict="say")) as ground:
        ground.write("lib.rb", "def total\n")
        ground.write("a.rb", "use total\n")
        feedback = await edited(ground, "lib.rb", "def sum\n")
        assert feedback.text == ".rb files are not checked by one: It is not trusted. pilotfish trust ."
        assert feedback.state == State.PARTIAL
        assert (await ground.service.reached(Moment("stop"), ground.client)).text == ""


async def test_who_imports_a_deleted_component_is_told(tmp_path: Path) -> None:
    """Its server is started anew then, so what the file had before is not known; the import tells."""
    card, place = "Card.svelte", {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 6}}
    missing = {"range": place, "severity": 1, "code": 2307, "message": f"Cannot find module './{card}'."}

    def scenario(script: Script) -> None:
        linker(script)
        script.on("textDocument/diagnostic", lambda _: {"kind": "full", "items": [missing]})

    trusted = {"trustedProjectRoots": [str(tmp_path.resolve() / "workspace")]}
    settings = {"lsp": {"svelte": {"command": ["/bin/true"]}}, "security": trusted, **ALL_KINDS}
    async with service_on(tmp_path, {"svelte": scenario}, settings) as ground:
        (ground.root / "node_modules").mkdir()
        ground.write("App.svelte", f'import Card from "./{card}"\n')
        feedback = await ground.touched(card, kind="patch", before={card: "<p/>\n"})
    assert f"Cannot find module './{card}'" in feedback.text


async def test_what_a_server_says_of_an_open_file_while_others_are_checked_is_told(tmp_path: Path) -> None:
    """No import tells of it, and the agent has read it."""
    settings = config() | MODULES
    async with service_on(tmp_path, {"one": partial(linker, publishes=True, speaks_up=True)}, settings) as ground:
        ground.write("price.ts", "export\ndef name1\n")
        ground.write("named.ts", "import price\nuse name1\n")
        ground.write("main.ts", "ask 1\n")
        for name in ("price.ts", "named.ts", "main.ts"):
            await ground.service.check(ground.client, (name,))
        feedback = await edited(ground, "price.ts", "export\ndef name2\n")
    assert told(feedback) == {"main.ts": ["no name1"], "named.ts": ["no name1"]}


async def test_a_server_that_only_publishes_is_shown_other_files_anew(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": partial(linker, publishes=True)}, config()) as ground:
        ground.write("lib.rb", "def total\n")
        ground.write("a.rb", "use total\n")
        ground.write("b.rb", "use total\n")
        await ground.touched("b.rb", kind="read")
        for old, new in (("total", "sum"), ("sum", "total"), ("total", "sum")):
            feedback = await edited(ground, "lib.rb", f"def {new}\n")
            expected = {"a.rb": ["no total"], "b.rb": ["no total"]} if old == "total" else {}
            assert told(feedback) == expected
            assert feedback.state is State.FRESH
        # What was opened for the edit is closed again; what the host has read stays open.
        session = next(iter(ground.service.pool.entries().values())).session
        assert session is not None
        assert sorted(Path(path).name for path in session.documents.paths) == ["b.rb", "lib.rb"]


LIBRARIES = {".rb": "lib.rb", ".ts": "price.ts"}


def gossip(script: Script, *, at_once: bool = True) -> None:
    """When the library is bad, `far.rb` is wrong: said as soon as the one is sent, whether or not the other is open.

    `at_once`: False where it is said of an open file alone, and by the test.
    """
    texts: dict[str, str] = {}

    def about(uri: str, **version: int) -> None:
        folder, _, name = uri.rpartition("/")
        is_wrong = name.startswith("far") and "bad" in texts.get(f"{folder}/{LIBRARIES[os.path.splitext(name)[1]]}", "")
        place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
        items = [{"range": place, "severity": 1, "message": "lib is bad"}] if is_wrong else []
        script.notify("textDocument/publishDiagnostics", {"uri": uri, "diagnostics": items, **version})

    def keep(params: Any) -> None:
        document = params["textDocument"]
        texts[document["uri"]] = document["text"] if "text" in document else params["contentChanges"][-1]["text"]
        if at_once:
            about(f"{document['uri'].rpartition('/')[0]}/far.rb")
        about(document["uri"], version=document["version"])

    script.capabilities.update({"textDocumentSync": 1})
    script.on("textDocument/didOpen", keep)
    script.on("textDocument/didChange", keep)
    script.ignore("textDocument/didSave", "textDocument/didClose")


@pytest.mark.parametrize("is_open", [False, True])
async def test_what_a_server_says_of_a_file_that_nobody_asked_about_is_heard(tmp_path: Path, is_open: bool) -> None:
    async with service_on(tmp_path, {"one": gossip}, config()) as ground:
        ground.write("lib.rb", "value = 'good'\n")
        ground.write("far.rb", "nothing that anybody else mentions\n")
        if is_open:
            await ground.touched("far.rb", kind="read")
        assert told(await edited(ground, "lib.rb", "value = 'bad'\n")) == {"far.rb": ["lib is bad"]}
        assert told(await edited(ground, "lib.rb", "value = 'bad again'\n")) == {}


@pytest.mark.proves("DIAG-12")
@pytest.mark.parametrize(("kind", "count"), [("stop", 1), ("call", 1), ("call", MAX_SPOKEN + 1)])
async def test_what_a_server_says_of_others_after_the_answer_is_told_with_a_later_event(
    tmp_path: Path, kind: Any, count: int
) -> None:
    names = [f"far{number}.ts" for number in range(count)]
    settings = config(maxOtherFiles=count, maxTotalLines=count) | MODULES
    async with service_on(tmp_path, {"one": partial(gossip, at_once=False)}, settings) as ground:
        ground.write("price.ts", "export\ngood\n")
        for name in names:
            ground.write(name, "// of its own\n")
        assert told(await edited(ground, "price.ts", "export\nbad\n")) == {}
        for name in names:
            ground.server("one").publish(uri_of(AbsPath(str(ground.root / name))), ["lib is bad"])
        await anyio.wait_all_tasks_blocked()
        looked = anyio.Event()
        ground.service.conversations.on_late(ground.client, looked.set)
        if kind == "call":
            assert told(await ground.service.reached(Moment(kind), ground.client)) == {}
            await looked.wait()
        feedback = await ground.service.reached(Moment(kind), ground.client)
    assert told(feedback) == {name: ["lib is bad"] for name in names}


@pytest.mark.proves("DIAG-14")
async def test_what_a_server_says_after_the_answer_of_what_was_there_before_is_told_nobody(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": partial(gossip, at_once=False)}, config() | MODULES) as ground:
        ground.write("price.ts", "export\nbad\n")
        ground.write("far.ts", "// of its own\n")
        assert told(await edited(ground, "price.ts", "export\nbad again\n")) == {}
        ground.server("one").publish(uri_of(AbsPath(str(ground.root / "far.ts"))), ["lib is bad"])
        await anyio.wait_all_tasks_blocked()
        looked = anyio.Event()
        ground.service.conversations.on_late(ground.client, looked.set)
        assert told(await ground.service.reached(Moment("call"), ground.client)) == {}
        await looked.wait()
        for kind in ("call", "stop"):
            assert told(await ground.service.reached(Moment(kind), ground.client)) == {}
