"""Imports of packages in a project whose environment is not installed: one line, and never a clean answer."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pilotfish.api.answers import State
from pilotfish.service.check_answer import CheckRequest
from support.servers.script import Script
from support.services.several import PROGRAM, service_on

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-8")]

NO_ENVIRONMENT = "No Python environment was found, so imports of installed packages cannot be resolved."


def unresolved(script: Script) -> None:
    """Every line `import NAME` is one that cannot be resolved."""
    complain(script, {"import": ("reportMissingImports", 'Import "{}" could not be resolved')})


def unknown_headers(script: Script) -> None:
    """No header is found, and no name declared."""
    kinds = {
        "#include": ("pp_file_not_found", "'{}' file not found"),
        "use": ("undeclared_var_use", "Use of undeclared identifier '{}'"),
        "wrong": ("typecheck", "'{}' is wrong"),
    }
    complain(script, kinds)
    script.on("textDocument/documentSymbol", lambda _: [])


def complain(script: Script, kinds: dict[str, tuple[str, str]]) -> None:
    """Every line that begins with one of these words has an error: its code, and its message about the next word."""
    texts: dict[str, str] = {}

    def keep(params: Any) -> None:
        document = params["textDocument"]
        texts[document["uri"]] = document["text"] if "text" in document else params["contentChanges"][-1]["text"]

    def diagnostics(params: Any) -> dict[str, Any]:
        place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
        lines = [line.split() for line in texts[params["textDocument"]["uri"]].splitlines()]
        items = [
            {"range": place, "severity": 1, "code": code, "message": message.format(words[1])}
            for words in lines
            for code, message in (kinds[word] for word in words[:1] if word in kinds)
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
        assert first.text == f"2 imports could not be resolved: {NO_ENVIRONMENT}"
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
        assert f"1 import could not be resolved: {NO_ENVIRONMENT}" in breaking
        ground.write("a.py", "import requests\nimport own.gone\nimport rich\n")
        assert (await ground.touched("a.py", only_new=True)).text.startswith("2 imports could not be resolved")


async def test_a_new_import_beside_an_old_one_is_one_line(tmp_path: Path) -> None:
    config = {"lsp": {"basedpyright": {"command": [PROGRAM]}}}
    async with service_on(tmp_path, {"basedpyright": unresolved}, config) as ground:
        ground.write("a.py", "import requests\nimport rich\n")
        told = await ground.touched("a.py", only_new=True, before={"a.py": "import requests\n"})
    assert told.text == f"2 imports could not be resolved: {NO_ENVIRONMENT}"


async def test_a_check_says_what_explains_its_errors(tmp_path: Path) -> None:
    config = {"lsp": {"basedpyright": {"command": [PROGRAM]}}}
    async with service_on(tmp_path, {"basedpyright": unresolved}, config) as ground:
        ground.write("uv.lock", "")
        ground.write("a.py", "import requests\n")
        ground.write("b.py", "import rich\n")
        ground.write("clean.py", "x = 1\n")
        why = f"{NO_ENVIRONMENT} Next: uv sync"
        answer = await ground.service.check_files(ground.client, CheckRequest((str(ground.root),)))
        assert answer.meta.warnings == (why,)
        assert (await ground.service.check(ground.client, ("clean.py",))).meta.warnings == ()


async def test_without_a_compile_database_that_is_said_once_and_its_errors_are_not_told(tmp_path: Path) -> None:
    # It writes files, and where nothing confines it, an untrusted project has none.
    trusted = {"trustedProjectRoots": [str(tmp_path.resolve() / "workspace")]}
    config = {"lsp": {"clangd": {"command": [PROGRAM]}}, "security": trusted}
    async with service_on(tmp_path, {"clangd": unknown_headers}, config) as ground:
        ground.write("CMakeLists.txt", "")
        ground.write("a.c", "#include store.h\nuse store_add\n")
        first = await ground.touched("a.c")
        assert "no compile_commands.json" in first.text
        assert first.text.endswith("Next: cmake -B build -DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
        assert first.state is State.PARTIAL
        ground.write("a.c", "#include store.h\n#include other.h\nuse store_get\n")
        again = await ground.touched("a.c")
        assert (again.text, again.state) == ("", State.PARTIAL)
        ground.write("a.c", "#include store.h\nwrong type\n")
        assert "'type' is wrong" in (await ground.touched("a.c")).text
        ground.write("a.c", "use store_get\n")
        assert "undeclared identifier 'store_get'" in (await ground.touched("a.c")).text


async def test_an_import_of_a_component_names_the_server_that_is_not_here(tmp_path: Path) -> None:
    message = "Cannot find module '{}' or its corresponding type declarations."
    config = {"lsp": {"typescript-native": {"command": [PROGRAM]}}, "feedback": {"noVerdict": "say"}}
    servers = {"typescript-native": partial(complain, kinds={"import": ("2307", message)})}
    async with service_on(tmp_path, servers, config) as ground:
        (ground.root / "src").mkdir()
        (ground.root / "node_modules/typescript").mkdir(parents=True)
        ground.write("node_modules/typescript/package.json", '{"version": "7.0.2"}')
        ground.write("src/App.vue", "")
        ground.write("src/main.ts", "import ./App.vue\nimport @/App.vue\n")
        first = await ground.touched("src/main.ts")
        assert first.text.startswith('.vue files are not checked by vue: LSP server "vue-language-server"')
        assert first.state is State.PARTIAL
        ground.write("src/main.ts", "import ./App.vue\nimport ./Gone.vue\nimport ./gone\n")
        told = (await ground.touched("src/main.ts")).text
        assert "'./Gone.vue'" in told
        assert "'./gone'" in told
        assert "App.vue'" not in told
        assert "not checked by vue" not in told
        answer = await ground.service.check_files(ground.client, CheckRequest((str(ground.root),)))
        (missing,) = [error.message for error in answer.errors if error.server_id == "vue"]
        assert missing.startswith("1 file was not checked: ")
        assert len((answer.data or {})["src/main.ts"]) == 2
        rows = {one.server_id: one.diagnostics for one in ground.service.status(ground.client).rows}
        counts = rows["typescript-native"]
        assert counts is not None
        assert counts.error == 2


OLD_GO = (
    "go.mod asks for Go 1.26, and Go {} is installed, which {}. Next: install Go 1.26 or newer from https://go.dev/dl/"
)


def go_project(folder: Path, version: str) -> dict[str, str]:
    """A computer with this Go, and a module that asks for a newer one."""
    (folder / "bin").mkdir()
    (folder / "bin" / "go").write_text("")
    (folder / "bin" / "go").chmod(0o755)
    (folder / "VERSION").write_text(f"go{version}")
    return {"go.mod": "module example.com/a\n\ngo 1.26\n", "main.go": "package main\n"}


async def test_a_go_that_checks_nothing_is_the_answer_and_nobody_waits(tmp_path: Path) -> None:
    files = go_project(tmp_path, "1.22.10")
    config = {"lsp": {"gopls": {"command": [PROGRAM]}}, "feedback": {"noVerdict": "say"}}
    async with service_on(tmp_path, {"gopls": unresolved}, config) as ground:
        for name, text in files.items():
            ground.write(name, text)
        answer = await ground.check("main.go")
        feedback = await ground.touched("main.go")
    said = OLD_GO.format("1.22", "checks nothing of it")
    assert (answer.meta.state, answer.meta.reason) == (State.UNAVAILABLE, f"gopls: {said}")
    assert said in feedback.text
    assert ground.started == {}


async def test_an_older_go_is_said_once_beside_its_errors(tmp_path: Path) -> None:
    files = go_project(tmp_path, "1.19.8")
    config = {"lsp": {"gopls": {"command": [PROGRAM]}}}
    async with service_on(tmp_path, {"gopls": unresolved}, config) as ground:
        for name, text in files.items():
            ground.write(name, text)
        await ground.touched("main.go", kind="read")
        texts = list[str]()
        for number in range(2):
            ground.write("main.go", f"import new{number}\n")
            texts.append((await ground.touched("main.go")).text)
    said = OLD_GO.format("1.19", "reports what is newer as errors")
    assert [said in text for text in texts] == [True, False]
