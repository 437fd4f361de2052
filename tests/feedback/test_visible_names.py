"""Which names other files see an edit by."""

import pytest

from pilotfish.feedback.visible_names import exported_names, imported_names, names_seen_at, visible_names

PYTHON = """class Box:
    size: int = 1

    def __init__(self, size):
        self.size = size

    def open(self, key: str) -> bool:
        tried = key.strip()
        return bool(tried)

    def close(self):
        left = 1
        return left


def make(
    size: int,
) -> Box:
    made = Box(size)
    return made


@cache
def count():
    return 1


from other import thing
"""

TYPESCRIPT = """export interface Options {
  key: string;
}

export class Box {
  open(key: string): boolean {
    const tried = key.trim();
    return tried.length > 0;
  }

  close() {
    const left = 1;
    return left;
  }
}

export function make<T>(
  size: T
): Box {
  const made = new Box();
  return made;
}

export const count = (one: number) => {
  const two = one;
  return two;
};

export { thing } from './other';
"""


@pytest.mark.parametrize(
    ("old", "new", "seen"),
    [
        ("tried = key.strip()", "found = key.strip()", set[str]()),  # it says what it returns
        ("left = 1", "left = 2.0", {"close"}),
        # A class is seen by what it makes, and a function by the class that it returns.
        ("self.size = size", "self.size = other", {"size", "Box", "__init__", "make"}),
        ("size: int = 1", "size: str = 1", {"size", "Box", "__init__", "make"}),
        ("def open(self, key", "def open(self, lock, key", {"open", "Box", "make"}),
        ("tried = key.strip()", "tried = self.size.strip()", set[str]()),  # reading an attribute changes nothing
        ("made = Box(size)", "made = Box(2)", set[str]()),
        ("@cache", "@wraps", {"cache", "wraps", "count"}),
        ("import thing", "import other_thing", {"thing", "other_thing"}),
        ("tried = key.strip()", "tried = (key.strip()", {"tried", "open", "Box", "key", "strip"}),
    ],
)
def test_python(old: str, new: str, seen: set[str]) -> None:
    found = visible_names(PYTHON, PYTHON.replace(old, new), ".py")
    assert found == seen or (seen > {"tried"} and found & seen)


@pytest.mark.parametrize(
    ("old", "new", "seen"),
    [
        ("const tried = key.trim()", "const found = key.trim()", set[str]()),
        ("const left = 1", "const left = 'a'", {"close"}),
        ("key: string;", "key: number;", {"key", "Options"}),
        ("open(key: string)", "open(key: string, more: string)", {"open", "Box"}),
        ("made = new Box()", "made = new Box(1)", set[str]()),
        ("const two = one", "const two = 'a'", {"count"}),
        ("{ thing }", "{ other }", {"thing", "other"}),
    ],
)
def test_typescript(old: str, new: str, seen: set[str]) -> None:
    assert visible_names(TYPESCRIPT, TYPESCRIPT.replace(old, new), ".ts") == seen


def test_comments_and_blank_lines_are_seen_by_nobody() -> None:
    assert visible_names(PYTHON, PYTHON + "\n\n# said\n", ".py") == frozenset()


def test_of_a_language_that_is_not_known_every_name_counts() -> None:
    assert visible_names("fn a() {\n    let b = 1;\n}\n", "fn a() {\n    let c = 1;\n}\n", ".rs") >= {"b", "c"}


@pytest.mark.parametrize(
    ("head", "seen"),
    [
        ("class Box:", {"open"}),
        ("from .bases import Base\n\n\nclass Box(Base):", {"open"}),
        ("class Base:\n    pass\n\n\nclass Box(Base):", {"open"}),
        ("from elsewhere import Base\n\n\nclass Box(Base):", {"open", "Box", "make"}),  # it may ask for `open`
        ("class Box(Generic[T]):", {"open", "Box", "make"}),
    ],
)
def test_a_method_is_seen_by_its_name_where_no_base_of_another_project_asks_for_it(head: str, seen: set[str]) -> None:
    text = PYTHON.replace("class Box:", head)
    assert visible_names(text, text.replace("open(self, key", "open(self, lock"), ".py", with_classes=False) == seen


