"""Where a server's program is found, and when it may not run."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pilotfish.model import AbsPath
from pilotfish.servers.environment import beside_us, search_path
from pilotfish.servers.locate import (
    PLUGINS,
    Gated,
    Lookup,
    ProgramFound,
    ProgramLocation,
    ProgramMissing,
    find_npm_file,
    locate,
    own_plugins,
    tool_folders,
)


def program(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


class Home:
    """A workspace with a package in it, our tools, and a folder on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace, self.package = folder / "project", folder / "project/pkg"
        self.tools, self.system = folder / "tools/bin", folder / "usr/bin"
        for place in (self.package, self.tools, self.system):
            place.mkdir(parents=True)

    def locate(self, name: str = "ls", *, trusted: bool = True, path: str | None = None) -> ProgramLocation:
        territory = (AbsPath(str(self.workspace)),)
        entries = search_path(path or str(self.system), territory, trusted=trusted)
        beside = beside_us(entries, territory, trusted=trusted)
        lookup = Lookup(territory, trusted, entries, (AbsPath(str(self.tools)),), beside)
        return locate(name, AbsPath(str(self.package)), lookup)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(Path(os.path.realpath(tmp_path)))


def where(located: ProgramLocation) -> str:
    assert isinstance(located, ProgramFound)
    return located.path


@pytest.mark.proves("REG-5")
def test_the_project_comes_first_then_our_tools_then_path(home: Home) -> None:
    expected = [
        program(home.package / "node_modules/.bin/ls"),
        program(home.package / ".venv/bin/ls"),
        program(home.package / "venv/bin/ls"),
        program(home.workspace / "node_modules/.bin/ls"),
        program(home.tools / "ls"),
        program(home.system / "ls"),
    ]
    for path in expected:
        assert where(home.locate()) == str(path)
        path.unlink()
    assert isinstance(home.locate(), ProgramMissing)


@pytest.mark.proves("REG-5")
def test_a_server_that_was_installed_together_with_us_is_found_last(home: Home) -> None:
    ours = program(home.folder / "share/pilotfish/bin/pilotfish")
    (home.system / "pilotfish").symlink_to(ours)
    beside = program(ours.parent / "ls")
    assert where(home.locate(trusted=False)) == str(beside)
    on_path = program(home.system / "ls")
    assert where(home.locate(trusted=False)) == str(on_path)


@pytest.mark.proves("TRUST-6", "T9")
def test_a_link_to_us_inside_an_untrusted_workspace_leads_nowhere(home: Home) -> None:
    (home.system / "pilotfish").symlink_to(program(home.workspace / "bin/pilotfish"))
    program(home.workspace / "bin/ls")
    assert isinstance(home.locate(trusted=False), ProgramMissing)
    assert isinstance(home.locate(trusted=True), ProgramFound)


@pytest.mark.proves("TRUST-6", "T9")
def test_an_untrusted_project_supplies_no_program(home: Home) -> None:
    planted = program(home.package / "node_modules/.bin/ls")
    located = home.locate(trusted=False)
    assert isinstance(located, Gated)
    assert located.path == str(planted)
    assert "not trusted" in located.reason


@pytest.mark.proves("TRUST-6", "T9")
def test_an_installed_program_is_taken_before_a_planted_one(home: Home) -> None:
    program(home.package / "node_modules/.bin/ls")
    installed = program(home.system / "ls")
    assert where(home.locate(trusted=False)) == str(installed)


@pytest.mark.proves("TRUST-6", "T9")
@pytest.mark.parametrize(
    "entry",
    [
        pytest.param("{ws}/bin", id="an entry inside the workspace"),
        pytest.param("{ws}", id="the workspace itself"),
        pytest.param("{top}/alias", id="a link into the workspace"),
        pytest.param("{ws}/../project/bin", id="a detour into the workspace"),
    ],
)
def test_an_untrusted_workspace_is_not_searched_through_path(home: Home, entry: str) -> None:
    program(home.workspace / "bin/ls")
    program(home.workspace / "ls")
    (home.folder / "alias").symlink_to(home.workspace / "bin")
    path = entry.format(ws=home.workspace, top=home.folder)
    assert isinstance(home.locate(trusted=False, path=path), ProgramMissing)
    assert isinstance(home.locate(trusted=True, path=path), ProgramFound)


