"""Task groups that fail plainly.

anyio wraps whatever leaves a task group in an exception group; a caller who waits for `ServerFailed` would have to
know how deep it lies, and that two tasks met the same dead server. Where one error ended the group, or several of the
kinds that callers expect, the first is what the caller sees.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar, cast

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from pilotfish.errors import Failure

TOGETHER = 10
"""Tasks that begin in one turn of the loop: what hundreds of them do before they first wait takes long."""

K = TypeVar("K")
V = TypeVar("V")


@asynccontextmanager
async def owned_tasks() -> AsyncGenerator[TaskGroup]:
    """A task group whose error is raised bare; unexpected errors stay a group when there are several."""
    try:
        async with anyio.create_task_group() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        errors = list(_leaves(group))
        if len(errors) == 1 or all(isinstance(error, Failure) for error in errors):
            raise errors[0] from None
        raise


async def side_by_side(work: Callable[[K], Awaitable[V]], items: Sequence[K]) -> list[V]:
    """What `work` gives for each item, in their order, all at once. One item alone is not worth a task."""
    if len(items) == 1:
        return [await work(items[0])]
    results: dict[int, V] = {}

    async def one(number: int, item: K) -> None:
        results[number] = await work(item)

    async with owned_tasks() as tasks:
        for number, item in enumerate(items):
            tasks.start_soon(one, number, item)
            if number % TOGETHER == TOGETHER - 1:
                await anyio.lowlevel.checkpoint()
    return [results[number] for number in range(len(items))]


async def first_of(*works: Callable[[], Awaitable[object]]) -> None:
    """Do all of these until one is done, which cancels the others."""
    async with owned_tasks() as tasks:

        async def one(work: Callable[[], Awaitable[object]]) -> None:
            await work()
            tasks.cancel_scope.cancel()

        for work in works:
            tasks.start_soon(one, work)


async def a_few_at_once(work: Callable[[K], Awaitable[None]], items: Sequence[K], most: int) -> None:
    """Do `work` for each item in their order, at most so many at a time."""
    waiting = iter(items)

    async def one_after_the_other() -> None:
        for item in waiting:
            await work(item)

    async with owned_tasks() as tasks:
        for _ in items[:most]:
            tasks.start_soon(one_after_the_other)


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(cast("BaseExceptionGroup[BaseException]", error))
        else:
            yield error
