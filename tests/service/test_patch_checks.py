"""Judging patches on a scripted server: what is not known when the time is over is said."""

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

import pilotfish.service.patch_checks as patch_checks
from pilotfish.api.answers import State
from pilotfish.batch.judge import JudgeSettings, PatchJudge
from pilotfish.batch.patches import Patch
from pilotfish.errors import Code, Failure, Unavailable
from pilotfish.model import AbsPath, Severity
from pilotfish.service.diagnostics.affected import EditedText
from pilotfish.service.patch_checks import PATCH_SECONDS, BaseStates, CopyMoves, PatchCheck, PatchVerdict, SharedStates
from pilotfish.service.workspaces import Visit
from pilotfish.system.clock import WallClock, current_time
from support.servers.linker import linker
from support.servers.script import Script
from support.services.checks import server_with
from support.services.several import Ground, service_on

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-2")]

LINKED = {"lsp": {"one": {"command": ["/bin/true"], "extensions": [".rb"]}}}
BASE = "def total\n"


@pytest.fixture
def anyio_backend() -> str:
    """Files are read in threads, which virtual time does not wait for."""
    return "asyncio"


async def _judge(
    ground: Ground, states: BaseStates | None = None, moved: Callable[[], None] = lambda: None
) -> PatchVerdict:
    """A patch that takes away what `a.rb` uses; `moved` is called when the copy has been moved."""
    path = ground.root / "lib.rb"

    def move(text: str) -> Callable[[], Awaitable[None]]:
        async def write() -> None:
            ground.write("lib.rb", text)
            moved()

        return write

    ground.write("lib.rb", BASE)
    ground.write("a.rb", "use total\n")
    check = ground.service.patch_checks.of(
        Visit(ground.client, ground.service.workspaces.of(ground.client)),
        [EditedText(AbsPath(str(path)), BASE, "def sum\n")],
        CopyMoves(move(BASE), move("def sum\n")),
        states or BaseStates(),
    )
    return await check.judge()


