"""Edits carried out in thought: the options of file operations, their order, and what is refused."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.operations.edits import staging
from pilotfish.operations.edits.staging import Drop, Put
from pilotfish.protocol.edits import EditPlan, Overlapping, Resource, TextChange, TextEdit
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.wire import WirePosition, WireRange
from support.values.edits import created, deleted, edited, plan_of, renamed, stage_of, staged, text_edit, uri

Change = dict[str, Any]

FILES = {"a.py": "a\n", "b.py": "b\n", "lib/c.py": "c\n", "lib/deep/d.py": "d\n"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "root"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "empty").mkdir()
    return folder


def after(root: Path, *changes: Change) -> dict[str, str]:
    """The files as they would be."""
    files = dict(FILES)
    for step in staged(root, *changes).steps:
        name = "/".join(step.place.segments)
        if isinstance(step, Drop):
            del files[name]
        else:
            files[name] = _content(step)
    return files


def _content(step: Put) -> str:
    return step.content.decode() if isinstance(step.content, bytes) else Path(step.content.place.path).read_text()


def code(root: Path, *changes: Change, seen: dict[str, str] | None = None) -> Code:
    with pytest.raises(Refused) as refused:
        staged(root, *changes, seen=seen)
    return refused.value.code


@pytest.mark.proves("C104")
@pytest.mark.parametrize(
    ("operation", "options", "expected"),
    [
        pytest.param("create", {}, Code.INVALID_INPUT, id="create"),
        pytest.param("create", {"ignoreIfExists": True}, {}, id="create or ignore"),
        pytest.param("create", {"overwrite": True}, {"a.py": ""}, id="create over"),
        pytest.param(
            "create", {"overwrite": True, "ignoreIfExists": True}, {"a.py": ""}, id="create: over beats ignore"
        ),
        pytest.param("rename", {}, Code.INVALID_INPUT, id="rename"),
        pytest.param("rename", {"ignoreIfExists": True}, {}, id="rename or ignore"),
        pytest.param("rename", {"overwrite": True}, {"a.py": "b\n", "b.py": None}, id="rename over"),
        pytest.param(
            "rename",
            {"overwrite": True, "ignoreIfExists": True},
            {"a.py": "b\n", "b.py": None},
            id="rename: over wins",
        ),
    ],
)
def test_what_is_done_where_something_is_already(
    root: Path, operation: str, options: dict[str, bool], expected: Code | dict[str, str | None]
) -> None:
    create = operation == "create"
    change = created(root, "a.py", **options) if create else renamed(root, "b.py", "a.py", **options)
    if isinstance(expected, Code):
        assert code(root, change) is expected
    else:
        files = {**FILES, **expected}
        assert after(root, change) == {name: text for name, text in files.items() if text is not None}


@pytest.mark.proves("C104")
@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        pytest.param("a.py", {}, ["a.py"], id="file"),
        pytest.param("none.py", {}, Code.FILE_MISSING, id="nothing"),
        pytest.param("none.py", {"ignoreIfNotExists": True}, [], id="nothing or ignore"),
        pytest.param("lib", {}, Code.INVALID_INPUT, id="full folder"),
        pytest.param("lib", {"recursive": True}, ["lib/c.py", "lib/deep/d.py"], id="folder and all in it"),
        pytest.param("empty", {}, [], id="empty folder"),
    ],
)
def test_what_is_deleted(root: Path, name: str, options: dict[str, bool], expected: Code | list[str]) -> None:
    change = deleted(root, name, **options)
    if isinstance(expected, Code):
        assert code(root, change) is expected
    else:
        assert after(root, change) == {file: text for file, text in FILES.items() if file not in expected}


ORDERS: dict[str, tuple[Callable[[Path], list[Change]], dict[str, str]]] = {
    "a name that has become free": (
        lambda root: [renamed(root, "a.py", "x.py"), created(root, "a.py")],
        {"x.py": "a\n", "a.py": "", "b.py": "b\n", "lib/c.py": "c\n", "lib/deep/d.py": "d\n"},
    ),
    "two names swapped": (
        lambda root: [renamed(root, "a.py", "x.py"), renamed(root, "b.py", "a.py"), renamed(root, "x.py", "b.py")],
        {"a.py": "b\n", "b.py": "a\n", "lib/c.py": "c\n", "lib/deep/d.py": "d\n"},
    ),
    "made anew": (
        lambda root: [deleted(root, "a.py"), created(root, "a.py"), edited(root, "a.py", text_edit(0, 0, 0, "n"))],
        {**FILES, "a.py": "n"},
    ),
    "folders on the move": (
        lambda root: [
            renamed(root, "lib", "x"),
            renamed(root, "x/deep", "y"),
            edited(root, "y/d.py", text_edit(0, 0, 1, "D")),
        ],
        {"a.py": "a\n", "b.py": "b\n", "x/c.py": "c\n", "y/d.py": "D\n"},
    ),
    "a folder moved and deleted": (
        lambda root: [renamed(root, "lib", "x"), deleted(root, "x", recursive=True)],
        {"a.py": "a\n", "b.py": "b\n"},
    ),
    "come and gone": (lambda root: [created(root, "x.py"), deleted(root, "x.py")], FILES),
}


@pytest.mark.proves("C104")
@pytest.mark.parametrize("order", ORDERS)
def test_operations_see_what_those_before_them_did(root: Path, order: str) -> None:
    changes, expected = ORDERS[order]
    assert after(root, *changes(root)) == expected


REFUSED: dict[str, tuple[Callable[[Path], Change], Code]] = {
    "create outside": (lambda root: created(root, "../x.py"), Code.OUTSIDE_WORKSPACE),
    "a folder named alike": (lambda root: created(root, "../root-evil/x.py"), Code.OUTSIDE_WORKSPACE),
    "move out": (lambda root: renamed(root, "a.py", "../x.py"), Code.OUTSIDE_WORKSPACE),
    "move in": (lambda root: renamed(root, "../secret", "x.py"), Code.OUTSIDE_WORKSPACE),
    "delete outside": (lambda root: deleted(root, "../secret"), Code.OUTSIDE_WORKSPACE),
    "delete all": (lambda root: deleted(root, "..", recursive=True), Code.OUTSIDE_WORKSPACE),
    "git hook": (lambda root: created(root, ".git/hooks/post-checkout"), Code.PROTECTED),
    "in capitals": (lambda root: created(root, ".GIT/config"), Code.PROTECTED),
    "agent config": (lambda root: renamed(root, "a.py", ".mcp.json"), Code.PROTECTED),
    "a folder becomes a protected one": (lambda root: renamed(root, "lib", ".vscode"), Code.PROTECTED),
    "a link out": (lambda root: edited(root, "linked.py", text_edit(0, 0, 1, "x")), Code.OUTSIDE_WORKSPACE),
    "through a link out": (lambda root: created(root, "linked/x.py"), Code.OUTSIDE_WORKSPACE),
    "a link itself": (lambda root: renamed(root, "inner.py", "x.py"), Code.NOT_A_FILE),
    "delete a link": (lambda root: deleted(root, "inner.py"), Code.NOT_A_FILE),
    "edit a folder": (lambda root: edited(root, "lib", text_edit(0, 0, 0, "x")), Code.NOT_A_FILE),
    "edit nothing": (lambda root: edited(root, "none.py", text_edit(0, 0, 0, "x")), Code.FILE_MISSING),
    "file onto a folder": (lambda root: renamed(root, "a.py", "lib"), Code.NOT_A_FILE),
    "folder onto a folder": (lambda root: renamed(root, "lib", "empty"), Code.INVALID_INPUT),
    "folder onto a file": (lambda root: renamed(root, "lib", "a.py"), Code.INVALID_INPUT),
    "folder into itself": (lambda root: renamed(root, "lib", "lib/deep/x"), Code.INVALID_INPUT),
    "read-only": (lambda root: edited(root, "locked.py", text_edit(0, 0, 1, "x")), Code.PROTECTED),
    "binary": (lambda root: edited(root, "data.bin", text_edit(0, 0, 1, "x")), Code.UNSUPPORTED),
}


@pytest.mark.proves("T28", "T30", "C104")
@pytest.mark.parametrize("what", REFUSED)
def test_what_may_not_be_changed_is_refused(root: Path, what: str) -> None:
    (root.parent / "secret").write_text("s")
    (root.parent / "outside").mkdir()
    (root / "linked.py").symlink_to(root.parent / "secret")
    (root / "linked").symlink_to(root.parent / "outside")
    (root / "inner.py").symlink_to("a.py")
    (root / "locked.py").write_text("l")
    (root / "locked.py").chmod(0o444)
    (root / "data.bin").write_bytes(b"\0\1")
    change, expected = REFUSED[what]
    assert code(root, change(root)) is expected


@pytest.mark.proves("C104")
@pytest.mark.parametrize("target", ["empty", "a.py"])
def test_a_folder_that_may_stay_where_it_is_stays(root: Path, target: str) -> None:
    assert after(root, renamed(root, "lib", target, ignoreIfExists=True)) == FILES


@pytest.mark.proves("T28")
def test_a_folder_with_something_protected_in_it_stays(root: Path) -> None:
    (root / "lib/.git").mkdir()
    assert code(root, deleted(root, "lib", recursive=True)) is Code.PROTECTED
    assert code(root, renamed(root, "lib", "x")) is Code.PROTECTED


def test_a_folder_with_a_link_in_it_stays(root: Path) -> None:
    (root / "lib/link.py").symlink_to("c.py")
    assert code(root, deleted(root, "lib", recursive=True)) is Code.NOT_A_FILE


@pytest.mark.proves("C117")
def test_a_file_is_the_same_by_whatever_way_it_is_named(root: Path) -> None:
    (root / "also").symlink_to("lib")
    changes = staged(
        root, edited(root, "also/c.py", text_edit(0, 0, 1, "C")), edited(root, "lib/c.py", text_edit(0, 1, 1, "!"))
    )
    assert [step.place.segments for step in changes.steps] == [("lib", "c.py")]
    assert [_content(step) for step in changes.steps if isinstance(step, Put)] == ["C!\n"]


@pytest.mark.proves("C60", "C106")
def test_a_text_that_is_not_what_the_server_saw_is_stale(root: Path) -> None:
    change = edited(root, "a.py", text_edit(0, 0, 1, "x"))
    assert code(root, change, seen={"a.py": "older\n"}) is Code.STALE
    assert staged(root, change, seen={"a.py": "a\n"}).steps


def test_the_text_that_counts_is_that_of_the_file_which_was_moved(root: Path) -> None:
    changes = (renamed(root, "a.py", "x.py"), edited(root, "x.py", text_edit(0, 0, 1, "x")))
    assert code(root, *changes, seen={"a.py": "older\n"}) is Code.STALE


@pytest.mark.proves("T37")
def test_two_edits_of_one_place_are_refused(root: Path) -> None:
    with pytest.raises(Overlapping):
        staged(root, edited(root, "a.py", text_edit(0, 0, 1, "x"), text_edit(0, 0, 1, "y")))


def test_a_text_that_cannot_be_written_is_refused(root: Path) -> None:
    path = AbsPath(str(root / "a.py"))
    half = TextEdit(WireRange(WirePosition(0, 0), WirePosition(0, 1)), "\ud800")
    stage = stage_of(root)
    stage.perform(EditPlan((TextChange(Resource(uri_of(path), path), None, (half,)),)))
    with pytest.raises(Refused) as refused:
        stage.staged()
    assert refused.value.code is Code.UNSUPPORTED


def test_more_files_than_a_person_would_let_pass_are_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "MAX_FILES", 3)
    assert code(root, *(created(root, f"{number}.py") for number in range(4))) is Code.LIMIT_EXCEEDED


def test_a_stage_can_be_tried_out_without_harm(root: Path) -> None:
    stage = stage_of(root)
    stage.perform(plan_of(edited(root, "a.py", text_edit(0, 0, 1, "x"))))
    trial = stage.copy()
    trial.perform(plan_of(deleted(root, "b.py"), edited(root, "a.py", text_edit(0, 0, 1, "y"))))
    assert stage.texts() == {AbsPath(str(root / "a.py")): "x\n"}
    assert len(stage.staged().steps) == 1
    assert trial.texts() == {AbsPath(str(root / "a.py")): "y\n"}


@pytest.mark.proves("OPS-4")
def test_the_report_says_what_becomes_of_each_file(root: Path) -> None:
    changes = staged(
        root,
        edited(root, "a.py", text_edit(0, 0, 1, "x")),
        renamed(root, "a.py", "z.py"),
        created(root, "n.py"),
        edited(root, "n.py", text_edit(0, 0, 0, "n\n")),
        deleted(root, "b.py"),
        renamed(root, "lib/c.py", "lib/e.py"),
    ).changes(AbsPath(str(root)))
    assert [(one.kind, one.path, one.new_path, one.edits, one.diff) for one in changes] == [
        ("rename", "a.py", "z.py", 1, "--- a/a.py\n+++ b/z.py\n@@ -1 +1 @@\n-a\n+x\n"),
        ("create", "n.py", None, 1, "--- /dev/null\n+++ b/n.py\n@@ -0,0 +1 @@\n+n\n"),
        ("delete", "b.py", None, 0, None),
        ("rename", "lib/c.py", "lib/e.py", 0, None),
    ]


def test_a_place_that_is_no_file_is_external(root: Path) -> None:
    change = {"textDocument": {"uri": "untitled:x", "version": None}, "edits": [text_edit(0, 0, 0, "x")]}
    assert code(root, change) is Code.EXTERNAL


def test_a_file_in_the_encoding_of_its_coding_line_is_not_changed(root: Path) -> None:
    (root / "a.py").write_bytes("# coding: latin-1\né\n".encode("latin-1"))
    assert code(root, edited(root, "a.py", text_edit(1, 0, 1, "x"))) is Code.UNSUPPORTED


@pytest.mark.proves("F48")
def test_a_uri_that_climbs_out_is_refused(root: Path) -> None:
    change: Change = {"kind": "create", "uri": uri(root, "x") + "/%2e%2e/%2e%2e/%2e%2e/etc/x", "options": {}}
    assert code(root, change) is Code.OUTSIDE_WORKSPACE


def test_nothing_is_written(root: Path) -> None:
    before = looks(root)
    staged(root, edited(root, "a.py", text_edit(0, 0, 1, "x")), renamed(root, "lib", "y"), deleted(root, "b.py"))
    assert looks(root) == before


def looks(root: Path) -> dict[Path, tuple[int, ...]]:
    """All but when a file was last read, which some file systems note."""
    stats = {path: os.stat(path) for path in root.rglob("*")}
    return {
        path: (one.st_ino, one.st_mode, one.st_size, one.st_mtime_ns, one.st_ctime_ns) for path, one in stats.items()
    }