ATTRIBUTES = """class Box:
    size: int = 1
    sizes = {
        "small": 1,
    }

    def __init__(
        self,
        key: str,
    ) -> None:
        self.key = key
"""


@pytest.mark.parametrize(
    ("old", "new", "seen"),
    [
        ("int = 1", "str = 1", {"size"}),
        ('"small": 1', '"small": ""', {"sizes"}),
        ("self.key = key", "self.key = 1", {"key"}),
        ("key: str", "key: int", {"key", "Box", "__init__"}),  # whoever makes one says the name of the class
        ("class Box:", "class Box(dict):", {"Box"}),
    ],
)
def test_an_attribute_is_seen_by_its_name_where_the_class_says_how_it_is_made(
    old: str, new: str, seen: set[str]
) -> None:
    assert visible_names(ATTRIBUTES, ATTRIBUTES.replace(old, new), ".py", with_classes=False) == seen


@pytest.mark.parametrize(
    "text",
    [
        ATTRIBUTES.replace("__init__", "set_up"),
        "class Box:\n    size: int = 1\n\n    class Lid:\n        def __init__(self):\n            pass\n",
    ],
    ids=["without", "only a class inside of it has one"],
)
def test_an_attribute_of_a_class_without_an_own_init_is_seen_by_the_class_too(text: str) -> None:
    """Its attributes may be what its instances are made of."""
    assert visible_names(text, text.replace("int = 1", "str = 1"), ".py", with_classes=False) == {"size", "Box"}


@pytest.mark.parametrize(
    ("old", "new", "imported"),
    [
        ("import thing", "import other_thing", {"thing", "other_thing"}),
        ("from other import thing", "from others import thing as made, more", {"thing", "made", "more"}),
        ("from other import thing", "import other.thing", {"thing", "other"}),
        ("from other import thing", "thing = 1", set[str]()),
        ("return 1\n\n\nfrom other import thing", "return 2\n\n\nfrom others import thing", set[str]()),
    ],
)
def test_names_that_only_imports_bind(old: str, new: str, imported: set[str]) -> None:
    assert imported_names(PYTHON, PYTHON.replace(old, new), ".py") == imported


def test_a_file_of_python_exports_what_it_defines_outside_of_classes_and_functions() -> None:
    assert exported_names(PYTHON, ".py") == {"Box", "make", "count"}
    assert exported_names(TYPESCRIPT, ".ts") is None


FLOW = """from other import found


class Box:
    def __init__(self, path=None):
        self.first = 1
        if path is None:
            path = found()

        self.place = path
        self.parts = (
            path,
        )
        kind = 1
        self.kind = kind

    def fill(self) -> None:
        last = 0
        for one in range(3):
            self.last = last
            last = measured(
                one,
            )
        self.size = 1

    def choose(self) -> None:
        if measured(1):
            self.chosen = 1
"""


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        (0, {"found", "place", "parts"}),
        (7, {"place", "parts"}),
        (13, {"kind"}),
        (21, {"last"}),
        (26, {"chosen"}),
    ],
    ids=["by an import", "by a variable", "by another", "in a loop, of a statement of several lines", "by a decision"],
)
def test_an_attribute_is_seen_that_gets_its_value_from_the_line(line: int, seen: set[str]) -> None:
    assert names_seen_at(FLOW, [line], ".py") == seen


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("self.kind, self.size = given, 1", {"kind", "size"}),
        ("(self.kind, other) = given", {"kind"}),
        ("[other, self.kind] = given", {"kind"}),
        ("self.count **= given", {"count"}),
        ("self.count >>= given", {"count"}),
        ("told(self.kind, size=given)", set[str]()),
        ("told(self.count <= given)", set[str]()),
        ("told(self.count, given >= 1)", set[str]()),
    ],
)
def test_an_attribute_is_seen_where_it_is_assigned_to(line: str, seen: set[str]) -> None:
    text = f"from made import given\n\n\nclass Box:\n    def fill(self) -> None:\n        {line}\n"
    assert names_seen_at(text, [0], ".py") == {"given", *seen}
