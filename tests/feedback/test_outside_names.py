"""Which names of a text may mean something of another file."""

import subprocess
import sys

import pytest

from pilotfish.feedback.outside_names import outside_names


@pytest.mark.parametrize(
    ("text", "is_meant"),
    [
        ("import key", True),
        ("import one.key.two", True),
        ("import other as key", True),
        ("from key import other", True),
        ("from .one import (\n    key,\n)", True),
        ("if x:\n    from one import key", True),
        ("one.key", True),
        ("one.key = 1", True),
        ("one(key=1)", True),
        ("match one:\n    case Two(key=three): pass", True),
        ("class One:\n    key = 1", True),
        ("class One:\n    key: int", True),
        ("class One:\n    if x:\n        key, other = 1, 2", True),
        ("class One:\n    def key(self): ...", True),
        ("class One:\n    async def key(self): ...", True),
        ("def one():\n    class Two:\n        class key: ...", True),
        ("one['key']", True),
        ("one: 'list[key] | None'", True),
        ("one: 'two.key'", True),
        ("one = two  # type: key", True),
        ("key = 1\nprint(key)", False),
        ("def key(): ...\nkey()", False),
        ("class key: ...\nkey()", False),
        ("def one(key): return key", False),
        ("class One:\n    def two(self):\n        key = 1\n        return key", False),
        ("for key in one: print(key)", False),
        ("[key for key in one]", False),
        ("one({'key': 1})", True),
        ("one.get('key')", True),
        ("one = ['key']", True),
        ("one = 'key'", False),
        ("assert one == 'key'", False),
        ("def one(): return 'key'", False),
        ("one = 'the key of it'", False),
        ("one = f'{key}'", False),
        ("# type of the key", False),
    ],
)
def test_a_name_is_another_files_where_something_of_others_can_stand(text: str, is_meant: bool) -> None:
    found = outside_names(text)
    assert found is not None
    assert ("key" in found) is is_meant


@pytest.mark.parametrize("text", ["from one import *", "def f(:\n", "\0"])
def test_any_name_is_where_the_text_does_not_tell(text: str) -> None:
    assert outside_names(text) is None


def test_the_parser_has_nothing_to_say_about_the_strings_of_a_project() -> None:
    program = (
        r"from pilotfish.feedback.outside_names import outside_names; print(outside_names('one = \'\\d\'; two.key'))"
    )
    argv = [sys.executable, "-W", "default", "-c", program]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("frozenset({'key'})\n", "")


def test_a_long_row_of_dots_is_read_as_fast_as_any_string() -> None:
    assert outside_names(f"one('wait{' .  ' * 1_000}!')") == frozenset()
