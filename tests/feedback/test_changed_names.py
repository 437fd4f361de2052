"""Which names an edit may have changed the meaning of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.feedback.changed_names import changed_names, defined_names


@pytest.mark.parametrize(
    ("extension", "old", "new", "expected"),
    [
        pytest.param(".py", "def f(a):\n    pass\n", "def g(a):\n    pass\n", {"f", "g"}, id="a function renamed"),
        pytest.param(".py", "def f(a): ...\n", "def f(a, b): ...\n", {"f", "b"}, id="a parameter more"),
        pytest.param(
            ".py", "class A:\n    def f(self):\n        return 1\n", "class A:\n    def f(self):\n        return 'x'\n",
            {"A", "f"}, id="another type returned from a method",
        ),
        pytest.param(".py", "x = 'a'\n", "x = 'b'\n", {"x"}, id="another literal"),
        pytest.param(".py", "def f(): ...\ndef g(): ...\n", "def g(): ...\n", {"f"}, id="a function removed"),
        pytest.param(".ts", "interface A {\n  x: number\n}\n", "interface A {\n  y: number\n}\n", {"A", "x", "y"},
                     id="a member renamed"),
        pytest.param(".ts", "export const f = (a: string) => a\n", "export const f = (a: number) => a\n", {"f"},
                     id="another type of a parameter"),
        pytest.param(".go", "func (s *Server) Run(a int) {}\n", "func (s *Server) Run(a, b int) {}\n", {"Run", "b"},
                     id="a method of Go"),
        pytest.param(".py", "def f(\n    a: int,\n) -> str: ...\n", "def f(\n    a: int,\n) -> bool: ...\n", {"f"},
                     id="the end of a long signature"),
        pytest.param(".h", "struct s *add(int a);\n", "struct s *add(int a, int b);\n", {"add", "b", "s"},
                     id="a prototype of C that returns a pointer"),
        pytest.param(".h", "int add(int a);\n", "int add(int a, int b);\n", {"add", "b"}, id="a prototype of C"),
        pytest.param(".rs", "pub fn f(x: &'a str) {}\n", "pub fn f(x: &'a str, y: u8) {}\n", {"f", "y", "u8"},
                     id="a function of Rust"),
    ],
)  # fmt: skip
def test_names_of_changed_definitions_count(extension: str, old: str, new: str, expected: set[str]) -> None:
    assert changed_names(old, new, extension).all == expected


@pytest.mark.parametrize(
    ("extension", "old", "new"),
    [
        pytest.param(".py", "x = 1\n", "x = 1  # one\n", id="a comment behind code"),
        pytest.param(
            ".py", "def f():\n    '''Old words.'''\n", "def f():\n    '''New\n    words.'''\n", id="documentation"
        ),
        pytest.param(".py", "x = 1\n", "x  =  1\r\n\r\n", id="blanks and line ends"),
        pytest.param(
            ".py", "def f():\n    return g(1)\n", "def f():\n    return (\n        g(1)\n    )\n", id="brackets"
        ),
        pytest.param(
            ".ts", "function f() {\n  return (a + b);\n}\n", "function f() {\n  return a + b;\n}\n", id="none"
        ),
        pytest.param(".ts", "const x = 1\n", "// why\nconst x = 1 /* it\n is */\n", id="comments of TypeScript"),
        pytest.param(".rs", "fn f<'a>() {}\n", "/// It's fine.\nfn f<'a>() {}\n", id="a comment of Rust"),
        pytest.param("", "same\n", "same\n", id="nothing"),
    ],
)
def test_what_affects_nobody_changes_no_name(extension: str, old: str, new: str) -> None:
    assert changed_names(old, new, extension).all == frozenset()


def test_other_brackets_may_change_the_meaning() -> None:
    old = "def f():\n    return (a) + g(b)\n"
    assert changed_names(old, "def f():\n    return a) + g(b\n", ".py").defined == {"f"}
    assert changed_names(old, old.replace("g(b)", "(g)(b)"), ".py").defined == {"f"}


def test_a_sign_in_a_comment_does_not_hide_the_code_after_it() -> None:
    old = "url = 'http://x'  # it's\ndef f(): ...\n"
    assert changed_names(old, old.replace("f()", "g()"), ".py").changed == {"f", "g"}
    old = 'const url = "http://x"\nfunction f() {}\n'
    assert changed_names(old, old.replace("f()", "g()"), ".ts").changed == {"f", "g"}


def test_a_file_takes_with_it_what_it_defines() -> None:
    text = "import os\nLIMIT = 3\nclass A:\n    size: int = 1\n\n    def f(self): ...\n"
    assert defined_names(text) == {"LIMIT", "A", "size", "f"}


@given(
    st.text(alphabet="ab'\"#/*\n (=:\\`"),
    st.text(alphabet="ab'\"#/*\n (=:\\`"),
    st.sampled_from([".py", ".ts", ".rs", ""]),
)
def test_any_text_will_do(old: str, new: str, extension: str) -> None:
    names = changed_names(old, new, extension)
    assert names == changed_names(old, new, extension)
    assert changed_names(old, old, extension).all == frozenset()
