"""Task groups that fail plainly.

anyio wraps whatever leaves a task group in an exception group; a caller who waits for `ServerFailed` would have to
know how deep it lies. Where one error ended the group, that error is what the caller sees.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def owned_tasks() -> AsyncGenerator[TaskGroup]:
    """A task group whose single error is raised bare; several at once stay a group."""
    try:
        async with anyio.create_task_group() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        raise _sole(group) from None


def _sole(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What a group holds if it holds one error, however deep."""
    inner, *others = group.exceptions
    if others:
        return group
    return _sole(cast("BaseExceptionGroup[BaseException]", inner)) if isinstance(inner, BaseExceptionGroup) else inner
