"""Which version of a server is installed, learned without running anything of a project (T46)."""

import os
from pathlib import Path

import pytest

from pilotfish.model import AbsPath
from pilotfish.servers import versions
from pilotfish.servers.catalogue import load
from pilotfish.servers.locate import Lookup, ProgramFound, locate
from pilotfish.servers.spec import FileRule, RootRule, ServerSpec
from pilotfish.servers.versions import installed_version, is_between

pytestmark = pytest.mark.proves("T46")

SPEC = ServerSpec(
    "s", "Server", ("x",), ("s",), FileRule((".x",)), RootRule(),
    install={"npm": ("@a/s@1.0.0",), "pip": ("The_Server[all]==1.0.0",), "apt": ("s-deb",)},
)  # fmt: skip


@pytest.mark.parametrize(
    ("version", "first", "last", "expected"),
    [
        pytest.param("1.2.3", "1.2.3", "1.2.3", True, id="the only one"),
        pytest.param("1.2", "1.2.0", "1.2.0", True, id="shorter, and the same"),
        pytest.param("1.10.0", "1.9.0", "1.11.0", True, id="numbers, not texts"),
        pytest.param("1.2.2", "1.2.3", "1.2.4", False, id="older"),
        pytest.param("1.2.5", "1.2.3", "1.2.4", False, id="newer"),
        pytest.param("2", "1.2.3", "1.9.9", False, id="much newer"),
        pytest.param("0.5.0+ds-1", "0.5.0", "0.5.0", True, id="a Debian revision"),
        pytest.param("", "0", "9", False, id="unknown"),
        pytest.param("master", "0", "9", False, id="no number"),
    ],
)
def test_a_version_is_in_the_range_or_not(version: str, first: str, last: str, expected: bool) -> None:
    assert is_between(version, first, last) is expected


def program(path: Path, text: str = "#!/bin/sh\nexit 1\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def found(folder: Path) -> ProgramFound:
    located = locate("s", AbsPath("/srv/w"), Lookup((), trusted=False, path=(AbsPath(str(folder)),)))
    assert isinstance(located, ProgramFound)
    return located


@pytest.mark.parametrize(("name", "expected"), [("@a/s", "1.2.3"), ("other", "")])
def test_npm_says_it(tmp_path: Path, name: str, expected: str) -> None:
    module = tmp_path / "node_modules" / "s"
    program(module / "dist" / "bin" / "cli.js")
    (module / "dist" / "package.json").write_text('{"type": "module"}')
    (module / "package.json").write_text(f'{{"name": "{name}", "version": "1.2.3"}}')
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "s").symlink_to(module / "dist" / "bin" / "cli.js")
    assert installed_version(SPEC, found(tmp_path / "bin")) == expected


@pytest.mark.proves("T43")
@pytest.mark.parametrize("text", ["[]", "[" * 100_000, '{"version": {}, "name": []}', "9" * 5_000, "\0"])
def test_a_package_that_cannot_be_read_says_nothing(tmp_path: Path, text: str) -> None:
    program(tmp_path / "s" / "bin" / "s")
    (tmp_path / "s" / "package.json").write_text(text)
    assert installed_version(SPEC, found(tmp_path / "s" / "bin")) == ""


@pytest.mark.proves("T43")
def test_nor_does_a_pipe_in_its_place(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "s")
    os.mkfifo(tmp_path / "package.json")
    assert installed_version(SPEC, found(tmp_path / "bin")) == ""


def test_a_wheel_says_it_unless_there_are_two(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "s")
    packages = tmp_path / "lib" / "python3.12" / "site-packages"
    (packages / "the_server-1.2.3.dist-info").mkdir(parents=True)
    (packages / "the_server_plugin-9.dist-info").mkdir()
    assert installed_version(SPEC, found(tmp_path / "bin")) == "1.2.3"
    (tmp_path / "lib" / "python3.11" / "site-packages" / "the_server-1.2.2.dist-info").mkdir(parents=True)
    os.utime(tmp_path / "bin" / "s", (1, 1))
    assert installed_version(SPEC, found(tmp_path / "bin")) == ""


def test_so_does_one_that_pip_has_put_into_debians_own_python(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "s")
    (tmp_path / "lib" / "python3.11" / "dist-packages" / "the_server-1.2.3.dist-info").mkdir(parents=True)
    assert installed_version(SPEC, found(tmp_path / "bin")) == "1.2.3"


def test_debian_says_it_of_a_file_of_the_package_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "DPKG", str(tmp_path))
    path = program(tmp_path / "bin" / "s")
    (tmp_path / "info").mkdir()
    records = tmp_path / "info" / "s-deb.list"
    (tmp_path / "status").write_text("Package: a\nVersion: 9\n\nPackage: s-deb\nVersion: 1:0.5.0+ds-1\n\nPackage: z\n")
    records.write_text("/.\n/usr/bin/other\n")
    assert installed_version(SPEC, found(tmp_path / "bin")) == ""
    os.utime(path, (1, 1))
    records.write_text(f"/.\n{path}\n")
    assert installed_version(SPEC, found(tmp_path / "bin")) == "0.5.0+ds-1"


@pytest.mark.proves("A18.28")
def test_a_program_is_asked_last_and_once_in_no_project(tmp_path: Path) -> None:
    asking = ServerSpec("s", "S", ("x",), ("s",), FileRule((".x",)), RootRule(), version_args=("--version",))
    log = tmp_path / "log"
    path = program(tmp_path / "bin" / "s", f'#!/bin/sh\necho "$PWD $*" >> {log}\necho "s version 1.2.3 (x)"\n')
    assert installed_version(SPEC, found(tmp_path / "bin")) == ""
    assert [installed_version(asking, found(tmp_path / "bin")) for _ in range(3)] == ["1.2.3"] * 3
    assert log.read_text() == "/ --version\n"
    os.utime(path, (1, 1))
    assert installed_version(asking, found(tmp_path / "bin")) == "1.2.3"
    assert log.read_text() == "/ --version\n" * 2


def test_what_we_pin_is_what_was_shown() -> None:
    """`pilotfish install` must not install what is then withheld."""
    for spec in load().values():
        pinned = [name.rpartition("@")[2] for name in spec.install.get("npm", ())[:1]]
        pinned += [name.rpartition("==")[2] for name in spec.install.get("pip", ())[:1]]
        if spec.shown is not None:
            assert [version for version in pinned if not is_between(version, spec.shown.first, spec.shown.last)] == []
