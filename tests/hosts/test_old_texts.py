"""The text before an edit, from what hosts say about it: exactly that text, or nothing."""

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pilotfish.api.questions import Touch
from pilotfish.daemon.methods import with_old_texts
from pilotfish.hosts.registry import dialect_of
from pilotfish.hosts.shared.old_texts import (
    Hunk,
    Replacement,
    old_text,
    original_text,
    patched_texts,
    replacements,
    shown_hunks,
    unified_hunks,
)
from pilotfish.hosts.shared.tool_hooks import TouchEvent

pytestmark = pytest.mark.proves("DIAG-8")

EVENTS = Path(__file__).parent / "events"
"""What the real hosts sent to a hook: each writes a file that was not there, then changes one line of it."""

OLD = 'def f() -> int:\n    return "x"\n'
NEW = "def f() -> int:\n    return 1\n"


def recorded(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def edits(host: str) -> list[TouchEvent]:
    """The edits among the recorded events of a host; the end of a batch names them once more."""
    events = recorded(EVENTS / f"{host}.json")["events"]
    read = [dialect_of(host).read(json.dumps(event).encode()) for event in events]
    touches = [event for event in read if isinstance(event, TouchEvent) and event.touch.kind != "read"]
    return [event for event in touches if event.touch.batch != "end"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
@pytest.mark.parametrize("host", sorted(path.stem for path in EVENTS.glob("*.json") if "version" in recorded(path)))
async def test_the_events_of_a_host_give_the_old_text_of_what_it_wrote_and_edited(host: str, tmp_path: Path) -> None:
    created, edited = edits(host)
    (tmp_path / "a.py").write_text(NEW)
    for event, old in ((created, ""), (edited, OLD)):
        (path,) = event.touch.paths
        undos = {"a.py": event.undos[path]} if path in event.undos else {}
        before = {"a.py": event.touch.before[path]} if event.touch.before else None
        touch = await with_old_texts(Touch(("a.py",), "edit", before=before), undos, str(tmp_path))
        assert path.endswith("a.py")
        assert touch.before == {"a.py": old}


@pytest.mark.anyio
async def test_a_file_that_cannot_be_read_has_no_old_text(tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_bytes(b"\xe9")
    touch = Touch(("gone.py", "latin.py"), "edit", before={"new.py": ""})
    undos = dict.fromkeys(touch.paths, (Replacement("a", "b"),))
    assert (await with_old_texts(touch, undos, str(tmp_path))).before == {"new.py": ""}


HUNK: Mapping[str, Any] = {
    "oldStart": 1,
    "newStart": 1,
    "lines": [" def f() -> int:", '-    return "x"', "+    return 1"],
}
RESPONSES: Mapping[str, tuple[object, str | None]] = {
    "claude edit": ({"originalFile": OLD}, OLD),
    "claude new file": ({"type": "create", "originalFile": None}, ""),
    "claude large file": ({"type": "update", "originalFile": None}, None),
    "claude notebook": ({"original_file": OLD}, OLD),
    "gemini edit": ({"returnDisplay": {"originalContent": OLD, "newContent": NEW}}, OLD),
    "gemini new file": ({"returnDisplay": {"originalContent": "", "newContent": NEW}}, ""),
    "llxprt new file": ({"returnDisplay": {"originalContent": None, "newContent": NEW}}, ""),
    "a display without texts": ({"returnDisplay": {"originalContent": None}}, None),
    "a display in words": ({"returnDisplay": "ok"}, None),
    "words": ("Exit code: 0", None),
    "nothing": (None, None),
    "another type": ({"originalFile": 7, "returnDisplay": {"originalContent": []}}, None),
}


@pytest.mark.parametrize(("response", "old"), RESPONSES.values(), ids=RESPONSES)
def test_a_response_that_holds_the_old_text_says_it(response: object, old: str | None) -> None:
    assert original_text(response) == old


DIFF = """\
Index: a.py
===================================================================
--- a.py\tCurrent
+++ a.py\tProposed
@@ -1,2 +1,2 @@
 def f() -> int:
-    return "x"
+    return 1
"""
HUNKS: Mapping[str, object] = {
    "structuredPatch": {"structuredPatch": [HUNK]},
    "fileDiff": {"returnDisplay": {"fileDiff": DIFF}},
}


@pytest.mark.parametrize("response", HUNKS.values(), ids=HUNKS)
def test_hunks_that_a_tool_shows_are_taken_back(response: object) -> None:
    assert old_text(NEW, shown_hunks(response)) == OLD
    assert old_text(NEW.replace("\n", "\r\n"), shown_hunks(response)) == OLD.replace("\n", "\r\n")
    assert old_text(f"import a\n{NEW}", shown_hunks(response)) is None


@pytest.mark.parametrize(
    "response",
    [
        None,
        {"structuredPatch": []},
        {"structuredPatch": [{"lines": ["-x"]}]},
        {"structuredPatch": [{"newStart": 1, "lines": [7]}]},
        {"returnDisplay": {"fileDiff": "--- a\n+++ a\n@@ -1 +1 @@\n-a\n+b\n--- b\n+++ b\n@@ -1 +1 @@\n-a\n+b\n"}},
    ],
)
def test_hunks_that_say_nothing_are_none(response: object) -> None:
    assert shown_hunks(response) == ()


REPLACED: Mapping[str, tuple[Mapping[str, object], str, str | None]] = {
    "once": ({"old_string": '"x"', "new_string": "1"}, NEW, OLD),
    "opencode": ({"oldString": '"x"', "newString": "1"}, NEW, OLD),
    "cline": ({"old_text": '"x"', "new_text": "1"}, NEW, OLD),
    "pi": ({"edits": [{"oldText": "g", "newText": "f"}, {"oldText": '"x"', "newText": "1"}]}, NEW, None),
    "pi, several": (
        {"edits": [{"oldText": "def g", "newText": "def f"}, {"oldText": '"x"', "newText": "1"}]},
        NEW,
        OLD.replace("def f", "def g"),
    ),
    "one after the other": (
        {"edits": [{"old_string": "a", "new_string": "b"}, {"old_string": "b", "new_string": "c"}]},
        "c",
        "a",
    ),
    "everywhere": ({"old_string": '"x"', "new_string": "1", "replace_all": True}, NEW, None),
    "two places": ({"old_string": "x", "new_string": "1"}, "1 1", None),
    "overlapping places": ({"old_string": "x", "new_string": "aa"}, "aaa", None),
    "nowhere": ({"old_string": "x", "new_string": "2"}, NEW, None),
    "something removed": ({"old_string": "x", "new_string": ""}, NEW, None),
    "what could not have been there once": ({"old_string": "a", "new_string": "b"}, "ab", None),
    "a whole file": ({"old_string": "", "new_string": NEW}, NEW, ""),
    "something before": ({"old_string": "", "new_string": "a"}, "ab", None),
    "one of two unknown": ({"edits": [{"old_string": "a", "new_string": "b"}, {}]}, "b", None),
    "other line ends": ({"old_string": "a\nb", "new_string": "c\nd"}, "c\r\nd\r\n", "a\r\nb\r\n"),
    "mixed line ends": ({"old_string": "a", "new_string": "b"}, "b\r\n\n", None),
    "no strings": ({"content": "x"}, "x", None),
}


@pytest.mark.parametrize(("arguments", "new", "old"), REPLACED.values(), ids=REPLACED)
def test_strings_that_were_replaced_are_put_back_where_that_can_only_be_one_place(
    arguments: Mapping[str, object], new: str, old: str | None
) -> None:
    assert old_text(new, replacements(arguments)) == old


def envelope(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


PATCHED: Mapping[str, tuple[str, str, str | None]] = {
    "an update": (
        envelope("*** Update File: a", "@@", " one", "-two", "+2", " three"),
        "one\n2\nthree\n",
        "one\ntwo\nthree\n",
    ),
    "two hunks": (
        envelope("*** Update File: a", "@@", "-a", "+b", "@@", "-c", "+b", " end"),
        "b\nb\nend\n",
        "a\nc\nend\n",
    ),
    "lines that are there twice": (envelope("*** Update File: a", "@@", "-a", "+b"), "b\nb\n", None),
    "the second of them by its header": (
        envelope("*** Update File: a", "@@ def g():", "-  a", "+  b"),
        "def f():\n  b\ndef g():\n  b\n",
        "def f():\n  b\ndef g():\n  a\n",
    ),
    "an empty line without a sign": (
        envelope("*** Update File: a", "@@", " a", "", "-b", "+c"),
        "a\n\nc\n",
        "a\n\nb\n",
    ),
    "the end of the file": (
        envelope("*** Update File: a", "@@", " a", "+b", "*** End of File"),
        "a\nb\n",
        "a\n",
    ),
    "a move": (envelope("*** Update File: z", "*** Move to: a", "@@", "-x", "+y"), "y\n", "x\n"),
    "a new file": (envelope("*** Add File: a", "+x"), "x\n", ""),
    "a file that was changed twice": (
        envelope("*** Update File: a", "-x", "+y", "*** Update File: a", "-y", "+z"),
        "z\n",
        None,
    ),
    "lines that are gone": (envelope("*** Update File: a", "@@", "-x", "+y"), "z\n", None),
    "only a removal": (envelope("*** Update File: a", "@@", "-x"), "z\n", None),
    "a unified diff": ("--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n", "y\n", "x\n"),
    "no patch": ("x", "y\n", None),
}


@pytest.mark.parametrize(("patch", "new", "old"), PATCHED.values(), ids=PATCHED)
def test_a_patch_is_taken_back_where_its_lines_are_in_one_place(patch: str, new: str, old: str | None) -> None:
    found = patched_texts(patch, ["a"])
    text = found.known.get("a")
    assert (text if text is not None else old_text(new, found.undos.get("a", ()))) == old


def test_every_file_of_a_patch_has_its_own_old_text() -> None:
    found = patched_texts(envelope("*** Add File: a", "+x", "*** Update File: b", "-y", "+z"), ["a", "b"])
    assert found.known == {"a": ""}
    assert found.undos == {"b": (Hunk(("-y", "+z")),)}


LINES = st.lists(st.sampled_from(["a", "b", "c d", "", "+", "--- x", "@@ -1 +1 @@", "\\"]), max_size=12)
TEXTS = st.tuples(LINES, st.sampled_from(["", "\n"])).map(lambda text: "\n".join(text[0]) + text[1])


def unified(old: str, new: str, context: int) -> str:
    """As diff and jsdiff write it, with the line about a missing line end."""
    lines = list(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "a", "b", n=context))
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


@given(old=TEXTS, new=TEXTS, context=st.integers(0, 3))
def test_any_diff_is_taken_back_to_the_text_that_it_was_made_from(old: str, new: str, context: int) -> None:
    assume(old != new)
    assert old_text(new, unified_hunks(unified(old, new, context))) == old


@given(old=TEXTS, start=st.integers(0, 30), length=st.integers(1, 5), put=st.text("abc\n", min_size=1, max_size=6))
def test_a_replacement_is_taken_back_or_not_at_all(old: str, start: int, length: int, put: str) -> None:
    taken = old[start : start + length]
    assume(taken and old.find(taken) == old.rfind(taken))
    new = old.replace(taken, put)
    assert old_text(new, (Replacement(taken, put),)) in {old, None}
