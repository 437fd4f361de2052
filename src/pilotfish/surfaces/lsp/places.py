"""The texts of the files in an answer, read from the disk."""

import os
from collections.abc import Iterable
from contextlib import suppress

from pilotfish.errors import Refused
from pilotfish.protocol.positions import Text
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from pilotfish.surfaces.lsp.shapes import FilePlaces


async def read_places(service: Service, client: ClientSession, paths: Iterable[str]) -> FilePlaces:
    """By path as given; relative ones count from the root of the workspace, and what may not be read is left out."""
    texts = dict[str, Text]()
    for path in dict.fromkeys(paths):
        with suppress(Refused):
            texts[path] = await service.text_of(client, os.path.join(client.root, path))
    return FilePlaces(client.root, texts)
