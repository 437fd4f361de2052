"""What is approved is what would run: every file that an entry names, wherever in it and however."""

import json
import os
import shutil
from pathlib import Path

import pytest

from pilotfish.config.files import open_workspace
from pilotfish.config.load import load_from
from pilotfish.config.named_files import MAX_NAMES, TooManyNames, named_files
from pilotfish.config.trust import Stale, Trusted, Untrusted, changed_files, pin_of, read_offer, write_pin
from pilotfish.model import AbsPath
from pilotfish.protocol.wire import Json
from support.files.config_home import Home


def approve(home: Home) -> None:
    with open_workspace(str(home.workspace)) as workspace:
        loaded = load_from(workspace, home.request())
        write_pin(home.places.pins, pin_of(workspace, read_offer(workspace, loaded.project_file, loaded.project)))


def entry(**fields: Json) -> dict[str, Json]:
    return {"command": ["server"], **fields}


NAMED: dict[str, tuple[dict[str, Json], str]] = {
    "a program": (entry(command=["./x"]), "x"),
    "an argument": (entry(command=["node", "x.js"]), "x.js"),
    "inside an option": (entry(command=["node", "--require=./x.js", "-"]), "x.js"),
    "after the letters of an option": (entry(command=["tool", "-r./x.rb"]), "x.rb"),
    "a list in an option": (entry(command=["tool", "--plugins=a,./x.so"]), "x.so"),
    "a shell command": (entry(command=["sh", "-c", "true && exec './x.sh' --stdio"]), "x.sh"),
    "a substitution in a shell command": (entry(command=["sh", "-c", "$(cat x.txt)"]), "x.txt"),
    "a module": (entry(command=["python3", "-m", "x"]), "x.py"),
    "a module that is a folder": (entry(command=["python3", "-m", "x"]), "x/__main__.py"),
    "a module below src": (entry(command=["python3", "-m", "x.y"]), "src/x/y.py"),
    "a module of the environment": (
        entry(command=[".venv/bin/python", "-m", "x"]),
        ".venv/lib/python3.12/site-packages/x/__main__.py",
    ),
    "a program of the environment": (entry(command=["x-server"]), ".venv/bin/x-server"),
    "a program of node": (entry(command=["x-server"]), "node_modules/.bin/x-server"),
    "a program that another one runs": (entry(command=["env", "A=1", "x-server"]), ".venv/bin/x-server"),
    "a package": (entry(command=["node", "-r", "x"]), "node_modules/x/index.js"),
    "a folder": (entry(command=["node", "x"]), "x/index.js"),
    "a name without its suffix": (entry(command=["node", "./x"]), "x.cjs"),
    "an address": (entry(command=["node", "--import", "file://{root}/x.mjs"]), "x.mjs"),
    "a file of arguments": (entry(command=["java", "@x.args"]), "x.args"),
    "a variable": (entry(env={"TOOL_OPTIONS": "-javaagent:./x.jar"}), "x.jar"),
    "a setting": (entry(settings={"check": {"overrideCommand": ["./x.sh"]}}), "x.sh"),
    "a setting with a variable": (entry(settings={"tool": {"path": "${workspaceFolder}/x"}}), "x"),
    "an option of initialization": (entry(initialization={"plugins": [{"location": "./x"}]}), "x/index.js"),
    "a key": (entry(settings={"rules": {"./x.js": "error"}}), "x.js"),
    "a sidecar": (entry(watch=["node", "x.js"]), "x.js"),
    "a makefile": (entry(command=["make", "-s", "server"]), "Makefile"),
    "a script of npm": (entry(command=["npm", "run", "server"]), "package.json"),
}


