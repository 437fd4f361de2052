"""Which symbols an edit changes: those that others can see differently, and no others where that can be proven."""

import subprocess
import sys

import pytest

from pilotfish.feedback.shapes.changes import (
    EVERYTHING,
    NOTHING,
    changed_symbols,
    names_gone,
    old_signatures,
    old_symbol,
)
from pilotfish.feedback.shapes.python import shape_of
from pilotfish.feedback.shapes.words import Import, may_mean, target_of
from pilotfish.model import AbsPath

FILE = AbsPath("/a.py")

TEXT = '''"""Boxes."""

from dataclasses import dataclass

from other import found, thing as known


class Box:
    """Holds things."""

    size: int = 1
    colour = "red"

    def __init__(self, size: int, name: str = "box") -> None:
        self.size = size
        self.name = name
        self.depth: int = measured(size)
        place = found()
        self.place = place

    def open(self, key: str = "a") -> bool:
        """With a key."""
        tried = key.strip()  # or not
        return bool(tried)

    def close(self):
        left = 1
        return left

    def log(self, text):
        print(text)


@dataclass
class Lid(Box):
    width: int
    height: int = 2


def make(size: int) -> Box:
    made = Box(size)
    return made


def count(boxes=()):
    total = 0
    for _ in boxes:
        total += 1
    return total


LIMIT = 3
NAMES: list[str] = ["a"]
if LIMIT:
    MORE = LIMIT
'''


def changed(old: str, new: str) -> set[str]:
    assert old in TEXT
    found = changed_symbols(FILE, TEXT, TEXT.replace(old, new, 1))
    assert not found.all
    return {f"{owner}.{name}".strip(".") for owner, name in found.keys} | found.structured


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# or not", "# or so"),
        ('"""With a key."""', '"""With any key."""'),
        ('"""Boxes."""\n', ""),
        ("tried = key.strip()", "tried = key.lower()"),
        ("made = Box(size)\n    return made", "return Box(size)"),
        ('key: str = "a"', 'key: str = "b"'),
        ('name: str = "box"', 'name: str = "lid"'),
        ("size: int = 1\n", "size: int = 2\n"),
        ('NAMES: list[str] = ["a"]', "NAMES: list[str] = []"),
        ("self.depth: int = measured(size)", "self.depth: int = measured(size, 2)"),
        ("print(text)", 'print(f"> {text}")'),
        ("    def close(self):\n", "    def close(\n        self,\n    ):\n"),
        ("total = 0\n", "total = 0\n\n"),
    ],
)
def test_what_nobody_else_can_see_changes_nothing(old: str, new: str) -> None:
    assert changed(old, new) == set()


@pytest.mark.parametrize(
    ("old", "new", "seen"),
    [
        ("def open(self, key", "def open(self, lock, key", {"Box.open"}),
        (' = "a") -> bool', ") -> bool", {"Box.open"}),
        ("-> bool", "-> int", {"Box.open"}),
        ("left = 1", "left = 2.0", {"Box.close"}),
        ("self.name = name", "self.name = size", {"Box.name"}),
        ("name: str = ", "name: str | None = ", {"Box.name", "Box.__init__", "Box"}),
        ("place = found()", "place = known()", {"Box.place"}),
        ('colour = "red"', "colour = 1", {"Box.colour"}),
        ("size: int = 1", "size: str = 1", {"Box.size"}),
        ("print(text)", "fail(text)", {"Box.log"}),
        ("width: int\n    height: int = 2", "height: int = 2\n    width: int", {"Lid"}),
        ("height: int = 2", "height: int", {"Lid", "Lid.height"}),
        ("@dataclass\n", "", {"Lid"}),
        ("def make(size: int)", "def make(size: str)", {"make"}),
        ("total += 1", "total += 1.0", {"count"}),
        ("boxes=()", "boxes=[]", {"count"}),
        ("LIMIT = 3", "LIMIT = 4", {"LIMIT"}),
        ("if LIMIT:", "if not LIMIT:", {"MORE"}),
        ("thing as known", "things as known", {"known"}),
        ("def make(", "def made(", {"make", "made"}),
        ("    def close(self):\n        left = 1\n        return left\n", "", {"Box.close"}),
    ],
)
def test_what_others_can_see_changes_its_symbol(old: str, new: str, seen: set[str]) -> None:
    assert changed(old, new) == seen


