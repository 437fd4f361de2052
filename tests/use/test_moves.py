"""Moving a file with our own tool: what was wrong before is older than the move."""

import json
from pathlib import Path

import pytest

from pilotfish.api.answers import Changes, State
from pilotfish.api.questions import Operation, Question
from support.servers.real import require
from support.services.real import only, real_service

FILES = {
    "tsconfig.json": json.dumps({"compilerOptions": {"strict": True, "types": []}, "include": ["src"]}),
    "src/util.ts": "export function twice(n: number): number { return n * 2; }\nexport const bad: string = 5;\n",
    "src/app.ts": 'import { twice } from "./util";\nexport const four = twice("x");\n',
}


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.server("typescript")
@pytest.mark.proves("OPS-3", "DIAG-15")
@pytest.mark.parametrize("is_checked", [True, False], ids=["checked before", "never checked"])
async def test_what_was_wrong_before_a_move_is_not_told(tmp_path: Path, *, is_checked: bool) -> None:
    require(["typescript"])
    async with real_service(tmp_path, only("typescript")) as real:
        (real.root / "src").mkdir()
        for name, text in FILES.items():
            real.write(name, text)
        if is_checked:
            assert (await real.service.check(real.client, ("src/util.ts", "src/app.ts"))).ok
        move = Question(
            operation=Operation.RENAME_FILE, file_path="src/util.ts", new_path="src/lib/util.ts", apply=True
        )
        answer = await real.service.ask(move, real.client)
    assert isinstance(answer.data, Changes), answer
    assert answer.data.feedback is not None
    assert answer.data.feedback.state is State.FRESH, answer.data.feedback
    assert answer.data.feedback.text == ""
    assert 'from "./lib/util"' in (tmp_path / "workspace/src/app.ts").read_text()
