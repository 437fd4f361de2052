"""Questions that take several requests, and edits by name. A real server."""

import subprocess
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pilotfish.api.answers import Answer, Changes, Exploration, Impact, State, Symbol
from pilotfish.api.questions import Operation, Question
from pilotfish.errors import Code, Unavailable
from pilotfish.model import AbsPath
from pilotfish.operations.render import text_of
from pilotfish.service.check_answer import CheckRequest
from pilotfish.service.diagnostics.affected import Affected, AffectedFiles
from pilotfish.service.diagnostics.preview import Previews
from pilotfish.service.questions.subject import SubjectFinder
from pilotfish.service.whole_project import USERS_UNKNOWN
from support.services.real import RealService, real_service

pytestmark = [pytest.mark.anyio, pytest.mark.server("basedpyright"), pytest.mark.proves("OPS-10")]

MONEY = '''"""Money."""

import functools


@functools.cache
def total(count: int) -> int:
    """The sum."""
    return count


class Bill:
    def due(self) -> int:
        return total(1)


def unused() -> None: ...
'''
USER = "from money import Bill, total\n\n\ndef pay() -> int:\n    return total(2) + Bill().due() + total(3)\n"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Project:
    def __init__(self, real: RealService) -> None:
        self.real = real

    async def ask(self, operation: Operation, **fields: Any) -> Answer[Any]:
        return await self.real.service.ask(Question(operation=operation, **fields), self.real.client)

    async def data(self, operation: Operation, **fields: Any) -> Any:
        return (await self.ask(operation, **fields)).data

    def text(self, name: str) -> str:
        return (self.real.root / name).read_text()

    def git(self, *words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *words], cwd=self.real.root, check=True, capture_output=True)


@pytest.fixture
async def project(tmp_path: Path) -> AsyncGenerator[Project]:
    async with real_service(tmp_path) as real:
        for name, text in {"money.py": MONEY, "user.py": USER, "pyproject.toml": "[project]\nname = 'a'\n"}.items():
            real.write(name, text)
        yield Project(real)


async def test_the_text_of_symbols_comes_by_name_with_what_decorates_them(project: Project) -> None:
    answer = await project.ask(Operation.SOURCE, symbol="total, Bill.due")
    found: Any = answer.data
    total, due = found
    assert total.source.startswith("@functools.cache\ndef total(count: int) -> int:\n")
    assert (total.path, total.first_line, total.last_line) == ("money.py", 6, 9)
    assert due.source == "    def due(self) -> int:\n        return total(1)"
    assert f"money.py:6-9  function total  (digest {total.digest})\n@functools.cache" in text_of(answer)
    used = await project.ask(Operation.SOURCE, file_path="user.py", symbol="total")
    assert used.data == (total,)
    several = await project.ask(Operation.SOURCE, symbol="total, nothing_such")
    assert (several.meta.state, len(several.data or ())) == (State.PARTIAL, 1)
    assert "nothing_such" in (several.meta.reason or "")


async def test_all_about_a_symbol_is_one_answer(project: Project) -> None:
    answer = await project.ask(Operation.EXPLORE, symbol="total")
    found = answer.data
    assert isinstance(found, Exploration)
    assert (found.symbol.name, found.total) == ("total", 4)
    assert {(use.path, use.within, use.lines) for use in found.uses} == {
        ("money.py", "Bill.due", (14,)),
        ("user.py", None, (1,)),
        ("user.py", "pay", (5,)),
    }
    text = text_of(answer)
    assert "def total(count: int) -> int:" in text
    assert "used 4 times in 2 files\n" in text
    assert "user.py:5 in pay  return total(2) + Bill().due() + total(3)" in text


async def test_the_impact_of_a_change_is_who_uses_it_and_what_is_broken(project: Project) -> None:
    project.git("init", "-q", ".")
    project.git("add", "-A")
    project.git("commit", "-qm", "a")
    nothing = await project.ask(Operation.IMPACT)
    assert text_of(nothing) == "Nothing has changed since the last commit."
    project.real.write("money.py", MONEY.replace("def total(count: int)", "def total(count: str)"))
    answer = await project.ask(Operation.IMPACT)
    found = answer.data
    assert isinstance(found, Impact)
    assert [(one.symbol.name, one.total) for one in found.changed] == [("total", 4)]
    assert (set(found.broken), found.checked) == ({"money.py"}, 2)
    assert "money.py:7:5  function total: used 4 times in 2 files\n" in text_of(answer)
    one = await project.data(Operation.IMPACT, symbol="Bill.due")
    assert [(used.symbol.name, used.total) for used in one.changed] == [("due", 1)]


