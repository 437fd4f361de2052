"""What a project asks for and a machine lacks, by the files of both."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from pilotfish.model import AbsPath
from pilotfish.servers.catalogue import load
from pilotfish.servers.toolchains import (
    is_empty_proxy,
    is_hollow,
    no_compile_database,
    no_node_packages,
    no_python_packages,
    old_go,
    with_toolchain,
)
from pilotfish.servers.tree import DiskTree

pytestmark = pytest.mark.proves("REG-6")

TREE = DiskTree()


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def folders(root: Path, *below: str) -> list[str]:
    return [str(root / name) for name in below] + [str(root)]


@pytest.mark.parametrize(
    ("files", "step"),
    [
        ({"uv.lock": "", "pyproject.toml": ""}, "uv sync"),
        ({"poetry.lock": ""}, "poetry install"),
        ({"requirements.txt": ""}, "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"),
        (
            {"pyproject.toml": "[project]\ndependencies = ['anyio']\n"},
            "python3 -m venv .venv && .venv/bin/pip install -e .",
        ),
        ({"pyproject.toml": "[project]\nname = 'a'\n"}, None),
        ({}, None),
    ],
    ids=["uv", "poetry", "requirements", "pyproject", "nothing to install", "scripts"],
)
def test_the_packages_of_python_are_installed_as_the_project_says(
    files: dict[str, str], step: str | None, tmp_path: Path
) -> None:
    for name, text in files.items():
        write(tmp_path / name, text)
    assert no_python_packages(folders(tmp_path), TREE).step == step


@pytest.mark.parametrize(
    ("files", "step"),
    [
        (("uv.lock", "pyproject.toml"), "python3 -m venv .venv && .venv/bin/pip install -e ."),
        (("uv.lock",), "uv sync"),
    ],
    ids=["another way", "no other way"],
)
def test_a_step_is_one_that_this_machine_can_take(files: tuple[str, ...], step: str, tmp_path: Path) -> None:
    for name in files:
        write(tmp_path / name, "[project]\ndependencies = ['anyio']\n")
    assert no_python_packages(folders(tmp_path), TREE, lambda program: program != "uv").step == step


def test_a_package_in_a_folder_is_installed_there(tmp_path: Path) -> None:
    write(tmp_path / "a b" / "uv.lock")
    found = no_python_packages(folders(tmp_path, "a b"), TREE)
    assert str(found).endswith("Next: cd 'a b' && uv sync")


def test_node_packages_are_missed_until_they_are_there(tmp_path: Path) -> None:
    write(tmp_path / "package.json", '{"devDependencies": {"vite": "1"}}')
    missing = no_node_packages(folders(tmp_path), TREE)
    assert missing is not None
    assert missing.step == "npm install"
    write(tmp_path / "pnpm-lock.yaml")
    assert getattr(no_node_packages(folders(tmp_path), TREE), "step", None) == "pnpm install"
    (tmp_path / "node_modules").mkdir()
    assert no_node_packages(folders(tmp_path), TREE) is None


def test_a_package_that_depends_on_nothing_has_nothing_to_install(tmp_path: Path) -> None:
    write(tmp_path / "package.json", '{"name": "a"}')
    missing = no_node_packages(folders(tmp_path), TREE)
    assert missing is not None
    assert missing.step is None


def test_c_needs_a_compile_database(tmp_path: Path) -> None:
    write(tmp_path / "CMakeLists.txt")
    missing = no_compile_database(folders(tmp_path, "src"), TREE)
    assert missing is not None
    assert (missing.step, missing.hides_uses) == ("cmake -B build -DCMAKE_EXPORT_COMPILE_COMMANDS=ON", True)
    write(tmp_path / "build" / "compile_commands.json", "[]")
    assert no_compile_database(folders(tmp_path, "src"), TREE) is None


@pytest.mark.parametrize(
    ("asked", "is_old"), [("1.26", True), ("1.19", False), ("1.9", False)], ids=["newer", "same", "older"]
)
def test_go_is_compared_with_what_the_module_asks_for(asked: str, *, is_old: bool, tmp_path: Path) -> None:
    write(tmp_path / "go.mod", f"module example.com/a\n\ngo {asked}\n")
    write(tmp_path / "go" / "VERSION", "go1.19.8")
    write(tmp_path / "go" / "bin" / "go")
    found = old_go(folders(tmp_path), TREE, AbsPath(str(tmp_path / "go" / "bin" / "go")))
    assert (found is not None) == is_old
    if found is not None:
        assert found.what.startswith("go.mod asks for Go 1.26, and Go 1.19 is installed")


@pytest.mark.parametrize(
    ("asked", "setting", "downloads", "result"),
    [
        ("1.26", "auto", False, "go.mod asks for Go 1.26, and Go 1.22 is installed, which checks nothing of it."),
        (
            "1.22.12",
            "auto",
            False,
            "go.mod asks for Go 1.22.12, and Go 1.22.10 is installed, which checks nothing of it.",
        ),
        ("1.26", "local", True, "go.mod asks for Go 1.26, and Go 1.22 is installed, which checks nothing of it."),
        ("1.26", "auto", True, None),
        ("1.22", "local", False, None),
    ],
    ids=["not trusted", "patch", "by its settings", "it downloads", "new enough"],
)
def test_a_go_that_refuses_newer_modules_blocks(
    asked: str, setting: str, *, downloads: bool, result: str | None, tmp_path: Path
) -> None:
    write(tmp_path / "go.mod", f"module example.com/a\n\ngo {asked}\n")
    write(tmp_path / "go" / "VERSION", "go1.22.10")
    write(tmp_path / "go" / "go.env", f"GOTOOLCHAIN={setting}\n")
    write(tmp_path / "go" / "bin" / "go")
    found = old_go(folders(tmp_path), TREE, AbsPath(str(tmp_path / "go" / "bin" / "go")), downloads=downloads)
    assert (found and found.what) == result
    assert found is None or found.blocks


def test_a_proxy_of_rustup_without_its_component_is_empty(tmp_path: Path) -> None:
    write(tmp_path / "bin" / "rustup")
    for name in ("rust-analyzer", "cargo"):
        (tmp_path / "bin" / name).symlink_to("rustup")
    write(tmp_path / "rustup" / "settings.toml", 'default_toolchain = "stable"\n')
    write(tmp_path / "rustup" / "toolchains" / "stable" / "bin" / "cargo")
    variables = {"RUSTUP_HOME": str(tmp_path / "rustup")}

    def is_empty(name: str) -> bool:
        return is_empty_proxy(AbsPath(str(tmp_path / "bin" / name)), variables)

    assert [is_empty("rust-analyzer"), is_empty("cargo"), is_empty("rustup")] == [True, False, False]
    write(tmp_path / "rustup" / "toolchains" / "stable" / "bin" / "rust-analyzer")
    assert not is_empty("rust-analyzer")


def test_a_proxy_of_rustup_without_a_toolchain_is_empty(tmp_path: Path) -> None:
    write(tmp_path / "bin" / "rustup")
    (tmp_path / "bin" / "rust-analyzer").symlink_to("rustup")
    variables = {"HOME": str(tmp_path)}
    add = "rustup component add rust-analyzer"
    assert is_empty_proxy(AbsPath(str(tmp_path / "bin" / "rust-analyzer")), variables)
    assert with_toolchain(add, variables) == f"rustup default stable && {add}"
    assert with_toolchain("brew install rust-analyzer", variables) == "brew install rust-analyzer"
    write(tmp_path / ".rustup" / "toolchains" / "stable" / "bin" / "rust-analyzer")
    assert with_toolchain(add, variables) == add
    assert not is_empty_proxy(AbsPath(str(tmp_path / "bin" / "rust-analyzer")), variables)


@pytest.mark.parametrize("place", ["usr/share/perl5", "usr/local/share/perl/5.36.0", "me/perl5/lib/perl5"])
def test_an_interpreter_without_the_module_is_no_server(place: str, tmp_path: Path) -> None:
    spec, environment = load()["perl-languageserver"], {"HOME": str(tmp_path / "me")}
    write(tmp_path / "usr" / "bin" / "perl")
    program = AbsPath(str(tmp_path / "usr" / "bin" / "perl"))
    assert is_hollow(spec, program, environment)
    assert not is_hollow(replace(spec, rank=replace(spec.rank, named=True)), program, environment)
    write(tmp_path / place / "Perl" / "LanguageServer.pm")
    assert not is_hollow(spec, program, environment)
