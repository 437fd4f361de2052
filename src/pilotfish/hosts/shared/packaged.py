"""The files for hosts that come with this package."""

import os

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "plugins")


def packaged(name: str) -> str:
    """The text of one, by its path below `plugins`."""
    with open(os.path.join(FOLDER, name), encoding="utf-8", newline="") as file:
        return file.read()
