"""What the plugins have in common: one text for the daemon, imports that every host has, and types that fit its own."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from pilotfish.hosts.shared.hook_settings import read_plugin
from support.hosts.real import HOSTS, program
from support.servers.real import REPOSITORY

PLUGINS = ("pi", "opencode")

COMPILER = REPOSITORY / ".tools" / "npm" / "node_modules" / "typescript" / "bin" / "tsc"
STRICT = {
    "strict": True,
    "noEmit": True,
    "target": "ES2023",
    "module": "Preserve",
    "moduleResolution": "Bundler",
    "skipLibCheck": True,
    "noUncheckedIndexedAccess": True,
    "noUnusedLocals": True,
    "noUnusedParameters": True,
    "verbatimModuleSyntax": True,
    # What node itself can strip: the file is never compiled.
    "erasableSyntaxOnly": True,
    "types": ["node"],
    "typeRoots": [str(HOSTS / "pi-0.73" / "node_modules" / "@types")],
}


def test_every_plugin_has_the_same_client_of_the_daemon() -> None:
    shared = {read_plugin(plugin).partition("// --- The daemon -")[2] for plugin in PLUGINS}
    assert len(shared) == 1
    assert "class Daemon" in shared.pop()


@pytest.mark.parametrize(
    ("plugin", "exported"), [("pi", "default function pilotfish"), ("opencode", "const Pilotfish")]
)
def test_a_plugin_exports_itself_and_nothing_else(plugin: str, exported: str) -> None:
    exports = re.findall(r"^export (.*)$", read_plugin(plugin), re.MULTILINE)
    assert len(exports) == 1
    assert exports[0].startswith(exported)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_plugin_imports_types_and_what_node_has(plugin: str) -> None:
    imports = re.findall(r'^import (type )?.* from "(.*)";$', read_plugin(plugin), re.MULTILINE)
    assert len(imports) == len(re.findall(r"^import\b|\bimport\(|\brequire\(", read_plugin(plugin), re.MULTILINE))
    assert {module for is_type, module in imports if not is_type and not module.startswith("node:")} == set()


@pytest.mark.timeout(300)  # the compiler reads all that the hosts declare
@pytest.mark.parametrize(
    ("plugin", "host", "package"),
    [
        pytest.param("pi", "pi", "@earendil-works/pi-coding-agent", marks=pytest.mark.host("pi", "pi-0.73")),
        pytest.param("pi", "pi-0.73", "@mariozechner/pi-coding-agent", marks=pytest.mark.host("pi-0.73")),
        pytest.param("opencode", "opencode", "@opencode-ai/plugin", marks=pytest.mark.host("opencode", "pi-0.73")),
    ],
)
def test_a_plugin_fits_the_types_of_its_host(plugin: str, host: str, package: str, tmp_path: Path) -> None:
    types = HOSTS / host / "node_modules" / package / "dist" / "index.d.ts"
    assert types.exists()
    named = "@mariozechner/pi-coding-agent" if plugin == "pi" else package
    options = {**STRICT, "paths": {named: [str(types)]}}
    files = [str(tmp_path / "pilotfish.ts")]
    (tmp_path / "pilotfish.ts").write_text(read_plugin(plugin))
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "files": files}))
    command = [program("node"), str(COMPILER), "--project", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
