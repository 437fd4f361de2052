"""Every way to install it, from what was built alone: each file runs, and each recipe names its bytes."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotfish.servers.catalogue import load
from pilotfish.version import VERSION
from support.servers.real import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.proves("PLAT-2")]

RECIPES = tomllib.loads((REPOSITORY / "packaging" / "channels.toml").read_text())["recipes"]
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


def run(argv: list[str | Path], home: Path, path: str = SYSTEM_PATH) -> subprocess.CompletedProcess[str]:
    environment = {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8"}
    return subprocess.run(argv, capture_output=True, text=True, env=environment, cwd=home, check=False)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_clone_without_an_address_makes_the_one_file(tmp_path: Path) -> None:
    """As the page about installing has it: no address, no dated changelog, no tag."""
    tool = [sys.executable, REPOSITORY / "tools/package.py", "--out", tmp_path / "dist"]
    done = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stdout + done.stderr
    shown = run([sys.executable, tmp_path / "dist" / "pilotfish.pyz", "--version"], tmp_path)
    assert shown.stdout == f"pilotfish {VERSION}\n"
    kinds = sorted(path.suffix for path in (tmp_path / "dist").iterdir())
    assert kinds == [".gz", ".pyz", ".whl"], "what is for Windows alone is published with the rest"


@pytest.mark.parametrize("name", ["pilotfish.pyz", "pilotfish.exe"])
def test_one_file_is_the_whole_program(name: str, dist: Path, tmp_path: Path) -> None:
    """The program for Windows is the same archive behind another launcher, and so runs here too."""
    home = tmp_path / "a home with spaces"
    home.mkdir()
    for words, said in ((["--version"], f"pilotfish {VERSION}\n"), (["servers"], f"{len(load())} servers, ")):
        done = run([sys.executable, dist / name, *words], home)
        assert (done.returncode, said in done.stdout) == (0, True), done.stderr
    program = home / ".local" / "state" / "pilotfish" / "program"
    # What `setup` connects agents to, the panel and the live page.
    done = run([program / "bin" / "python", "-c", "import mcp, textual, starlette, uvicorn"], home)
    assert not done.returncode, done.stderr
    assert run([program / "bin" / "pilotfish", "--version"], home).stdout == f"pilotfish {VERSION}\n"
    shown = run([sys.executable, dist / name, "setup", "claude-code", "--dry-run"], home).stdout
    assert f"'{program}/bin/python' -I -S '{program}/share/pilotfish/hook.py'" in shown


def test_another_archive_replaces_the_one_that_was_unpacked(dist: Path, tmp_path: Path) -> None:
    program = tmp_path / ".local" / "state" / "pilotfish" / "program"
    (program / "bin").mkdir(parents=True)
    (program / "bundle").write_text("an older one")
    (program / "bin" / "python").write_text("")
    assert run([sys.executable, dist / "pilotfish.pyz", "--version"], tmp_path).stdout == f"pilotfish {VERSION}\n"
    assert [path.name for path in program.parent.iterdir()] == ["program"]


def test_the_npm_package_installs_without_a_network_and_finds_a_python(dist: Path, tmp_path: Path) -> None:
    package = dist / f"pilotfish-{VERSION}.tgz"
    environment = {**os.environ, "HOME": str(tmp_path), "npm_config_cache": str(tmp_path / "cache")}
    argv = ["npm", "install", "--offline", "--no-audit", "--no-fund", "--prefix", str(tmp_path / "npm"), str(package)]
    subprocess.run(argv, check=True, capture_output=True, env=environment)
    program = tmp_path / "npm" / "node_modules" / ".bin" / "pilotfish"
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("node", "env"):
        (programs / name).symlink_to(str(shutil.which(name)))
    without = run([program, "--version"], tmp_path, str(programs))
    assert (without.returncode, "This brings one: " in without.stderr) == (3, True)
    (programs / "python3.12").symlink_to("/bin/false")
    (programs / "python3.11").symlink_to(sys.executable)
    assert run([program, "--version"], tmp_path, str(programs)).stdout == f"pilotfish {VERSION}\n"
    refused = run([program, "no-such-verb"], tmp_path, str(programs))
    assert (refused.returncode, "No such command" in refused.stderr) == (3, True)


def read(dist: Path, name: str) -> Any:
    text = (dist / "recipes" / RECIPES[name]).read_text()
    match name.rpartition(".")[2]:
        case "json":
            return json.loads(text)
        case "yaml":
            return yaml.safe_load(text)
        case _:
            return text


def test_no_recipe_leaves_a_name_open_and_all_name_this_version(dist: Path) -> None:
    assert set(RECIPES) == {path.name for path in (REPOSITORY / "packaging" / "recipes").iterdir()}
    for target in RECIPES.values():
        text = (dist / "recipes" / target).read_text()
        assert not re.search(r"@[\w.]+@", text)
        assert VERSION in text


def test_recipes_name_the_files_that_were_built_by_their_hashes(dist: Path) -> None:
    archive, source = digest(dist / "pilotfish.pyz"), digest(next(dist.glob("*.tar.gz")))
    scoop: Mapping[str, str] = read(dist, "scoop.json")
    assert (scoop["hash"], scoop["url"].endswith("/pilotfish.pyz#/pilotfish.py")) == (archive, True)
    (installer,) = read(dist, "winget.installer.yaml")["Installers"]
    assert installer["InstallerSha256"] == digest(dist / "pilotfish.exe").upper()
    assert {read(dist, name)["ManifestType"] for name in RECIPES if name.startswith("winget")} == {
        "version",
        "installer",
        "defaultLocale",
    }
    assert f'sha256 "{archive}"' in read(dist, "homebrew.rb")
    assert f'hash = "sha256-{b64encode(bytes.fromhex(source)).decode()}"' in read(dist, "package.nix")
    assert f"\tsha256sums = {source}\n" in read(dist, "SRCINFO")
    (package,) = read(dist, "server.json")["packages"]
    assert package["fileSha256"] == digest(next(dist.glob("*.whl")))


def test_the_recipe_of_arch_is_a_script_that_says_the_same_as_its_summary(dist: Path) -> None:
    recipe = dist / "recipes" / RECIPES["PKGBUILD"]
    script = 'source "$1"; declare -F build package; echo "$pkgver ${depends[*]} ${sha256sums[*]}"'
    shown = subprocess.run(["bash", "-ec", script, "-", recipe], capture_output=True, text=True, check=True).stdout
    *functions, line = shown.splitlines()
    assert functions == ["build", "package"]
    version, *needed, source = line.split()
    summary = read(dist, "SRCINFO")
    assert version == VERSION
    assert needed == re.findall(r"\tdepends = (.+)", summary)
    assert [source] == re.findall(r"\tsha256sums = (.+)", summary)


def test_hashes_and_provenance_are_of_all_that_was_built(dist: Path) -> None:
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=dist, check=True)
    listed = {line.split("  ")[1] for line in (dist / "SHA256SUMS").read_text().splitlines()}
    made = {str(path.relative_to(dist)) for path in dist.rglob("*") if path.is_file()}
    assert made - listed == {"SHA256SUMS", "provenance.json"}
    statement = json.loads((dist / "provenance.json").read_text())
    assert {one["name"]: one["digest"]["sha256"] for one in statement["subject"]} == {
        name: digest(dist / name) for name in listed
    }
    source, *others = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert source["digest"] == {"gitCommit": head.stdout.strip()}
    assert {one["name"].partition("-")[0] for one in others} >= {"anyio", "click", "msgspec", "pip", "psutil"}


def test_the_sizes_that_are_written_are_those_of_what_is_built(dist: Path) -> None:
    """The archives for all systems are not built here, but there is a line for each."""
    written = tomllib.loads((REPOSITORY / "packaging" / "channels.toml").read_text())["sizes"]
    built = {pattern: max(dist.glob(pattern), key=os.path.getsize, default=None) for pattern in written}
    assert None not in built.values()
    of_all_systems = {"pilotfish.pyz", "pilotfish.exe", "pilotfish-[0-9]*.tgz"}
    sizes = {pattern: path.stat().st_size for pattern, path in built.items() if path and pattern not in of_all_systems}
    assert {pattern: size / written[pattern] for pattern, size in sizes.items()} == {
        pattern: pytest.approx(1, abs=0.25) for pattern in sizes
    }
    published = [path for path in dist.iterdir() if path.suffix in {".whl", ".gz", ".pyz", ".exe", ".tgz", ".zip"}]
    assert not [path for path in published if not any(path.match(pattern) for pattern in written)]


def test_what_is_said_of_every_channel_was_shown() -> None:
    """`run` only of what a test of this folder runs, and a recipe only where there is one."""
    channels = tomllib.loads((REPOSITORY / "packaging" / "channels.toml").read_text())
    rows = {one["name"]: one["shown"] for one in channels["channel"]}
    assert {name for name, shown in rows.items() if "run" in shown} == {"pip", "one file", "npm"}
    assert not {word for _, *elsewhere in rows.values() for word in elsewhere} & {"run", "once"}
    shown_by_wine = (REPOSITORY / "tests/package/channels_on_windows.py").read_text()
    assert {name for name, shown in rows.items() if "wine" in shown} == {"pip", "one file"}
    assert 'held("pip install pilotfish"' in shown_by_wine
    assert 'held("the one file"' in shown_by_wine
    recipes = {name.lower().split()[0] for name, shown in rows.items() if "recipe" in shown}
    others = {"claude", "codex"}
    assert recipes == {target.partition("/")[0] for target in RECIPES.values()} | others
    guide = (REPOSITORY / "docs" / "guide" / "install.md").read_text()
    explained = set(re.findall(r"^`(\w+)`: ", guide, re.MULTILINE))
    assert {word for shown in rows.values() for word in shown} - {"–"} == explained
    systems = {"linux", "darwin", "win32"}
    assert {name.partition("-")[0] for name in channels["platforms"]} == systems, "what the guide calls built"
