"""What a workspace edit would do: every file before and after, as a diff that `patch` would apply."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.api.answers import Changes, FileChange
from pilotfish.model import Encoding
from pilotfish.operations.edits.changes import preview, unified
from pilotfish.protocol.codec import Malformed
from pilotfish.protocol.edits import edit_plan
from support.values.questions import raw, uri, view, wire_range


def changes(edit: dict[str, Any], **texts: str) -> Changes:
    return preview(edit_plan(raw(edit)), view(Encoding.UTF16, **texts))


def text_edit(line: int, start: int, end: int, new_text: str) -> dict[str, Any]:
    return {"range": wire_range(line, start, end), "newText": new_text}


def document(name: str, *edits: dict[str, Any]) -> dict[str, Any]:
    return {"textDocument": {"uri": uri(name), "version": None}, "edits": list(edits)}


@pytest.mark.proves("OPS-4")
def test_a_rename_is_shown_as_one_diff_per_file() -> None:
    edit = {
        "changes": {
            uri("a.py"): [text_edit(0, 4, 9, "hello"), text_edit(2, 3, 8, "hello")],
            uri("b.py"): [text_edit(0, 14, 19, "hello")],
        }
    }
    shown = changes(edit, a="def greet(): ...\n\n🐟 greet()\n", b="from a import greet")
    assert shown == Changes(
        applied=False,
        files=(
            FileChange(
                "a.py",
                edits=2,
                diff=(
                    "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n-def greet(): ...\n+def hello(): ...\n \n"
                    "-🐟 greet()\n+🐟 hello()\n"
                ),
            ),
            FileChange(
                "b.py",
                edits=1,
                diff=(
                    "--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-from a import greet\n\\ No newline at end of file\n"
                    "+from a import hello\n\\ No newline at end of file\n"
                ),
            ),
        ),
    )


@pytest.mark.proves("C104", "OPS-4")
def test_file_operations_are_followed_in_their_order() -> None:
    edit = {
        "documentChanges": [
            {"kind": "rename", "oldUri": uri("a.py"), "newUri": uri("c.py")},
            document("c.py", text_edit(0, 0, 1, "y")),
            {"kind": "create", "uri": uri("new.py")},
            document("new.py", text_edit(0, 0, 0, "z\n")),
            {"kind": "delete", "uri": uri("b.py")},
            {"kind": "create", "uri": uri("gone.py")},
            {"kind": "delete", "uri": uri("gone.py")},
        ]
    }
    assert changes(edit, a="x\n", b="b\n").files == (
        FileChange("a.py", "rename", "c.py", 1, "--- a/a.py\n+++ b/c.py\n@@ -1 +1 @@\n-x\n+y\n"),
        FileChange("new.py", "create", edits=1, diff="--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+z\n"),
        FileChange("b.py", "delete"),
    )


@pytest.mark.proves("C104")
@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ({"ignoreIfExists": True}, []),
        ({"overwrite": True}, ["edit"]),
        ({"overwrite": True, "ignoreIfExists": True}, ["edit"]),
    ],
    ids=["ignored", "overwritten", "overwriting wins"],
)
def test_creating_what_is_there_follows_the_options(options: dict[str, bool], kinds: list[str]) -> None:
    shown = changes({"documentChanges": [{"kind": "create", "uri": uri("a.py"), "options": options}]}, a="x\n")
    assert [file.kind for file in shown.files] == kinds


@pytest.mark.proves("PATH-5")
@pytest.mark.parametrize("target", ["file:///etc/passwd", "jdt://x/Y.class"], ids=["outside", "no file"])
def test_what_cannot_be_read_is_listed_without_a_diff(target: str) -> None:
    shown = changes({"changes": {target: [text_edit(0, 0, 1, "y")]}})
    assert shown.files == (FileChange(target.removeprefix("file://"), edits=1),)


@pytest.mark.proves("C107")
def test_what_a_person_has_to_confirm_is_named_once() -> None:
    annotated = {"annotationId": "risky"}
    edit = {
        "documentChanges": [
            document("a.py", text_edit(0, 0, 1, "y") | annotated, text_edit(0, 1, 2, "z") | annotated),
            {"kind": "delete", "uri": uri("b.py"), "annotationId": "calm"},
        ],
        "changeAnnotations": {
            "risky": {"label": "Rename in comments", "needsConfirmation": True},
            "calm": {"label": "Delete", "needsConfirmation": False},
        },
    }
    assert changes(edit, a="xx").confirm == ("Rename in comments",)


def test_edits_that_contradict_each_other_are_malformed() -> None:
    with pytest.raises(Malformed):
        changes({"changes": {uri("a.py"): [text_edit(0, 0, 2, "y"), text_edit(0, 1, 3, "z")]}}, a="xxx")


@pytest.mark.proves("C106")
def test_a_windows_file_keeps_its_line_endings() -> None:
    shown = changes({"changes": {uri("a.py"): [text_edit(0, 0, 0, "import os\n")]}}, a="x\r\ny\r\n")
    assert shown.files[0].diff == "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,3 @@\n+import os\r\n x\r\n y\r\n"


# --- Diffs --------------------------------------------------------------------------------------------------------

LINES = st.lists(
    st.sampled_from(["a\n", "b\n", "\n", "c\r\n", "é🐟\n", "\x0c\n", "\u2028\n", "-\n", "+x\n"]), max_size=12
)
TEXTS = st.tuples(LINES.map("".join), st.sampled_from(["", "end", "-", "\r"])).map("".join)
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@\n")


def patched(before: str, diff: str) -> str:
    """What `patch` makes of it, line by line."""
    old = re.findall(r"[^\n]*\n|[^\n]+", before)
    parts = re.findall(r"[^\n]*\n", diff)[2:]
    new: list[str] = []
    taken, previous = 0, ""
    for part in parts:
        if hunk := HUNK.fullmatch(part):
            start = int(hunk[1]) - (0 if hunk[2] == "0" else 1)
            new += old[taken:start]
            taken = start
        elif part.startswith("\\"):
            if new and previous in {"+", " "}:
                new[-1] = new[-1].removesuffix("\n")
        else:
            if part[0] in {"-", " "}:
                assert old[taken].removesuffix("\n") == part[1:].removesuffix("\n")
                taken += 1
            if part[0] in {"+", " "}:
                new.append(part[1:])
        previous = part[0]
    return "".join(new + old[taken:])


@pytest.mark.proves("OPS-4")
@given(TEXTS, TEXTS)
def test_a_diff_applied_to_the_old_text_gives_the_new_one(before: str, after: str) -> None:
    diff = unified(before, after, old="a.py", new="a.py")
    assert patched(before, diff) == after if diff else before == after
