"""Runs a part of the tests, and the demo, on other versions of Python, as Debian carries them.

`sudo python3 tools/pythons.py [3.13 3.14 …]`. The packages of each version are fetched from Debian's unstable
distribution and unpacked into `.tools/pythons/VERSION`, nothing is installed, and the tests run in that folder as their
root (`chroot`, with `unshare` for `/proc` and `/dev`): another C library than this system's is then no hindrance.
"""

import functools
import lzma
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.request import urlopen

TOP = Path(__file__).resolve().parent.parent
FOLDER = TOP / ".tools" / "pythons"
PACKAGES = ("bash", "ca-certificates", "coreutils", "dash", "git", "libatomic1", "libstdc++6")
LEFT_OUT = ("adduser", "debconf", "dpkg", "gcc", "openssh", "perl")
"""Dependencies that only the installation of a package needs, or that nothing here does."""

TESTS = "tests/protocol tests/feedback tests/operations tests/pool tests/config/test_merge.py"
"""Those of the workflow `check`, on every system."""

RUN = f"""
set -e
cd /repository
python{{version}} -m venv /venv
/venv/bin/pip install --quiet '.[dev]'
/venv/bin/python -m pytest -q -p no:cacheprovider {TESTS}
/venv/bin/pilotfish demo
"""

Package = Mapping[str, str]


def main() -> int:
    versions = sys.argv[1:] or ["3.13", "3.14"]
    FOLDER.mkdir(parents=True, exist_ok=True)
    known = index()
    failed = [version for version in versions if not works(version, known)]
    print(f"failed: {', '.join(failed)}" if failed else f"all passed: {', '.join(versions)}")
    return 1 if failed else 0


def index() -> dict[str, Package]:
    """The packages of the distribution by name; a name that others provide leads to the first of them."""
    text = lzma.decompress(fetched("dists/sid/main/binary-amd64/Packages.xz")).decode()
    found = [dict(re.findall(r"^(\w[\w-]*): (.*)$", entry, re.MULTILINE)) for entry in text.split("\n\n")]
    named = {one["Package"]: one for one in found if "Package" in one}
    provided = [(name, one) for one in named.values() for name in names(one.get("Provides", ""))]
    return {**dict(reversed(provided)), **named}


def names(relations: str) -> list[str]:
    """The packages of a field, of alternatives the first."""
    return [re.split(r"[\s|(:]", relation.strip())[0] for relation in relations.split(",") if relation.strip()]


def works(version: str, known: Mapping[str, Package]) -> bool:
    root = FOLDER / version
    for package in needed((f"python{version}-venv", *PACKAGES), known):
        deb = FOLDER / Path(package["Filename"]).name
        if not deb.exists():
            deb.write_bytes(fetched(package["Filename"]))
        subprocess.run(["dpkg-deb", "-x", deb, root], check=True)
    copy_repository(root / "repository")
    settings = pip_settings()
    prepare = [
        f"mount -t proc proc {root}/proc",
        f"mount --bind /dev {root}/dev",
        f"mount --bind /etc/ssl {root}/etc/ssl",
        f"cp /etc/resolv.conf /etc/hosts {root}/etc/",
        *(f"mkdir -p {root}{folder} && mount --bind {folder} {root}{folder}" for folder in folders_of(settings)),
        f"exec chroot {root} /usr/bin/bash -c {shlex.quote(RUN.format(version=version))}",
    ]
    own = {"HOME": "/home", "PATH": "/venv/bin:/usr/bin:/usr/sbin:/bin:/sbin", "LANG": "C.UTF-8"}
    environment = {**os.environ, **settings, **own}
    print(f"== Python {version}", flush=True)
    argv = ["unshare", "--mount", "--propagation", "private", "/bin/bash", "-c", "\n".join(prepare)]
    return subprocess.run(argv, env=environment, check=False).returncode == 0


def pip_settings() -> dict[str, str]:
    """What pip is configured with here, as variables: its files lie in other places there."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    found = re.findall(r"^(?:global|install|user)\.([\w-]+)='(.*)'$", listed.stdout, re.MULTILINE)
    return {f"PIP_{name.replace('-', '_').upper()}": value.replace("\\n", " ") for name, value in found}


def folders_of(settings: Mapping[str, str]) -> list[str]:
    """Folders of this system that pip reads packages from."""
    named = " ".join(settings.values())
    # The pages of an index lead to files beside it.
    indexes = [os.path.dirname(index) for index in re.findall(r"file://(/\S+)", named)]
    return sorted({folder for folder in (*indexes, *re.findall(r"(?:^|\s)(/\S+)", named)) if os.path.isdir(folder)})


def needed(wanted: tuple[str, ...], known: Mapping[str, Package]) -> list[Package]:
    """These packages and all that they depend on."""
    found: dict[str, Package] = {}
    left = [*wanted]
    while left:
        package = known.get(left.pop())
        if package is not None and package["Package"] not in found:
            found[package["Package"]] = package
            more = names(f"{package.get('Depends', '')},{package.get('Pre-Depends', '')}")
            left += [name for name in more if not name.startswith(LEFT_OUT)]
    return list(found.values())


def copy_repository(target: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes((TOP / name).read_bytes())


def fetched(path: str) -> bytes:
    with urlopen(f"{mirror()}/{path}") as answer:
        return answer.read()


@functools.cache
def mirror() -> str:
    """Where this system has its packages from."""
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()[0].rstrip("/")


if __name__ == "__main__":
    sys.exit(main())
