"""What the HTTP surface needs of the daemon, and where it listens. Imports no HTTP package."""

import os
from collections.abc import Callable

from msgspec import Struct

from pilotfish.ipc.messages import About
from pilotfish.store import Store
from pilotfish.system.ports import Clock

TOKEN_FILE = "http-token"  # noqa: S105 -- its name


class HttpContext(Struct, frozen=True):
    """What is served, beside the service itself."""

    store: Store
    about: Callable[[], About]
    clock: Clock
    folder: str
    """Where the token is written."""

    @property
    def token_file(self) -> str:
        return os.path.join(self.folder, TOKEN_FILE)


class HttpAddress(Struct, frozen=True):
    """Where it listens. `page` works once."""

    address: str
    token_file: str
    page: str
