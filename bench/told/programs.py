"""Servers that the development set-up lacks: fetched once by their pins into the cache, beside the machine's own.

Debian's next release has rust-analyzer and a newer gopls. Its packages are unpacked into a folder; a program that needs
a newer C library than the machine's is started by the loader of that folder, and nothing of the system is touched.
"""

import hashlib
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
    "prettier": Pin(npm=("prettier@3.6.2",)),
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
            "pool/main/r/rustc/libstd-rust-1.85_1.85.1+dfsg1-1+deb13u1_amd64.deb": (
                "880a7ccc84ac9ed5964379ff2f2c2de2763dc87cb2c812963cefb44008306587"
            ),
            "pool/main/l/llvm-toolchain-19/libllvm19_19.1.7-3+b1_amd64.deb": (
                "db0d614d61345ca710fb73e75105f1ec6e38898fa7b3aa99fa7eb7d8b0a11d57"
            ),
            "pool/main/libf/libffi/libffi8_3.4.8-2_amd64.deb": (
                "0ebdc340de33333639c3c63874cd4b15ac2e83dfa1ef3053b7eefaf4919f4f68"
            ),
            "pool/main/libe/libedit/libedit2_3.1-20250104-1_amd64.deb": (
                "b002ea172b9c1e34a67bc497c523c67bb74c3f0a4e98113cb083990a1f1d3bfe"
            ),
            "pool/main/z/z3/libz3-4_4.13.3-1_amd64.deb": (
                "71383373523ef62d47eccf660cf6535c3febcbb3f88e54cb7a43124014b57359"
            ),
            "pool/main/z/zlib/zlib1g_1.3.dfsg+really1.3.1-1+b1_amd64.deb": (
                "015be740d6236ad114582dea500c1d907f29e16d6db00566ca32fb68d71ac90d"
            ),
            "pool/main/libz/libzstd/libzstd1_1.5.7+dfsg-1_amd64.deb": (
                "2f6a2aeacfc925eba8b00ac9139bc4bfccf8cacb09eb93de067074b26948eef9"
            ),
            "pool/main/libx/libxml2/libxml2_2.12.7+dfsg+really2.9.14-2.1+deb13u3_amd64.deb": (
                "e0c6b63ce4602a036a526f60fe5e6c1586710688058d98fc1001b9b3147b7efd"
            ),
            "pool/main/g/gcc-14/libstdc++6_14.2.0-19_amd64.deb": (
                "ab1fa05837aa7a92aae748fd07a18a35f7d18bb4a71c4724fe2bbf0e32089de0"
            ),
            "pool/main/n/ncurses/libtinfo6_6.5+20250216-2_amd64.deb": (
                "8b9f6a7983e9418564e48a627518de4c03917b56efe68d7f3e93bd8fffa1cc10"
            ),
            "pool/main/libb/libbsd/libbsd0_0.12.2-2_amd64.deb": (
                "e5a85986fa6bec3307ab1bc860736b478b331882bc45e17675a7bdf88eecb43a"
            ),
            "pool/main/libm/libmd/libmd0_1.1.0-2+b1_amd64.deb": (
                "7244ec3839b61fac0c1884fe08aaa040f26e8f1f35f1f5d3482eacefd30d1b44"
            ),
            "pool/main/x/xz-utils/liblzma5_5.8.1-1+deb13u1_amd64.deb": (
                "1cfcc6e0dc36f438a79b6e2189facdb9d150b08f57d190a60e01c98075c7f896"
            ),
            "pool/main/i/icu/libicu76_76.1-4_amd64.deb": (
                "c1bf762996de9ecba9b9d871e4928a8090f023a3e9e7fa3240b3d90f892a01dc"
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
