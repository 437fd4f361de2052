"""Virtual time: a time-out of ten seconds takes milliseconds, and how long a check takes is exact."""

from support.virtual_time import anyio_backend

__all__ = ["anyio_backend"]
