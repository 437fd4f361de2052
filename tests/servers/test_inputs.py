"""What a server has read besides sources: does the evidence see every change that counts, and no other?"""

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pilotfish.model import AbsPath
from pilotfish.protocol.watching import Change, PathChange
from pilotfish.servers.catalogue import load
from pilotfish.servers.inputs import (
    MAX_FILES,
    MAX_FOLLOWED,
    MAX_FOLLOWING,
    MAX_LINE,
    MAX_NAMED,
    MAX_SEARCHED,
    InputEvidence,
    input_evidence,
    inputs_of,
    outside_folders,
)
from pilotfish.servers.manifests import MAX_COMMENTED_CHARACTERS
from pilotfish.servers.spec import Environment, FileRule, Inputs, RootRule, ServerSpec

pytestmark = pytest.mark.proves("F95", "F96")

PYRIGHT = Inputs(("pyrightconfig.json", "pyproject.toml#tool.pyright"), ("extends",), Environment.PYTHON)
TYPESCRIPT = Inputs(("tsconfig.json",), ("extends", "references.path"), Environment.NODE)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def evidence(root: Path, inputs: Inputs, sources: Sequence[str] = ()) -> InputEvidence:
    place = AbsPath(str(root))
    found = input_evidence(inputs, place, place, (AbsPath(str(root / "site-packages")),), sources)
    assert found is not None
    return found


