"""The pure parts of `pilotfish lsp`: answers in the words of the protocol, and texts compared with the disk."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, json, to_builtins

from pilotfish.api.answers import Changes, FileChange, Hover, Symbol
from pilotfish.errors import Refused
from pilotfish.ipc.messages import read_params
from pilotfish.model import AbsPath
from pilotfish.operations.edits.changes import unified
from pilotfish.protocol.positions import Text
from pilotfish.protocol.wire import WirePosition
from pilotfish.surfaces.lsp.shapes import (
    ChangeParams,
    FilePlaces,
    InitializeParams,
    OpenDocuments,
    hover,
    position_in,
    symbol_list,
    symbol_tree,
    word_at,
    workspace_edit,
)

ROOT = AbsPath("/w")
A = AbsPath("/w/a.py")
LINES = st.lists(st.sampled_from(["one", "two", "three", "", "🐟", "x\r"]), max_size=6).map("\n".join)


@given(LINES, LINES)
def test_the_edits_of_a_rename_make_the_new_text_of_the_old_one(old: str, new: str) -> None:
    diff = unified(old, new, old="a.py", new="a.py")
    edit = workspace_edit(Changes(applied=False, files=(FileChange("a.py", diff=diff or None),)), FilePlaces(ROOT, {}))
    lines = [part + "\n" for part in old.split("\n")]
    lines[-1] = lines[-1].removesuffix("\n")
    for one in reversed(edit["changes"]["file:///w/a.py"]):
        lines[one.range.start.line : one.range.end.line] = [one.new_text]
    assert "".join(lines) == new


def test_a_rename_that_moves_files_is_refused() -> None:
    with pytest.raises(Refused, match="more than edit files"):
        workspace_edit(Changes(applied=False, files=(FileChange("a.py", "rename", "b.py"),)), FilePlaces(ROOT, {}))


def test_an_outline_is_a_tree_again() -> None:
    def symbol(name: str, depth: int, line: int, kind: str = "method") -> Symbol:
        place: dict[str, Any] = {"line": line, "character": 1, "end_line": line, "end_character": 2}
        return Symbol(path="a.py", name=name, kind=kind, depth=depth, first_line=line, last_line=line + 1, **place)

    found = [symbol("A", 0, 1, "class"), symbol("f", 1, 2), symbol("x", 2, 3), symbol("g", 1, 4), symbol("B", 0, 6)]
    tree = symbol_tree(found, FilePlaces(ROOT, {}))
    assert [(one["name"], [child["name"] for child in one["children"]]) for one in tree] == [
        ("A", ["f", "g"]),
        ("B", []),
    ]
    assert (tree[0]["kind"], tree[0]["range"].end) == (5, WirePosition(2, 0))
    (listed,) = to_builtins(symbol_list(found[:1], FilePlaces(ROOT, {})))
    assert (listed["name"], listed["kind"], listed["location"]["uri"]) == ("A", 5, "file:///w/a.py")


def test_places_that_are_no_files_keep_their_uri() -> None:
    assert FilePlaces(ROOT, {}).uri("jdt://contents/a.class") == "jdt://contents/a.class"
    assert FilePlaces(ROOT, {}).uri("/usr/lib/a:b.py") == "file:///usr/lib/a%3Ab.py"
    assert FilePlaces(ROOT, {}).uri("a b.py") == "file:///w/a%20b.py"


def test_positions_are_utf_16_units() -> None:
    text = Text('"🐟", f()\n')
    assert position_in(text, WirePosition(0, 6)) == (1, 6)
    assert to_builtins(word_at(text, WirePosition(0, 6))) == {
        "range": {"start": {"line": 0, "character": 6}, "end": {"line": 0, "character": 7}},
        "placeholder": "f",
    }
    assert word_at(text, WirePosition(0, 4)) is None


def test_a_hover_without_contents_is_none() -> None:
    assert hover(Hover(()), FilePlaces(ROOT, {})) is None
    assert hover(Hover(("int", "doc")), FilePlaces(ROOT, {})) == {
        "contents": {"kind": "markdown", "value": "int\n\n---\n\ndoc"}
    }


@pytest.mark.parametrize(
    ("params", "root"),
    [
        ({"rootUri": "file:///w"}, "/w"),
        ({"rootUri": None, "workspaceFolders": [{"uri": "file:///v", "name": "v"}]}, "/v"),
        ({"rootPath": "/p"}, "/p"),
        ({"rootUri": None, "workspaceFolders": None}, None),
    ],
)
def test_the_root_is_whatever_folder_the_client_names_first(params: dict[str, Any], root: str | None) -> None:
    assert read_params(Raw(json.encode(params)), InitializeParams).root == root


def test_a_change_of_a_part_says_nothing_about_the_whole() -> None:
    extent = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
    document = {"textDocument": {"uri": "file:///w/a.py", "version": 2}}
    whole = {**document, "contentChanges": [{"text": "x"}]}
    part = {**document, "contentChanges": [{"range": extent, "text": "x"}]}
    assert read_params(Raw(json.encode(whole)), ChangeParams).whole_text == "x"
    assert read_params(Raw(json.encode(part)), ChangeParams).whole_text is None


def test_a_text_that_keeps_differing_is_told_once_until_it_is_saved() -> None:
    documents = OpenDocuments()
    assert documents.is_saved(A, None)
    told = list[bool]()
    for report, on_disk in [("a", "a"), ("b", "a"), ("c", "a"), ("d", "a"), ("d\r\n", "d\n"), ("e", None), ("f", "a")]:
        documents.report(A, report)
        documents.compare(A, on_disk)
        told.append(documents.is_to_be_told(A))
    assert told == [False, False, True, False, False, False, True]
    documents.report(A, None)
    assert documents.is_saved(A, "anything")
    documents.close(A)
    assert not documents.is_to_be_told(A)
