"""Where the HTTP surface listens. Imports no HTTP package."""

import os

from msgspec import Struct

from pilotfish.ipc.upgrades import DaemonContext

TOKEN_FILE = "http-token"  # noqa: S105 -- its name


def token_file(context: DaemonContext) -> str:
    return os.path.join(context.folder, TOKEN_FILE)


class HttpAddress(Struct, frozen=True):
    """Where it listens. `page` works once."""

    address: str
    token_file: str
    page: str
