"""All uses of a symbol of TypeScript, and its rename, where components use it that only their own server reads."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pilotfish.api.answers import State
from pilotfish.api.questions import Operation, Question
from support.servers.complaining import silent
from support.servers.script import Script
from support.services.several import PROGRAM, custom, service_on
from support.virtual_time import anyio_backend

__all__ = ["anyio_backend"]

pytestmark = [pytest.mark.anyio, pytest.mark.proves("OPS-1", "OPS-3", "P1")]

FILES = {
    "tsconfig.json": "{}",
    "price.ts": "export function price() {}\n",
    "App.svelte": '<script>\nimport { price } from "./price";\n</script>\n{price()}\n',
    "Words.svelte": "<p>the price</p>\n",
}
OWN = {"toy": custom(".ts")}
SVELTE = {"svelte": {"command": [PROGRAM]}}


def place(line: int, first: int) -> dict[str, Any]:
    return span(line, first, first + len("price"))


def span(line: int, first: int, last: int) -> dict[str, Any]:
    return {"start": {"line": line, "character": first}, "end": {"line": line, "character": last}}


DECLARED, IMPORTED, CALLED = place(0, 16), place(1, 9), place(3, 1)


def knowing(script: Script, root: Path, *, component: bool) -> None:
    """A server that knows one function: in its own file alone, or in the component too."""
    silent(script)
    script.capabilities |= {"definitionProvider": True, "referencesProvider": True, "renameProvider": True}
    own, other = (root / "price.ts").as_uri(), (root / "App.svelte").as_uri()

    def definition(params: Any) -> list[dict[str, Any]]:
        at, line = params["textDocument"]["uri"], params["position"]["line"]
        return [{"uri": own, "range": DECLARED}] if at == own or (component and at == other and line > 0) else []

    places = [(own, DECLARED), *([(other, IMPORTED), (other, CALLED)] if component else [])]
    edits = {own: [{"range": DECLARED, "newText": "cost"}]}
    local = {other: [{"range": IMPORTED, "newText": "price as cost"}, {"range": CALLED, "newText": "cost"}]}
    if not component:
        followed = {"filters": [{"pattern": {"glob": "**/*.ts"}}]}
        script.capabilities["workspace"] = {"fileOperations": {"willRename": followed}}
        script.on("workspace/willRenameFiles", lambda _: None)
    script.on("textDocument/definition", definition)
    script.on("textDocument/references", lambda _: [{"uri": at, "range": where} for at, where in places])
    script.on("textDocument/rename", lambda _: {"changes": local if component else edits})


def service(folder: Path, **servers: Any) -> Any:
    root = Path(folder).resolve() / "workspace"
    scenarios = {
        "toy": partial(knowing, root=root, component=False),
        "svelte": partial(knowing, root=root, component=True),
    }
    return service_on(folder, scenarios, {"lsp": servers, "security": {"trustedProjectRoots": [str(root)]}})


def asked(operation: Operation, **more: Any) -> Question:
    return Question(operation=operation, file_path="price.ts", line=1, character=17, **more)


async def test_uses_in_components_are_among_all_uses(tmp_path: Path) -> None:
    async with service(tmp_path, **OWN, **SVELTE) as ground:
        for name, text in FILES.items():
            ground.write(name, text)
        answer = await ground.service.ask(asked(Operation.REFERENCES), ground.client)
    assert answer.data, answer
    found = [(one.path, one.line, one.character) for one in answer.data]
    assert found == [("App.svelte", 2, 10), ("App.svelte", 4, 2), ("price.ts", 1, 17)]
    assert answer.meta.state is State.FRESH


async def test_a_rename_goes_through_the_components(tmp_path: Path) -> None:
    async with service(tmp_path, **OWN, **SVELTE) as ground:
        for name, text in FILES.items():
            ground.write(name, text)
        answer = await ground.service.ask(asked(Operation.RENAME, new_name="cost", apply=True), ground.client)
        assert answer.meta.state is State.FRESH
        assert (ground.root / "price.ts").read_text() == FILES["price.ts"].replace("price", "cost")
        component = (ground.root / "App.svelte").read_text()
    assert component == '<script>\nimport { cost } from "./price";\n</script>\n{cost()}\n'


@pytest.mark.parametrize("more", [{}, {"new_name": "cost"}], ids=["references", "rename"])
async def test_components_whose_server_is_not_here_are_named(more: dict[str, Any], tmp_path: Path) -> None:
    operation = Operation.RENAME if more else Operation.REFERENCES
    async with service(tmp_path, **OWN) as ground:
        for name, text in FILES.items():
            ground.write(name, text)
        answer = await ground.service.ask(asked(operation, **more), ground.client)
    assert answer.meta.state is State.PARTIAL
    assert (answer.meta.reason or "").startswith("price in App.svelte, Words.svelte is not included: ")
    assert "pilotfish install svelte" in (answer.meta.reason or "")


async def test_a_moved_file_names_the_components_that_import_it(tmp_path: Path) -> None:
    async with service(tmp_path, **OWN, **SVELTE) as ground:
        for name, text in FILES.items():
            ground.write(name, text)
        question = Question(operation=Operation.RENAME_FILE, file_path="price.ts", new_path="cost.ts")
        answer = await ground.service.ask(question, ground.client)
    assert answer.meta.reason == "imports in App.svelte were not updated"


async def test_an_element_is_asked_about_where_its_name_stands(tmp_path: Path) -> None:
    """The outline of `<Counter />` begins at the bracket, where nothing is defined."""
    element = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 11}}

    def scenario(script: Script) -> None:
        silent(script)
        script.capabilities |= {"definitionProvider": True, "documentSymbolProvider": True}
        outline = [{"name": "Counter", "kind": 8, "range": element, "selectionRange": element}]
        script.on("textDocument/documentSymbol", lambda _: outline)
        there = {"uri": (ground.root / "Counter.svelte").as_uri(), "range": place(0, 0)}
        script.on("textDocument/definition", lambda params: [there] if params["position"]["character"] == 1 else [])

    async with service_on(tmp_path, {"toy": scenario}, {"lsp": {"toy": custom(".svelte")}}) as ground:
        ground.write("App.svelte", "<Counter />\n")
        ground.write("Counter.svelte", "<p></p>\n")
        question = Question(operation=Operation.DEFINITION, symbol="Counter")
        answer = await ground.service.ask(question, ground.client)
    assert [one.path for one in answer.data or ()] == ["Counter.svelte"]


async def test_a_component_that_is_imported_and_used_as_an_element_is_one_symbol(tmp_path: Path) -> None:
    """Svelte's outline has both, and the element from its `<` on, where nothing is defined."""
    lines = ["<script>", "import Counter from './Counter.svelte'", "</script>", "<Counter />"]

    def scenario(script: Script) -> None:
        silent(script)
        script.capabilities |= {"definitionProvider": True, "documentSymbolProvider": True}
        there = {"uri": (ground.root / "Counter.svelte").as_uri(), "range": span(0, 0, 1)}

        def outline(params: Any) -> list[dict[str, Any]]:
            found = [span(1, 7, 14), span(3, 0, 11)] if params["textDocument"]["uri"].endswith("App.svelte") else []
            return [{"name": "Counter", "kind": 13, "range": one, "selectionRange": one} for one in found]

        def definition(params: Any) -> list[dict[str, Any]]:
            line, character = int(params["position"]["line"]), int(params["position"]["character"])
            return [there] if lines[line][character:].startswith("Counter") else []

        script.on("textDocument/documentSymbol", outline)
        script.on("textDocument/definition", definition)

    async with service_on(tmp_path, {"toy": scenario}, {"lsp": {"toy": custom(".svelte")}}) as ground:
        ground.write("App.svelte", "\n".join([*lines, ""]))
        ground.write("Counter.svelte", "<p></p>\n")
        answer = await ground.service.ask(Question(operation=Operation.DEFINITION, symbol="Counter"), ground.client)
    assert [one.path for one in answer.data or ()] == ["Counter.svelte"], answer


@pytest.mark.proves("DIAG-11")
async def test_the_server_of_components_starts_with_that_of_the_main_language(tmp_path: Path) -> None:
    async with service(tmp_path, **OWN, **SVELTE) as ground:
        for name in ("price.ts", "cost.ts", "App.svelte"):
            ground.write(name, FILES.get(name, ""))
        await ground.service.warm_up(ground.client)
        assert set(ground.started) == {"toy", "svelte"}


@pytest.mark.proves("DIAG-11")
async def test_no_server_of_components_starts_where_there_are_none(tmp_path: Path) -> None:
    async with service(tmp_path, **OWN, **SVELTE) as ground:
        ground.write("price.ts", FILES["price.ts"])
        await ground.service.warm_up(ground.client)
        assert set(ground.started) == {"toy"}
