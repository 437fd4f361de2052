"""Which files an edit may have broken."""

from pathlib import Path

import pytest

from pilotfish.model import AbsPath
from pilotfish.service.diagnostics.affected import Affected, AffectedFiles, EditedText
from pilotfish.service.diagnostics.project_words import ProjectWords

pytestmark = pytest.mark.anyio

FILES = {
    "app/models.py": "class User:\n    def nick(self): ...\n\ndef load(): ...\n",
    "app/views.py": "from app.models import load\n\nload()\n",
    "app/admin.py": "import app.models\n\ndef user():\n    return app.models.User()\n",
    "app/names.py": "def show(user):\n    return user.nick()\n",
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


async def test_a_renamed_function_affects_those_who_take_it_and_not_all_who_import_its_module(project: Project) -> None:
    assert await project.edited("app/models.py", "load", "fetch") == ["app/views.py"]


async def test_a_renamed_method_affects_those_who_can_have_such_an_object(project: Project) -> None:
    (project.root / "app" / "shown.py").write_text("from app.admin import user\n\nuser().nick()\n")
    # `names.py` says the word, and imports nothing.
    assert await project.edited("app/models.py", "def nick(", "def title(") == ["app/shown.py"]


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
    (project.root / "app" / "user.py").write_text(f"{statement}\nx.show\n")
    found = await project.edited("app/names.py", "show(user)", "show(user, more)")
    assert [name for name in found if name == "app/user.py"] == affected


UNCONCERNED = {
    "a name of a module that another file has of its own": (
        {
            "a.py": "from other import Group\n\nclass Page:\n    group = 1\n",
            "b.py": "from a import Page\nimport group\n\nclass Site:\n    def __init__(self):\n        group.Group()\n",
            "user.py": "from b import Site\n\nSite()\n",
        },
        ("other", "another"),
    ),
    "a method with all of its types, where another class has one of that name": (
        {
            "a.py": "class Rules:\n    def add(self, one: int) -> None: ...\n",
            "b.py": "import a\n\nclass Base: ...\n\nclass S(Base):\n    @a.x\n    def add(self, t: str) -> None: ...\n",
            "user.py": "from b import S\n\nS()\n",
        },
        ("one: int", "one: int, two: int"),
    ),
    "a function that a constructor only calls": (
        {
            "a.py": "def add(one: int) -> None: ...\n",
            "b.py": "from a import add\n\nclass Shop:\n    def __init__(self):\n        add(1); self.size = 1\n",
            "user.py": "from b import Shop\n\nShop().size\n",
        },
        ("one: int", "one: int, two: int"),
    ),
    "an attribute of a class with bases of the project alone": (
        {
            "base.py": "class Base(Exception): ...\n",
            "a.py": "from base import Base\n\nclass Shop(Base):\n    size: int = 1\n",
            "user.py": "from a import Shop\n\nShop()\n",
        },
        ("size: int = 1", "size: str = ''"),
    ),
    "a class that is large by its documentation": (
        {
            "a.py": 'class Shop:\n    """' + "word\n" * 20_000 + '"""\n    def tall(self) -> int: ...\n',
            "user.py": "from a import Shop\n\nShop()\n",
        },
        ("tall", "wide"),
    ),
}


@pytest.mark.parametrize("name", UNCONCERNED)
async def test_whoever_cannot_see_a_change_is_not_looked_at(tmp_path: Path, name: str) -> None:
    files, (old, new) = UNCONCERNED[name]
    edit = EditedText(AbsPath(str(tmp_path / "a.py")), files["a.py"], files["a.py"].replace(old, new))
    for path, text in files.items():
        (tmp_path / path).write_text(text if path != "a.py" else edit.after or "")
    found = await AffectedFiles(ProjectWords()).of_edits(AbsPath(str(tmp_path)), [edit], (".py",), 60.0)
    assert found.complete
    assert str(tmp_path / "user.py") not in found.files


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
    assert found == ["deep/down/far.py", "app/views.py"]


BOXES = "class Box:\n    def lift(self): return 1\n    def drop(self): return 2\n\ndef made(): return Box()\n"


async def test_imports_of_a_module_that_is_gone_come_before_what_these_may_break(project: Project) -> None:
    """They are broken whatever they take from it, and whatever they mention of that."""
    (project.root / "app" / "gone.py").write_text("from app.models import gone\n\nprint(gone)\n")
    (project.root / "app" / "views.py").write_text("from app.models import load\n\ndef view():\n    return load()\n")
    (project.root / "app" / "page.py").write_text("from app.views import view\n\nprint(view())\n")
    edit = EditedText(project.path("app/models.py"), FILES["app/models.py"], None)
    names = project.names(await project.affected.of_edits(AbsPath(str(project.root)), [edit], (".py",), 60.0))
    assert names.index("app/gone.py") < names.index("app/page.py")


@pytest.mark.parametrize(
    ("before", "after", "unlikely"),
    [
        (BOXES, BOXES.replace("lift", "raise_"), set[str]()),
        # Of an object whose class has gone no checker knows what it has.
        (BOXES, BOXES.replace("class Box", "class Crate"), {"lift.py", "made.py", "far.py"}),
        # What cannot be parsed counts as a whole; what was touched is known all the same, by the other text.
        (BOXES, BOXES.replace("lift(self):", "lift(self)"), {"box.py", "made.py", "far.py"}),
        (BOXES.replace("lift(self):", "lift(self)"), BOXES, {"box.py", "made.py", "far.py"}),
        (BOXES, BOXES.replace("made():", "made("), {"lift.py", "box.py", "far.py"}),
        ("x = (\n", "y = (\n", set[str]()),
        (BOXES, None, set[str]()),
        (None, BOXES, set[str]()),
    ],
)
async def test_files_that_mention_nothing_of_what_was_changed_are_unlikely_and_come_last(
    tmp_path: Path, before: str | None, after: str | None, unlikely: set[str]
) -> None:
    files = {
        "lift.py": "import boxes\n\ndef lifted(box): box.lift()\n",
        "box.py": "from boxes import Box\n\nprint(Box)\n",
        "made.py": "from boxes import made\n\none = made()\n",
        "far.py": "from made import one\n\nprint(one)\n",
    }
    for name, text in {**files, "boxes.py": after or ""}.items():
        (tmp_path / name).write_text(text)
    edit = EditedText(AbsPath(str(tmp_path / "boxes.py")), before, after)
    found = await AffectedFiles(ProjectWords()).of_edits(AbsPath(str(tmp_path)), [edit], (".py",), 60.0)
    last = [path for path in found.files if path in found.unlikely]
    assert {Path(path).name for path in last} == unlikely
    assert found.files[len(found.files) - len(last) :] == tuple(last)


async def test_a_file_that_is_gone_affects_all_who_import_it(project: Project) -> None:
    edit = EditedText(project.path("app/models.py"), FILES["app/models.py"], None)
    found = await project.affected.of_edits(AbsPath(str(project.root)), [edit], (".py",), 60.0)
    assert set(project.names(found)) == {"app/views.py", "app/admin.py"}


async def test_of_450_importers_none_is_left_out(project: Project) -> None:
    for number in range(450):
        (project.root / "app" / f"user{number}.py").write_text("from app.models import load\n")
    assert len(await project.edited("app/models.py", "load", "fetch")) == 451


async def test_nor_of_450_that_have_no_name_of_what_changed(project: Project) -> None:
    for number in range(450):
        (project.root / "app" / f"user{number}.py").write_text(
            "from app.models import load\n\nfor one in load(): ...\n"
        )
    before = "class User:\n    def __iter__(self): ...\n\ndef load() -> User: ...\n"
    edit = EditedText(project.path("app/models.py"), before, before.replace("__iter__", "each"))
    found = await project.affected.of_edits(AbsPath(str(project.root)), [edit], (".py",), 60.0)
    assert len([name for name in project.names(found) if "/user" in name]) == 450


async def test_without_an_index_in_time_nothing_is_claimed(project: Project) -> None:
    edit = EditedText(project.path("app/models.py"), "x = 1", "y = 1")
    found = await project.affected.of_edits(AbsPath(str(project.root)), [edit], (".py",), 0.0)
    assert found == Affected((), complete=False)


async def test_what_cannot_be_parsed_may_import_whatever_it_names(project: Project) -> None:
    (project.root / "app" / "half.py").write_text("from app.models import (load\n")
    assert await project.edited("app/models.py", "load", "fetch") == ["app/half.py", "app/views.py"]


@pytest.mark.parametrize(
    ("text", "affected"),
    [
        ("from app.models import User\n\nprint(User().nick())\n", ["app/user.py"]),
        ("from app.models import User\n\nclass Guest(User):\n    def nick(self): ...\n", ["app/user.py"]),
        ("from app.models import User\n\ndef show(nickname):\n    return nickname\n", []),
    ],
)
async def test_a_file_is_read_anew_when_it_changes(project: Project, text: str, affected: list[str]) -> None:
    other = project.root / "app" / "user.py"
    for said in (text, "", text):
        other.write_text(said)
        project.words.lost(AbsPath(str(project.root)))
        found = await project.edited("app/models.py", "def load(", "def load(more")
        assert "app/user.py" not in found
        found = await project.edited("app/models.py", "def nick(self)", "def nick(self, more)")
        assert [name for name in found if name == "app/user.py"] == (affected if said else [])


TYPESCRIPT = {
    "src/deep/util.ts": "export const one = 1\n",
    "src/deep/index.ts": "export * from './util'\n",
    "src/user.ts": "import { one } from './deep'\n",
    "src/other.ts": "export const two = 2\n",
    "src/util.test.ts": "import { one } from './deep/util'\n",
}


@pytest.mark.parametrize(
    ("path", "more", "affected"),
    [
        ("src/deep/util.ts", {}, {"src/deep/index.ts", "src/user.ts", "src/util.test.ts"}),
        ("src/util.test.ts", {}, set[str]()),
        ("src/other.ts", {"tsconfig.json": '{"paths": {"@two": ["./src/other.ts"]}}'}, TYPESCRIPT.keys()),
        ("src/other.ts", {"src/other.ts": "declare global { const two: number }\nexport {}\n"}, TYPESCRIPT.keys()),
        ("src/other.ts", {"src/other.ts": "const two = 2\n"}, TYPESCRIPT.keys()),
        (
            "src/Icon.vue",
            {"src/Icon.vue": "<template><svg /></template>\n", "src/icons.ts": "import Icon from './Icon.vue'\n"},
            {"src/icons.ts"},
        ),
    ],
    ids=["through files that stay as they are", "nobody imports it", "mapped", "global", "a script", "a component"],
)
async def test_without_a_parser_whoever_may_import_a_file_is_affected(
    tmp_path: Path, path: str, more: dict[str, str], affected: set[str]
) -> None:
    for name, text in {**TYPESCRIPT, **more}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    text = (tmp_path / path).read_text()
    edit = EditedText(AbsPath(str(tmp_path / path)), text, f"{text}\n")
    found = await AffectedFiles(ProjectWords()).of_edits(AbsPath(str(tmp_path)), [edit], (".ts",), 60.0)
    assert {str(Path(one).relative_to(tmp_path)) for one in found.files} == affected - {path}
    assert found.complete
