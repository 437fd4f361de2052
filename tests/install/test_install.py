"""`pilotfish install`: what it may run, what it leaves behind, and that what it installs is found."""

import base64
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pilotfish.errors import Bug, Refused, Unavailable
from pilotfish.model import AbsPath
from pilotfish.servers.catalogue import load
from pilotfish.servers.install import PINS, Bundle, ToolsFolder, bundles
from pilotfish.servers.locate import Lookup, ProgramFound, locate, tool_folders
from pilotfish.surfaces.install import install as verb
from pilotfish.surfaces.install import install_bundle, remove_bundle

pytestmark = pytest.mark.proves("REG-7")


# --- The pins -------------------------------------------------------------------------------------------------------


@pytest.mark.proves("T39", "T41")
@pytest.mark.parametrize(
    "bundle", {bundle.name: bundle for bundle in bundles().values()}.values(), ids=lambda one: one.name
)
def test_a_bundle_is_what_the_catalogue_names_and_every_package_has_a_hash(bundle: Bundle) -> None:
    manager = "pip" if bundle.source == "PyPI" else "npm"
    helpers = {name: package for spec in load().values() for name, package in spec.helpers.items()}
    for server, program in bundle.programs.items():
        if server in helpers:
            assert (program, bundle.asked) == (server, (helpers[server],))
            continue
        spec = load()[server]
        assert (spec.command[0], spec.install[manager]) == (program, bundle.asked)
    names = [package.partition("==")[0] for package in bundle.wheels]
    assert len(names) == len(set(names)), "pip installs one version of a package"
    for package, digests in bundle.wheels.items():
        assert re.fullmatch(r"[\w.\-]+==[\w.\-]+", package)
        assert digests
        assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in digests)
    packages: Any = bundle.lock.get("packages", {})
    for name, package in packages.items():
        assert not name or package["integrity"].startswith("sha512-"), name
        assert "resolved" not in package


def test_no_pin_names_a_registry() -> None:
    assert [file.name for file in Path(PINS).glob("*.json") if "://" in file.read_text()] == []


# --- Folders and links ----------------------------------------------------------------------------------------------


def bundle_of(name: str = "toy", **changes: Any) -> Bundle:
    usual: dict[str, Any] = {
        "programs": {"toy": "toy-server"},
        "asked": ("toy==1.0",),
        "wheels": {"toy==1.0": ("0" * 64,)},
        "lock": {},
        "digest": "aaaa",
    }
    return Bundle(name, **{**usual, **changes})


def put(tools: ToolsFolder, bundle: Bundle, name: str = "toy-server") -> Path:
    """As if it were installed."""
    program = Path(tools.programs(bundle)) / name
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    tools.link(bundle)
    return program


def test_another_version_takes_over_the_links_and_the_old_one_goes(tmp_path: Path) -> None:
    tools, old, new = ToolsFolder(AbsPath(str(tmp_path))), bundle_of(), bundle_of(digest="bbbb")
    put(tools, old)
    assert tools.is_installed(old)
    assert (tools.is_installed(new), tools.has_any(new)) == (False, True)
    program = put(tools, new)
    tools.remove(new, but=tools.folder(new))
    assert (tools.is_installed(new), tools.is_installed(old)) == (True, False)
    assert os.path.realpath(os.path.join(tools.bin, "toy-server")) == os.path.realpath(program)
    assert os.listdir(tmp_path / "tools/servers") == [new.folder]


@pytest.mark.proves("PLAT-1")
@pytest.mark.parametrize(
    ("source", "file"),
    [
        pytest.param({}, "toy-server.exe", id="PyPI"),
        pytest.param({"wheels": {}, "lock": {"packages": {}}}, "toy-server.cmd", id="npm"),
    ],
)
def test_on_windows_a_script_leads_to_the_program_and_what_is_found_is_the_program(
    source: dict[str, Any], file: str, tmp_path: Path
) -> None:
    """Npm's packages are found beside it."""
    tools, old = windows_tools(tmp_path), bundle_of(**source)
    put(tools, old, file)
    assert (tools.is_installed(old), os.listdir(tools.bin)) == (True, ["toy-server.cmd"])
    new = bundle_of(**source, digest="bbbb")
    program = put(tools, new, file)
    assert (tools.is_installed(old), tools.is_installed(new)) == (False, True)
    lookup = Lookup((), trusted=False, path=(), tools=tool_folders(tools.state), suffixes=tools.suffixes)
    found = locate("toy-server", AbsPath(str(tmp_path)), lookup)
    assert isinstance(found, ProgramFound)
    assert found.path == str(program)
    assert tools.remove(new, but=tools.folder(new))
    assert tools.is_installed(new)
    assert remove_bundle(new, tools)
    assert os.listdir(tools.bin) == []


