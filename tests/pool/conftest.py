"""Virtual time: a time-out of two minutes takes milliseconds, and nothing here can be flaky by the clock."""

from support.virtual_time import anyio_backend

__all__ = ["anyio_backend"]
