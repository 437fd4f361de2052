"""Ways to install it on Windows, as a program: `tools/wine.py` runs it with Windows' Python, without a network."""

import os
import subprocess
import sys
import tempfile
import venv

from pilotfish.version import VERSION


def said(*argv: str, home: str) -> str:
    folders = {"USERPROFILE": home, "LOCALAPPDATA": os.path.join(home, "AppData", "Local")}
    environment = {**os.environ, **folders, "PIP_CONFIG_FILE": "nul"}
    ran = subprocess.run(argv, env=environment, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return (ran.stdout + ran.stderr).decode()


def held(what: str, text: str) -> None:
    assert f"pilotfish {VERSION}" in text, text
    print("held:", what, flush=True)


def main(dist: str) -> None:
    with tempfile.TemporaryDirectory() as home:
        environment = os.path.join(home, "an environment")
        venv.create(environment)
        pip = [sys.executable, "-m", "pip", "--python", environment, "install", "--no-index", "--find-links", dist]
        installed = said(*pip, "pilotfish", home=home)
        program = os.path.join(environment, "Scripts", "pilotfish.exe")
        assert os.path.exists(program), installed
        held("pip install pilotfish", said(program, "--version", home=home))
        archive = os.path.join(dist, "pilotfish.pyz")
        held("the one file", said(sys.executable, archive, "--version", home=home))
        place = os.path.join(home, "AppData", "Local", "pilotfish", "program")
        unpacked = os.path.join(place, "Scripts", "pilotfish.cmd")
        held("the program that it unpacked", said(unpacked, "--version", home=home))
        gone = said(unpacked, "uninstall", "--yes", home=home)
        # What runs is not deleted there.
        assert gone.count("could not be removed") == 0, gone
        assert gone.rstrip().endswith("delete the file pilotfish.pyz, and the folder " + place.replace("\\", "/")), gone
        assert os.listdir(os.path.dirname(place)) == [os.path.basename(place)], gone
        print("held: what is left of it is named", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
