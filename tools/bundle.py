"""`pilotfish.pyz`, one file for every system of `packaging/channels.toml`, and `pilotfish.exe`, the same for Windows.

It holds our wheel and those that its parts need, in the versions of this environment, which are those of the gate. pip
takes them from where its settings say, so that `PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER` builds from a folder alone.
Extension modules are in it once per system and Python: it is unpacked when it first runs
(`packaging/zipapp/__main__.py`).
"""

import hashlib
import io
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = "pilotfish"
STARTER = Path(__file__).resolve().parent.parent / "packaging" / "zipapp" / "__main__.py"
CHANNELS = STARTER.parent.parent / "channels.toml"
SHEBANG = b"#!/usr/bin/env python3\n"
WINDOWS_SHEBANG = b"#!/usr/bin/env py -3\r\n"
SYSTEMS = {"linux": ("Linux", "posix"), "darwin": ("Darwin", "posix"), "win32": ("Windows", "nt")}
"""How requirements name a `sys.platform`: `platform_system` and `os_name`."""
MACHINES = {"darwin-aarch64": "arm64", "win32-aarch64": "ARM64", "win32-x86_64": "AMD64"}
"""`platform_machine`, where it is not the second half."""
MOMENT = (1980, 1, 1, 0, 0, 0)
"""The earliest that an archive can name: the same tree makes the same bytes."""


def build(wheel: Path, platforms: Mapping[str, list[str]], pythons: Sequence[str], out: Path, scratch: Path) -> None:
    """Write `pilotfish.pyz` into `out`."""
    channels = tomllib.loads(CHANNELS.read_text())
    also, extras = channels["also"], channels["extras"]
    chosen: dict[str, list[Path]] = {}
    for platform, tags in platforms.items():
        for python in pythons:
            folder = scratch / f"cp{python.replace('.', '')}-{platform}"
            download([*also, *of_each(needs(PROJECT, platform, python, extras))], tags, python, folder)
            chosen[folder.name] = [wheel, *sorted(folder.glob("*.whl"))]
    (out / "pilotfish.pyz").write_bytes(SHEBANG + packed(chosen))
    (out / "pilotfish.pyz").chmod(0o755)


def build_windows(out: Path) -> None:
    """Write `pilotfish.exe` into `out`, from the archive that is there."""
    archive = (out / "pilotfish.pyz").read_bytes().removeprefix(SHEBANG)
    (out / "pilotfish.exe").write_bytes(windows_launcher() + WINDOWS_SHEBANG + archive)


def of_each(requirements: Iterable[str]) -> list[str]:
    """One of each package: what somebody needs in another version than ours counts for all of them."""
    ours_first = sorted({*requirements}, key=lambda one: ("==" not in one, one))
    return list({canonicalize_name(Requirement(one).name): one for one in ours_first}.values())


def needs(name: str, platform: str, python: str, extras: Collection[str] = ()) -> Iterator[str]:
    """All that `name` needs there, each as it is installed here; where that will not do, as it comes."""
    system, os_name = SYSTEMS[platform.partition("-")[0]]
    there = {
        "sys_platform": platform.partition("-")[0],
        "platform_machine": MACHINES.get(platform, platform.partition("-")[2]),
        "platform_system": system,
        "os_name": os_name,
        "python_version": python,
        "python_full_version": f"{python}.0",
    }
    for one in map(Requirement, metadata.requires(name) or ()):
        marker = one.marker
        if marker is not None and not any(marker.evaluate({**there, "extra": extra}) for extra in ("", *extras)):
            continue
        try:
            version = metadata.version(one.name)
        except metadata.PackageNotFoundError:
            version = None
        if version is None or not one.specifier.contains(version):
            yield str(one).partition(";")[0]
        elif one.name == name:
            yield from needs(name, platform, python, one.extras)
        else:
            yield f"{one.name}=={version}"
            yield from needs(one.name, platform, python, one.extras)


def download(requirements: Sequence[str], tags: Sequence[str], python: str, folder: Path) -> None:
    where = [word for tag in tags for word in ("--platform", tag)]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    argv = [*pip, "--only-binary=:all:", "--implementation=cp", f"--python-version={python}", *where]
    subprocess.run([*argv, f"--dest={folder}", *dict.fromkeys(requirements)], check=True)


def packed(chosen: Mapping[str, Sequence[Path]]) -> bytes:
    """The archive: each wheel once, stored as it is, and a list of which of them make which environment."""
    wheels = {path.name: path for paths in chosen.values() for path in paths}
    contents = {f"wheels/{name}": path.read_bytes() for name, path in sorted(wheels.items())}
    contents["__main__.py"] = STARTER.read_bytes()
    digest = hashlib.sha256(b"".join(hashlib.sha256(data).digest() for data in contents.values())).hexdigest()
    bundle = {
        "id": digest,
        "instead": "uv tool install pilotfish",
        "wheels": {target: [f"wheels/{path.name}" for path in paths] for target, paths in chosen.items()},
    }
    contents["bundle.json"] = json.dumps(bundle, indent=1, sort_keys=True).encode()
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, data in contents.items():
            kind = zipfile.ZIP_STORED if name.endswith(".whl") else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name, MOMENT), data, kind)
    return written.getvalue()


def windows_launcher() -> bytes:
    """The program that pip puts before the archive of a script, on every system alike."""
    import pip

    return (Path(os.path.dirname(pip.__file__)) / "_vendor" / "distlib" / "t64.exe").read_bytes()
