"""The queue of frames in front of a pipe: order, bounds, urgency and its end, without a pipe."""

from collections.abc import Callable

import anyio
import pytest

from pilotfish.system.channel import WRITE_TOGETHER_BYTES, SendQueue
from pilotfish.system.ports import BrokenPipe

pytestmark = pytest.mark.anyio


class Pipe:
    """What was written, write by write; it takes nothing while it is shut."""

    def __init__(self, *, takes_now: int = 0) -> None:
        self.writes: list[bytes] = []
        self.open = anyio.Event()
        self.open.set()
        self.takes_now = takes_now

    async def send(self, data: bytes) -> None:
        await self.open.wait()
        self.writes.append(data)

    def send_now(self, data: bytes) -> int:
        taken = data[: self.takes_now]
        if taken:
            self.writes.append(taken)
        return len(taken)


def post(queue: SendQueue, *frames: bytes) -> list[bool]:
    return [queue.post(frame) for frame in frames]


async def test_small_frames_leave_together_and_in_order() -> None:
    queue, pipe = SendQueue(), Pipe()
    large = b"x" * WRITE_TOGETHER_BYTES
    assert all(post(queue, b"a", b"b", large, b"c"))
    queue.close()
    await queue.run(pipe.send)
    assert pipe.writes == [b"ab", large, b"c"]


async def test_a_frame_without_room_is_refused_and_one_frame_always_fits() -> None:
    queue, pipe = SendQueue(limit=10), Pipe()
    assert post(queue, b"larger than the limit", b"x") == [True, False]
    assert queue.unsent == len(b"larger than the limit")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(queue.run, pipe.send)
        await queue.flush()
        assert queue.unsent == 0
        assert queue.post(b"x")
        queue.close()
    assert pipe.writes == [b"larger than the limit", b"x"]


@pytest.mark.parametrize(
    ("takes_now", "writes"),
    [(0, [b"urgent"]), (2, [b"ur", b"gent"]), (100, [b"urgent"])],
    ids=["nothing", "a part", "all"],
)
async def test_an_urgent_frame_leaves_at_once_as_far_as_the_pipe_takes_it(takes_now: int, writes: list[bytes]) -> None:
    pipe = Pipe(takes_now=takes_now)
    queue = SendQueue(send_now=pipe.send_now)
    assert queue.post(b"urgent", urgent=True)
    assert pipe.writes == (writes[:1] if takes_now else [])
    queue.close()
    await queue.run(pipe.send)
    assert pipe.writes == writes


async def test_an_urgent_frame_overtakes_no_other() -> None:
    pipe = Pipe(takes_now=100)
    queue = SendQueue(send_now=pipe.send_now)
    queue.post(b"first ")
    queue.post(b"second", urgent=True)
    assert pipe.writes == []
    queue.close()
    await queue.run(pipe.send)
    assert pipe.writes == [b"first second"]


def _close(queue: SendQueue) -> None:
    queue.close()


def _close_with_last(queue: SendQueue) -> None:
    queue.close(b"last")


def _close_and_drop(queue: SendQueue) -> None:
    queue.close(b"last", drop=True)


@pytest.mark.parametrize(
    ("close", "after"), [(_close, [b"queued"]), (_close_with_last, [b"queuedlast"]), (_close_and_drop, [b"last"])]
)
async def test_the_first_close_decides_what_still_leaves(
    close: Callable[[SendQueue], None], after: list[bytes]
) -> None:
    queue, pipe = SendQueue(), Pipe()
    pipe.open = anyio.Event()
    async with anyio.create_task_group() as tasks:
        queue.post(b"leaving ")
        tasks.start_soon(queue.run, pipe.send)
        await anyio.wait_all_tasks_blocked()
        queue.post(b"queued")
        close(queue)
        queue.close(b"too late", drop=True)
        assert queue.post(b"dropped")
        pipe.open.set()
    assert pipe.writes == [b"leaving ", *after]
    assert queue.unsent == 0


async def test_a_broken_pipe_ends_the_writer() -> None:
    async def broken(_: bytes) -> None:
        raise BrokenPipe

    queue = SendQueue()
    queue.post(b"x")
    with pytest.raises(BrokenPipe):
        await queue.run(broken)
