"""What one warm edit runs: which functions of ours, in which files. `python bench/trace.py [--list]`.

The service in this process on a real basedpyright, in a project of three modules that is known already: the second
break of a function that two other files use, and its undo. A function counts once, however often it is called, and a
comprehension or lambda not at all; what the supervisor and the hook program do in their own processes is not seen.
"""

import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
from harness.pages import options
from harness.servers import CLONE

from pilotfish.api.questions import Touch
from support.services.real import RealService, only, real_service

SOURCE = str(CLONE / "src")
FILES = {
    "greeting.py": "def greet(name: str) -> str:\n    return name\n",
    "one.py": 'from greeting import greet\n\ngreet("one")\n',
    "two.py": 'from greeting import greet\n\ngreet("two")\n',
}
BROKEN = "def greet(name: str, times: int) -> str:\n    return name * times\n"

Found = Counter[tuple[str, str]]


def main() -> None:
    chosen = options(__doc__, list=False)
    with tempfile.TemporaryDirectory(prefix="pilotfish-trace-") as folder:
        for what, found in anyio.run(traced, Path(folder)).items():
            print(f"{what}: {len(found)} functions in {len({file for file, _ in found})} files, {found.total()} calls")
            if chosen.list:
                print(*(f"  {count:5} {file} {name}" for (file, name), count in sorted(found.items())), sep="\n")


async def traced(folder: Path) -> dict[str, Found]:
    (folder / "workspace").mkdir()
    for name, text in FILES.items():
        (folder / "workspace" / name).write_text(text)
    async with real_service(folder, only("basedpyright")) as it:
        await it.service.touched(Touch(("greeting.py",), "read"), it.client)
        await _edit(it, BROKEN)
        await _edit(it, FILES["greeting.py"])
        found = dict[str, Found]()
        for what, text in (("an edit that breaks two files", BROKEN), ("its undo", FILES["greeting.py"])):
            with _tracing() as found[what]:
                await _edit(it, text)
        return found


async def _edit(it: RealService, text: str) -> None:
    before = (it.root / "greeting.py").read_text()
    it.write("greeting.py", text)
    told = await it.service.touched(Touch(("greeting.py",), "edit", before={"greeting.py": before}), it.client)
    assert told.introduced == (2 if text == BROKEN else 0), told


@contextmanager
def _tracing() -> Generator[Found]:
    """Within the block, every function of ours that is called, in any thread."""
    found = Found()

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE) and not code.co_name.startswith("<"):
            found[code.co_filename.removeprefix(SOURCE + "/"), code.co_qualname] += 1

    threading.setprofile_all_threads(note) if sys.version_info >= (3, 12) else threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile_all_threads(None) if sys.version_info >= (3, 12) else threading.setprofile(None)


if __name__ == "__main__":
    main()
