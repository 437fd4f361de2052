"""Imports of packages in a project whose environment is not installed: one line, and never a clean answer."""

from pathlib import Path
from typing import Any

import pytest

from pilotfish.api.answers import State
from pilotfish.service.check_answer import CheckRequest
from support.servers.script import Script
from support.services.several import PROGRAM, service_on

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-8")]


def unresolved(script: Script) -> None:
    """Every line `import NAME` is one that cannot be resolved."""
    texts: dict[str, str] = {}

    def keep(params: Any) -> None:
        document = params["textDocument"]
        texts[document["uri"]] = document["text"] if "text" in document else params["contentChanges"][-1]["text"]

    def diagnostics(params: Any) -> dict[str, Any]:
        place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
        names = [line.split()[1] for line in texts[params["textDocument"]["uri"]].splitlines() if "import" in line]
        message = 'Import "{}" could not be resolved'
        items = [
            {"range": place, "severity": 1, "code": "reportMissingImports", "message": message.format(name)}
            for name in names
        ]
        return {"kind": "full", "items": items}

    script.capabilities.update({"textDocumentSync": 1, "diagnosticProvider": {}})
    script.on("textDocument/didOpen", keep)
    script.on("textDocument/didChange", keep)
    script.ignore("textDocument/didSave", "textDocument/didClose", "initialized", "workspace/didChangeConfiguration")
    script.on("textDocument/diagnostic", diagnostics)


async def test_packages_are_one_line_and_modules_of_the_project_are_errors(tmp_path: Path) -> None:
    config = {"lsp": {"basedpyright": {"command": [PROGRAM]}}}
    async with service_on(tmp_path, {"basedpyright": unresolved}, config) as ground:
        ground.write("own.py", "")
        ground.write("a.py", "import requests\nimport rich.console\n")
        first = await ground.touched("a.py")
        assert first.text == "2 imports could not be resolved: is the environment installed?"
        assert first.state is State.PARTIAL
        again = await ground.touched("a.py")
        assert (again.text, again.state) == ("", State.PARTIAL)
        ground.write("a.py", "import requests\nimport own.gone\n")
        assert 'Import "own.gone" could not be resolved' in (await ground.touched("a.py")).text


async def test_packages_that_were_missing_before_are_mentioned_only_beside_something_else(tmp_path: Path) -> None:
    config = {"lsp": {"basedpyright": {"command": [PROGRAM]}}}
    async with service_on(tmp_path, {"basedpyright": unresolved}, config) as ground:
        ground.write("own.py", "")
        before = {"a.py": "import requests\n"}
        ground.write("a.py", "import requests\n# a comment\n")
        harmless = await ground.touched("a.py", only_new=True, before=before)
        assert (harmless.text, harmless.state, harmless.fixed) == ("", State.PARTIAL, 0)
        ground.write("a.py", "import requests\nimport own.gone\n")
        breaking = (await ground.touched("a.py", only_new=True)).text
        assert 'Import "own.gone" could not be resolved' in breaking
        assert "1 import could not be resolved: is the environment installed?" in breaking
        ground.write("a.py", "import requests\nimport own.gone\nimport rich\n")
        assert (await ground.touched("a.py", only_new=True)).text.startswith("2 imports could not be resolved")


async def test_a_check_says_what_explains_its_errors(tmp_path: Path) -> None:
    config = {"lsp": {"basedpyright": {"command": [PROGRAM]}}}
    async with service_on(tmp_path, {"basedpyright": unresolved}, config) as ground:
        ground.write("uv.lock", "")
        ground.write("a.py", "import requests\n")
        ground.write("b.py", "import rich\n")
        ground.write("clean.py", "x = 1\n")
        why = "No Python environment was found, so imports of installed packages cannot be resolved. Next: uv sync"
        answer = await ground.service.check_files(ground.client, CheckRequest((str(ground.root),)))
        assert answer.meta.warnings == (why,)
        assert (await ground.service.check(ground.client, ("clean.py",))).meta.warnings == ()
