"""Which files an edit may have broken."""

from pathlib import Path

import pytest

from pilotfish.model import AbsPath
from pilotfish.service.diagnostics.affected import Affected, AffectedFiles, EditedText
from pilotfish.service.diagnostics.project_words import ProjectWords

pytestmark = pytest.mark.anyio

FILES = {
    "app/models.py": "class User:\n    def name(self): ...\n\ndef load(): ...\n",
    "app/views.py": "from app.models import load\n\nload()\n",
    "app/admin.py": "import app.models\n\napp.models.User()\n",
    "app/names.py": "def show(user):\n    return user.name()\n",
    "app/other.py": "print('models')\n",
    "deep/down/far.py": "from app.views import x\n",
}


@pytest.fixture
def anyio_backend() -> str:
    """Files are read in threads, which virtual time does not wait for."""
    return "asyncio"


class Project:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.words = ProjectWords()
        self.affected = AffectedFiles(self.words)
        for name, text in FILES.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def path(self, name: str) -> AbsPath:
        return AbsPath(str(self.root / name))

    def names(self, found: Affected) -> list[str]:
        assert found.complete
        return [str(Path(path).relative_to(self.root)) for path in found.files]

    async def edited(self, name: str, old: str, new: str, broken: tuple[str, ...] = ()) -> list[str]:
        before = FILES[name]
        assert old in before
        edit = EditedText(self.path(name), before, before.replace(old, new))
        paths = [self.path(one) for one in broken]
        return self.names(await self.affected.of_edits(AbsPath(str(self.root)), [edit], (".py",), 60.0, paths))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


async def test_a_renamed_function_affects_those_who_mention_it_and_the_importers(project: Project) -> None:
    assert await project.edited("app/models.py", "load", "fetch") == ["app/views.py", "app/admin.py"]


async def test_a_renamed_method_affects_a_file_that_imports_nothing(project: Project) -> None:
    found = await project.edited("app/models.py", "def name(", "def title(")
    assert set(found) == {"app/names.py", "app/views.py", "app/admin.py"}
    assert found[0] == "app/names.py"


async def test_a_comment_affects_nobody(project: Project) -> None:
    assert await project.edited("app/models.py", "def load(", "# It loads a User.\ndef load(") == []


async def test_what_changes_in_a_file_that_nobody_imports_affects_nobody(project: Project) -> None:
    assert await project.edited("app/names.py", "show(user)", "show(name, load)") == []


@pytest.mark.parametrize(
    ("statement", "affected"),
    [
        ("def names(): ...", []),
        ("from app import (\n    other,\n    names,\n)", ["app/user.py"]),
        ("from app import other, \\\n    names", ["app/user.py"]),
        ("if True:\n    import app.names as x", ["app/user.py"]),
    ],
)
async def test_only_an_import_is_a_way_to_others(project: Project, statement: str, affected: list[str]) -> None:
    (project.root / "app" / "user.py").write_text(f"{statement}\nshow = 1\n")
    found = await project.edited("app/names.py", "show(user)", "show(user, more)")
    assert [name for name in found if name == "app/user.py"] == affected


async def test_a_file_of_python_is_imported_by_its_own_name_whatever_that_is(project: Project) -> None:
    (project.root / "app" / "main.py").write_text("def run(): ...\n")
    (project.root / "app" / "__init__.py").write_text("def begin(): ...\n")
    (project.root / "app" / "start.py").write_text("from app.main import run\nfrom . import begin\n")
    for name in ("main", "__init__"):
        path = project.root / "app" / f"{name}.py"
        edit = EditedText(project.path(f"app/{name}.py"), path.read_text(), path.read_text().replace("def ", "def re"))
        found = await project.affected.of_edits(AbsPath(str(project.root)), [edit], (".py",), 60.0)
        assert "app/start.py" in project.names(found)


async def test_what_was_broken_comes_first(project: Project) -> None:
    found = await project.edited("app/models.py", "load", "fetch", broken=("deep/down/far.py",))
    assert found == ["deep/down/far.py", "app/views.py", "app/admin.py"]


async def test_a_file_that_is_gone_affects_all_who_mention_what_it_defined(project: Project) -> None:
    edit = EditedText(project.path("app/models.py"), FILES["app/models.py"], None)
    found = await project.affected.of_edits(AbsPath(str(project.root)), [edit], (".py",), 60.0)
    assert set(project.names(found)) == {"app/views.py", "app/admin.py", "app/names.py"}


async def test_the_importers_of_a_broken_file_follow(project: Project) -> None:
    found = await project.affected.of_broken(AbsPath(str(project.root)), [project.path("app/views.py")], (".py",), 60.0)
    assert project.names(found) == ["deep/down/far.py"]


async def test_without_an_index_in_time_nothing_is_claimed(project: Project) -> None:
    edit = EditedText(project.path("app/models.py"), "x = 1", "y = 1")
    found = await project.affected.of_edits(AbsPath(str(project.root)), [edit], (".py",), 0.0)
    assert found == Affected((), complete=False)


@pytest.mark.parametrize(
    ("text", "affected"),
    [
        ("def show(user):\n    return user.name()\n", ["app/user.py"]),
        ("class Guest:\n    def name(self): ...\n", ["app/user.py"]),
        ("def show(name):\n    return name\n", []),
    ],
)
async def test_a_variable_of_the_same_name_does_not_see_a_member(
    project: Project, text: str, affected: list[str]
) -> None:
    other = project.root / "app" / "user.py"
    edit = EditedText(
        project.path("app/models.py"),
        FILES["app/models.py"],
        FILES["app/models.py"].replace("name(self)", "name(self, x)"),
    )
    for said in (text, "", text):
        # It comes back to an earlier text.
        other.write_text(said)
        project.words.lost(AbsPath(str(project.root)))
        found = await project.affected.by_visible_names(AbsPath(str(project.root)), [edit], (".py",), 60.0)
        assert [name for name in project.names(found) if name == "app/user.py"] == (affected if said else [])


async def test_of_what_is_broken_only_what_others_import_is_seen(project: Project) -> None:
    paths = [project.path(name) for name in ("app/names.py", "app/models.py", "app/views.py")]
    found = await project.affected.importable(AbsPath(str(project.root)), paths, (".py",), 60.0)
    assert found == paths[1:]