@pytest.mark.proves("T9")
@pytest.mark.parametrize("path", ["", ".", "bin", "./bin", "bin:", ":"])
def test_relative_entries_of_path_are_never_searched(home: Home, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    program(home.workspace / "bin/ls")
    program(home.workspace / "ls")
    monkeypatch.chdir(home.workspace)
    assert search_path(path, (), trusted=True) == ()


@pytest.mark.proves("TRUST-6", "T9")
def test_a_link_on_path_that_leads_into_an_untrusted_workspace_is_gated(home: Home) -> None:
    planted = program(home.workspace / "planted")
    (home.system / "ls").symlink_to(planted)
    assert isinstance(home.locate(trusted=False), Gated)


@pytest.mark.proves("TRUST-6")
@pytest.mark.parametrize(
    ("command", "trusted", "kind"),
    [
        pytest.param("{top}/opt/ls", False, ProgramFound, id="absolute, elsewhere"),
        pytest.param("{ws}/pkg/ls", False, Gated, id="absolute, inside"),
        pytest.param("{ws}/pkg/ls", True, ProgramFound, id="absolute, inside and trusted"),
        pytest.param("./ls", False, Gated, id="relative to the root"),
        pytest.param("./ls", True, ProgramFound, id="relative to the root and trusted"),
        pytest.param("../../opt/ls", False, ProgramFound, id="relative, out of the workspace"),
        pytest.param("./none", True, ProgramMissing, id="nothing there"),
    ],
)
def test_a_command_may_be_a_path(home: Home, command: str, trusted: bool, kind: type[ProgramLocation]) -> None:
    program(home.folder / "opt/ls")
    program(home.package / "ls")
    name = command.format(top=home.folder, ws=home.workspace)
    assert isinstance(home.locate(name, trusted=trusted, path="/nowhere"), kind)


@pytest.mark.proves("F1")
def test_what_cannot_be_run_is_missing_and_said_to_be_there(home: Home) -> None:
    plain = program(home.system / "ls", 0o644)
    located = home.locate()
    assert isinstance(located, ProgramMissing)
    assert located.unusable == str(plain)
    (home.system / "folder").mkdir()
    assert isinstance(home.locate("folder"), ProgramMissing)


@pytest.mark.proves("F1")
def test_a_missing_program_says_where_it_was_looked_for(home: Home) -> None:
    located = home.locate()
    assert isinstance(located, ProgramMissing)
    assert located.program == "ls"
    assert located.unusable is None
    assert {str(home.tools), str(home.system), str(home.package / "node_modules/.bin")} <= set(located.looked_in)


@pytest.mark.proves("F20")
def test_a_replaced_program_is_another_one(home: Home) -> None:
    path = program(home.system / "ls")
    before = home.locate()
    path.unlink()
    program(path).write_text("#!/bin/sh\n# newer\n")
    after = home.locate()
    assert isinstance(before, ProgramFound)
    assert isinstance(after, ProgramFound)
    assert before.path == after.path
    assert before.identity != after.identity


@pytest.mark.proves("T9")
def test_the_search_for_packages_follows_the_same_rules(home: Home) -> None:
    inside = home.workspace / "node_modules/typescript/lib"
    beside = home.folder / "usr/lib/node_modules/typescript/lib"
    for folder in (inside, beside):
        folder.mkdir(parents=True)
    server = program(home.folder / "usr/lib/node_modules/server/cli.js")
    (home.system / "server").symlink_to(server)

    def found(*, trusted: bool) -> str | None:
        lookup = Lookup((AbsPath(str(home.workspace)),), trusted, (), tool_folders(AbsPath(str(home.folder / "state"))))
        return find_npm_file("typescript/lib", AbsPath(str(home.package)), lookup, AbsPath(str(home.system / "server")))

    assert found(trusted=True) == str(inside)
    assert found(trusted=False) == str(beside)


AUDITED = textwrap.dedent(
    """
    import os, sys
    from pilotfish.servers.catalogue import load
    from pilotfish.servers.environment import beside_us, search_path
    from pilotfish.servers.locate import Lookup, locate
    from pilotfish.servers.resolve import Resolver, SearchScope
    from pilotfish.servers.tree import DiskTree

    def audit(event, arguments):
        if event in {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "import"}:
            if event != "import":
                raise SystemExit(f"ran something: {event} {arguments}")

    sys.addaudithook(audit)
    root = sys.argv[1]
    lookup = Lookup((root,), False, search_path(os.environ["PATH"], (root,), trusted=False))
    for name in os.listdir(root):
        for candidate in Resolver(load().values(), DiskTree()).candidates(f"{root}/{name}", SearchScope(root)):
            locate(candidate.spec.command[0], root, lookup)
    """
)


@pytest.mark.proves("TRUST-6")
def test_no_plugin_of_ours_is_looked_for_inside_an_untrusted_workspace() -> None:
    """Node would look for what the project names in the folders above ours, too: those are the project's."""
    around, elsewhere = AbsPath(os.path.dirname(PLUGINS)), AbsPath(os.path.join(PLUGINS, "elsewhere"))
    ours = os.path.join(PLUGINS, "tsserver")
    assert os.path.isfile(os.path.join(ours, "node_modules/pilotfish-affected/index.js"))
    found = [
        own_plugins("tsserver", Lookup((territory,), trusted, ()))
        for territory in (around, elsewhere)
        for trusted in (True, False)
    ]
    assert found == [ours, os.devnull, ours, ours]


@pytest.mark.proves("T8", "T9")
def test_resolving_and_locating_in_a_hostile_workspace_runs_nothing(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    for name in ("a.ts", "a.rs", "a.py", "a.go", "package.json", "Cargo.toml", "rust-toolchain", ".yarnrc.yml"):
        (root / name).write_text("{}")
    for name in ("tsc", "typescript-language-server", "pyright-langserver", "gopls", "rust-analyzer"):
        program(root / "node_modules/.bin" / name)
    environment = {**os.environ, "PATH": f"{root}/node_modules/.bin:.:{os.environ['PATH']}"}
    ended = subprocess.run(
        [sys.executable, "-c", AUDITED, str(root)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=root,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
