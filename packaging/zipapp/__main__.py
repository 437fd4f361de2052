"""`pilotfish.pyz`: unpacks itself once into an environment of its own, then runs the program there.

Extension modules cannot be imported out of an archive, and the files of coding agents name a Python that finds
Pilotfish without the archive. So the wheels in here, those of this system and this Python, become an environment at
one place, which a newer archive replaces. It needs no pip, no network and no compiler. Old Pythons must be able to read
this file, to say that they are too old.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

SCRIPT = """#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import sys
from pilotfish.__main__ import main
sys.exit(main())
"""
"""Of a shell, because the first line of a script can hold neither spaces nor a long path."""


def main():
    archive = os.path.dirname(os.path.abspath(__file__))
    if sys.version_info < (3, 11):
        had = ".".join(str(part) for part in sys.version_info[:2])
        sys.exit("Pilotfish needs Python 3.11 or newer, and this is {}. Try: uv run -- python {}".format(had, archive))
    with zipfile.ZipFile(archive) as inside:
        bundle = json.loads(inside.read("bundle.json").decode("utf-8"))
        place = os.path.join(state_folder(os.environ), "program")
        if not is_current(place, bundle["id"]):
            unpack(inside, bundle, place)
    run(place, sys.argv[1:])


def state_folder(environment):
    """As `pilotfish.ipc.rendezvous` says."""
    home = os.path.expanduser("~")
    if environment.get("PILOTFISH_HOME"):
        return os.path.abspath(environment["PILOTFISH_HOME"])
    if sys.platform == "win32":
        return os.path.join(environment.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local"), "pilotfish")
    base = environment.get("XDG_STATE_HOME", "")
    return os.path.join(base if os.path.isabs(base) else os.path.join(home, ".local", "state"), "pilotfish")


def is_current(place, bundle_id):
    """Whether this bundle is there, with a Python that still exists."""
    try:
        with open(os.path.join(place, "bundle"), encoding="utf-8") as file:
            return file.read() == bundle_id and os.path.exists(python_of(place))
    except OSError:
        return False


def unpack(inside, bundle, place):
    import venv

    wheels = bundle["wheels"].get(target())
    if wheels is None:
        sys.exit("This file has nothing for {}. Try: {}".format(target(), bundle["instead"]))
    above = os.path.dirname(place)
    os.makedirs(above, mode=0o700, exist_ok=True)
    fresh = tempfile.mkdtemp(prefix=".program-", dir=above)
    try:
        venv.create(fresh, symlinks=os.name != "nt", with_pip=False)
        for name in wheels:
            unpack_wheel(inside, name, fresh)
        write_script(fresh, place)
        with open(os.path.join(fresh, "bundle"), "w", encoding="utf-8") as file:
            file.write(bundle["id"])
        put(fresh, place, bundle["id"])
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def target():
    import platform

    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    return "cp{}{}-{}-{}".format(sys.version_info[0], sys.version_info[1], sys.platform, machine)


def unpack_wheel(inside, name, folder):
    packages = packages_of(folder)
    with inside.open(name) as file, zipfile.ZipFile(file) as wheel:
        for member in wheel.namelist():
            first, _, rest = member.partition("/")
            kind, _, below = rest.partition("/")
            is_data = first.endswith(".data")
            if is_data and kind not in ("data", "purelib", "platlib"):
                continue
            base = folder if is_data and kind == "data" else packages
            path = os.path.join(base, *(below if is_data else member).split("/"))
            if not member.endswith("/"):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with wheel.open(member) as source, open(path, "wb") as copy:
                    shutil.copyfileobj(source, copy)


def packages_of(folder):
    if os.name == "nt":
        return os.path.join(folder, "Lib", "site-packages")
    return os.path.join(folder, "lib", "python{}.{}".format(*sys.version_info[:2]), "site-packages")


def write_script(fresh, place):
    """`pilotfish`, for who puts this folder on the `PATH`; it names the place that `fresh` is moved to."""
    if os.name == "nt":
        path, text = os.path.join(fresh, "Scripts", "pilotfish.cmd"), '@"%~dp0python.exe" -m pilotfish %*\r\n'
    else:
        path, text = os.path.join(fresh, "bin", "pilotfish"), SCRIPT.format(python=python_of(place))
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    os.chmod(path, 0o755)


def put(fresh, place, bundle_id):
    """Replace what is there by one rename; another process that came first has put the same."""
    old = fresh + ".old"
    with contextlib.suppress(FileNotFoundError):
        os.rename(place, old)
    try:
        os.rename(fresh, place)
    except OSError:
        if not is_current(place, bundle_id):
            raise
    shutil.rmtree(old, ignore_errors=True)


def python_of(place):
    return os.path.join(place, "Scripts", "python.exe") if os.name == "nt" else os.path.join(place, "bin", "python")


def run(place, arguments):
    argv = [python_of(place)]
    if os.name == "nt":
        argv.extend(["-m", "pilotfish"])
        argv.extend(arguments)
        sys.exit(subprocess.call(argv))
    argv.append(os.path.join(place, "bin", "pilotfish"))
    argv.extend(arguments)
    os.execv(argv[0], argv)


if __name__ == "__main__":
    main()
