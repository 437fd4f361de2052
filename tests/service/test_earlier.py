"""What a first edit is compared with: the text before it, wherever that comes from."""

import os
import shutil
from pathlib import Path

import anyio
import pytest

from pilotfish.api.answers import Feedback
from pilotfish.api.questions import Touch
from pilotfish.model import AbsPath
from pilotfish.service.workspaces import ClientSession
from pilotfish.system.git import committed_content
from support.files.repositories import commit_everything, offer_git, run_git
from support.servers.script import Script
from support.services.several import BY_LINE, Ground, service_on

pytestmark = [pytest.mark.anyio, pytest.mark.proves("DIAG-8")]

OLD = "bad before\ngood\n"
NEW = "bad before\nbad after\n"


@pytest.fixture
def anyio_backend() -> str:
    """Old texts are read in threads, which virtual time does not wait for."""
    return "asyncio"


def shown(feedback: Feedback) -> list[str]:
    return sorted(line.partition("] ")[2] for line in feedback.text.splitlines() if line.startswith("ERROR"))


def repository(ground: Ground, text: str) -> None:
    """The workspace as a git repository whose last commit has `a.x` with this text."""
    offer_git(ground.root.parent / "bin")
    ground.write("a.x", text)
    commit_everything(ground.root)


async def test_the_host_s_own_word_comes_first(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        ground.write("a.x", NEW)
        feedback = await ground.touched("a.x", only_new=True, before={"a.x": OLD})
        assert shown(feedback) == ["bad after"]
        assert "1 older error in this file is not shown." in feedback.text
        # The server has the text of the disk again, and the next edit is compared with that.
        ground.write("a.x", "bad before\nbad after\nbad again\n")
        assert shown(await ground.touched("a.x", only_new=True)) == ["bad again"]


async def test_a_file_that_the_edit_created_is_all_new(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        ground.write("a.x", NEW)
        assert shown(await ground.touched("a.x", only_new=True, before={"a.x": ""})) == ["bad after", "bad before"]


async def test_a_file_that_was_not_there_when_it_was_looked_for_is_all_new(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        await ground.touched("a.x", kind="read")
        ground.write("a.x", NEW)
        feedback = await ground.touched("a.x", kind="write", only_new=True)
        assert shown(feedback) == ["bad after", "bad before"]
        assert "please fix" in feedback.text


async def test_what_another_client_checked_is_what_an_edit_starts_from(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        ground.write("a.x", OLD)
        await ground.check("a.x")
        ground.write("a.x", NEW)
        other = ClientSession("other", ground.client.cwd, ground.client.root, host="other")
        feedback = await ground.service.touched(Touch(("a.x",), "edit", only_new=True), other)
        assert shown(feedback) == ["bad after"]
        assert "please fix" in feedback.text


async def test_git_has_the_text_where_the_host_says_nothing(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        repository(ground, OLD)
        ground.write("a.x", NEW)
        assert shown(await ground.touched("a.x", only_new=True)) == ["bad after"]


async def test_line_ends_that_git_converted_make_nothing_new(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        repository(ground, OLD)
        ground.write("a.x", NEW.replace("\n", "\r\n"))
        assert shown(await ground.touched("a.x", only_new=True)) == ["bad after"]


async def test_a_file_that_did_not_change_has_nothing_new(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        repository(ground, OLD)
        assert (await ground.touched("a.x", only_new=True)).text == ""


async def test_where_nobody_knows_the_old_text_findings_may_be_older(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        ground.write("a.x", NEW)
        feedback = await ground.touched("a.x", only_new=True)
        assert shown(feedback) == ["bad after", "bad before"]
        assert "possibly older than this edit" in feedback.text
        assert "please fix:" not in feedback.text


async def test_a_clean_file_needs_no_past(tmp_path: Path) -> None:
    async with service_on(tmp_path, {"one": BY_LINE}) as ground:
        ground.write("a.x", "good\n")
        assert (await ground.touched("a.x", only_new=True, before={"a.x": OLD})).text == ""
        assert ground.sent("one", "textDocument/didChange") == []


def test_git_runs_nothing_of_the_repository(tmp_path: Path) -> None:
    git, trap = shutil.which("git"), tmp_path / "sprung"
    assert git is not None
    root = tmp_path / "repository"
    root.mkdir()
    (root / "a.py").write_text("x = 1\n")
    commit_everything(root)
    command = f"touch {trap}"
    for name in (
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "filter.x.smudge",
        "diff.x.textconv",
        "alias.cat-file",
    ):
        value = f"!{command}" if name.startswith("alias") else command
        run_git(root, "config", name, value)
    (root / ".gitattributes").write_text("* filter=x diff=x\n")
    assert committed_content(git, AbsPath(str(root / "a.py"))) == b"x = 1\n"
    # A partial clone fetches what is missing by whatever its configuration names.
    for name, value in {
        "remote.origin.url": f"ext::sh -c 'touch% {trap}'", "remote.origin.promisor": "true",
        "extensions.partialClone": "origin", "core.repositoryFormatVersion": "1", "protocol.ext.allow": "always",
    }.items():  # fmt: skip
        run_git(root, "config", name, value)
    objects = run_git(root, "rev-parse", "HEAD:a.py").strip()
    os.remove(root / ".git" / "objects" / objects[:2] / objects[2:])
    assert committed_content(git, AbsPath(str(root / "a.py"))) is None
    assert committed_content(git, AbsPath(str(root / "gone.py"))) is None
    assert committed_content("/nowhere/git", AbsPath(str(root / "a.py"))) is None
    assert not trap.exists()


async def test_an_edit_made_while_the_file_is_still_being_checked_for_its_read_is_told(tmp_path: Path) -> None:
    """The check that a read causes may end after the edit was made: it has then judged the text of the edit."""
    told: list[Feedback] = []

    async def edit() -> None:
        told.append(await ground.touched("a.x", only_new=True, before={"a.x": OLD}))

    def starting(script: Script) -> None:
        BY_LINE(script)

        def initialize(_params: object) -> dict[str, object]:
            ground.write("a.x", NEW)
            tasks.start_soon(edit)
            return {"capabilities": script.capabilities}

        script.on("initialize", initialize)

    async with service_on(tmp_path, {"one": starting}) as ground, anyio.create_task_group() as tasks:
        ground.write("a.x", OLD)
        await ground.touched("a.x", kind="read")
    assert [shown(feedback) for feedback in told] == [["bad after"]]
