"""Crush's LSP client, played as its source has it: what it writes into its settings is started, what it sends is sent.

The program itself does not install here. After an edit it sends `didChange` with the whole text, waits until the
diagnostics have settled, and shows those of the file and those of all other files that were published.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.clients.lsp import LspClient, started_client
from support.daemon.homes import DaemonHome

pytestmark = pytest.mark.server("ty")

GOOD = "def f() -> int:\n    return 1\n"
BAD = 'def g() -> int:\n    return "x"\n'
USING = "from a import f\n\nprint(f())\n"

CAPABILITIES = {
    "workspace": {"configuration": True, "didChangeConfiguration": {"dynamicRegistration": True}},
    "textDocument": {
        "synchronization": {"dynamicRegistration": True, "didSave": True},
        "publishDiagnostics": {"versionSupport": True},
    },
}


@pytest.mark.proves("DIAG-11")
def test_crush_is_told_of_all_files_that_its_edit_broke_and_nothing_once_they_are_mended(home: DaemonHome) -> None:
    for name, text in {"a.py": GOOD, "b.py": USING, "c.py": USING, "pyproject.toml": "[project]\n"}.items():
        home.write(name, text)
    setup = subprocess.run(
        [sys.executable, "-I", "-m", "pilotfish", "setup", "crush"],
        cwd=home.root,
        env=home.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "crush.json" in setup.stdout
    settings = json.loads((Path(home.environment["XDG_CONFIG_HOME"]) / "crush" / "crush.json").read_text())
    server = settings["lsp"]["pilotfish"]
    assert "filetypes" not in server
    assert settings["options"] == {"auto_lsp": False}
    with started_client(home.root, home.environment, [server["command"], *server["args"]]) as client:
        begin(client)
        view(client, "pyproject.toml")
        view(client, "a.py")
        client.published({"a.py": 0})
        edit(client, home, BAD, 2)
        told = client.published({"a.py": 1, "b.py": 1, "c.py": 1})
        assert sum(map(len, told.values())) == 3
        edit(client, home, GOOD, 3)
        assert client.published({"a.py": 0, "b.py": 0, "c.py": 0}).keys() <= {"a.py", "b.py", "c.py", "pyproject.toml"}
        # It ends its servers without a word.
        client.process.kill()


def begin(client: LspClient) -> None:
    folders = [{"uri": client.root.as_uri(), "name": client.root.name}]
    client.initialize(processId=os.getpid(), capabilities=CAPABILITIES, workspaceFolders=folders)
    client.say("workspace/didChangeConfiguration", {"settings": {}})


def view(client: LspClient, name: str) -> None:
    client.open(name)


def edit(client: LspClient, home: DaemonHome, text: str, version: int) -> None:
    """It writes the file first."""
    home.write("a.py", text)
    client.change("a.py", text, version)
