"""What many small workspaces cost the daemon: its memory, and the folders that it has watched.

`bench/workspaces.py [COUNT]` makes that many folders with one file of Python each, checks every file through the daemon
as `pilotfish check` does, and prints what the daemon has then, after each doubling.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

from pilotfish.ipc.client import Introduction, Link, Terms, open_link

MIB = 1024 * 1024


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": programs, "HOME": f"{folder}/home", "PILOTFISH_HOME": f"{folder}/state"}
        control = open_link(None, Terms(environment))
        pid = int(control.welcome["pid"])
        links: list[Link] = []
        try:
            print("workspaces, daemon MiB, watched folders")
            _report(0, pid)
            for number in range(1, count + 1):
                links.append(_checked(Path(folder) / f"workspace{number}", environment))
                if number in {1, 2, 4, 8, 16, 32, count}:
                    _report(number, pid)
        finally:
            for link in links:
                link.close()
            control.request("stop")
            control.close()


def _checked(root: Path, environment: dict[str, str]) -> Link:
    root.mkdir()
    (root / "main.py").write_text("number: int = 'word'\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    link = open_link(Introduction(str(root), str(root)), Terms(environment))
    answer = link.request("check", {"paths": ["main.py"], "texts": {}})
    if answer["data"] is None or not answer["data"]["main.py"]:
        raise SystemExit(f"{root.name}: its error was not found: {answer}")
    return link


def _report(number: int, pid: int) -> None:
    watched = sum(map(_watches, Path(f"/proc/{pid}/fdinfo").iterdir()))
    print(f"{number:10} {psutil.Process(pid).memory_info().rss / MIB:11.1f} {watched:16}", flush=True)


def _watches(descriptor: Path) -> int:
    try:
        return descriptor.read_text().count("inotify wd:")
    except FileNotFoundError:
        return 0


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
