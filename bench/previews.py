"""What texts that are not on disk cost, one after the other: `check` of the library with `texts`.

    $ python bench/previews.py                             # 20 texts of a file of Flask, basedpyright
    $ python bench/previews.py --server ty --texts 50

Every text has one more function than the file on disk, every other one with an error, which must be told. Printed are
the seconds of the first text and of all others, and the processor time of the server for these.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import anyio
import psutil
from told import corpus
from told.subjects.setting import Setting

import pilotfish
from pilotfish.library.workspace import computer

FILE = "src/flask/helpers.py"
PATIENT = {"timing": {"diagnosticsWaitTimeoutMs": 60_000, "firstTouchTimeoutMs": 110_000}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=20)
    parser.add_argument("--server", default="basedpyright", choices=["ty", "basedpyright"])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="previews-") as given:
        folder = Path(os.path.realpath(given))
        root = corpus.copy(corpus.projects()["flask+venv"], folder)
        setting = Setting(root, folder / "scratch", asked.server, trusted=True, config=PATIENT)
        setting.prepare()
        anyio.run(_previews, root, setting, asked.texts)


async def _previews(root: Path, setting: Setting, count: int) -> None:
    good = (root / FILE).read_text()
    times, spent = list[float](), 0.0
    async with pilotfish.open(root, shell=computer(setting.environment())) as workspace:
        for number in range(count):
            is_broken = number % 2 == 0
            value = '"text"' if is_broken else "1"
            text = f"{good}\n\ndef added_{number}() -> int:\n    return {value}\n"
            began = time.perf_counter()
            answer = await workspace.check(FILE, texts={FILE: text})
            times.append(time.perf_counter() - began)
            new = [one for one in (answer.data or {}).get(FILE, ()) if one.severity == "error" and one.introduced]
            if answer.meta.state != "fresh" or bool(new) != is_broken:
                raise SystemExit(f"text {number} was answered with {answer.meta} {new}")
            if number == 0:
                spent = _cpu_seconds()
        spent = _cpu_seconds() - spent
    later = times[1:]
    print(
        f"first text {times[0]:.2f} s · {len(later)} others {sum(later):.2f} s, each {sum(later) / len(later):.3f} s · "
        f"processor time of the server {spent:.2f} s · load {os.getloadavg()[0]:.1f}"
    )


def _cpu_seconds() -> float:
    """Of all that is below us, by now."""
    found = [one.cpu_times() for one in psutil.Process().children(recursive=True)]
    return sum(one.user + one.system for one in found)


if __name__ == "__main__":
    main()