async def test_a_file_whose_server_does_not_answer_is_not_said_to_have_changed_outside_of_symbols(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.git("init", "-q", ".")
    project.git("add", "-A")
    project.git("commit", "-qm", "a")
    project.real.write("money.py", MONEY.replace("def total(count: int)", "def total(count: str)"))

    async def busy(*_: object) -> Sequence[Symbol]:
        raise Unavailable(Code.REQUEST_TIMEOUT, "it is busy.")

    monkeypatch.setattr(SubjectFinder, "outline", busy)
    answer = await project.ask(Operation.IMPACT)
    assert answer.meta.reason == "which symbols changed in money.py is not known: it is busy"
    assert "outside of symbols" not in text_of(answer)


async def test_the_errors_of_the_last_commit_are_not_the_changes(project: Project) -> None:
    project.real.write("user.py", f"{USER}\n\nold: str = 1\n")
    project.real.write("money.py", f"old: str = 2\n{MONEY}")
    project.git("init", "-q", ".")
    project.git("add", "-A")
    project.git("commit", "-qm", "a")
    project.real.write("money.py", f"old: str = 2\n\n{MONEY.replace('return count', 'return str(count)')}")
    same = await project.data(Operation.IMPACT)
    assert {path: [one.line for one in errors] for path, errors in same.broken.items()} == {"money.py": [11]}
    assert (same.older, same.possibly_older) == (2, False)
    project.real.write("money.py", f"old: str = 2\n\n{MONEY.replace('-> int:', '-> str:', 1)}")
    broken = await project.data(Operation.IMPACT)
    assert (set(broken.broken), broken.older, broken.possibly_older) == ({"money.py", "user.py"}, 2, False)


async def test_what_a_deleted_file_leaves_broken_is_the_change_too(project: Project) -> None:
    project.git("init", "-q", ".")
    project.git("add", "-A")
    project.git("commit", "-qm", "a")
    (project.real.root / "money.py").unlink()
    answer = await project.ask(Operation.IMPACT)
    found = answer.data
    assert isinstance(found, Impact)
    assert (found.deleted, list(found.broken), found.checked) == (("money.py",), ["user.py"], 1)
    assert text_of(answer).endswith("\nmoney.py: deleted")
    root = AbsPath(str(project.real.root))
    request = CheckRequest((root,), (f"{root}/money.py",))
    checked = await project.real.service.check_files(project.real.client, request)
    assert [path for path, errors in (checked.data or {}).items() if errors] == ["user.py"]


async def test_that_not_all_users_of_a_deleted_file_are_known_is_said(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.git("init", "-q", ".")
    project.git("add", "-A")
    project.git("commit", "-qm", "a")
    (project.real.root / "money.py").unlink()

    async def late(*_: object) -> Affected:
        return Affected((), complete=False)

    monkeypatch.setattr(AffectedFiles, "of_edits", late)
    root = AbsPath(str(project.real.root))
    checked = await project.real.service.check_files(project.real.client, CheckRequest((root,), (f"{root}/money.py",)))
    for answer in (checked, await project.ask(Operation.IMPACT)):
        assert answer.meta.state is not State.FRESH
        assert USERS_UNKNOWN in (answer.meta.reason or "")


async def test_where_old_errors_are_not_known_those_that_are_about_the_change_come_first(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.real.write("user.py", f"{USER}\n\nold: str = 1\n")
    project.git("init", "-q", ".")
    project.git("add", "-A")
    project.git("commit", "-qm", "a")

    async def busy(*_: object) -> object:
        raise Unavailable(Code.REQUEST_TIMEOUT, "it is busy.")

    monkeypatch.setattr(Previews, "run", busy)
    project.real.write("money.py", MONEY.replace("-> int:", "-> str:", 1))
    answer = await project.ask(Operation.IMPACT)
    found = answer.data
    assert isinstance(found, Impact)
    assert {path: {one.line for one in errors} for path, errors in found.broken.items()} == {
        "money.py": {9, 14},
        "user.py": {5},
    }
    assert (found.unknown, found.possibly_older) == ({"user.py": 1}, True)
    assert "\n1 other error may be older than the change: user.py 1.\n1 symbol changed:\n" in text_of(answer)


async def test_a_symbol_is_edited_by_name_and_what_that_broke_is_told(project: Project) -> None:
    (total,) = await project.data(Operation.SOURCE, symbol="total")
    new = "def total(count: str) -> int:\n    return len(count)\n"
    fields = {"symbol": "total", "edit": "replace", "text": new}
    shown = await project.ask(Operation.EDIT_SYMBOL, **fields)
    assert isinstance(shown.data, Changes)
    assert not shown.data.applied
    assert project.text("money.py") == MONEY
    done = await project.data(Operation.EDIT_SYMBOL, **fields, digest=total.digest, apply=True)
    assert project.text("money.py") == MONEY.replace(total.source, new.rstrip())
    assert "money.py" in done.feedback.text
    again = await project.ask(Operation.EDIT_SYMBOL, **fields, digest=total.digest, apply=True)
    assert again.errors[0].code is Code.STALE


async def test_text_is_inserted_apart_and_what_is_used_is_not_deleted(project: Project) -> None:
    fields: dict[str, Any] = {"operation": Operation.EDIT_SYMBOL, "apply": True}
    await project.ask(**fields, symbol="Bill", edit="before", text="def one() -> int:\n    return 1\n")
    assert "    return count\n\n\ndef one() -> int:\n    return 1\n\n\nclass Bill:\n" in project.text("money.py")
    paid = "    def paid(self) -> bool:\n        return True"
    await project.ask(**fields, symbol="Bill.due", edit="after", text=f"\n{paid}")
    assert f"        return total(1)\n\n{paid}\n\n\n" in project.text("money.py")
    refused = await project.ask(**fields, symbol="total", edit="delete")
    used = "money.py:18, user.py:1, user.py:5. Remove its uses first."
    assert refused.errors[0].message == f"total is used in 3 lines, so it was not deleted: {used}"
    await project.ask(**fields, symbol="unused", edit="delete")
    assert project.text("money.py").endswith("        return True\n\n\n")
