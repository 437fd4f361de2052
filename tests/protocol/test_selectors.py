"""Document selectors and file operation filters: what they take in, and what never breaks them."""

import pytest

from pilotfish.model import AbsPath
from pilotfish.protocol.capabilities import selects, wants_file_operation

PATH = AbsPath("/home/me/project/src/a.py")


@pytest.mark.proves("C51")
@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(None, True, id="null leaves it to us"),
        pytest.param([], False, id="empty list"),
        pytest.param([{"language": "python"}], True, id="language"),
        pytest.param([{"language": "rust"}], False, id="another language"),
        pytest.param([{"language": "*"}], True, id="any language"),
        pytest.param(["python"], True, id="a bare language"),
        pytest.param(["rust"], False, id="another bare language"),
        pytest.param([{"scheme": "file"}], True, id="scheme"),
        pytest.param([{"scheme": "*"}], True, id="any scheme"),
        pytest.param([{"scheme": "untitled", "language": "python"}], False, id="another scheme"),
        pytest.param([{"pattern": "**/*.py"}], True, id="pattern"),
        pytest.param([{"pattern": "**/*.rs"}], False, id="another pattern"),
        pytest.param([{"pattern": "*.py"}], False, id="patterns are for whole paths"),
        pytest.param([{"pattern": PATH}], True, id="the path itself"),
        pytest.param([{"pattern": "/home/me/project/src/[a].py"}], True, id="pattern with a class"),
        pytest.param([{"language": "python", "pattern": "**/*.rs"}], False, id="all of a filter must hold"),
        pytest.param([{"language": "rust"}, {"pattern": "**/src/*"}], True, id="one of the filters suffices"),
        pytest.param([{"pattern": {"baseUri": "file:///home/me/project", "pattern": "src/*"}}], True, id="relative"),
        pytest.param([{"pattern": {"baseUri": {"uri": "file:///home/me"}, "pattern": "src/*"}}], False, id="elsewhere"),
        pytest.param([{"pattern": "{a"}], False, id="bad glob"),
        pytest.param([{"pattern": "{a"}, {"language": "python"}], True, id="bad glob beside a good filter"),
        pytest.param([{"notebook": "*", "language": "python"}], False, id="cells of a notebook"),
        pytest.param([{"other": 1}], False, id="a filter of nothing"),
        pytest.param([None, 3], False, id="no filters at all"),
        pytest.param("python", False, id="no list"),
    ],
)
def test_a_selector_takes_in_the_document(selector: object, expected: bool) -> None:
    assert selects(selector, PATH, "python") is expected


@pytest.mark.proves("C51")
def test_a_document_that_is_not_open_is_not_ruled_out_by_its_language() -> None:
    assert selects([{"language": "python"}], PATH, None)
    assert not selects([{"language": "python", "pattern": "**/*.rs"}], PATH, None)


def _options(**pattern: object) -> dict[str, object]:
    return {"filters": [{"scheme": "file", "pattern": pattern}]}


@pytest.mark.proves("C112")
@pytest.mark.parametrize(
    ("options", "file", "folder"),
    [
        pytest.param(_options(glob="**/*.py"), True, True, id="glob"),
        pytest.param(_options(glob="**/*.PY"), False, False, id="case counts"),
        pytest.param(_options(glob="**/*.PY", options={"ignoreCase": True}), True, True, id="case ignored"),
        pytest.param(_options(glob="**/*.PY", options={"ignoreCase": False}), False, False, id="case not ignored"),
        pytest.param(_options(glob="**", matches="file"), True, False, id="files only"),
        pytest.param(_options(glob="**", matches="folder"), False, True, id="folders only"),
        pytest.param(_options(glob="**", matches=None), True, True, id="both"),
        pytest.param({"filters": [{"pattern": {"glob": "**"}}]}, True, True, id="no scheme"),
        pytest.param({"filters": [{"scheme": "http", "pattern": {"glob": "**"}}]}, False, False, id="another scheme"),
        pytest.param(_options(glob="{a"), False, False, id="bad glob"),
        pytest.param(_options(), False, False, id="no glob"),
        pytest.param({"filters": [3, {"pattern": {"glob": "**"}}]}, True, True, id="one bad filter"),
        pytest.param({"filters": []}, False, False, id="no filters"),
        pytest.param({}, False, False, id="nothing"),
        pytest.param(None, False, False, id="no options"),
    ],
)
def test_a_file_operation_is_wanted(options: object, file: bool, folder: bool) -> None:
    assert wants_file_operation(options, PATH, is_folder=False) is file
    assert wants_file_operation(options, PATH, is_folder=True) is folder