def test_a_statement_that_may_never_end_changes_all_that_follows() -> None:
    assert changed("LIMIT = 3", "leave()\nLIMIT = 3") == {"LIMIT", "NAMES", "MORE"}


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (None, "a = 1", EVERYTHING),
        ("a = 1", None, EVERYTHING),
        ("a = 1", "a = (", EVERYTHING),
        ("def a:\n    b\n", "def a:\n    b  # here\n\n", NOTHING),
        ("def a:\n    b\n", "def a:\nb\n", EVERYTHING),
        ("a = (", "a = (  # open", EVERYTHING),  # where the text ends, nobody can tell
        ("__all__ = ['a']\na = 1", "a = 1", EVERYTHING),
        ("def __getattr__(name): return 1", "def __getattr__(name): return ''", EVERYTHING),
        ("# pyright: basic\na = 1", "# pyright: strict\na = 1", EVERYTHING),
        ("a = 1  # pyright: ignore", "a = 1", NOTHING),
        ("a = 1", "a = 1", NOTHING),
    ],
)
def test_what_cannot_be_told_apart_changes_as_a_whole(before: str | None, after: str | None, found: object) -> None:
    assert changed_symbols(FILE, before, after) == found


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("a = 1\nb = 2\n", "a = 1\nb = 3\n", {("", "b")}),
        ("from typing import Final as F\nx: F = 1\n", "from typing import Final as F\nx: F = 2\n", {("", "x")}),
        # Only a statement that is not touched says that a change of the member is one of its class.
        (
            "class A(B):\n    @x.setter\n    def x(self, v): ...\n    def f(self):\n        self.x = 1\n",
            "class A(B):\n    @x.setter\n    def x(self, v): ...\n    def f(self):\n        self.x = ''\n",
            {("A", "x"), "A"},
        ),
        ('a = """\nb = 1\nc = """, 2\n', 'a = """\nb = 2\nc = """, 2\n', {("", "a")}),
        ("if a:\n    b = 1\nc = 1\n", "if a:\n    b = 1\nelse:\n    b = 2\nc = 1\n", {("", "b")}),
        ("@a\ndef b(): ...\n", "@c\ndef b(): ...\n", {("", "b")}),
    ],
)
def test_the_statements_that_were_not_touched_count_where_they_must(
    before: str, after: str, found: set[tuple[str, str] | str]
) -> None:
    told = changed_symbols(FILE, before, after)
    assert told.keys | told.structured == found


def test_a_text_without_a_parser_is_one_symbol() -> None:
    assert changed_symbols(AbsPath("/a.rb"), "a", "a ") == EVERYTHING
    assert changed_symbols(AbsPath("/a.rb"), "a", "a") == NOTHING


GO_FILE = AbsPath("/a.go")

GO_TEXT = """// Package a.
package a

import "fmt"

type T struct{ size int }

var limit = func() int { return 1 }()

func (t *T) show(x struct{}, y interface{ M() }) map[string]struct{} {
\ts := `}{` // not "this"
\tif t.size > 1 { fmt.Println('}', "}\\"", s) }
\treturn nil
}

func outside(a int) bool

func main() {
}
"""


@pytest.mark.parametrize(
    ("old", "new", "is_seen"),
    [
        ("return nil", "return map[string]struct{}{}", False),
        ("t.size > 1", "t.size > 2", False),
        ("`}{`", "`{{`", False),
        ("func main() {\n}", "func main() {\n\tvar x int\n}", False),
        ("import", "// A remark.\n\n\n/* and\nanother */\nimport", False),
        ("struct{ size int }", "struct { size int }", False),
        ("x struct{}", "x int", True),
        ("map[string]struct{}", "map[string]struct{ a int }", True),
        ("return 1", "return 2", True),  # the value of a variable
        ("limit = func() int { return 1 }()", 'limit = func() string { return "" }()', True),
        ("(a int) bool", "(a int) int", True),
        ("func main() {\n}", "", True),
        ("func main() {\n}", "func main() {\n}\n\nfunc more() {\n}", True),
        ("size int", "Size int", True),
        ("func main() {\n}", "func main() {", True),
        ("// Package a.", "//go:build linux\n", True),
        ("var limit", "//go:embed x\nvar limit", True),
        ('import "fmt"', '// #include <a.h>\nimport "C"', True),
        ("func outside(a int) bool", "func outside(a int) bool { return true }", False),
        ("type T struct{ size int }", "type T struct{ size int }; func (t T) more() {}", True),
    ],
)
def test_of_a_file_of_go_others_see_all_but_remarks_and_bodies(old: str, new: str, is_seen: bool) -> None:
    assert old in GO_TEXT
    assert changed_symbols(GO_FILE, GO_TEXT, GO_TEXT.replace(old, new, 1)) == (EVERYTHING if is_seen else NOTHING)


def test_a_file_of_go_that_cannot_be_told_apart_counts_as_a_whole() -> None:
    assert changed_symbols(GO_FILE, GO_TEXT, GO_TEXT) == NOTHING
    for other in (None, "", "func main() {}", f"package a\n{' ' * 300_000}"):
        assert changed_symbols(GO_FILE, GO_TEXT, other) == changed_symbols(GO_FILE, other, GO_TEXT) == EVERYTHING


