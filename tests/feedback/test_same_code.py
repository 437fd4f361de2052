"""Functions that do the same under other names of their variables."""

import pytest

from pilotfish.feedback.same_code import same_but_for_variables
from pilotfish.feedback.visible_names import visible_names


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def f(a):\n    b = a\n    return b", "def f(a):\n    c = a\n    return c"),
        ("def f(a):\n    return a", "def f(a):\n    # said\n    return (\n        a\n    )"),
        ("def f():\n    for a in x: y(a)", "def f():\n    for b in x: y(b)"),
        ("def f():\n    return [a for a in x]", "def f():\n    return [b for b in x]"),
        (
            "    def f(self):\n        a = 'x'\n        self.a = a",
            '    def f(self):\n        b = "x"\n        self.a = b',
        ),
        ("async def f():\n    a, b = x\n    return b, a", "async def f():\n    b, a = x\n    return a, b"),
        ("def f():\n    a = 1\n    def g(): return a", "def f():\n    b = 1\n    def g(): return b"),
    ],
)
def test_the_name_of_a_variable_nobody_sees(old: str, new: str) -> None:
    assert _is_same(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def f(a):\n    return a", "def f(b):\n    return b"),
        ("def f(a):\n    b = a\n    return b", "def f(a):\n    b = a\n    return a"),
        ("def f():\n    a = x\n    return a", "def f():\n    x = x\n    return x"),
        ("def f():\n    a = 1\n    return len(a)", "def f():\n    len = 1\n    return len(len)"),
        ("def f():\n    global a\n    a = 1", "def f():\n    global b\n    b = 1"),
        ("def f():\n    class A:\n        a = 1\n    return A", "def f():\n    class A:\n        b = 1\n    return A"),
        ("def f():\n    a.b = 1", "def f():\n    a.c = 1"),
        ("def f():\n    import a\n    return a", "def f():\n    import b\n    return b"),
        ("def f():\n    return g(a=1)", "def f():\n    return g(b=1)"),
        ("def f():\n    a = b = 1\n    return a", "def f():\n    a = b = 1\n    return b"),
        ("def f():\n    a = 1", "async def f():\n    a = 1"),
        ("def f():\n    a = 1", "def f():\n    a ="),
        ("def f():\n    a = 1", "def f():\n    a = 1\nb = 1"),
    ],
)
def test_all_else_may_be_seen(old: str, new: str) -> None:
    assert not _is_same(old, new)


def _is_same(old: str, new: str) -> bool:
    extents = (range(old.count("\n") + 1), range(new.count("\n") + 1))
    return same_but_for_variables(old, new, [extents]) == [extents]


def test_an_edit_that_renames_a_variable_is_not_seen_and_what_stands_beside_it_is() -> None:
    old = "def f(a):\n    b = a\n    return b\n\n\ndef g(a):\n    return a\n"
    renamed = old.replace("b", "c")
    assert visible_names(old, renamed, ".py") == frozenset()
    assert visible_names(old, renamed.replace("return a", "return 1"), ".py") == {"g"}
    assert visible_names(old, old.replace("return b", "return a"), ".py") == {"f"}
