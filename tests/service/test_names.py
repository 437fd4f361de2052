"""Symbols by name alone, and how much of the project stands behind the answer. Real servers."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from pilotfish.api.answers import Answer, State
from pilotfish.api.questions import Operation, Question
from support.services.real import RealService, real_service

pytestmark = [pytest.mark.anyio, pytest.mark.proves("OPS-9", "OPS-3")]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Project:
    def __init__(self, real: RealService) -> None:
        self.real = real

    def write(self, **files: str) -> None:
        for name, text in files.items():
            path = self.real.root / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    async def ask(self, operation: Operation, **fields: Any) -> Answer[Any]:
        return await self.real.service.ask(Question(operation=operation, **fields), self.real.client)

    async def places(self, operation: Operation, **fields: Any) -> list[str]:
        answer = await self.ask(operation, **fields)
        assert answer.meta.state is State.FRESH, answer
        return [f"{place.path}:{place.line}" for place in answer.data or ()]


@pytest.fixture
async def project(tmp_path: Path) -> AsyncGenerator[Project]:
    async with real_service(tmp_path) as real:
        yield Project(real)


@pytest.mark.server("typescript")
async def test_javascript_without_a_project_file_is_searched_where_the_name_is_mentioned(project: Project) -> None:
    project.write(
        package_dot_json="{}",
        lib__utils_dot_js="exports.setCharset = function setCharset(type) { return type }\n",
        lib__response_dot_js="var utils = require('./utils')\nutils.setCharset('a')\n",
        lib__request_dot_js="var utils = require('./utils')\n// not setCharset\n",
    )
    assert await project.places(Operation.REFERENCES, symbol="setCharset") == ["lib/response.js:2", "lib/utils.js:1"]
    assert await project.places(Operation.REFERENCES, file_path="lib/utils.js", symbol="setCharset") == [
        "lib/response.js:2",
        "lib/utils.js:1",
    ]


@pytest.mark.server("typescript")
async def test_what_the_server_does_not_know_is_not_called_unused(project: Project) -> None:
    project.write(
        package_dot_json="{}",
        lib__response_dot_js="var res = Object.create(null)\nres.sendFile = function sendFile(path) { return path }\n",
        lib__app_dot_js="module.exports = function (res) { res.sendFile('a') }\n",
    )
    assert await project.places(Operation.DEFINITION, symbol="sendFile") == ["lib/response.js:2"]
    uses = await project.ask(Operation.REFERENCES, symbol="sendFile")
    assert uses.meta.state is State.PARTIAL or "lib/app.js" in {place.path for place in uses.data or ()}, uses
    deleted = await project.ask(Operation.EDIT_SYMBOL, symbol="sendFile", edit="delete", apply=True)
    assert not deleted.ok


@pytest.mark.server("typescript")
async def test_a_file_outside_the_project_does_not_stand_for_it(project: Project) -> None:
    project.write(
        package_dot_json="{}",
        tsconfig_dot_json='{"include": ["src"]}',
        vite_dot_config_dot_ts="export default { plugins: [] }\n",
        src__money_dot_ts="export function total(): number { return 1 }\n",
        src__bill_dot_ts='import { total } from "./money"\nexport const due = total()\n',
    )
    await project.ask(Operation.HOVER, file_path="vite.config.ts", line=1)
    assert await project.places(Operation.WORKSPACE_SYMBOL, query="total") == ["src/money.ts:1"]
    assert await project.places(Operation.DEFINITION, symbol="total") == ["src/money.ts:1"]
    assert await project.places(Operation.WORKSPACE_SYMBOL, query="tota") == ["src/money.ts:1"]


@pytest.mark.server("basedpyright")
async def test_a_name_is_found_where_the_file_only_uses_it_and_without_a_file(project: Project) -> None:
    project.write(
        pyproject_dot_toml="[project]\nname = 'a'\n",
        app_dot_py="# helper: see get_flag\nfrom helpers import get_flag\n\nprint(get_flag())\n",
        helpers_dot_py="def get_flag() -> bool:\n    return True\n",
    )
    assert await project.places(Operation.DEFINITION, symbol="get_flag") == ["helpers.py:1"]
    assert await project.places(Operation.DEFINITION, file_path="app.py", symbol="get_flag") == ["helpers.py:1"]
    assert await project.places(Operation.DEFINITION, file_path="pyproject.toml", symbol="get_flag") == ["helpers.py:1"]
    near = await project.ask(Operation.DEFINITION, symbol="get_flags")
    assert "Nearest: get_flag" in near.errors[0].message


@pytest.mark.server("basedpyright")
async def test_a_rename_that_cannot_be_done_says_why(project: Project) -> None:
    project.write(
        pyproject_dot_toml="[project]\nname = 'a'\n", money_dot_py="def total() -> int:\n    return len('a')\n"
    )
    bad = await project.ask(Operation.RENAME, symbol="total", new_name="1 bad")
    assert bad.errors[0].message.startswith("'1 bad' is no name")
    keyword = await project.ask(Operation.RENAME, symbol="total", new_name="class")
    assert keyword.errors[0].message == "'class' is a keyword of Python, and no name."
    dashed = await project.ask(Operation.RENAME, symbol="total", new_name="grand-total")
    assert "'grand-total' is no name" in dashed.errors[0].message
    builtin = await project.ask(Operation.RENAME, symbol="total", new_name="print")
    assert any("print is a builtin of Python" in one for one in builtin.meta.warnings)
    library = await project.ask(Operation.RENAME, file_path="money.py", line=2, character=12, new_name="size")
    assert "basedpyright does not rename len" in library.errors[0].message


@pytest.mark.server("basedpyright")
@pytest.mark.proves("MCP-1")
async def test_a_tool_that_no_server_of_the_project_answers_is_not_offered(project: Project) -> None:
    everything = {row.operation for row in await project.real.service.offered(project.real.client)}
    assert everything == set(Operation)
    project.write(money_dot_py="x = 1\n")
    offered = {row.operation for row in await project.real.service.offered(project.real.client)}
    assert set(Operation) - offered == {Operation.SUPERTYPES, Operation.SUBTYPES}


@pytest.mark.server("basedpyright")
async def test_what_a_narrowed_project_leaves_out_is_searched_too(project: Project) -> None:
    project.write(
        pyrightconfig_dot_json='{"include": ["src"]}',
        src__money_dot_py="def total() -> int:\n    return 1\n",
        tests__test_money_dot_py="from src.money import total\n\nassert total()\n",
    )
    assert await project.places(Operation.REFERENCES, symbol="total") == [
        "src/money.py:1",
        "tests/test_money.py:1",
        "tests/test_money.py:3",
    ]