def upgraded(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    write(folder / "__init__.py", "two")


def in_place(path: Path, text: str) -> None:
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


COUNTS: dict[str, tuple[Inputs, Callable[[Path], object]]] = {
    "a configuration file": (PYRIGHT, lambda root: write(root / "pyrightconfig.json", '{"strict": ["x"]}')),
    "with the same size and time": (PYRIGHT, lambda root: in_place(root / "base.json", '{"a": 2}')),
    "one that is deleted": (PYRIGHT, lambda root: (root / "pyrightconfig.json").unlink()),
    "one that it extends": (PYRIGHT, lambda root: write(root / "base.json", '{"a": 3}')),
    "its own section": (PYRIGHT, lambda root: write(root / "pyproject.toml", "[tool.pyright]\nstrict = ['x']\n")),
    "a section that cannot be read": (PYRIGHT, lambda root: write(root / "pyproject.toml", "[tool.pyright\n")),
    "a package that is added": (PYRIGHT, lambda root: write(root / "site-packages" / "new" / "__init__.py", "")),
    "a package that is replaced": (PYRIGHT, lambda root: upgraded(root / "site-packages" / "old")),
    "one in a package": (TYPESCRIPT, lambda root: write(root / "node_modules/@x/base/tsconfig.json", '{"b": 2}')),
    "one outside of the root": (TYPESCRIPT, lambda root: write(root.parent / "outer.json", '{"c": 2}')),
    "one of another project": (TYPESCRIPT, lambda root: write(root / "lib/tsconfig.json", '{"d": 2}')),
    "one that is missing, and appears": (TYPESCRIPT, lambda root: write(root / "later.json", "{}")),
    "what npm writes last": (TYPESCRIPT, lambda root: write(root / "node_modules/.package-lock.json", "{ }")),
    "a package of a scope": (TYPESCRIPT, lambda root: write(root / "node_modules/@x/new/package.json", "{}")),
}
DOES_NOT: dict[str, tuple[Inputs, Callable[[Path], object]]] = {
    "nothing": (PYRIGHT, lambda root: None),
    "a touch": (PYRIGHT, lambda root: os.utime(root / "pyrightconfig.json", (1, 1))),
    "the same text again": (PYRIGHT, lambda root: write(root / "pyrightconfig.json", '{"extends": "base.json"}')),
    "another section": (PYRIGHT, lambda root: write(root / "pyproject.toml", "[tool.pyright]\n[tool.black]\na = 1\n")),
    "a cache beside the packages": (PYRIGHT, lambda root: write(root / "site-packages/__pycache__/x.pyc", "")),
    "a cache in node_modules": (TYPESCRIPT, lambda root: write(root / "node_modules/.cache/x", "")),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    write(root / "pyrightconfig.json", '{"extends": "base.json"}')
    write(root / "base.json", '{"a": 1}')
    write(root / "pyproject.toml", "[tool.pyright]\n[tool.black]\n")
    write(root / "site-packages/old/__init__.py", "one")
    extends = '["@x/base/tsconfig.json", "../outer", "./later"]'
    write(root / "tsconfig.json", f'{{"extends": {extends}, /* and */ "references": [{{"path": "./lib"}}],}}')
    write(root / "node_modules/@x/base/tsconfig.json", '{"b": 1}')
    write(root / "node_modules/.package-lock.json", "{}")
    write(root.parent / "outer.json", '{"c": 1}')
    write(root / "lib/tsconfig.json", '{"d": 1}')
    return root


@pytest.mark.parametrize("settled", [False, True], ids=["at once", "later"])
@pytest.mark.parametrize("what", COUNTS)
def test_a_change_that_counts_is_seen(what: str, project: Path, settled: bool) -> None:
    inputs, change = COUNTS[what]
    if settled:
        # Times that are certain: no change bears the same one.
        for path in project.parent.rglob("*"):
            os.utime(path, (1, 1))
    known = evidence(project, inputs)
    assert known.holds()
    change(project)
    assert not known.holds()
    assert known.changed is not None
    assert evidence(project, inputs).holds()


@pytest.mark.parametrize("what", DOES_NOT)
def test_a_change_that_does_not_count_is_not(what: str, project: Path) -> None:
    inputs, change = DOES_NOT[what]
    known = evidence(project, inputs)
    change(project)
    assert known.holds()


def test_a_configuration_file_in_a_folder_below_counts_when_it_is_told_of(project: Path) -> None:
    known = evidence(project, TYPESCRIPT)
    for name in ("lib/main.ts", "tsconfig.json"):
        known.note(AbsPath(str(project / name)))
    assert known.holds(), "the one in the root is looked at"
    known.note(AbsPath(str(project / "packages/a/tsconfig.json")))
    assert not known.holds()
    other = evidence(project, PYRIGHT)
    other.note(AbsPath(str(project / "packages/a/pyproject.toml")))
    assert other.holds(), "a manifest"


def test_what_a_server_writes_itself_does_not_configure_it(project: Path) -> None:
    known = evidence(project, load()["ruby-lsp"].inputs)
    known.note(AbsPath(str(project / ".ruby-lsp" / "Gemfile")))
    assert known.holds()
    known.note(AbsPath(str(project / "engine" / "Gemfile")))
    assert not known.holds()


def test_files_that_extend_each_other_are_read_once(tmp_path: Path) -> None:
    write(tmp_path / "tsconfig.json", '{"extends": "./other"}')
    write(tmp_path / "other.json", '{"extends": "./tsconfig.json"}')
    known = evidence(tmp_path, TYPESCRIPT)
    assert known.holds()
    write(tmp_path / "other.json", "{}")
    assert not known.holds()


def chain(folder: Path, length: int) -> None:
    for number in range(length):
        name = "tsconfig.json" if number == 0 else f"c{number}.json"
        write(folder / name, f'{{"extends": "./c{number + 1}.json"}}')


def long_comment(folder: Path) -> None:
    write(folder / "tsconfig.json", '{"extends": "./c1.json" /*' + "x" * MAX_COMMENTED_CHARACTERS + "*/}")


def many_references(folder: Path) -> None:
    write(folder / "tsconfig.json", json.dumps({"references": [{"path": f"./p{n}"} for n in range(MAX_NAMED)]}))


def much_text(folder: Path) -> None:
    write(folder / "tsconfig.json", '{"extends": ["./a.json", "./b.json"]}')
    write(folder / "a.json", f'["{"x" * MAX_FOLLOWED}"]')
    write(folder / "b.json", "{}")


CHAINS: dict[str, tuple[Callable[[Path], object], bool]] = {
    "a long chain": (lambda folder: chain(folder, MAX_FOLLOWING), False),
    "one that is too long": (lambda folder: chain(folder, MAX_FOLLOWING + 1), True),
    "too many names": (many_references, True),
    "too long to be read": (long_comment, True),
    "too much text": (much_text, True),
}


@pytest.mark.parametrize(("make", "is_cut"), CHAINS.values(), ids=CHAINS)
def test_a_configuration_that_names_more_files_than_are_looked_at_is_no_evidence(
    make: Callable[[Path], object], tmp_path: Path, *, is_cut: bool
) -> None:
    make(tmp_path)
    assert evidence(tmp_path, TYPESCRIPT).is_cut is is_cut


def test_the_last_file_of_a_long_chain_counts(tmp_path: Path) -> None:
    chain(tmp_path, MAX_FOLLOWING)
    known = evidence(tmp_path, TYPESCRIPT)
    write(tmp_path / f"c{MAX_FOLLOWING}.json", "{}")
    assert not known.holds()


def test_a_changed_source_of_a_library_counts_for_a_server_that_takes_it_in_late(tmp_path: Path) -> None:
    root, inputs = AbsPath(str(tmp_path)), Inputs(("x.json",), late_libraries=True)
    known = input_evidence(inputs, root, root, sources=(".py",))
    assert known is not None
    for name in ("own.py", "src/own.py", ".venv/lib/site-packages/x.txt", "../outside.txt"):
        known.note(AbsPath(os.path.normpath(tmp_path / name)))
    assert known.holds()
    known.note(AbsPath(str(tmp_path.parent / "outside.py")))
    assert not known.holds()
    known = input_evidence(inputs, root, root, sources=(".py",))
    assert known is not None
    known.note(AbsPath(str(tmp_path / ".venv/lib/site-packages/x.py")))
    assert not known.holds()


PACKAGES = {
    Environment.PYTHON: (".venv/lib/python3.11/site-packages/pkg/inner{}", "../venv/lib/site-packages/inner{}"),
    Environment.NODE: (
        "node_modules/pkg/lib/inner{}",
        "../node_modules/@scope/pkg/index{}",
        "node_modules/.pnpm/pkg@1/node_modules/pkg/inner{}",
        "node_modules/pkg/package.json",
    ),
}


@pytest.mark.proves("A12.7")
@pytest.mark.parametrize(
    ("spec", "name"),
    [
        pytest.param(spec, name.format(extension), id=f"{server}: {name.format(extension)}")
        for server, spec in load().items()
        if spec.inputs.environment is not None
        for name in PACKAGES[spec.inputs.environment]
        for extension in spec.files.extensions[:1]
    ],
)
def test_the_inside_of_an_installed_package_counts_for_every_server_that_reads_some(
    spec: ServerSpec, name: str, tmp_path: Path
) -> None:
    root = AbsPath(str(tmp_path))
    known = input_evidence(inputs_of(spec), root, root, (AbsPath(f"{root}/packages"),), spec.files.extensions)
    assert known is not None
    known.note(AbsPath(f"{root}/src/own{spec.files.extensions[0]}"), is_open=True)
    assert known.holds()
    known.note(AbsPath(os.path.normpath(tmp_path / name)))
    assert not known.holds()


@pytest.mark.parametrize(
    ("server", "name", "text"),
    [
        ("clangd", "compile_flags.txt", "-xc\n-I../outer\n-isystem\n../missing\n-Iinner\n-I/usr/include\n"),
        ("clangd", "compile_commands.json", '[{"command": "cc -I ../outer -Iinner a.c"}]'),
        ("clangd", "compile_commands.json", '[{"arguments": ["cc", "-I", "../outer", "a.c"]}]'),
        ("gopls", "go.mod", "module x\n\nreplace example.com/y v1 => ../outer\n"),
        ("gopls", "go.work", "go 1.19\n\nuse (\n\t./inner\n\t../outer\n)\n"),
    ],
)
def test_folders_outside_that_a_project_names_are_found(server: str, name: str, text: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    for folder in (root / "inner", tmp_path / "outer"):
        folder.mkdir(parents=True)
    write(root / name, text)
    assert outside_folders(load()[server].inputs, AbsPath(str(root))) == (str(tmp_path / "outer"),)


def test_a_server_of_which_no_inputs_are_known_needs_no_evidence(tmp_path: Path) -> None:
    assert input_evidence(Inputs(), AbsPath(str(tmp_path)), AbsPath(str(tmp_path))) is None


def test_the_catalogue_names_only_members_of_files_that_it_names() -> None:
    assert [spec.id for spec in load().values() if spec.inputs.extends and not spec.inputs.steering] == []


@pytest.mark.proves("A12.4")
@pytest.mark.parametrize(
    ("name", "older_by", "changes", "holds"),
    [
        ("a.py", 60, [Change.CHANGED], False),
        ("a.py", -60, [Change.CHANGED], True),
        ("a.txt", 60, [Change.CHANGED], True),
        ("missing.py", 60, [Change.CHANGED], True),
        ("a.py", 60, [Change.CREATED], True),
        ("a.py", 60, [Change.CREATED, Change.CHANGED], False),
        ("a.py", 60, [Change.DELETED, Change.CREATED], False),
    ],
)
def test_a_changed_source_with_a_time_from_before_counts_for_servers_that_go_by_it(
    tmp_path: Path, name: str, older_by: int, changes: list[Change], *, holds: bool
) -> None:
    place, since = AbsPath(str(tmp_path)), 1_700_000_000
    found = input_evidence(Inputs(by_time=True), place, place, sources=(".py",))
    assert found is not None
    for written in ("a.py", "a.txt"):
        (tmp_path / written).touch()
        os.utime(tmp_path / written, (since - older_by, since - older_by))
    found.note_older([PathChange(AbsPath(str(tmp_path / name)), one) for one in changes], since)
    assert found.holds() is holds


@pytest.mark.parametrize(
    ("name", "is_open", "holds"), [("a.py", False, False), ("a.py", True, True), ("a.txt", False, True)]
)
def test_a_changed_source_counts_for_servers_that_go_by_their_own_watchers(
    tmp_path: Path, name: str, *, is_open: bool, holds: bool
) -> None:
    place = AbsPath(str(tmp_path))
    found = input_evidence(Inputs(("x.ini",), own_watchers=True), place, place, sources=(".py",))
    assert found is not None
    found.note(AbsPath(f"{place}/{name}"), is_open=is_open)
    assert found.holds() is holds


EMBEDDING = "package main\n\n//go:embed a.txt all:static/*.html `b c`\n//go:embed ../out /etc/x\nvar x string\n"


MENTIONED: dict[str, tuple[bool, Callable[[Path], object]]] = {
    "gone": (False, lambda root: (root / "a.txt").unlink()),
    "another one": (False, lambda root: (root / "static" / "new.html").touch()),
    "moved": (False, lambda root: (root / "static" / "one.html").rename(root / "static" / "other")),
    "changed": (True, lambda root: (root / "a.txt").write_text("another text")),
    "not named": (True, lambda root: (root / "other.txt").touch()),
}


@pytest.mark.proves("A12.3")
@pytest.mark.parametrize("case", MENTIONED)
def test_a_file_that_a_source_embeds_counts_by_coming_and_going(tmp_path: Path, case: str) -> None:
    holds, change = MENTIONED[case]
    for name in ("a.txt", "static/one.html"):
        write(tmp_path / name, "")
    found = evidence(tmp_path, load()["gopls"].inputs)
    found.mention(AbsPath(str(tmp_path / "main.go")), EMBEDDING)
    assert found.holds()
    change(tmp_path)
    assert found.holds() is holds


@pytest.mark.proves("T43")
@pytest.mark.parametrize(
    "text",
    [
        "".join(f"//go:embed folder{number}/a\n" for number in range(MAX_FILES + 1)),
        "//go:embed " + " ".join(f"a{number}" for number in range(MAX_NAMED + 1)) + "\n",
        f"//go:embed {'a' * MAX_LINE} b\n",
        "\n" * MAX_SEARCHED + "//go:embed a.txt\n",
    ],
    ids=["folders", "names", "a line", "characters"],
)
def test_of_a_source_that_names_more_than_is_looked_at_that_is_known(tmp_path: Path, text: str) -> None:
    found = evidence(tmp_path, load()["gopls"].inputs)
    main, other = AbsPath(str(tmp_path / "main.go")), AbsPath(str(tmp_path / "other.go"))
    found.mention(main, text)
    found.mention(other, "package other\n")
    assert (found.overlooks(main), found.overlooks(other)) == (True, False)
    found.mention(main, "package main\n")
    assert not found.overlooks(main)


def test_a_file_that_may_have_gone_before_it_was_named_counts(tmp_path: Path) -> None:
    found = evidence(tmp_path, load()["gopls"].inputs)
    (tmp_path / "new").touch()
    later = time.time() + 1
    os.utime(tmp_path, (later, later))
    found.mention(AbsPath(str(tmp_path / "main.go")), EMBEDDING)
    assert not found.holds()


@pytest.mark.proves("A12.6")
@pytest.mark.parametrize(
    ("path", "change", "holds"),
    [
        ("deep/pkg/__init__.py", Change.CREATED, False),
        ("deep/pkg/__init__.py", Change.CHANGED, True),
        ("module.py", Change.CREATED, False),
        ("package", Change.DELETED, False),
        ("src/module.py", Change.DELETED, False),
        ("deep/module.py", Change.CREATED, True),
        (".cache", Change.CREATED, True),
        ("no-module.txt", Change.CREATED, True),
    ],
)
def test_a_module_that_comes_or_goes_counts_for_a_linter_of_imports(
    tmp_path: Path, path: str, change: Change, *, holds: bool
) -> None:
    found = evidence(tmp_path, load()["ruff"].inputs)
    found.note(AbsPath(str(tmp_path / path)), change)
    assert found.holds() is holds


@pytest.mark.parametrize(
    ("path", "change", "holds"),
    [
        ("deep/lib.proto", Change.CREATED, False),
        ("deep/lib.proto", Change.DELETED, True),
        ("deep/lib.proto", Change.CHANGED, True),
        ("deep/lib.txt", Change.CREATED, True),
    ],
)
def test_a_file_that_comes_counts_for_a_server_that_remembers_that_it_was_missing(
    tmp_path: Path, path: str, change: Change, *, holds: bool
) -> None:
    found = evidence(tmp_path, inputs_of(load()["buf"]))
    found.note(AbsPath(str(tmp_path / path)), change)
    assert found.holds() is holds


@pytest.mark.parametrize("stays", [pytest.param(True, id="another source stays"), pytest.param(False, id="none stays")])
def test_a_source_that_comes_counts_in_a_folder_that_had_lost_its_last_one(tmp_path: Path, *, stays: bool) -> None:
    write(tmp_path / "lib/README.md", "")
    if stays:
        write(tmp_path / "lib/other.go", "")
    found = evidence(tmp_path, load()["gopls"].inputs, (".go",))
    found.note(AbsPath(str(tmp_path / "lib/one.go")), Change.DELETED)
    found.note(AbsPath(str(tmp_path / "lib/two.txt")), Change.CREATED)
    found.note(AbsPath(str(tmp_path / "new/one.go")), Change.CREATED)
    assert found.holds()
    found.note(AbsPath(str(tmp_path / "lib/two.go")), Change.CREATED)
    assert found.holds() is stays


def test_of_more_emptied_folders_than_are_remembered_every_one_counts(tmp_path: Path) -> None:
    found = evidence(tmp_path, load()["gopls"].inputs, (".go",))
    for number in range(MAX_FILES + 2):
        found.note(AbsPath(str(tmp_path / f"lib{number}/one.go")), Change.DELETED)
    found.note(AbsPath(str(tmp_path / f"lib{MAX_FILES + 1}/one.go")), Change.CREATED)
    assert not found.holds()


@pytest.mark.parametrize("name", sorted(load()))
def test_every_file_that_may_configure_a_server_is_covered(name: str) -> None:
    spec = load()[name]
    known, documents = inputs_of(spec), (*spec.files.extensions, *spec.files.names)
    others = {marker for marker in spec.root.markers if not marker.endswith(documents)}
    said = spec.inputs.steering or spec.inputs.reloads
    assert others <= {*known.steering} or said


@pytest.mark.parametrize(
    ("marker", "change", "holds"),
    [
        ("pom.xml", "pom.xml", False),
        ("*.sln", "a.sln", False),
        ("*.sln", "sub/new.sln", False),
        ("pom.xml", "other.xml", True),
        ("pyproject.toml#tool.x", "sub/pyproject.toml", True),
    ],
)
def test_a_server_of_which_nothing_is_said_is_started_anew_after_a_change_of_its_markers(
    tmp_path: Path, marker: str, change: str, *, holds: bool
) -> None:
    for name in ("pom.xml", "a.sln", "other.xml"):
        write(tmp_path / name, "1")
    spec = ServerSpec("x", "x", ("x",), ("x",), FileRule(), RootRule(markers=(marker,)))
    found = evidence(tmp_path, inputs_of(spec))
    write(tmp_path / change, "2")
    found.note(AbsPath(str(tmp_path / change)))
    assert found.holds() is holds


@pytest.mark.proves("F95", "P7")
@pytest.mark.parametrize(("server", "name"), [("bash", ".shellcheckrc"), ("bash", "shellcheckrc"), ("nim", "a.nimble")])
def test_what_configures_the_checker_of_a_server_without_markers_counts(tmp_path: Path, server: str, name: str) -> None:
    write(tmp_path / name, "")
    root = AbsPath(str(tmp_path))
    evidence = input_evidence(inputs_of(load()[server]), root, root)
    assert evidence is not None
    assert evidence.holds()
    write(tmp_path / name, "disable=SC2154\n")
    assert not evidence.holds()
