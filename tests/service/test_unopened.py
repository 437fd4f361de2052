"""Files that are not open are judged without opening them, where a server does that rightly."""

from pathlib import Path

import pytest

from pilotfish.api.answers import State
from pilotfish.api.questions import Touch
from support.services.real import real_service

pytestmark = [pytest.mark.anyio, pytest.mark.server("typescript"), pytest.mark.proves("DIAG-11")]

CONFIG = {
    "lsp": {one: {"disabled": True} for one in ("eslint", "biome", "oxlint", "typos", "vtsls", "deno")},
    "feedback": {"onlyNew": True, "otherFilesAfter": ["edit", "write", "patch"]},
    "timing": {"diagnosticsWaitTimeoutMs": 30_000, "firstTouchTimeoutMs": 60_000},
}
PROJECT = '{"compilerOptions": {"strict": true, "target": "es2022", "module": "nodenext", "noEmit": true}}'
LIB = "export function total(values: number[]): number {\n  return values.length;\n}\n"
OTHER = 'import { total } from "./lib.js";\n\nexport const count = total([1]);\nexport const older: string = 1;\n'


@pytest.fixture
def anyio_backend() -> str:
    """Real processes have no virtual time."""
    return "asyncio"


async def test_files_stay_closed_of_whichever_project_they_are(tmp_path: Path) -> None:
    async with real_service(tmp_path, CONFIG) as ground:
        (ground.root / "inner").mkdir()
        ground.write("package.json", '{"type": "module"}')
        ground.write("tsconfig.json", PROJECT)
        ground.write("lib.ts", LIB)
        ground.write("other.ts", OTHER)
        ground.write("inner/tsconfig.json", PROJECT)
        ground.write("inner/third.ts", OTHER.replace("./lib.js", "../lib.js"))
        await ground.service.touched(Touch(("lib.ts",), "read"), ground.client)
        before = {"lib.ts": LIB}
        for old, new in (("total", "sum"), ("sum", "total"), ("total", "sum")):
            text = LIB.replace("total", new)
            ground.write("lib.ts", text)
            feedback = await ground.service.touched(Touch(("lib.ts",), "edit", before=before), ground.client)
            before = {"lib.ts": text}
            assert feedback.state is State.FRESH
            assert ("no exported member" in feedback.text) is (old == "total")
            assert ("other.ts" in feedback.text, "third.ts" in feedback.text) == ((old == "total",) * 2)
            assert "Type 'number' is not assignable to type 'string'" not in feedback.text
        session = ground.entry("typescript").session
        assert session is not None
        assert [Path(path).name for path in session.documents.paths] == ["lib.ts"]