def test_names_that_a_file_defines_no_more() -> None:
    path = AbsPath("/a.py")
    assert names_gone(path, "def one(): ...\ndef two(): ...\n", "def one(): two\n") == {"two"}
    assert names_gone(AbsPath("/a.rb"), "def one\ndef two\n", "def one\n") == {"two"}


@pytest.mark.parametrize(
    ("said", "target", "means"),
    [
        (Import(0, ("p", "a"), None, "p"), "/r/p/a.py", True),
        (Import(0, ("p", "a"), None, "p"), "/r/p/__init__.py", True),
        (Import(0, ("p", "a"), "b", "b"), "/r/p/a/b.pyi", True),
        (Import(0, ("p", "a"), "b", "b"), "/r/p/a.py", True),
        (Import(0, ("p", "a"), "b", "b"), "/r/p/__init__.py", False),  # nothing of it is taken
        (Import(0, ("p", "a"), "b", "b"), "/r/other/src/p/a.py", True),
        (Import(0, ("p", "a"), "b", "b"), "/r/typings/p-stubs/a.pyi", True),
        (Import(0, ("p", "a"), "b", "b"), "/r/q/a.py", False),
        (Import(1, (), "b", "b"), "/r/p/b.py", True),
        (Import(1, (), "b", "b"), "/r/p/__init__.py", True),
        (Import(1, (), "b", "b"), "/r/q/b.py", False),
        (Import(2, ("q",), "b", "b"), "/r/q/b.py", True),
        (Import(0, ("typing",), "Any", "Any"), "/r/p/typing.py", False),  # inside of a package
        (Import(0, ("typing",), "Any", "Any"), "/r/typing.py", True),
    ],
)
def test_which_files_an_import_may_mean(said: Import, target: str, means: bool) -> None:
    assert may_mean(said, AbsPath("/r/p/user.py"), target_of(AbsPath(target)), {("", "r", "p")}) is means


def test_imports_are_found_wherever_they_stand() -> None:
    text = "from p import (a,  # (x)\n    b as c)\ndef f():\n    import d.e\nif g:\n    from . import *\n"
    assert {(one.level, one.module, one.name, one.bound) for one in shape_of(text).imports} == {
        (0, ("p",), "a", "a"),
        (0, ("p",), "b", "c"),
        (0, ("d", "e"), None, "d"),
        (1, (), "*", "*"),
    }


@pytest.mark.parametrize(
    ("parameters", "overrides"),
    [
        ("self, key: int", False),
        ("self, key", True),
        ("*rest, key: int", True),  # the object is one of the rest
        ("*rest: int, key", True),
        ("*rest: int, key: int", False),
    ],
)
def test_what_a_method_does_not_say_may_come_from_the_one_that_it_overrides(
    parameters: str, *, overrides: bool
) -> None:
    symbols = shape_of(f"class A(B):\n    def open({parameters}) -> int: ...\n").symbols
    found = next(one for one in symbols if (one.owner, one.name) == ("A", "open"))
    assert ("open" in found.outside) is overrides


def test_nothing_is_said_about_texts_of_the_project() -> None:
    program = r"from pilotfish.feedback.shapes.python import shape_of; shape_of('one = \'\\d\'')"
    done = subprocess.run([sys.executable, "-W", "always", "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.proves("FMT-9")
@pytest.mark.parametrize(
    ("old", "new", "places", "expected"),
    [
        ("open(self, key: str", "open(self, lock: str", ["box.open()", "x = open(1)"], "open(key='a')"),
        ("open(self, key: str", "open(self, lock: str", ["box.open()", "x = close(1)"], ""),
        ("size: int, name: str", "size: str, name: str", ["Box(1)"], "Box(size, name='box')"),
        ("class Box", "class Case", ["from boxes import Box", "Box(1).open()"], "Box"),
        ("class Box", "class Case", ["Case()"], ""),
        ("key: str", f"{'k' * 60}: str", ["open()"], "open(key='a')"),
        ("colour = ", "colours = ", ["box.colour", "a.colour = 1"], ""),
        ("bool(tried)", "not tried", ["box.open()"], ""),
        ("size: int, name: str", "size: str, title: str", [], ""),
    ],
    ids=["a method", "not all", "a class", "gone", "new", "long now", "a variable", "its body", "no places"],
)
def test_what_all_places_mention_is_named_as_it_was(old: str, new: str, places: list[str], expected: str) -> None:
    after = TEXT.replace(old, new)
    assert after != TEXT
    assert old_symbol(old_signatures(TEXT, after), places) == expected


def test_a_long_signature_is_its_name() -> None:
    before = f"def f({', '.join(f'parameter_{n}' for n in range(9))}): ...\n"
    assert old_symbol(old_signatures(before, "def f(): ...\n"), ["f()"]) == "f(…)"
    assert old_signatures("def f(:", before) == ()
    assert old_signatures(before, f"{before}def g(): ...\n") == ()
