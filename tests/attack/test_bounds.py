"""What is read at once of a file of a repository has bounds: in bytes, depth and steps (T43)."""

import ast
import gc
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.config.jsonc import TOKEN
from pilotfish.feedback.shapes import python
from pilotfish.feedback.shapes.changes import changed_symbols
from pilotfish.feedback.shapes.parsing import MAX_TOKENS, parsed
from pilotfish.feedback.shapes.python import shape_of, visible_of
from pilotfish.feedback.shapes.words import all_words
from pilotfish.feedback.word_index import MAX_FILE_BYTES, MAX_WORD_BYTES, MAX_WORDS, WordIndex, checksums
from pilotfish.model import AbsPath
from pilotfish.servers import catalogue
from pilotfish.servers.inputs import MAX_NAMED, input_evidence
from pilotfish.servers.manifests import (
    MAX_COMMENTED_CHARACTERS,
    MAX_DEPTH,
    MAX_KEY_PARTS,
    MAX_MARKS,
    json_value,
    toml_table,
)
from pilotfish.servers.python_environment import MAX_MAPPINGS, MAX_PTH_LINES, Project, find_environment
from pilotfish.servers.spec import Inputs
from pilotfish.system.watching.ignoring import MAX_RULES, maybe_rule, read_rules
from support.files.virtual_tree import VirtualTree

pytestmark = pytest.mark.proves("T43")


