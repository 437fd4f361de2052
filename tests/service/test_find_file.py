"""Which file a caller means by a path where nothing is."""

from pathlib import Path

import pytest

from pilotfish.api.questions import Operation, Question
from pilotfish.errors import Code
from pilotfish.service.questions import subject
from pilotfish.service.questions.subject import Candidates, candidates
from support.servers.complaining import complaining
from support.services.scripted import scripted_service

FILES = ("httpx/_client.py", "httpx/_main.py", "tests/client/test_client.py", "tests/conftest.py", "docs/conftest.py")


@pytest.mark.proves("PATH-4")
@pytest.mark.parametrize(
    ("named", "found"),
    [
        pytest.param("_client.py", Candidates(("httpx/_client.py",)), id="a bare name"),
        pytest.param("client/test_client.py", Candidates(("tests/client/test_client.py",)), id="its last segments"),
        pytest.param("./httpx/_main.py", Candidates(("httpx/_main.py",)), id="the path itself"),
        pytest.param("conftest.py", Candidates(("tests/conftest.py", "docs/conftest.py")), id="two files"),
        pytest.param("_mian.py", Candidates((), ("httpx/_main.py", "httpx/_client.py")), id="a near miss"),
        pytest.param(
            "src/test_client.py", Candidates((), ("tests/client/test_client.py", "httpx/_client.py")), id="elsewhere"
        ),
        pytest.param("zzz.rs", Candidates(()), id="nothing like it"),
    ],
)
def test_a_path_may_mean(named: str, found: Candidates) -> None:
    assert candidates(named, FILES) == found


@pytest.mark.anyio
@pytest.mark.proves("PATH-4", "MCP-1")
async def test_a_bare_name_that_is_unique_is_that_file_and_a_near_miss_gets_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted_service(tmp_path, complaining) as scripted:
        (scripted.root / "deep" / "er").mkdir(parents=True)
        scripted.write("deep/er/only.fake", "wrong\n")
        client = scripted.session(None)

        def asked(path: str) -> Question:
            return Question(operation=Operation.DIAGNOSTICS, file_path=path)

        answer = await scripted.service.ask(asked("only.fake"), client)
        assert list(answer.data or ()) == ["deep/er/only.fake"]
        missed = await scripted.service.ask(asked("onyl.fake"), client)
        assert missed.errors[0].code is Code.FILE_MISSING
        assert missed.errors[0].message == "onyl.fake does not exist. Nearest: deep/er/only.fake."
        monkeypatch.setattr(subject, "MAX_FILES", 1)
        unsure = await scripted.service.ask(asked("only.fake"), client)
        assert unsure.errors[0].message == "only.fake does not exist. Nearest: deep/er/only.fake."
