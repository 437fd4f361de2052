"""What `tools/package.py` publishes, and the marketplace that Claude Code reads from the repository."""

import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from support.servers.real import REPOSITORY

pytestmark = pytest.mark.proves("DOCS-1")

ADDRESS = "https://example.org/you/pilotfish"


@pytest.mark.slow
def test_all_packages_are_built_by_one_command(tmp_path: Path) -> None:
    argv = [sys.executable, str(REPOSITORY / "tools/package.py"), "--repository", ADDRESS, "--out", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    wheel = zipfile.ZipFile(next(tmp_path.glob("*.whl")))
    metadata = wheel.read(next(name for name in wheel.namelist() if name.endswith("/METADATA"))).decode()
    assert f"Project-URL: Source, {ADDRESS}\n" in metadata
    page = metadata.partition("\n\n")[2]
    assert [target for target in re.findall(r"\]\(([^)]+)\)", page) if "://" not in target] == []
    assert f"git clone {ADDRESS}`" in page
    for host in ("pi", "opencode"):
        with tarfile.open(next(tmp_path.glob(f"pilotfish-{host}-*.tgz"))) as archive:
            names = set(archive.getnames())
        assert {"package/package.json", "package/pilotfish.ts", "package/LICENSE"} == names


def test_every_python_that_is_tried_is_named() -> None:
    workflow = (REPOSITORY / ".github/workflows/check.yml").read_text()
    (tried,) = re.findall(r"python: \[(.+)\]", workflow)
    named = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["classifiers"]
    assert {f"Programming Language :: Python :: {version}" for version in re.findall(r"[\d.]+", tried)} <= set(named)


def test_the_marketplace_names_the_plugin_that_is_there() -> None:
    marketplace = json.loads((REPOSITORY / ".claude-plugin/marketplace.json").read_text())
    (plugin,) = marketplace["plugins"]
    manifest = REPOSITORY / plugin["source"] / ".claude-plugin" / "plugin.json"
    assert json.loads(manifest.read_text())["name"] == plugin["name"]