def test_of_editable_installs_only_so_much_is_read() -> None:
    site = "/w/.venv/lib/python3.11/site-packages"
    table = "MAPPING = {{'a{0}': '/w/f{0}/a{0}'" + " " * (MAX_MAPPINGS // 2 - 30) + "}}\n"
    files = {f"{site}/__editable___a{number}_finder.py": table.format(number) for number in range(4)}
    files[f"{site}/a.pth"] = "".join(f"import __editable___a{number}_finder\n" for number in range(4))
    files[f"{site}/b.pth"] = "".join(f"/w/g{number}\n" for number in range(MAX_PTH_LINES))
    files |= {"/w/.venv/pyvenv.cfg": "home = /usr/bin\n"} | {
        f"/w/g{number}/a.py": "" for number in range(MAX_PTH_LINES)
    }
    found = find_environment(Project(AbsPath("/w"), AbsPath("/w"), {"HOME": "/h"}), VirtualTree(files))
    assert found is not None
    assert [path for path in found.packages if "/f" in path] == ["/w/f0", "/w/f1"]
    assert len(found.packages) == 1 + 2 + MAX_PTH_LINES - 4


TEXTS = st.text(alphabet="ab1.=[]{}\"'#\\\n, -\0é", max_size=200)


@pytest.mark.proves("A8.2")
@given(TEXTS)
def test_whatever_a_manifest_holds_no_reader_raises(text: str) -> None:
    toml_table(text)
    json_value(text)


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("a.b.c = 1\n", {"a": {"b": {"c": 1}}}),
        ('a = "' + "x." * 100 + '"\n', {"a": "x." * 100}),
        ("# " + "." * 100 + "\na = 1\n", {"a": 1}),
        ("a = '''" + "[" * 100 + "'''\n", {"a": "[" * 100}),
        ("a = [" + "1.5, " * 100 + "]\n", {"a": [1.5] * 100}),
        ("a." * (MAX_KEY_PARTS - 1) + "b = 1\n", "some"),
        ("a." * MAX_KEY_PARTS + "b = 1\n", None),
        ("a = " + "[" * MAX_DEPTH + "]" * MAX_DEPTH, "some"),
        ("a = " + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), None),
        ("".join(f"a{number} = 1\n" for number in range(MAX_MARKS // 2)), "some"),
        ("".join(f"a{number} = 1\n" for number in range(MAX_MARKS + 1)), None),
        ("a = [" + "1," * (MAX_MARKS + 1) + "]", None),
        ("".join(f"a.b.c.d.e{number} = 1\n" for number in range(MAX_MARKS // 4)), None),
    ],
)
def test_what_people_write_is_within_the_bounds(text: str, table: object) -> None:
    found = toml_table(text)
    assert (found is not None) if table == "some" else found == table


@pytest.mark.proves("A17.3")
def test_json_with_comments_is_read_up_to_a_length_for_which_others_can_wait() -> None:
    fitting = "[" + "1," * (MAX_COMMENTED_CHARACTERS // 2 - 1) + "]"
    assert json_value(fitting) == [1] * (MAX_COMMENTED_CHARACTERS // 2 - 1)
    assert json_value(fitting.replace(",]", "," + "1," * 2 + "]")) is None
    assert json_value("[" + "1," * MAX_COMMENTED_CHARACTERS + "1]") == [1] * (MAX_COMMENTED_CHARACTERS + 1)


@pytest.mark.proves("A17.5")
def test_rules_of_what_is_ignored_are_read_up_to_a_number(tmp_path: Path) -> None:
    lines = [f"folder{number}*" for number in range(MAX_RULES + 5)]
    (tmp_path / ".gitignore").write_text("\n".join(lines))
    found = read_rules(AbsPath(str(tmp_path)))
    assert found is not None
    assert len(found.rules) == MAX_RULES


@pytest.mark.parametrize("text", ["x = " + "1 + " * 700 + "1\n", f"x = {'-' * 700}1\n", "x = a" + ".b" * 900 + "\n"])
def test_a_source_that_is_too_deep_to_be_walked_through_is_one_symbol(text: str) -> None:
    shape_of(text)
    assert visible_of(text) is None
    assert changed_symbols(AbsPath("/a.py"), "x = 1\n", text).all


def statements(count: int) -> str:
    """With a line in a string that looks like one."""
    one = '@a\ndef f%d(x: int) -> str:\n    return g(x, """\nif x:\n""")\n\n'
    return "".join(one % number for number in range(count))


@pytest.mark.parametrize(
    "text", [statements(40), statements(1_500), "if a:\n    b = 1\nelse:\n    b = 2\n" * 2_000, ""]
)
def test_a_long_source_is_parsed_piece_by_piece_into_the_same_tree(text: str) -> None:
    found = parsed(text)
    assert found is not None
    assert ast.dump(found) == ast.dump(ast.parse(text))


@pytest.mark.parametrize("collects", [True, False])
def test_while_a_tree_lives_nobody_looks_for_garbage(monkeypatch: pytest.MonkeyPatch, collects: bool) -> None:
    """In 256 KB of short statements that took 0.3 s, in which nobody had a turn."""
    seen, parse = list[bool](), ast.parse

    def parse_and_look(*arguments: Any, **options: Any) -> Any:
        seen.append(gc.isenabled())
        return parse(*arguments, **options)

    monkeypatch.setattr(ast, "parse", parse_and_look)
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        shape_of("x = 1\n")
        changed_symbols(AbsPath("/a.py"), "x = 1\n", "x = 2\n")
        assert gc.isenabled() is collects
    finally:
        (gc.enable if before else gc.disable)()
    assert set(seen) == {False}


def test_a_text_that_two_threads_cannot_parse_at_once_is_one_symbol(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 counts how deep its parser is for all threads together."""

    def fail(*_: object, **__: object) -> None:
        raise SystemError("AST constructor recursion depth mismatch")

    monkeypatch.setattr(ast, "parse", fail)
    assert shape_of("x = 1\n").is_whole


HOLDING = {
    "many short statements": "a=1\n" * (MAX_TOKENS // 4 + 1),
    "one long statement": "x = [" + "1," * 60_000 + "]\n",
    "a string with many expressions": "x = f'" + "{a}" * 40_000 + "'\n",
    "a long string with some expressions": 'x = f"""' + "-" * 120_000 + "{a}" * 2_000 + '"""\n',
    "accents in an identifier": "a" + "\u0301\u0316" * 50_000 + " = 1\n",
}


@pytest.mark.parametrize("text", HOLDING.values(), ids=HOLDING)
def test_a_source_that_would_hold_everybody_for_too_long_is_one_symbol(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = list[str]()

    def parse(piece: str, *_: object, **__: object) -> ast.Module:
        given.append(piece)
        return ast.Module([], [])

    monkeypatch.setattr(ast, "parse", parse)
    assert shape_of(text).is_whole
    assert visible_of(text) is None
    assert not given


REPEATED = {
    "attributes in one function": "class A:\n def f(self):\n" + "  self.a = b\n" * 200,
    "a chain from its end": "class A:\n def f(self):\n"
    + "".join(f"  a{number} = a{number + 1}\n  self.x{number} = a0\n" for number in range(100)),
    "calls before every name": "".join(f"f()\na{number} = 1\n" for number in range(200)),
    "one value for many names": "=".join(f"a{number}" for number in range(100)) + "=[" + "1," * 200 + "]\n",
}


@pytest.mark.parametrize("text", REPEATED.values(), ids=REPEATED)
def test_a_source_whose_parts_count_again_for_every_symbol_is_one_symbol(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not shape_of(text).is_whole
    # The real bound is reached by longer ones, in seconds.
    monkeypatch.setattr(python, "MAX_STEPS", 8_000)
    assert shape_of(text).is_whole
    assert visible_of(text) is None


@pytest.mark.parametrize(
    "content",
    [
        b" ".join(b"a%d" % number for number in range(MAX_WORDS + 1)),
        ("a" + "\u0301\u0316" * (MAX_WORD_BYTES // 4 + 1)).encode(),
        b" " * (MAX_FILE_BYTES + 1),
    ],
    ids=["many words", "accents", "long"],
)
def test_a_file_whose_words_take_too_long_mentions_every_word(content: bytes) -> None:
    assert checksums(content) is None
    index = WordIndex()
    index.put(AbsPath("/w/a"), content)
    assert index.mentions(["never_written"])


def test_words_are_found_wherever_a_text_is_cut() -> None:
    text = "a " * 40_000 + "b" * 70_000 + " ﬁne " + "c " * 70_000
    assert set(all_words(text)) == {"a", "b" * 70_000, "ﬁne", "c"}
    assert checksums(text.encode()) == checksums(f"a {'b' * 70_000} ﬁne c".encode())
    index = WordIndex()
    index.put(AbsPath("/w/a"), text.encode())
    assert index.mentions(["fine"])


CATALOGUE = sorted(Path(catalogue.__file__).with_suffix("").glob("*.toml"))


def test_no_pattern_of_the_catalogue_looks_through_blank_lines_from_each_of_them() -> None:
    """That takes the square of their number, in which nobody else has a turn: 11 s for 20,000."""
    assert any("(?m)^" in file.read_text() for file in CATALOGUE)
    slow = re.compile(r"\^\\+s[*+]|\\s\*\\+\(\?\\+s\*")
    assert not [(file.name, found[0]) for file in CATALOGUE for found in slow.finditer(file.read_text())]


def test_a_text_of_json_that_is_not_closed_is_one_token() -> None:
    text = '"' + '\\"' * 100
    assert [token.lastgroup for token in TOKEN.finditer(text)] == ["stray"]
    assert [token.lastgroup for token in TOKEN.finditer("/* " * 100)] == ["stray"]
    assert json_value(text) is None


@pytest.mark.parametrize(
    ("line", "folder", "is_there"),
    [("a  ", "/w/a", True), ("a\\  ", "/w/a ", True), ("a\\  ", "/w/a", False)],
)
def test_blanks_at_the_end_of_an_ignored_name(line: str, folder: str, *, is_there: bool) -> None:
    rule = maybe_rule(line)
    assert rule is not None
    assert rule.glob.matches(folder.removeprefix("/w/")) is is_there


def test_the_files_that_a_configuration_names_are_followed_up_to_a_number(tmp_path: Path) -> None:
    names = [f"./a{number}.json" for number in range(3 * MAX_NAMED)]
    (tmp_path / "tsconfig.json").write_text(json.dumps({"extends": names}))
    inputs = Inputs(steering=("tsconfig.json",), extends=("extends",))
    found = input_evidence(inputs, AbsPath(str(tmp_path)), AbsPath(str(tmp_path)))
    assert found is not None
    assert MAX_NAMED // 2 < len(found._seen) <= MAX_NAMED  # pyright: ignore[reportPrivateUsage]


def test_of_many_names_that_a_source_has_for_files_every_one_counts(tmp_path: Path) -> None:
    inputs = Inputs(steering=("go.mod",), mentions=r"(?m)^//go:embed[ \t]+(.+)$")
    found = input_evidence(inputs, AbsPath(str(tmp_path)), AbsPath(str(tmp_path)))
    assert found is not None
    (tmp_path / "f900").write_text("")
    os.utime(tmp_path, (1, 1))
    text = "//go:embed " + " ".join(f"f{number}" for number in range(2 * MAX_NAMED)) + "\n"
    found.mention(AbsPath(str(tmp_path / "a.go")), text)
    assert found.holds()
    (tmp_path / "f900").unlink()
    assert not found.holds()