@pytest.mark.proves("PLAT-1")
def test_on_windows_what_is_no_script_of_ours_is_nothing_that_we_installed(tmp_path: Path) -> None:
    tools = windows_tools(tmp_path)
    put(tools, bundle_of(), "toy-server.exe")
    for content in (b'@"%~dp0x.exe" %*\r\nsecond line', b"\xff", b""):
        Path(tools.bin, "toy-server.cmd").write_bytes(content)
        assert not tools.is_installed(bundle_of())


@pytest.mark.proves("PLAT-1")
def test_on_windows_a_server_that_runs_is_not_said_to_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are locked there."""
    tools = windows_tools(tmp_path)
    put(tools, bundle_of(), "toy-server.exe")

    def locked(_path: str, *, ignore_errors: bool) -> None:
        assert ignore_errors

    monkeypatch.setattr(shutil, "rmtree", locked)
    with pytest.raises(Unavailable, match="toy is running"):
        remove_bundle(bundle_of(), tools)


def windows_tools(folder: Path) -> ToolsFolder:
    return ToolsFolder(AbsPath(str(folder)), (".exe", ".cmd"))


def test_removing_takes_the_links_along_and_leaves_those_of_others(tmp_path: Path) -> None:
    tools, mine = ToolsFolder(AbsPath(str(tmp_path))), bundle_of()
    put(tools, mine)
    other = put(tools, bundle_of("toy-other", programs={"toy": "toy-server"}))
    assert remove_bundle(mine, tools)
    assert os.path.realpath(os.path.join(tools.bin, "toy-server")) == os.path.realpath(other)
    assert not remove_bundle(mine, tools)


# --- Installing, from packages made here ------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path) -> dict[str, str]:
    """An environment whose package managers see nothing but `shop`."""
    shop = tmp_path / "shop"
    shop.mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(shop),
        "npm_config_cache": str(tmp_path / "npm-cache"),
        "npm_config_registry": "http://127.0.0.1:9/",
        "npm_config_fetch_retries": "0",
    }


def wheel(shop: Path, *, name: str = "toy-1.0-py3-none-any.whl") -> str:
    """A package with one program; returns its hash."""
    record = "toy.py,,\ntoy-1.0.dist-info/METADATA,,\ntoy-1.0.dist-info/WHEEL,,\ntoy-1.0.dist-info/entry_points.txt,,\n"
    with zipfile.ZipFile(shop / name, "w") as archive:
        archive.writestr("toy.py", "def main(): print('toy speaks')\n")
        archive.writestr("toy-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
        archive.writestr(
            "toy-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("toy-1.0.dist-info/entry_points.txt", "[console_scripts]\ntoy-server = toy:main\n")
        archive.writestr("toy-1.0.dist-info/RECORD", record + "toy-1.0.dist-info/RECORD,,\n")
    return hashlib.sha256((shop / name).read_bytes()).hexdigest()


def node_package(shop: Path) -> dict[str, Any]:
    """A package with one program and an install script; returns npm's lock of it."""
    manifest = {
        "name": "toy",
        "version": "1.0.0",
        "bin": {"toy-server": "toy.js"},
        "scripts": {"preinstall": f"touch {shop}/pwned", "postinstall": f"touch {shop}/pwned"},
    }
    file = shop / "toy.tgz"
    with tarfile.open(file, "w:gz") as archive:
        for name, text in {"package.json": json.dumps(manifest), "toy.js": "#!/usr/bin/env node\n"}.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mode = len(text), 0o755
            archive.addfile(entry, io.BytesIO(text.encode()))
    digest = base64.b64encode(hashlib.sha512(file.read_bytes()).digest()).decode()
    package = {
        "version": "1.0.0",
        "resolved": f"file:{file}",
        "integrity": f"sha512-{digest}",
        "hasInstallScript": True,
        "bin": {"toy-server": "toy.js"},
    }
    return {
        "lockfileVersion": 3,
        "packages": {"": {"dependencies": {"toy": f"file:{file}"}}, "node_modules/toy": package},
    }


