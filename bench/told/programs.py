"""Servers that the development set-up lacks: fetched once by their pins into the cache, beside the machine's own.

Debian's next release has rust-analyzer and a newer gopls. Its packages are unpacked into a folder; a program that needs
a newer C library than the machine's is started by the loader of that folder, and nothing of the system is touched.
"""

import hashlib
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from told import corpus

LIBRARIES = "usr/lib/x86_64-linux-gnu"
LOADER = f"{LIBRARIES}/ld-linux-x86-64.so.2"


@dataclass(frozen=True)
class Pin:
    """What is fetched for one server."""

    npm: Sequence[str] = ()
    debian: Mapping[str, str] = field(default_factory=dict[str, str])
    """Files of the pool, by their digests."""
    started: Sequence[str] = ()
    """Of the unpacked programs, those that are to be used."""


PINS = {name: Pin(**pin) for name, pin in tomllib.loads(Path(__file__).with_suffix(".toml").read_text()).items()}


def fetched(server: str) -> Path:
    """The folder of a pinned server, with its programs in `bin`."""
    pin = PINS[server]
    digest = hashlib.sha256("\0".join([*pin.npm, *pin.debian, *pin.debian.values()]).encode()).hexdigest()
    target = corpus.cache() / "programs" / f"{server}-{digest[:8]}"
    if target.is_dir():
        return target
    with corpus.scratch() as folder:
        made = Path(folder) / server
        made.mkdir()
        if pin.npm:
            corpus.run(["npm", "install", "--silent", "--prefix", str(made), *pin.npm])
            (made / "bin").symlink_to("node_modules/.bin")
        for name, digest in pin.debian.items():
            archive = Path(folder) / name.rpartition("/")[2]
            corpus.run(["curl", "-sSf", "-m", "600", "-o", str(archive), f"{corpus.mirror()}/{name}"])
            if (real := hashlib.sha256(archive.read_bytes()).hexdigest()) != digest:
                raise corpus.Unavailable(f"{name} has the digest {real}, the pins say {digest}")
            corpus.run(["dpkg-deb", "-x", str(archive), str(made)])
        for program in pin.started:
            _make_starter(made, target, program)
        corpus.put(made, target)
    return target


def program(server: str, name: str) -> Path:
    return fetched(server) / "bin" / name


def toolchain_program(name: str) -> Path:
    """A program of the machine's Rust toolchain itself: a proxy of rustup needs the user's home."""
    done = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise corpus.Unavailable("no Rust toolchain: rustc is not installed")
    return Path(done.stdout.strip()) / "bin" / name


def rust_sources() -> Path:
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
