"""Plugins that a `tsconfig.json` names where nobody trusts the workspace: tsserver loads none (T46).

A plugin that is loaded adds an error of its own to every file, so an answer shows whether its code ran.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from pilotfish.servers.locate import PLUGINS
from support.servers.real import require
from support.services.clean import write
from support.services.real import CLONE, only, real_service

TYPESCRIPT = CLONE / ".tools" / "npm" / "node_modules" / "typescript"
GUARD = Path(PLUGINS) / "tsserver" / "only_ours.cjs"

PLUGIN = """
module.exports = () => ({ create({ languageService: service }) {
  const before = service.getSemanticDiagnostics.bind(service);
  service.getSemanticDiagnostics = (name) => [...before(name), {
    file: service.getProgram().getSourceFile(name), start: 0, length: 1, category: 1, code: 1, messageText: "IT RAN",
  }];
  return service;
} });
"""

PLACES = {
    "beside": "node_modules/beside/index.js",
    "@scope/beside": "node_modules/@scope/beside/index.js",
    "inner/node_modules/deep": "node_modules/inner/node_modules/deep/index.js",
    "inner/a/file.js": "node_modules/inner/a/file.js",
    "own": "workspace/node_modules/own/index.js",
}
"""The name of a plugin → where it lies. TypeScript itself is in `node_modules` there."""


async def messages(folder: Path) -> list[str]:
    """What is said of a file with one error, in a project whose configuration names all of these plugins."""
    shutil.copytree(TYPESCRIPT, folder / "node_modules" / "typescript", ignore=shutil.ignore_patterns("??", "*-*"))
    for place in PLACES.values():
        write(folder / place, PLUGIN)
    options = {"strict": True, "plugins": [{"name": name} for name in PLACES]}
    write(folder / "workspace" / "tsconfig.json", json.dumps({"compilerOptions": options}))
    write(folder / "workspace" / "a.ts", 'export const x: number = "a";\n')
    async with real_service(folder, {**only("typescript"), "security": {}}) as real:
        answer = await real.service.check(real.client, ("a.ts",))
    return [one.message for found in (answer.data or {}).values() for one in found]


@pytest.mark.anyio
@pytest.mark.proves("T46")
async def test_no_plugin_that_a_project_names_is_loaded_untrusted(tmp_path: Path) -> None:
    require(["typescript"])
    assert await messages(tmp_path.resolve()) == ["Type 'string' is not assignable to type 'number'."]


LOADERS = ("tsserver.js", "_tsserver.js", "tsserverlibrary.js", "typescript.js")
"""The files of TypeScript that load plugins, by its version."""


@pytest.mark.parametrize("loader", [*LOADERS, "other.js"])
def test_the_guard_lets_tsserver_load_our_plugin_and_no_other(loader: str, tmp_path: Path) -> None:
    require(["typescript"])
    write(tmp_path / "plugin.js", "module.exports = 1;\n")
    write(tmp_path / "near.js", "module.exports = 1;\n")
    ours = GUARD.parent / "node_modules" / "pilotfish-affected" / "index.js"
    names = ["node:fs", "./near.js", str(ours), str(tmp_path / "plugin.js")]
    tried = "try { require(name); console.log('loaded') } catch { console.log('not') }"
    write(tmp_path / loader, f"for (const name of {json.dumps(names)}) {tried}\n")
    command = ["node", "--require", str(GUARD), str(tmp_path / loader)]
    said = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=60).stdout.decode().split()
    assert said == ["loaded"] * 3 + ["not" if loader in LOADERS else "loaded"]
