"""Programs that give an agent language servers over MCP, ours among them: rows of `peers.json`.

The others are installed from npm and PyPI into `.tools/bench`, by the versions there. `tools` says which tool answers
what, and its arguments; `before` what is called first; `files` are written before it starts (JSON is YAML enough), so
that it runs the same servers as the others; `no_verdict` what an answer says in which the program itself claims to know
nothing; `form` how its answers are written (`told/forms.py`). What an upstream cannot do is what the report shows.
"""

import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.clients import Mcp, started
from harness.servers import CLONE, filled
from harness.setting import Setting

from parity.fixtures import GRAMMARS, Place

FOLDER = CLONE / ".tools" / "bench"
Call = Sequence[Any]
"""A tool, and its arguments."""


class NotOffered(Exception):
    """The subject has no such thing; says what it has instead, if anything."""


@dataclass(frozen=True)
class Peer:
    name: str
    argv: list[str]
    tools: Mapping[str, Call]
    npm: Mapping[str, str] = field(default_factory=dict[str, str])
    pypi: Mapping[str, str] = field(default_factory=dict[str, str])
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, Any] = field(default_factory=dict[str, Any])
    before: Sequence[Call] = ()
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """What it calls the server of a language."""
    no_verdict: str = ""
    form: str = ""

    @property
    def pins(self) -> dict[str, str]:
        return {**self.npm, **self.pypi}

    def install(self) -> None:
        """Once; raises `CalledProcessError` when a registry refuses."""
        folder, pins = FOLDER / self.name, json.dumps(self.pins)
        stamp = folder / ".stamp"
        if not self.pins or (stamp.exists() and stamp.read_text() == pins):
            return
        folder.mkdir(parents=True, exist_ok=True)
        print(f"installing {self.name}", flush=True)
        if self.npm:
            (folder / "package.json").write_text('{"private": true}')
            argv = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
            argv += [f"{name}@{version}" for name, version in self.npm.items()]
            subprocess.run(argv, cwd=folder, check=True, capture_output=True)
        if self.pypi:
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True)
            argv = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
            argv += [f"{name}=={version}" for name, version in self.pypi.items()]
            subprocess.run(argv, check=True, capture_output=True)
        stamp.write_text(pins)


PEERS = {
    name: Peer(name, **row) for name, row in json.loads(Path(__file__).with_name("peers.json").read_text()).items()
}


class Asked:
    """A running program, asked in the words of its row."""

    def __init__(self, mcp: Mcp, peer: Peer, places: Mapping[str, Any]) -> None:
        self.mcp, self.peer = mcp, peer
        self._places, self._opened = places, set[str]()

    async def ask(self, what: str, about: Place | str, change: int = 2) -> str:
        """About a place, or a file; `change` as LSP counts them, for what tells of one."""
        if what not in self.peer.tools:
            raise NotOffered("no such tool")
        file = about if isinstance(about, str) else about.file
        # Where a file has to be opened for that, opening it is part of the first question about it.
        if what == "shown" and "opened" in self.peer.tools and file not in self._opened:
            await self.ask("opened", file)
        self._opened |= {file} if what == "opened" else set[str]()
        path = Path(self._places["root"]) / file
        places = {**self._places, "file": file, "path": str(path), "uri": path.as_uri(), "change": change}
        if isinstance(about, Place):
            places |= {"line": about.line + 1, "character": about.character + 1, "name": about.name}
            places |= {"target": about.target, "target_path": str(Path(self._places["root"]) / about.target)}
        return await self.mcp.call(*filled(self.peer.tools[what], places))


@asynccontextmanager
async def opened(peer: Peer, language: str, setting: Setting) -> AsyncGenerator[Asked]:
    grammar = GRAMMARS[language]
    places: dict[str, Any] = {
        "python": sys.executable,
        "folder": str(FOLDER / peer.name),
        "root": str(setting.root),
        "scratch": str(setting.scratch),
        "language": language,
        "extension": grammar.suffix[1:],
        "command": list(grammar.command),
        "words": ",".join(grammar.command),
        "program": str(setting.scratch / "bin" / grammar.command[0]),
        "named": peer.names.get(language, grammar.server),
    }
    for name, content in filled(peer.files, places).items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(json.dumps(content))
    argv, variables = filled(peer.argv, places), setting.environment() | filled(peer.environment, places)
    log = setting.scratch / "stderr.txt"
    child = await started(argv, cwd=setting.root, environment=variables, framed=False, log=log)
    try:
        mcp = Mcp(child, setting.root, peer.no_verdict)
        await mcp.start()
        for call in peer.before:
            await mcp.call(*filled(call, places))
        yield Asked(mcp, peer, places)
    finally:
        await child.close()
