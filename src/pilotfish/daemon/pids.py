"""Waiting for the end of a process that is not our child."""

import os

import anyio

LOOK_SECONDS = 10.0
"""How often to look where the system has no descriptors of processes."""


async def gone(pid: int) -> None:
    """Return when the process has ended; raises `ProcessLookupError` when there is none that could be watched."""
    if pid <= 0:
        raise ProcessLookupError(pid)
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except (AttributeError, OSError):
        await _looked_for(pid)
        return
    try:
        await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)


async def _looked_for(pid: int) -> None:
    os.kill(pid, 0)
    while True:
        await anyio.sleep(LOOK_SECONDS)  # noqa: TID251 -- nothing tells us: no such descriptors here
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