@pytest.mark.proves("T49", "T4", "A18.14", "A18.16")
@pytest.mark.parametrize("case", NAMED)
@pytest.mark.parametrize("happens", ["changes", "appears", "disappears"])
def test_an_approval_is_stale_when_a_named_file(home: Home, case: str, happens: str) -> None:
    fields, name = NAMED[case]
    text = json.dumps({"lsp": {"pyright": fields}}).replace("{root}", str(home.workspace))
    home.project(text.encode())
    if happens != "appears":
        home.project(b"before", name)
    approve(home)
    assert isinstance(home.load().config.trust, Trusted)
    if happens == "disappears":
        (home.workspace / name).unlink()
    else:
        home.project(b"after", name)
    trust = home.load().config.trust
    assert isinstance(trust, Stale)
    assert any(f"content of {name}" in line for line in trust.differences), trust.differences


@pytest.mark.proves("T49", "A18.15")
def test_what_a_file_names_itself_counts_too(home: Home) -> None:
    home.project(b"#!./interpreter -x\n", "run")
    home.project(b"before", "interpreter")
    home.project(b'{"main": "lib/main.js"}', "x/package.json")
    home.project(b"before", "x/lib/main.js")
    home.project({"lsp": {"pyright": entry(command=["./run", "./x"])}})
    for name in ("interpreter", "x/lib/main.js"):
        approve(home)
        assert home.load().config.trusted
        home.project(b"after", name)
        assert not home.load().config.trusted


@pytest.mark.proves("T49", "T4", "A18.17")
def test_a_link_that_leads_elsewhere_is_another_program(home: Home, tmp_path: Path) -> None:
    link = home.workspace / "x"
    link.symlink_to("/bin/true")
    home.project({"lsp": {"pyright": entry(command=["./x"])}})
    approve(home)
    assert home.load().config.trusted
    link.unlink()
    link.symlink_to("/bin/sh")
    assert isinstance(home.load().config.trust, Stale)


def test_what_is_only_a_word_changes_nothing(home: Home) -> None:
    fields = entry(roots=["pyproject.toml"], extensions=[".py"], settings={"python": {"mode": "strict"}, "a.b": [1]})
    home.project({"lsp": {"pyright": fields}})
    home.project(b"before", "pyproject.toml")
    approve(home)
    for name in ("pyproject.toml", "python.py", "mode/__init__.py", "server", "a/b.py"):
        home.project(b"after", name)
    assert home.load().config.trusted


@pytest.mark.proves("T49")
def test_in_a_folder_below_only_what_was_approved_may_run(home: Home) -> None:
    home.project({"lsp": {"pyright": entry(command=["./x"], settings={"config": "y.json"})}})
    for name in ("x", "y.json", "inner/y.json", "other/x"):
        home.project(b"before", name)
    approve(home)
    trust = home.load().config.trust
    assert isinstance(trust, Trusted)
    assert trust.approval is not None
    root = AbsPath(str(home.workspace))
    for folder, changed in (("", ()), ("inner", ()), ("other", ("other/x",))):
        where = AbsPath(os.path.normpath(os.path.join(root, folder)))
        assert changed_files(trust.approval, "pyright", root, where) == changed
    home.project(b"after", "x")
    assert changed_files(trust.approval, "pyright", root, root) == ("x",)


@pytest.mark.proves("T49", "TRUST-4", "A18.18")
def test_an_entry_that_names_too_much_is_not_trusted(home: Home) -> None:
    home.project({"lsp": {"pyright": entry(command=["./x"])}})
    approve(home)
    many = entry(settings={"files": [f"{n:x}" for n in range(MAX_NAMES)]})
    home.project(json.dumps({"lsp": {"pyright": many}}, separators=(",", ":")).encode())
    assert isinstance(home.load().config.trust, Untrusted)
    with pytest.raises(TooManyNames):
        named_files(str(home.workspace), many)


@pytest.mark.proves("T50", "T3")
def test_a_folder_that_is_created_again_is_another_one(home: Home) -> None:
    # On ext4 it gets the same inode each time.
    for _ in range(10):
        home.project({"lsp": {"pyright": entry()}})
        approve(home)
        assert home.load().config.trusted
        shutil.rmtree(home.workspace)
        home.project({"lsp": {"pyright": entry()}})
        trust = home.load().config.trust
        assert isinstance(trust, Untrusted)
        assert "replaced" in trust.why
