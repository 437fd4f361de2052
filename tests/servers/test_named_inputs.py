"""Every file that the catalogue names as an input of a server starts it anew, wherever it is looked for."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotfish.model import AbsPath
from pilotfish.protocol.watching import Change
from pilotfish.servers.catalogue import load
from pilotfish.servers.inputs import at_home, input_evidence, inputs_of
from pilotfish.servers.resolve import own_files
from pilotfish.servers.spec import ServerSpec
from support.proving.rows import rows

pytestmark = pytest.mark.proves("F95", "P7")


def written(folder: Path, name: str) -> Path:
    """The file, with the section that is named behind `#`."""
    file, _, section = name.replace("*", "x").partition("#")
    place = folder / file
    place.parent.mkdir(parents=True, exist_ok=True)
    table: object = {"new": 1}
    for part in reversed(section.split(".") if section else []):
        table = {part: table}
    is_toml = file.endswith(".toml") and section
    place.write_text(f"[{section}]\nnew = 1\n" if is_toml else json.dumps(table))
    return place


def named() -> Iterator[tuple[ServerSpec, str, str]]:
    for spec in load().values():
        inputs = inputs_of(spec)
        for place, names in (("root", inputs.steering), ("above", inputs.above), ("home", inputs.home)):
            yield from ((spec, place, name) for name in names if not (place == "root" and "*" in name))


@pytest.mark.parametrize("server", sorted({spec.id for spec, _place, _name in named()}))
def test_a_file_that_comes_starts_a_server_anew(server: str, tmp_path: Path) -> None:
    rows = [(spec, place, name) for spec, place, name in named() if spec.id == server]
    for number, (spec, place, name) in enumerate(rows):
        base = tmp_path / str(number)
        folders = {"root": base / "above" / "root", "above": base / "above", "home": base / "home"}
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        root = AbsPath(str(folders["root"]))
        evidence = input_evidence(at_home(inputs_of(spec), {}, str(folders["home"])), root, root)
        assert evidence is not None
        assert evidence.holds()
        written(folders[place], name)
        assert not evidence.holds(), f"{name} in {place}"


@pytest.mark.parametrize("server", sorted(spec.id for spec in load().values() if spec.inputs.steering))
def test_so_does_one_in_a_folder_below(server: str, tmp_path: Path) -> None:
    spec, root = load()[server], AbsPath(str(tmp_path))
    watched = own_files(spec)
    for name in spec.inputs.steering:
        if "#" in name or "/" in name:
            continue
        evidence = input_evidence(inputs_of(spec), root, root)
        assert evidence is not None
        path = AbsPath(os.path.join(root, "below", name.replace("*", "x")))
        assert any(one.glob.matches(path) for one in watched)
        evidence.note(path, Change.CREATED)
        assert not evidence.holds()


def test_the_folder_of_the_users_settings_may_be_another(tmp_path: Path) -> None:
    inputs, root = inputs_of(load()["ty"]), AbsPath(str(tmp_path / "root"))
    evidence = input_evidence(at_home(inputs, {"XDG_CONFIG_HOME": str(tmp_path / "x")}, str(tmp_path)), root, root)
    assert evidence is not None
    written(tmp_path, ".config/ty/ty.toml")
    assert evidence.holds()
    written(tmp_path, "x/ty/ty.toml")
    assert not evidence.holds()


@pytest.mark.parametrize("server", sorted(rows()))
def test_no_server_is_started_anew_for_the_document_that_it_judges(server: str, tmp_path: Path) -> None:
    row, spec, root = rows()[server], load()[server], AbsPath(str(tmp_path))
    place = written(tmp_path, row.file)
    evidence = input_evidence(inputs_of(spec), root, root, sources=spec.files.extensions)
    if evidence is not None:
        place.write_text(row.broken)
        evidence.note(AbsPath(str(place)), Change.CHANGED, is_open=True)
        assert evidence.holds()


def test_a_folder_configures_nobody(tmp_path: Path) -> None:
    root = AbsPath(str(tmp_path))
    (tmp_path / "src").mkdir()
    evidence = input_evidence(inputs_of(load()["basedpyright"]), root, root)
    assert evidence is not None
    asked = ("src", "typings", "package/src", "pyrightconfig.json", "package/pyrightconfig.json", "package/lib.py")
    found = [name for name in asked if evidence.configures(AbsPath(f"{root}/{name}"))]
    assert found == ["typings", "pyrightconfig.json", "package/pyrightconfig.json"]
