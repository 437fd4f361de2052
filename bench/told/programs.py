"""Servers that the development set-up lacks: fetched once by their pins into the cache, beside the machine's own.

Debian's next release has rust-analyzer and a newer gopls. Its packages are unpacked into a folder; a program that needs
a newer C library than the machine's is started by the loader of that folder, and nothing of the system is touched.
"""

import hashlib
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from told import corpus

LIBRARIES = "usr/lib/x86_64-linux-gnu"
LOADER = f"{LIBRARIES}/ld-linux-x86-64.so.2"


@dataclass(frozen=True)
class Pin:
    """What is fetched for one server."""

    npm: tuple[str, ...] = ()
    debian: Mapping[str, str] = field(default_factory=dict[str, str])
    """Files of the pool, by their digests."""
    started: tuple[str, ...] = ()
    """Of the unpacked programs, those that are to be used."""


PINS: Mapping[str, Pin] = {
    "typescript-native": Pin(npm=("typescript@7.0.2",)),
    "rust-analyzer": Pin(
        debian={
            "pool/main/r/rustc/rust-analyzer_1.85.1+dfsg1-1+deb13u1_amd64.deb": (
                "5b62a215604107a957cd1e8a6d21974268304a176d6b7c0763449953bce74ed0"
            ),
            "pool/main/r/rustc/rust-src_1.85.1+dfsg1-1+deb13u1_all.deb": (
                "96d75361e517f4f5178c83d297ef2ebfd527c9ea845848c5de6e631e59a78fa8"
            ),
            "pool/main/g/glibc/libc6_2.41-12+deb13u4_amd64.deb": (
                "967aa62605721081c3eb2a17650611a792aa802d76a6511d1840242623d204c9"
            ),
            "pool/main/g/gcc-14/libgcc-s1_14.2.0-19_amd64.deb": (
                "3c71917b490d1a17aed43196a2787a256ecf060526cdb20216a74bedc061b150"
            ),
        },
        started=("usr/bin/rust-analyzer",),
    ),
    "gopls+0.16": Pin(
        debian={
            "pool/main/g/gopls/gopls_0.16.1+ds-1_amd64.deb": (
                "e9511bdfbd27488b98a4a0ac6cebd92c2094f779228455e67c9d52b56554c200"
            )
        },
        started=("usr/bin/gopls",),
    ),
}


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
            corpus.run(["curl", "-sSf", "-m", "600", "-o", str(archive), f"{_mirror()}/{name}"])
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


def _mirror() -> str:
    """The one that the machine's own packages come from."""
    for path in [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]:
        text = path.read_text() if path.is_file() else ""
        if found := re.search(r"https?://\S+?/debian(?=/?\s)", text):
            return found[0]
    raise corpus.Unavailable("no mirror of Debian among the sources of apt")
