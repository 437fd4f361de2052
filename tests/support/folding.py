"""A file system as macOS' and Windows' are: a name is found in any case and composition of its letters.

It keeps a name as it was first written, but decomposed. `python -m support.folding SOURCE MOUNT` shows SOURCE so.
"""

import os
import subprocess
import sys
import unicodedata
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen

MOUNTED = "mounted"


@contextmanager
def folding(source: Path, mount: Path) -> Generator[Path]:
    """`mount`, as long as the block runs."""
    argv = [sys.executable, __file__, str(source), str(mount)]
    with Popen(argv, stdout=PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline().strip() == MOUNTED
        try:
            yield mount
        finally:
            subprocess.run(["fusermount3", "-u", "-z", mount], check=True)


def alike(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def on_disk(source: str, path: str) -> str:
    """Where the file is that a path of any spelling means; what is not there is named decomposed."""
    found = source
    for segment in filter(None, path.split("/")):
        names = os.listdir(found) if os.path.isdir(found) else []
        kept = next((name for name in names if alike(name) == alike(segment)), None)
        found = os.path.join(found, kept or unicodedata.normalize("NFD", segment))
    return found


def shown(status: os.stat_result) -> dict[str, int]:
    times = {f"st_{one}time": getattr(status, f"st_{one}time_ns") for one in "acm"}
    return times | {f"st_{one}": getattr(status, f"st_{one}") for one in ("mode", "nlink", "size", "uid", "gid", "ino")}


def serve(folder: str, mount: str) -> None:  # noqa: C901 - one function for each call of the system
    import mfusepy as fuse  # pyright: ignore[reportMissingTypeStubs]

    class Folding(fuse.Operations):
        use_ns = True

        def init(self, path: str) -> None:
            print(MOUNTED, flush=True)

        def getattr(self, path: str, fh: int | None = None) -> dict[str, int]:
            return shown(os.lstat(on_disk(folder, path)))

        def readdir(self, path: str, fh: int) -> list[tuple[str, dict[str, int], int]]:
            with os.scandir(on_disk(folder, path)) as entries:
                return [(one.name, shown(one.stat(follow_symlinks=False)), 0) for one in entries]

        def open(self, path: str, flags: int) -> int:
            return os.open(on_disk(folder, path), flags)

        def create(self, path: str, mode: int, fi: object = None) -> int:
            return os.open(on_disk(folder, path), os.O_RDWR | os.O_CREAT | os.O_TRUNC, mode)

        def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
            return os.pread(fh, size, offset)

        def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
            return os.pwrite(fh, data, offset)

        def truncate(self, path: str, length: int, fh: int | None = None) -> int:
            os.truncate(on_disk(folder, path), length)
            return 0

        def release(self, path: str, fh: int) -> int:
            os.close(fh)
            return 0

        def unlink(self, path: str) -> int:
            os.unlink(on_disk(folder, path))
            return 0

        def mkdir(self, path: str, mode: int) -> int:
            os.mkdir(on_disk(folder, path), mode)
            return 0

        def rmdir(self, path: str) -> int:
            os.rmdir(on_disk(folder, path))
            return 0

        def rename(self, old: str, new: str, flags: int = 0) -> int:
            os.rename(on_disk(folder, old), os.path.join(os.path.dirname(on_disk(folder, new)), os.path.basename(new)))
            return 0

        def chmod(self, path: str, mode: int) -> int:
            os.chmod(on_disk(folder, path), mode)
            return 0

        def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
            os.utime(on_disk(folder, path), None if times is None else (times[0] / 1e9, times[1] / 1e9))
            return 0

        def readlink(self, path: str) -> str:
            return os.readlink(on_disk(folder, path))

        def symlink(self, target: str, source: str) -> int:
            os.symlink(source, on_disk(folder, target))
            return 0

    fuse.FUSE(Folding(), mount, foreground=True, nothreads=True, use_ino=True, attr_timeout=0, entry_timeout=0)


if __name__ == "__main__":
    serve(*sys.argv[1:])