def nothing(_share: float) -> None:
    """Nobody looks at the bar."""


def is_clean(tools: ToolsFolder) -> bool:
    servers = Path(tools.state) / "tools" / "servers"
    return not (servers.exists() and list(servers.iterdir())) and not os.path.exists(tools.bin)


def test_a_wheel_is_installed_linked_found_and_runs(tmp_path: Path, here: dict[str, str]) -> None:
    tools = ToolsFolder(AbsPath(str(tmp_path / "state")))
    links = {"lib/beside/toy.py": "lib/python*/site-packages/toy.py"}
    bundle = bundle_of(wheels={"toy==1.0": (wheel(tmp_path / "shop"),)}, links=links)
    shares: list[float] = []
    install_bundle(bundle, tools, here, shares.append)
    assert shares[-1] == 1.0
    assert shares == sorted(shares)
    lookup = Lookup((AbsPath(str(tmp_path / "workspace")),), trusted=False, path=(), tools=tool_folders(tools.state))
    found = locate("toy-server", AbsPath(str(tmp_path / "workspace")), lookup)
    assert isinstance(found, ProgramFound)
    assert found.path == os.path.join(tools.bin, "toy-server")
    assert subprocess.run([found.path], capture_output=True, text=True, check=True).stdout == "toy speaks\n"
    python = os.path.join(tools.folder(bundle), "bin", "python")
    assert os.path.realpath(python) == os.path.realpath(sys.executable)
    assert "toy speaks" in Path(tools.folder(bundle), "lib/beside/toy.py").read_text()


@pytest.mark.proves("T39", "T40")
def test_a_wheel_with_another_hash_is_refused_and_nothing_stays(tmp_path: Path, here: dict[str, str]) -> None:
    tools = ToolsFolder(AbsPath(str(tmp_path / "state")))
    wheel(tmp_path / "shop")
    with pytest.raises(Refused, match=r"(?i)hash"):
        install_bundle(bundle_of(), tools, here, nothing)
    assert is_clean(tools)


@pytest.mark.proves("T39")
def test_a_package_that_would_have_to_be_built_is_refused(tmp_path: Path, here: dict[str, str]) -> None:
    source = tmp_path / "shop" / "toy-1.0.tar.gz"
    with tarfile.open(source, "w:gz") as archive:
        text = f"open({str(tmp_path / 'pwned')!r}, 'w')".encode()
        entry = tarfile.TarInfo("toy-1.0/setup.py")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    tools = ToolsFolder(AbsPath(str(tmp_path / "state")))
    with pytest.raises(Refused):
        install_bundle(bundle_of(wheels={"toy==1.0": (digest,)}), tools, here, nothing)
    assert not (tmp_path / "pwned").exists()
    assert is_clean(tools)


needs_npm = pytest.mark.skipif(shutil.which("npm") is None and os.environ.get("CI") != "true", reason="npm is not here")


@pytest.mark.proves("T39")
@needs_npm
def test_install_scripts_of_npm_packages_do_not_run(tmp_path: Path, here: dict[str, str]) -> None:
    tools = ToolsFolder(AbsPath(str(tmp_path / "state")))
    bundle = bundle_of(wheels={}, lock=node_package(tmp_path / "shop"))
    install_bundle(bundle, tools, here, nothing)
    assert tools.is_installed(bundle)
    assert not (tmp_path / "shop" / "pwned").exists()


