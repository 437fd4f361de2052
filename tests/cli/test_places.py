"""Places as people write them."""

import pytest

from pilotfish.errors import Code, Refused
from pilotfish.surfaces.cli.questions import numbered, place_of

FILES = {"a.py", "dir/b c#.py", "odd:3", "src"}

pytestmark = pytest.mark.proves("CLI-1", "OPS-3")


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        pytest.param(["a.py:10:5"], {"filePath": "a.py", "line": 10, "character": 5}, id="numbers"),
        pytest.param(["a.py:10:5:"], {"filePath": "a.py", "line": 10, "character": 5}, id="as a compiler writes it"),
        pytest.param(["a.py:10"], {"filePath": "a.py", "line": 10}, id="a line alone"),
        pytest.param(["C:\\x.py:1:2"], {"filePath": "C:\\x.py", "line": 1, "character": 2}, id="colon before it"),
        pytest.param(["dir/b c#.py:1:2"], {"filePath": "dir/b c#.py", "line": 1, "character": 2}, id="odd names"),
        pytest.param(["new.py:1:2"], {"filePath": "new.py", "line": 1, "character": 2}, id="no such file"),
        pytest.param(["Class.method"], {"symbol": "Class.method"}, id="symbol"),
        pytest.param(["Class.method[1]"], {"symbol": "Class.method[1]"}, id="symbol with an index"),
        pytest.param(["ns::Class::method"], {"symbol": "ns::Class::method"}, id="symbol with colons"),
        pytest.param(["object:method"], {"symbol": "object:method"}, id="symbol with one colon"),
        pytest.param(["a.py", "greet"], {"filePath": "a.py", "symbol": "greet"}, id="file and symbol"),
        pytest.param(["a.py:7", "greet"], {"filePath": "a.py", "line": 7, "symbol": "greet"}, id="on a line"),
        pytest.param(["odd:3", "greet"], {"filePath": "odd:3", "symbol": "greet"}, id="a name with a number"),
    ],
)
def test_a_place_is_read(words: list[str], fields: dict[str, object]) -> None:
    assert place_of(words, FILES.__contains__) == fields


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["a.py"], "a.py is a file: name a place in it.", id="a file alone"),
        pytest.param(["odd:3"], "odd:3 is a file: name a place in it.", id="a file that looks like a place"),
        pytest.param(["a", "b", "c"], "A place is one or two words, not 3.", id="too many"),
        pytest.param([], "A place is one or two words, not 0.", id="none"),
        pytest.param(["a.py:0:1"], "a.py:0:1: lines and columns count from 1.", id="line 0"),
        pytest.param(["a.py:1:0"], "a.py:1:0: lines and columns count from 1.", id="column 0"),
        pytest.param(["a.py:0", "greet"], "a.py:0: lines and columns count from 1.", id="line 0 and a symbol"),
        pytest.param(["a.py:abc"], "a.py:abc: 'abc' is not a line number.", id="a word for a line"),
        pytest.param(["a.py:3:x"], "a.py:3:x: 'x' is not a column number.", id="a word for a column"),
        pytest.param(["a.py:"], "a.py:: '' is not a line number.", id="nothing for a line"),
        pytest.param(["no/such.py:abc"], "no/such.py:abc: 'abc' is not a line number.", id="no such file"),
    ],
)
def test_what_is_no_place_is_refused_with_the_forms_that_are(words: list[str], message: str) -> None:
    with pytest.raises(Refused) as refusal:
        place_of(words, FILES.__contains__)
    assert refusal.value.code is Code.INVALID_INPUT
    assert refusal.value.message == message
    assert "FILE:LINE:COL" in str(refusal.value.hint)


def test_the_path_of_a_file_that_is_not_there_is_no_symbol() -> None:
    with pytest.raises(Refused) as refusal:
        place_of(["src/nope.ts"])
    assert refusal.value.code is Code.FILE_MISSING
    # `namespace/name` is a symbol of Clojure, `path/filepath.Join` one of Go.
    assert place_of(["space/name"]) == {"symbol": "space/name"}
    assert place_of(["path/filepath.Join"]) == {"symbol": "path/filepath.Join"}


def test_a_line_of_a_file_needs_no_column() -> None:
    assert numbered("a.py:3", FILES.__contains__) == {"filePath": "a.py", "line": 3}
    assert numbered("a.py", FILES.__contains__) == {"filePath": "a.py"}
