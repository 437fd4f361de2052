"""The port's contract, without any server: each patch is judged once, none is lost, none is told twice."""

import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO, cast

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pilotfish
from pilotfish.api.answers import State
from pilotfish.batch.engine import MAX_TRIES, PatchQueue, Tell
from pilotfish.batch.judge import JudgedPatch
from pilotfish.batch.patches import BadPatch, Judgement, Patch, each, judged_ids, line_of, read_patch
from pilotfish.library.workspace import computer
from pilotfish.surfaces.cli.batch import BatchRun
from support.servers.real import User
from support.values.patched_project import BREAKING, GREETING

pytestmark = pytest.mark.anyio


@given(
    lost=st.lists(st.lists(st.booleans(), max_size=MAX_TRIES + 1), max_size=12),
    judges=st.integers(1, 4),
)
def test_whatever_judges_lose_each_patch_is_told_once(lost: list[list[bool]], judges: int) -> None:
    told = anyio.run(_play, lost, judges)
    assert sorted(one.id for one in told) == list(range(len(lost)))
    gave_up = {one.id for one in told if one.state is State.UNAVAILABLE}
    assert gave_up == {
        number for number, tries in enumerate(lost) if len(tries) >= MAX_TRIES and all(tries[:MAX_TRIES])
    }


async def _play(lost: list[list[bool]], judges: int) -> list[Judgement]:
    """`lost`: for each patch, whether its judge is lost at the first try, at the second, and so on."""
    told, tries = list[Judgement](), [iter(one) for one in lost]

    async def tell(judgement: Judgement) -> None:
        await anyio.lowlevel.checkpoint()
        told.append(judgement)

    queue = PatchQueue(each([Patch(number, {"a": str(number)}) for number in range(len(lost))]), tell)

    async def judge() -> None:
        while (patch := await queue.next_patch()) is not None:
            await anyio.lowlevel.checkpoint()
            is_lost = next(tries[int(patch.id)], False)
            state = State.UNAVAILABLE if is_lost else State.FRESH
            await queue.settle(patch, JudgedPatch(Judgement(patch.id, state, (), 0, 0), may_pass=is_lost))

    async with anyio.create_task_group() as tasks:
        for _ in range(judges):
            tasks.start_soon(judge)
    return told


def test_a_patch_whose_judge_is_always_lost_is_given_up_and_told() -> None:
    (told,) = anyio.run(_play, [[True] * MAX_TRIES], 2)
    assert told.state is State.UNAVAILABLE


async def test_a_patch_that_comes_back_is_taken_while_the_input_waits_for_its_answer() -> None:
    """One judge waits for the next line, another for whatever comes: neither keeps the patch from being judged."""
    answered = anyio.Event()

    async def patches() -> AsyncIterator[Patch]:
        yield Patch(1, {"a": "1"})
        await answered.wait()

    async def tell(judgement: Judgement) -> None:
        answered.set()

    queue, taken = PatchQueue(patches(), tell), list[Patch | None]()

    async def judge() -> None:
        while (patch := await queue.next_patch()) is not None:
            taken.append(patch)
            is_lost = len(taken) == 1
            if is_lost:
                # The others come to wait: one for the input, one behind it.
                for _ in range(5):
                    await anyio.lowlevel.checkpoint()
            state = State.UNAVAILABLE if is_lost else State.FRESH
            await queue.settle(patch, JudgedPatch(Judgement(patch.id, state, (), 0, 0), may_pass=is_lost))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(judge)
    assert [patch and patch.id for patch in taken] == [1, 1]


async def test_the_same_patch_under_another_name_is_told_without_a_judge() -> None:
    told = list[Judgement]()

    async def tell(judgement: Judgement) -> None:
        told.append(judgement)

    patches = [
        Patch("a", {"f": "1"}),
        Patch("b", {"f": "1"}),
        Patch("c", {"f": "1"}, base="HEAD"),
        Patch("d", {"f": "no Unicode: \udcff"}),
    ]
    queue = PatchQueue(each(patches), tell)
    taken = list[object]()
    while (patch := await queue.next_patch()) is not None:
        taken.append(patch.id)
        # What is not fresh may be another thing the next time.
        state = State.FRESH if patch.id != "c" else State.PARTIAL
        await queue.settle(patch, JudgedPatch(Judgement(patch.id, state, (), 7, 5)))
    assert taken == ["a", "c", "d"]
    assert [(one.id, one.fixed, one.ms) for one in told] == [("a", 7, 5), ("b", 7, 0), ("c", 7, 5), ("d", 7, 5)]