@pytest.mark.proves("REG-7", "A14.23")
@needs_npm
@pytest.mark.parametrize("place", ["the root of the file system", "the home folder"])
def test_npm_is_found_wherever_the_person_stands(
    tmp_path: Path, here: dict[str, str], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    npm = tmp_path / "home" / "bin" / "npm"
    npm.parent.mkdir(parents=True)
    npm.symlink_to(shutil.which("npm") or "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir("/" if place == "the root of the file system" else tmp_path / "home")
    tools = ToolsFolder(AbsPath(str(tmp_path / "state")))
    bundle = bundle_of(wheels={}, lock=node_package(tmp_path / "shop"))
    install_bundle(bundle, tools, {**here, "PATH": f"{npm.parent}:{here['PATH']}"}, nothing)
    assert tools.is_installed(bundle)


@pytest.mark.proves("T39", "T40")
@needs_npm
def test_an_npm_package_with_another_hash_is_refused_and_nothing_stays(tmp_path: Path, here: dict[str, str]) -> None:
    tools, lock = ToolsFolder(AbsPath(str(tmp_path / "state"))), node_package(tmp_path / "shop")
    lock["packages"]["node_modules/toy"]["integrity"] = f"sha512-{base64.b64encode(bytes(64)).decode()}"
    with pytest.raises(Refused, match=r"(?i)integrity"):
        install_bundle(bundle_of(wheels={}, lock=lock), tools, here, nothing)
    assert is_clean(tools)


@pytest.mark.proves("A17.8")
def test_a_machine_that_is_offline_is_told_so(tmp_path: Path, here: dict[str, str]) -> None:
    away = {**here, "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "1", "PIP_FIND_LINKS": ""}
    del away["PIP_NO_INDEX"]
    tools = ToolsFolder(AbsPath(str(tmp_path / "state")))
    with pytest.raises(Unavailable, match="offline"):
        install_bundle(bundle_of(), tools, away, nothing)
    assert is_clean(tools)


@needs_npm
def test_and_so_it_is_for_npm(tmp_path: Path, here: dict[str, str]) -> None:
    lock = node_package(tmp_path / "shop")
    del lock["packages"]["node_modules/toy"]["resolved"]
    lock["packages"][""]["dependencies"]["toy"] = "1.0.0"
    tools = ToolsFolder(AbsPath(str(tmp_path / "state")))
    with pytest.raises(Unavailable, match="offline"):
        install_bundle(bundle_of(wheels={}, lock=lock), tools, here, nothing)
    assert is_clean(tools)


def test_a_machine_without_npm_is_told_what_to_install(tmp_path: Path, here: dict[str, str]) -> None:
    tools = ToolsFolder(AbsPath(str(tmp_path / "state")))
    with pytest.raises(Unavailable, match="npm is not installed"):
        install_bundle(
            bundle_of(wheels={}, lock={"packages": {"": {}}}), tools, {**here, "PATH": str(tmp_path)}, nothing
        )
    assert is_clean(tools)


@pytest.mark.proves("T40", "P2")
def test_what_is_interrupted_leaves_the_version_before_it(tmp_path: Path, here: dict[str, str]) -> None:
    tools, old = ToolsFolder(AbsPath(str(tmp_path / "state"))), bundle_of(digest="old")
    put(tools, old)
    new = bundle_of(wheels={"toy==1.0": (wheel(tmp_path / "shop"),)}, programs={"toy": "toy-server", "lacks": "absent"})
    with pytest.raises(Bug, match="absent"):
        install_bundle(new, tools, here, nothing)
    assert tools.is_installed(old)
    assert os.listdir(tmp_path / "state/tools/servers") == [old.folder]


# --- The verb ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PILOTFISH_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_list_has_every_server_that_can_be_installed(user: Path) -> None:
    rows = json.loads(CliRunner().invoke(verb, ["--list", "--json"]).output)
    assert [row["id"] for row in rows] == sorted(bundles())
    assert {row["state"] for row in rows} == {""}
    assert "basedpyright==1.40.2" in CliRunner().invoke(verb, ["--list"]).output


@pytest.mark.parametrize(
    ("server", "hint"),
    [
        pytest.param("gopls", "Install it with: go install", id="by hand"),
        pytest.param("basedpyrigth", "Did you mean basedpyright?", id="mistyped"),
    ],
)
def test_what_cannot_be_installed_says_what_to_do_instead(user: Path, server: str, hint: str) -> None:
    failed = CliRunner().invoke(verb, [server]).exception
    assert isinstance(failed, Refused)
    assert (failed.hint or "").startswith(hint)


def test_what_a_server_needs_besides_is_said_when_it_is_installed(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    tools, bundle = ToolsFolder(AbsPath(str(user / "state"))), bundles()["bash"]
    programs = Path(tools.programs(bundle))
    programs.mkdir(parents=True)
    for program in bundle.programs.values():
        (programs / program).touch(0o755)
    tools.link(bundle)
    said = CliRunner().invoke(verb, ["bash"]).output
    step = "pilotfish install shellcheck" if "shellcheck" in bundles() else "install it, too"
    needed = f"bash needs shellcheck for nearly all diagnostics: {step}"
    assert said.splitlines() == ["bash: already installed", needed]
    (Path(tools.bin) / "shellcheck").touch(0o755)
    assert CliRunner().invoke(verb, ["bash"]).output == "bash: already installed\n"


@pytest.mark.slow
@pytest.mark.parametrize("server", ["ruff", pytest.param("vim", marks=needs_npm)])
def test_a_real_server_is_installed_and_removed(user: Path, server: str) -> None:
    done = CliRunner().invoke(verb, [server, "--json"])
    if isinstance(done.exception, Unavailable) and os.environ.get("CI") != "true":
        pytest.skip(str(done.exception))
    assert done.exit_code == 0, (done.output, done.exception)
    program = user / "state/tools/bin" / bundles()[server].programs[server]
    assert os.access(program, os.X_OK)
    assert "already installed" in CliRunner().invoke(verb, [server]).output
    assert "removed" in CliRunner().invoke(verb, ["--remove", server]).output
    assert not program.exists()


PLANTED = {
    ".npmrc": "script-shell={run}\nignore-scripts=false\nnode-options=--require {folder}/evil.js\n",
    "pip.conf": "[global]\nindex-url = http://127.0.0.1:9/\nno-binary = :all:\n",
    "setup.cfg": "[install]\nprefix = {folder}/elsewhere\n",
    "pyproject.toml": '[tool.uv]\nindex-url = "http://127.0.0.1:9/"\n[tool.uv.pip]\nno-binary = [":all:"]\n',
    "uv.toml": 'index-url = "http://127.0.0.1:9/"\n',
    "evil.js": "require('fs').writeFileSync('{ran}', '')\n",
    **dict.fromkeys(("sitecustomize.py", "usercustomize.py", "pip.py", "venv.py", "json.py"), "open('{ran}', 'w')\n"),
    **dict.fromkeys(("npm", "node", "uv", "pip", "python", "sh", "run"), "#!/bin/sh\n: > '{ran}'\n"),
}


@pytest.mark.proves("T39", "T43", "A17.7")
@pytest.mark.parametrize("installer", ["pip", pytest.param("npm", marks=needs_npm)])
def test_nothing_of_the_folder_where_the_person_stands_runs_or_steers(
    tmp_path: Path, here: dict[str, str], monkeypatch: pytest.MonkeyPatch, installer: str
) -> None:
    hostile, ran = tmp_path / "hostile", tmp_path / "ran"
    hostile.mkdir()
    for name, text in PLANTED.items():
        (hostile / name).write_text(text.format(run=hostile / "run", folder=hostile, ran=ran))
        (hostile / name).chmod(0o755)
    monkeypatch.chdir(hostile)
    tools = ToolsFolder(AbsPath(str(tmp_path / "state")))
    if installer == "pip":
        bundle = bundle_of(wheels={"toy==1.0": (wheel(tmp_path / "shop"),)})
    else:
        bundle = bundle_of(wheels={}, lock=node_package(tmp_path / "shop"))
    misled = {"PATH": f".:{hostile}:{here['PATH']}", "PYTHONPATH": ".", "NODE_PATH": ".", "PIP_CONFIG_FILE": "pip.conf"}
    install_bundle(bundle, tools, {**here, **misled}, nothing)
    assert tools.is_installed(bundle)
    assert not ran.exists()
    assert {entry.name for entry in hostile.iterdir()} == PLANTED.keys()
    subprocess.run([sys.executable, "-c", ""], env={"PYTHONPATH": "."}, check=True)
    assert ran.exists(), "the trap works for a program that searches the folder"
