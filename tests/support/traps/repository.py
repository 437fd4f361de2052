"""Writes trap repositories: every known way to make a tool run something, each with a canary that tells.

`repositories/NAME.txt` is a tree of files. A line `-- PATH` begins a file, `-- PATH *` a program, `-- PATH !` the
source of a shared library. In a file, `@KIND:WAY@` becomes code that opens the canary of that way: `SH`, `PY`, `JS`
(CommonJS), `MJS` (a module), `PL`, `RB`, `LUA`, `PHP`, `C`; `MARK` is the canary's path, `URL` an address that is
listened at, `@ROOT@` the repository, and `@HOME@` the user's home, which is watched (`watched_home`). What stands
before the first file is a remark.
"""

import re
import shutil
import subprocess
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from msgspec import Struct

from support.files.canaries import Canaries
from support.traps.watched_home import WatchedHome, plant_secrets

REPOSITORIES = Path(__file__).parent / "repositories"
EVERYTHING = "everything"

CODE: Mapping[str, str] = {
    "SH": ": < {}",
    "PY": "open('{}').close()",
    "JS": "require('fs').readFileSync('{}');",
    "MJS": "import {{ readFileSync as mark }} from 'node:fs'; mark('{}');",
    "PL": "open(F, q{{<}}, q{{{}}});",
    "RB": "File.read('{}')",
    "LUA": "io.open('{}'):close()",
    "PHP": "file_get_contents('{}');",
    "C": 'fclose(fopen("{}", "r"));',
    "MARK": "{}",
}
VARIABLES: Mapping[str, str] = {
    "CC": "{root}/programs/cc",
    "GOFLAGS": "-toolexec={root}/programs/toolexec",
    "NODE_PATH": "{root}/node_modules",
    "PATH": "{root}/programs:{}",
    "PERL5LIB": "{root}/modules",
    "PYTHONPATH": "{root}/modules",
    "RUBYLIB": "{root}",
    "VIRTUAL_ENV": "{root}/.venv",
}
"""Those of a user that lead into the repository; `{}` is the value without it."""

CANARY = re.compile(r"@([A-Z]+):([a-z0-9-]+)@")


class Trap(Struct, frozen=True):
    """A repository on disk, and what tells that something of it ran."""

    root: Path
    ways: frozenset[str]
    canaries: Path
    """The folder of files that are opened by what runs: also a server that may write nowhere can do that."""
    opened: Canaries
    visited: set[str]
    """Ways whose address was asked for."""
    home: WatchedHome

    def sprung(self) -> set[str]:
        """The ways that worked."""
        return {canary.name for canary in self.opened.opened()} | self.visited


@contextmanager
def set_trap(base: Path, kinds: Iterable[str], root: Path | None = None) -> Generator[Trap]:
    """Write the repository of these kinds below `base`, and listen at the addresses in it."""
    root, canaries, home = root or base / "repository", base / "canaries", base / "home"
    root.mkdir(exist_ok=True)
    home.mkdir(exist_ok=True)
    canaries.mkdir()
    texts = {path: text for kind in (EVERYTHING, *kinds) for path, text in _files(kind)}
    ways = {(found[1], found[2]) for text in texts.values() for found in CANARY.finditer(text)}
    for _, way in ways:
        (canaries / way).touch()
    plant_secrets(home)
    with _listening() as (address, visited):
        for path, text in texts.items():
            code = CANARY.sub(lambda found: _code(found, canaries, address), text)
            _write(root, path, code.replace("@HOME@", str(home)))
        has_compiler = shutil.which("cc") is not None
        known = frozenset(way for kind, way in ways if kind != "C" or has_compiler)
        yield Trap(root, known, canaries, Canaries(canaries), visited, WatchedHome(home, root))


def misled(environment: Mapping[str, str], root: Path) -> Mapping[str, str]:
    """The variables of a user who has let the repository into them, by `.envrc` for example."""
    into = {name: value.format(environment.get(name, ""), root=root) for name, value in VARIABLES.items()}
    return {**environment, **into}


def _files(kind: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^-- ", (REPOSITORIES / f"{kind}.txt").read_text(), flags=re.MULTILINE)[1:]:
        path, _, text = part.partition("\n")
        yield path, text


def _code(found: re.Match[str], canaries: Path, address: str) -> str:
    kind, way = found.groups()
    return f"{address}/{way}" if kind == "URL" else CODE[kind].format(canaries / way)


def _write(root: Path, line: str, text: str) -> None:
    name, _, kind = line.partition(" ")
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.replace("@ROOT@", str(root))
    if kind == "!":
        _compile(path, content)
        return
    path.write_text(content)
    if kind == "*":
        path.chmod(0o755)


def _compile(path: Path, source: str) -> None:
    if compiler := shutil.which("cc"):
        command = [compiler, "-shared", "-fPIC", "-x", "c", "-o", str(path), "-"]
        subprocess.run(command, input=source.encode(), check=True)


@contextmanager
def _listening() -> Generator[tuple[str, set[str]]]:
    visited: set[str] = set()

    class Visitors(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            visited.add(self.path.strip("/").partition("/")[0])
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Visitors) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", visited
        finally:
            server.shutdown()
            thread.join()