def test_a_line_that_was_cut_short_is_no_judgement() -> None:
    whole = line_of(Judgement("a", State.FRESH, (), 0, 1))
    assert list(judged_ids([whole, b"{}\n", whole[:-1]])) == ["a"]


@pytest.mark.proves("A17.9")
@pytest.mark.parametrize("line", ["", "[]", '{"id": 1}', '{"id": 1, "files": {"a": ""}, "diff": ""}', '{"files": {}}'])
def test_what_is_no_patch_is_refused(line: str) -> None:
    with pytest.raises(BadPatch):
        read_patch(line)


@pytest.mark.proves("A17.9")
@pytest.mark.parametrize(
    ("patch", "moves"),
    [
        (Patch(1, {"a": "", "b": None}), True),
        (Patch(1, {"a": ""}), False),
        (Patch(1, diff="diff --git a/a b/a\ndeleted file mode 100644\n"), True),
        (Patch(1, diff="diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n"), True),
        (Patch(1, diff="--- a/a\n+++ b/a\n@@ -1 +1 @@\n-deleted file\n+new file\n"), False),
    ],
)
def test_a_patch_moves_files_where_one_goes(patch: Patch, moves: bool) -> None:
    assert patch.moves_files is moves


async def test_of_a_file_patches_of_a_base_that_move_files_come_last_and_those_of_a_pipe_as_they_are(
    tmp_path: Path,
) -> None:
    lines = [
        b'{"id": 1, "files": {"a": null}}\n',
        b'{"id": 2, "files": {"a": "x"}}\n',
        b"\n",
        b'{"id": 3, "files": {"b": null}}\n',
        b'{"id": 4, "files": {"b": "x"}}\n',
        b'{"id": 5, "files": {"c": "x"}}\n',
        b'{"id": 6, "files": {"c": null}, "base": "main"}\n',
        b'{"id": 7, "files": {"c": "x"}, "base": "main"}',
    ]
    (tmp_path / "patches").write_bytes(b"".join(lines))
    engine = Listing()
    with open(tmp_path / "patches", "rb") as file, open(tmp_path / "out", "wb") as out:
        await BatchRun(file, {4}, 7).judge_all(engine, out)
    assert engine.ids == [2, 5, 1, 3, 7, 6]
    reading, writing = os.pipe()
    os.write(writing, b"".join(lines))
    os.close(writing)
    engine = Listing()
    with open(reading, "rb", buffering=0) as pipe, open(tmp_path / "out", "wb") as out:
        await BatchRun(cast("BinaryIO", pipe), {4}, None).judge_all(engine, out)
    assert engine.ids == [1, 2, 3, 5, 6, 7]


class Listing:
    """Judges nothing, and keeps the order in which it is given patches."""

    def __init__(self) -> None:
        self.ids = list[object]()

    async def judge_all(self, patches: AsyncIterator[Patch], tell: Tell) -> None:
        async for patch in patches:
            self.ids.append(patch.id)
            await tell(Judgement(patch.id, State.FRESH, (), 0, 0))


@pytest.mark.server("ty")
@pytest.mark.proves("LIB-1")
async def test_the_library_judges_patches_and_whoever_stops_reading_leaves_nothing(
    user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "copies").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "copies"))
    shell = computer(user.environment)
    patches = [pilotfish.Patch(number, {"greeting.py": BREAKING}) for number in range(3)]
    async with pilotfish.open(user.workspace, shell=shell) as workspace:
        told = [one async for one in workspace.batch(patches, jobs=2)]
        assert sorted(one.id for one in told) == [0, 1, 2]
        assert {(found.file, found.line) for one in told for found in one.introduced} == {("main.py", 3)}
        async for one in workspace.batch(patches):
            assert one.state is State.FRESH
            break
    assert (user.workspace / "greeting.py").read_text() == GREETING
    assert os.listdir(tmp_path / "copies") == []
