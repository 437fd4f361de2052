"""The files for hosts that come with this package."""

import os
import re

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "plugins")

IMPORT = re.compile(r'^import (type )?\{ (.+) \} from "(.+)";\n', re.MULTILINE)

CLIENT = "../daemon.ts"
"""The client of the daemon, as plugins import it."""


def read_packaged(name: str) -> str:
    """The text of one, by its path below `plugins`."""
    with open(os.path.join(FOLDER, name), encoding="utf-8", newline="") as file:
        return file.read()


def read_plugin(host: str) -> str:
    """The plugin of a host and the client of the daemon in one file, since hosts load single files.

    Only the plugin exports: OpenCode takes every export of a file for a plugin.
    """
    plugin, client = read_packaged(f"{host}/pilotfish.ts"), read_packaged("daemon.ts")
    first = IMPORT.search(plugin)
    assert first is not None
    head, body = plugin[: first.start()], IMPORT.sub("", plugin[first.start() :])
    own = re.sub(r"^export ", "", IMPORT.sub("", client), flags=re.MULTILINE)
    return f"{head}{_merged_imports(plugin, client)}{body.rstrip()}\n\n{own.strip()}\n"


def _merged_imports(*texts: str) -> str:
    """The imports of all texts, each module once."""
    names: dict[tuple[str, str], set[str]] = {}
    for text in texts:
        for is_type, imported, module in IMPORT.findall(text):
            if module != CLIENT:
                names.setdefault((module, is_type), set()).update(imported.split(", "))
    return "".join(
        f'import {is_type}{{ {", ".join(sorted(imported))} }} from "{module}";\n'
        for (module, is_type), imported in sorted(names.items(), key=lambda entry: (bool(entry[0][1]), entry[0]))
    )