class Asked:
    """What copies ask their servers for at the base, by the names of the files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.at_base = list[str]()

    def listen(self, ground: Ground, before: Callable[[], Awaitable[None]]) -> None:
        """`before` each question is asked, which it may keep from being."""
        checks = ground.service.patch_checks
        check = checks.check

        async def heard(visit: Visit, paths: Sequence[AbsPath], **how: bool) -> Any:
            if (ground.root / "lib.rb").read_text() == BASE:
                self.at_base += [os.path.basename(path) for path in paths]
                await before()
            return await check(visit, paths, **how)

        self._monkeypatch.setattr(checks, "check", heard)


async def test_a_patch_whose_affected_files_are_all_checked_is_fresh(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": linker}, LINKED) as ground:
        verdict = await _judge(ground)
    assert (verdict.state, verdict.may_pass, [*verdict.introduced]) == (State.FRESH, False, ["a.rb"])


async def test_a_patch_whose_time_is_over_before_the_affected_files_are_known_is_not_fresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = 0.0
    monkeypatch.setattr(patch_checks, "current_time", lambda: current_time() + passed)
    async with service_on(tmp_path, {"one": linker}, LINKED) as ground:
        checks = ground.service.patch_checks
        check = checks.check

        async def slow(*given: Any, **how: bool) -> Any:
            nonlocal passed
            found = await check(*given, **how)
            passed += 0.0 if how["others"] else PATCH_SECONDS
            return found

        monkeypatch.setattr(checks, "check", slow)
        verdict = await _judge(ground)
    assert (verdict.state, verdict.may_pass, [*verdict.introduced]) == (State.PARTIAL, True, [])
    assert "not every file that the patch may break is known" in (verdict.reason or "")


async def test_a_reason_names_the_workspace_and_not_the_copy_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with service_on(tmp_path, {"one": linker}, LINKED) as ground:
        ground.write("lib.rb", BASE)

        async def untrusted(_check: PatchCheck) -> PatchVerdict:
            return PatchVerdict(state=State.UNAVAILABLE, reason=f"trust the workspace: pilotfish trust {ground.root}")

        monkeypatch.setattr(PatchCheck, "judge", untrusted)
        settings = JudgeSettings(AbsPath("/projects/shop"))
        judge = PatchJudge(ground.service, ground.client, settings, BaseStates(), AbsPath(str(tmp_path)))
        judged = await judge.judge(Patch("a", {"lib.rb": "def sum\n"}))
    assert judged.judgement.reason == "trust the workspace: pilotfish trust /projects/shop"


@pytest.mark.parametrize(
    ("worst", "asked"),
    [
        (Severity.ERROR, {"syntacticDiagnosticsSync", "semanticDiagnosticsSync"}),
        (Severity.HINT, {"syntacticDiagnosticsSync", "semanticDiagnosticsSync", "suggestionDiagnosticsSync"}),
    ],
)
async def test_a_server_is_asked_for_hints_only_where_they_count(
    tmp_path: Path, worst: Severity, asked: set[str]
) -> None:
    def answering(script: Script) -> None:
        server_with(executeCommandProvider={"commands": ["typescript.tsserverRequest"]})(script)
        script.on("workspace/executeCommand", lambda params: {"success": True, "body": []})

    config = {"lsp": {"vtsls": {"command": ["/bin/true"]}}}
    async with service_on(tmp_path, {"vtsls": answering}, config) as ground:
        ground.write("a.ts", "const a = 1;\n")
        settings = JudgeSettings(AbsPath(str(ground.root)), worst)
        judge = PatchJudge(ground.service, ground.client, settings, BaseStates(), AbsPath(str(tmp_path)))
        judged = await judge.judge(Patch("a", {"a.ts": "const a = 2;\n"}))
        sent = [one.params for one in ground.server("vtsls").received if one.method == "workspace/executeCommand"]
    assert judged.judgement.state is State.FRESH
    assert {one["arguments"][0] for one in sent} - {"projectInfo", "reload"} == asked


@pytest.mark.parametrize("is_lost", [False, True])
async def test_what_one_copy_is_asking_for_another_waits_for_and_asks_itself_where_that_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_lost: bool
) -> None:
    asked, shared = Asked(monkeypatch), SharedStates()
    other_began, other_may_begin = anyio.Event(), anyio.Event()
    verdicts = dict[str, PatchVerdict | Failure]()

    async def until_the_other_is_there() -> None:
        other_may_begin.set()
        await other_began.wait()
        if is_lost:
            raise Unavailable(Code.SERVER_CRASHED, "lost")

    async def judge(name: str, ground: Ground, moved: Callable[[], None]) -> None:
        try:
            verdicts[name] = await _judge(ground, BaseStates(shared), moved)
        except Failure as failure:
            verdicts[name] = failure

    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    async with (
        service_on(tmp_path / "1", {"one": linker}, LINKED, clock=WallClock()) as one,
        service_on(tmp_path / "2", {"one": linker}, LINKED, clock=WallClock()) as two,
        anyio.create_task_group() as tasks,
    ):
        asked.listen(one, until_the_other_is_there)
        asked.listen(two, anyio.lowlevel.checkpoint)
        tasks.start_soon(judge, "one", one, lambda: None)
        await other_may_begin.wait()
        tasks.start_soon(judge, "two", two, other_began.set)
    found = verdicts["two"]
    assert isinstance(found, PatchVerdict)
    assert (found.state, [*found.introduced]) == (State.FRESH, ["a.rb"])
    assert isinstance(verdicts["one"], Failure) is is_lost
    assert asked.at_base.count("lib.rb") == (2 if is_lost else 1)
    assert asked.at_base.count("a.rb") == 1
    assert not shared.asking


@pytest.mark.parametrize(
    ("states", "asked_first"),
    [
        (BaseStates(), {"lib.rb"}),
        (BaseStates(is_long=True), {"lib.rb", "a.rb", "b.rb", "c.rb"}),
        (BaseStates(part=(0, 2), is_long=True), {"lib.rb", "a.rb", "c.rb"}),
    ],
)
async def test_a_copy_asks_for_its_part_of_the_base_at_once_where_many_patches_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, states: BaseStates, asked_first: set[str]
) -> None:
    asked, first = Asked(monkeypatch), set[str]()

    async def keep() -> None:
        if not first:
            first.update(asked.at_base)

    async with service_on(tmp_path, {"one": linker}, LINKED) as ground:
        for name in ("b.rb", "c.rb"):
            ground.write(name, "def other\n")
        asked.listen(ground, keep)
        verdict = await _judge(ground, states)
    assert first == asked_first
    assert (verdict.state, [*verdict.introduced]) == (State.FRESH, ["a.rb"])


async def test_a_judge_that_has_begun_knows_its_part_of_the_base_before_its_first_patch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, states = Asked(monkeypatch), BaseStates(is_long=True)
    async with service_on(tmp_path, {"one": linker}, LINKED) as ground:
        ground.write("lib.rb", BASE)
        ground.write("a.rb", "use total\n")
        asked.listen(ground, anyio.lowlevel.checkpoint)
        judge = PatchJudge(
            ground.service, ground.client, JudgeSettings(AbsPath(str(ground.root))), states, AbsPath(str(tmp_path))
        )
        patch = Patch("a", {"lib.rb": "def sum\n"})
        await judge.begin(patch)
        known = {*states.shared.files}
        judged = await judge.judge(patch)
    assert known == {"lib.rb", "a.rb"}
    assert sorted(asked.at_base) == ["a.rb", "lib.rb"]
    assert (judged.judgement.state, [one.file for one in judged.judgement.introduced]) == (State.FRESH, ["a.rb"])


async def test_what_a_judge_cannot_begin_with_it_says_of_the_patch(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": linker}, LINKED) as ground:
        settings = JudgeSettings(AbsPath(str(ground.root)))
        judge = PatchJudge(ground.service, ground.client, settings, BaseStates(), AbsPath(str(tmp_path)))
        patch = Patch("a", {"/etc/passwd": "def sum\n"})
        await judge.begin(patch)
        judged = await judge.judge(patch)
    assert "relative to the workspace" in (judged.judgement.reason or "")


@pytest.mark.parametrize("is_copy", [False, True])
async def test_a_server_of_a_copy_leaves_the_other_processors_to_the_other_copies(
    tmp_path: Path, *, is_copy: bool
) -> None:
    async with service_on(tmp_path, {"one": linker}, LINKED) as ground:
        path = ground.write("lib.rb", BASE)
        client = replace(ground.client, copy_of=ground.client.root if is_copy else None)
        assert (await ground.service.check(client, [path])).meta.state is State.FRESH
        (launch,) = ground.launches
    assert launch.environment.get("NODE_OPTIONS") == ("--v8-pool-size=1" if is_copy else None)
