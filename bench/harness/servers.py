"""The servers that are measured and their own checkers: rows of `servers.toml`.

What the development set-up lacks is fetched once by its pins into the cache, beside the machine's own: Debian's next
release has rust-analyzer and a newer gopls. Its packages are unpacked into a folder; a program that needs a newer C
library than the machine's is started by the loader of that folder, and nothing of the system is touched.
"""

import hashlib
import platform
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from harness import corpus

HERE = Path(__file__).resolve().parent
CLONE = HERE.parents[1]
SCRIPTS = Path(sys.executable).parent
NPM = CLONE / ".tools" / "npm" / "node_modules" / ".bin"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
LOADER = f"{LIBRARIES}/ld-linux-x86-64.so.2"


@dataclass(frozen=True)
class Server:
    """A row; what is in braces is filled in when it is needed."""

    name: str
    kept_as: str = ""
    on_path: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    installed: Mapping[str, str] = field(default_factory=dict[str, str])
    check: Sequence[str] = ()
    version: Sequence[str] = ()
    parse: str = ""
    codes: Sequence[int] | Literal["any"] = (0, 1)
    each: str = ""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    stops_at: str = ""
    whole: Sequence[str] = ()
    npm: Sequence[str] = ()
    debian: Mapping[str, str] = field(default_factory=dict[str, str])
    started: Sequence[str] = ()
    beside: Sequence[str] = ()

    def filled(self, value: Any, **more: str) -> Any:
        return filled(value, _Places(self.name, more))

    def programs(self) -> list[Path]:
        return [Path(one) for one in self.filled(self.on_path)]


def filled(value: Any, places: Mapping[str, Any]) -> Any:
    """The same with what is in braces in its place; a text that is nothing else may become something else than text."""
    if isinstance(value, str):
        whole = places.get(value[1:-1]) if value.startswith("{") else None
        return value.format_map(places) if whole is None or isinstance(whole, str) else whole
    if isinstance(value, Mapping):
        several = cast("Mapping[str, Any]", value)
        return {filled(key, places): filled(each, places) for key, each in several.items()}
    return [filled(each, places) for each in cast("list[Any]", value)] if isinstance(value, list) else value


class _Places(dict[str, str]):
    """Looked up when they are asked for: some have to be fetched."""

    def __init__(self, server: str, more: Mapping[str, str]) -> None:
        super().__init__(more, here=str(HERE), scripts=str(SCRIPTS), npm=str(NPM))
        self._server = server

    def __missing__(self, name: str) -> str:
        found: dict[str, Callable[[], Path]] = {
            "fetched": lambda: fetched(self._server),
            "toolchain": _toolchain,
            "rust_sources": _rust_sources,
        }
        return str(found[name]())


SERVERS = {name: Server(name, **row) for name, row in tomllib.loads(HERE.joinpath("servers.toml").read_text()).items()}


def fetched(name: str) -> Path:
    """The folder of a pinned server, with its programs in `bin`."""
    pin = SERVERS[name]
    digest = hashlib.sha256("\0".join([*pin.npm, *pin.debian, *pin.debian.values()]).encode()).hexdigest()
    target = f"{name}-{digest[:8]}"

    def make(folder: Path) -> Path:
        made = folder / name
        made.mkdir()
        if pin.npm:
            corpus.run(["npm", "install", "--silent", "--prefix", str(made), *pin.npm])
            (made / "bin").symlink_to("node_modules/.bin")
        for file, wanted in _for_this_machine(pin.debian).items():
            archive = folder / file.rpartition("/")[2]
            corpus.run(["curl", "-sSf", "-m", "600", "-o", str(archive), f"{corpus.mirror()}/{file}"])
            if (real := hashlib.sha256(archive.read_bytes()).hexdigest()) != wanted:
                raise corpus.Unavailable(f"{file} has the digest {real}, the pins say {wanted}")
            corpus.run(["dpkg-deb", "-x", str(archive), str(made)])
        for program in pin.started:
            _make_starter(made, corpus.cache() / "programs" / target, program)
        return made

    return corpus.kept("programs", target, make)


def _for_this_machine(packages: Mapping[str, str]) -> Mapping[str, str]:
    """The packages of Debian for its processor, and those for any."""
    machine = platform.machine()
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
    found = {file: digest for file, digest in packages.items() if file.endswith((f"_{architecture}.deb", "_all.deb"))}
    if packages and not found:
        raise corpus.Unavailable(f"nothing of it is pinned for {architecture}")
    return found


def _toolchain() -> Path:
    """The programs of the machine's Rust toolchain itself: a proxy of rustup needs the user's home."""
    done = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise corpus.Unavailable("no Rust toolchain: rustc is not installed")
    return Path(done.stdout.strip()) / "bin"


def _rust_sources() -> Path:
    """Of the standard library, as rust-analyzer was built with them."""
    (found,) = (fetched("rust-analyzer") / "usr" / "src").glob("rustc-*/library")
    return found


def _make_starter(made: Path, target: Path, program: str) -> None:
    starter = made / "bin" / Path(program).name
    starter.parent.mkdir(exist_ok=True)
    if not (made / LOADER).exists():
        starter.symlink_to(f"../{program}")
        return
    command = f"{target / LOADER} --library-path {target / LIBRARIES} {target / program}"
    starter.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    starter.chmod(0o755)
