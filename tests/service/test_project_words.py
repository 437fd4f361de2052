"""The words of a project, kept in step with the disk."""

from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from pilotfish.model import AbsPath
from pilotfish.service.diagnostics import project_words
from pilotfish.service.diagnostics.project_words import ProjectWords

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """Files are read in threads, which virtual time does not wait for."""
    return "asyncio"


class Project:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.words = ProjectWords()

    def write(self, name: str, content: str | bytes) -> AbsPath:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return AbsPath(str(path))

    async def mentions(self, *words: str, seconds: float = 60.0) -> dict[str, int]:
        found = await self.words.mentions(AbsPath(str(self.root)), words, (".py", ".ts"), seconds)
        assert found is not None
        assert found.complete
        return {str(Path(path).relative_to(self.root)): count for path, count in found.files.items()}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


async def test_files_of_the_wanted_kinds_are_found_and_ignored_ones_are_not(project: Project) -> None:
    project.write("a.py", "total = 1\n")
    project.write("sub/b.ts", "const total = count\n")
    project.write("notes.md", "total\n")
    project.write("node_modules/c.ts", "total\n")
    project.write("out/d.py", "total\n")
    project.write(".gitignore", "out/\n")
    project.write("e.py", b"\0total\n")
    assert await project.mentions("total", "count") == {"a.py": 1, "sub/b.ts": 2}


async def test_what_is_told_is_read_again_and_nothing_else(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = project.write("a.py", "total\n"), project.write("b.py", "total\n")
    assert await project.mentions("total") == {"a.py": 1, "b.py": 1}
    read: list[bytes] = []
    checksums = project_words.checksums
    monkeypatch.setattr(project_words, "checksums", lambda content: read.append(content) or checksums(content))  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    Path(a).unlink()
    c = project.write("c.py", "total c\n")
    project.words.changed(AbsPath(str(project.root)), [a, c])
    assert await project.mentions("total") == {"b.py": 1, "c.py": 1}
    # What was not told is not known, until somebody says that changes were lost.
    project.write("b.py", "other words\n")
    assert await project.mentions("total") == {"b.py": 1, "c.py": 1}
    project.words.lost(AbsPath(str(project.root)))
    assert await project.mentions("total") == {"c.py": 1}
    assert read == [b"total c\n", b"other words\n"]
    assert b


async def test_a_folder_that_is_told_is_no_file(project: Project) -> None:
    project.write("a.py", "total\n")
    assert await project.mentions("total") == {"a.py": 1}
    folder = project.root / "b.py"
    folder.mkdir()
    project.words.changed(AbsPath(str(project.root)), [AbsPath(str(folder))])
    assert await project.mentions("total") == {"a.py": 1}


async def test_a_project_that_is_too_large_is_said_to_be_searched_in_part(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_words, "MAX_FILES", 2)
    for number in range(4):
        project.write(f"{number}.py", "total\n")
    found = await project.words.mentions(AbsPath(str(project.root)), ["total"], (".py",), 60.0)
    assert found is not None
    assert (len(found.files), found.complete) == (2, False)


async def test_nobody_waits_for_it_longer_than_they_can(project: Project) -> None:
    project.write("a.py", "total\n")
    assert await project.words.mentions(AbsPath(str(project.root)), ["total"], (".py",), 0.0) is None
    assert await project.mentions("total") == {"a.py": 1}


async def test_what_changed_is_not_forgotten_when_a_question_is_cut_off(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object, **__: object) -> None:
        await anyio.sleep_forever()

    b = project.write("b.py", "alpha\n")
    assert await project.mentions("beta") == {}
    project.write("b.py", "beta\n")
    project.words.changed(AbsPath(str(project.root)), [b])
    with monkeypatch.context() as patched:
        patched.setattr(anyio.to_thread, "run_sync", never)
        assert await project.words.mentions(AbsPath(str(project.root)), ["beta"], (".py",), 0.01) is None
    assert await project.mentions("beta") == {"b.py": 1}
