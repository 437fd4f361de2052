"""What is said about a server that is not there."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from pilotfish.model import AbsPath
from pilotfish.servers.catalogue import load
from pilotfish.servers.install import bundles, helper_command, install_command, unavailable
from pilotfish.servers.locate import Gated, ProgramMissing
from pilotfish.servers.spec import FileRule, Manager, RootRule, ServerSpec
from pilotfish.system import apt


def everything(_package: str) -> bool:
    return True


def spec(*managers: Manager) -> ServerSpec:
    install = dict.fromkeys(managers, ("pkg",))
    return ServerSpec("s", "S", ("x",), ("s-langserver",), FileRule((".x",)), RootRule(), install=install)


@pytest.mark.proves("REG-6")
@pytest.mark.parametrize(
    ("managers", "platform", "installed", "expected"),
    [
        (("npm", "pip"), "linux", "npm pip", "npm install --global pkg"),
        (("npm", "pip"), "linux", "pip", "pip install pkg"),
        (("npm", "pip"), "linux", "", "npm install --global pkg (needs npm, which is not installed)"),
        (("npm", "brew"), "darwin", "npm brew", "brew install pkg"),
        (("npm", "brew"), "darwin", "npm", "npm install --global pkg"),
        (("brew", "cargo"), "linux", "brew cargo", "cargo install --locked pkg"),
        (("apt", "pip"), "linux", "apt pip", "apt install pkg"),
        (("apt", "pip"), "darwin", "pip", "pip install pkg"),
        (("brew", "url"), "linux", "", "a download from pkg"),
        (
            ("brew", "cargo"),
            "linux",
            "",
            "cargo install --locked pkg (needs cargo, which is not installed)",
        ),
        (("brew",), "linux", "", None),
        (("brew",), "linux", "brew", "brew install pkg"),
        (("brew", "url"), "win32", "", "a download from pkg"),
        (("apt",), "win32", "", None),
        ((), "linux", "npm", None),
        (("go",), "linux", "go", "go install pkg@latest"),
        (("nix",), "linux", "nix", "nix profile install 'nixpkgs#pkg'"),
        (("rustup",), "linux", "rustup", "rustup component add pkg"),
        (("shell",), "linux", "", "pkg"),
    ],
)
def test_the_install_command_is_for_this_platform_and_what_is_on_it(
    managers: tuple[Manager, ...], platform: str, installed: str, expected: str | None
) -> None:
    assert install_command(spec(*managers), installed.split().__contains__, platform, everything) == expected


@pytest.mark.proves("REG-6")
@pytest.mark.parametrize(
    ("server", "installed", "offered", "expected"),
    [
        ("rust-analyzer", "apt rustup", "rust-analyzer", "rustup component add rust-analyzer rust-src"),
        ("rust-analyzer", "apt", "rust-analyzer", "apt install rust-analyzer"),
        (
            "rust-analyzer",
            "apt",
            "",
            "rustup component add rust-analyzer rust-src (needs rustup, which is not installed)",
        ),
        ("ruby-lsp", "apt", "ruby-ruby-lsp", "apt install ruby-ruby-lsp"),
        ("ruby-lsp", "apt", "ruby", "gem install ruby-lsp (needs gem, which is not installed)"),
        ("perlnavigator", "apt", "perlnavigator", "apt install perlnavigator"),
        ("perlnavigator", "apt", "perl", "a download from https://github.com/bscan/PerlNavigator/releases"),
    ],
)
def test_apt_is_named_only_where_its_lists_have_the_package(
    server: str, installed: str, offered: str, expected: str
) -> None:
    found = install_command(load()[server], installed.split().__contains__, "linux", offered.split().__contains__)
    assert found == expected


@pytest.mark.parametrize(
    ("lists", "names", "expected"),
    [
        pytest.param(["x_main_binary-arm64_Packages.lz4"], "bash\nclangd\n", False, id="not in the lists"),
        pytest.param(["x_main_binary-arm64_Packages"], "bash\nrust-analyzer\n", True, id="in the lists"),
        pytest.param(["lock"], "bash\n", True, id="no lists: only what is installed is known"),
        pytest.param(None, "", True, id="no apt"),
    ],
)
def test_the_lists_of_apt_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lists: list[str] | None, names: str, expected: bool
) -> None:
    folder, program = tmp_path / "lists", tmp_path / "apt-cache"
    if lists is not None:
        folder.mkdir()
        for name in lists:
            (folder / name).touch()
    program.write_text(f"#!/bin/sh\nprintf '{names}'\n")
    program.chmod(0o755)
    monkeypatch.setattr(apt, "LISTS", str(folder))
    monkeypatch.setattr(apt, "PROGRAM", str(program))
    assert apt.offers("rust-analyzer") is expected


@pytest.mark.proves("T47")
def test_no_variable_of_the_user_steers_apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "apt-cache"
    program.write_text("#!/bin/sh\nprintf '%s\\n' a \"$APT_CONFIG\"\n")
    program.chmod(0o755)
    (tmp_path / "x_Packages").touch()
    monkeypatch.setattr(apt, "LISTS", str(tmp_path))
    monkeypatch.setattr(apt, "PROGRAM", str(program))
    monkeypatch.setenv("APT_CONFIG", "evil.conf")
    assert apt.offers("a")
    assert not apt.offers("evil.conf")


@pytest.mark.proves("REG-6")
def test_every_server_of_the_catalogue_can_be_had_on_linux_and_macos() -> None:
    for each in load().values():
        for platform in ("linux", "darwin"):
            assert install_command(each, lambda _: False, platform, everything), (each.id, platform)


@pytest.mark.parametrize(
    ("server", "installed", "expected"),
    [
        pytest.param("basedpyright", "pip npm", "pilotfish install basedpyright", id="from PyPI"),
        pytest.param("svelte", "npm", "pilotfish install svelte", id="from npm"),
        pytest.param("svelte", "", "pilotfish install svelte (needs npm, which", id="from npm, which is not here"),
    ],
)
def test_what_pilotfish_installs_itself_comes_first(server: str, installed: str, expected: str) -> None:
    command = install_command(load()[server], installed.split().__contains__, "linux")
    assert str(command).startswith(expected)


@pytest.mark.parametrize(
    ("installed", "platform", "expected"),
    [
        ("apt brew", "linux", "apt install shellcheck"),
        ("apt brew", "darwin", "brew install shellcheck"),
        ("", "linux", None),
    ],
)
def test_a_program_that_servers_run_has_its_name_everywhere(
    installed: str, platform: str, expected: str | None
) -> None:
    ours = "pilotfish install shellcheck" if "shellcheck" in bundles() else None
    assert helper_command("shellcheck", installed.split().__contains__, platform, everything) == (ours or expected)
    assert helper_command("no-such-program", installed.split().__contains__, "linux", lambda _: False) in {
        None, "brew install no-such-program",
    }  # fmt: skip


def test_an_install_command_can_be_pasted_into_a_shell() -> None:
    of_extras = replace(spec(), install={"pip": ("server[all]==1.0",)})
    assert install_command(of_extras, lambda program: program == "pip", "linux") == "pip install 'server[all]==1.0'"


@pytest.mark.proves("REG-5", "REG-6", "F1")
def test_a_missing_server_is_named_with_the_way_to_install_it() -> None:
    text = unavailable(spec(), ProgramMissing("s-langserver", ()), "npm install --global pkg")
    assert text == 'LSP server "s-langserver" is not available.\nInstall it with: npm install --global pkg'
    assert (
        unavailable(spec(), ProgramMissing("s-langserver", ()), None) == 'LSP server "s-langserver" is not available.'
    )


@pytest.mark.proves("F1")
def test_a_program_that_cannot_run_is_not_called_missing() -> None:
    text = unavailable(spec(), ProgramMissing("s", (), AbsPath("/usr/bin/s")), "npm install --global pkg")
    assert text == 'LSP server "s-langserver" was found at /usr/bin/s and cannot be run: it is not an executable file.'


@pytest.mark.proves("TRUST-6")
def test_a_gated_program_is_named_with_the_reason() -> None:
    text = unavailable(spec(), Gated(AbsPath("/w/s"), "the workspace is not trusted"), None)
    assert text == 'LSP server "s-langserver" was found at /w/s and not started: the workspace is not trusted.'


BOOKWORM = frozenset(
    [
        "blueprint-compiler",
        "ccls",
        "clangd",
        "fortran-language-server",
        "gopls",
        "mlir-19-tools",
        "libperl-languageserver-perl",
        "python3-pylsp",
        "qt6-declarative-dev-tools",
    ]
)
"""What Debian 12 has of the packages that hints name."""

LATER = frozenset(["dart-sdk", "perlnavigator", "ruby-ruby-lsp", "rust-analyzer", "swiftlang", "texlab"])
"""What only a later Debian has (sid of 19 November 2026): named only where apt has it."""


@pytest.mark.proves("REG-6")
def test_every_package_that_a_hint_names_is_in_debian() -> None:
    named = {package for one in load().values() for package in one.install.get("apt", ())}
    assert named == BOOKWORM | LATER
    release = Path("/etc/os-release")
    if (
        release.is_file()
        and "bookworm" in release.read_text()
        and any("_main_" in one for one in os.listdir(apt.LISTS))
    ):
        assert {package for package in named if apt.offers(package)} == BOOKWORM
