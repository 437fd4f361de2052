"""Which paths are admitted, and what the others are told."""

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.policy.boundary import Boundary, Place, Want, admit, boundary_of, classify, open_admitted, spelled


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with one file of each kind, and a neighbour whose name starts the same."""
    root = tmp_path / "work"
    for folder in ("src", "node_modules/pkg", ".git", "deep/er"):
        (root / folder).mkdir(parents=True)
    (root / "src/a.py").write_text("a")
    (root / "src/@scoped.py").write_text("s")
    (root / "@@twice.py").write_text("t")
    (root / "node_modules/pkg/index.js").write_text("i")
    (root / "space and #%?.py").write_text("n")
    (root / "line\nbreak.py").write_text("n")
    os.mkfifo(root / "pipe")
    (root / "inside.py").symlink_to("src/a.py")
    neighbour = tmp_path / "work2"
    neighbour.mkdir()
    (neighbour / "b.py").write_text("b")
    (root / "out.py").symlink_to(neighbour / "b.py")
    (root / "outside").symlink_to(neighbour)
    (root / "dangling.py").symlink_to(neighbour / "nothing.py")
    (root / "loop.py").symlink_to("loop.py")
    return root


def refusal(request: str, boundary: Boundary, want: Want = Want.FILE) -> Code:
    with pytest.raises(Refused) as refused:
        admit(request, boundary, want)
    return refused.value.code


@pytest.mark.proves("PATH-1", "F44")
@pytest.mark.parametrize(
    ("request_path", "expected"),
    [
        pytest.param("{ws}/src/a.py", "src/a.py", id="absolute"),
        pytest.param("src/a.py", "src/a.py", id="relative to the workspace"),
        pytest.param("@src/a.py", "src/a.py", id="one leading @"),
        pytest.param("@{ws}/src/a.py", "src/a.py", id="@ before an absolute path"),
        pytest.param("@@@twice.py", "@@twice.py", id="exactly one @ goes"),
        pytest.param("src/@scoped.py", "src/@scoped.py", id="an @ further on stays"),
        pytest.param("./src/../src//a.py", "src/a.py", id="normalised"),
        pytest.param("deep/er/../../src/a.py", "src/a.py", id=".. that stays inside"),
        pytest.param("inside.py", "src/a.py", id="a link that stays inside is followed"),
        pytest.param("outside/../src/a.py", "src/a.py", id="normalised before links are followed"),
        pytest.param("space and #%?.py", "space and #%?.py", id="characters that URIs escape"),
        pytest.param("line\nbreak.py", "line\nbreak.py", id="a newline"),
    ],
)
def test_a_path_inside_is_admitted_as_what_it_really_is(workspace: Path, request_path: str, expected: str) -> None:
    admitted = admit(request_path.format(ws=workspace), boundary_of(str(workspace)))
    assert admitted.path == str(workspace / expected)
    assert os.path.join(admitted.root, *admitted.segments) == admitted.path
    assert admitted.place is Place.IN_ROOT


@pytest.mark.proves("PATH-2", "PATH-3", "T30", "F48")
@pytest.mark.parametrize(
    "request_path",
    [
        pytest.param("{ws}2/b.py", id="a neighbour whose name starts the same"),
        pytest.param("../work2/b.py", id=".. out"),
        pytest.param("src/../../work2/b.py", id=".. out, later"),
        pytest.param("@../work2/b.py", id="@ and .. out"),
        pytest.param("out.py", id="a link to a file outside"),
        pytest.param("outside/b.py", id="through a link to a folder outside"),
        pytest.param("dangling.py", id="a link to nothing outside"),
        pytest.param("/etc/passwd", id="somewhere else"),
        pytest.param("//etc/passwd", id="two slashes"),
        pytest.param("{ws}/../work2/nothing.py", id="outside and missing: no word about whether it is there"),
        pytest.param("/", id="the root of everything"),
        pytest.param("/proc/self/environ", id="proc"),
    ],
)
def test_a_path_that_leads_out_is_refused(workspace: Path, request_path: str) -> None:
    assert refusal(request_path.format(ws=workspace), boundary_of(str(workspace))) is Code.OUTSIDE_WORKSPACE


@pytest.mark.proves("PATH-4", "T43", "F48")
@pytest.mark.parametrize(
    ("request_path", "code"),
    [
        pytest.param("src/none.py", Code.FILE_MISSING, id="missing"),
        pytest.param("src/a.py/below.py", Code.FILE_MISSING, id="below a file"),
        pytest.param("none/at/all.py", Code.FILE_MISSING, id="missing folder"),
        pytest.param("src", Code.NOT_A_FILE, id="folder"),
        pytest.param(".", Code.NOT_A_FILE, id="the workspace"),
        pytest.param("pipe", Code.NOT_A_FILE, id="FIFO"),
        pytest.param("", Code.INVALID_INPUT, id="empty"),
        pytest.param("@", Code.INVALID_INPUT, id="only an @"),
        pytest.param("a\0.py", Code.INVALID_INPUT, id="NUL"),
        pytest.param("\ud800.py", Code.INVALID_INPUT, id="not encodable"),
        pytest.param("a" * 5000, Code.INVALID_INPUT, id="too long"),
        pytest.param("a" * 300, Code.FILE_UNREADABLE, id="a name too long"),
        pytest.param("%2e%2e/work2/b.py", Code.FILE_MISSING, id="escapes are names here"),
    ],
)
def test_what_cannot_be_read_says_why(workspace: Path, request_path: str, code: Code) -> None:
    assert refusal(request_path, boundary_of(str(workspace))) is code


@pytest.mark.proves("PATH-4", "T43", "A17.1")
def test_a_link_to_itself_is_refused(workspace: Path) -> None:
    assert refusal("loop.py", boundary_of(str(workspace))) in {Code.OUTSIDE_WORKSPACE, Code.FILE_UNREADABLE}


@pytest.mark.proves("PATH-4")
def test_an_unreadable_file_is_told_from_a_missing_one(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a stand-in for the kernel: the tests may run as root, who reads everything."""
    really_open = os.open

    def guarded(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "a.py":
            raise PermissionError(errno.EACCES, "Permission denied")
        return really_open(path, flags, mode, dir_fd=dir_fd)

    boundary = boundary_of(str(workspace))
    monkeypatch.setattr(os, "open", guarded)
    assert refusal("src/a.py", boundary) is Code.FILE_UNREADABLE


@pytest.mark.proves("T43")
def test_a_socket_is_not_a_file(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
        assert refusal("s", boundary_of(str(workspace))) is Code.NOT_A_FILE


@pytest.mark.proves("PATH-1")
def test_a_relative_path_is_relative_to_the_client_session(workspace: Path) -> None:
    boundary = boundary_of(str(workspace), str(workspace / "src"))
    assert admit("a.py", boundary).path == str(workspace / "src/a.py")
    assert refusal("../../work2/b.py", boundary) is Code.OUTSIDE_WORKSPACE


@pytest.mark.proves("PATH-2")
@pytest.mark.parametrize("make", [Path.mkdir, Path.touch], ids=["a repository", "a linked worktree"])
def test_the_git_worktree_of_the_workspace_is_inside(tmp_path: Path, make: Callable[[Path], None]) -> None:
    (tmp_path / "repo/packages/one").mkdir(parents=True)
    (tmp_path / "repo/packages/two.py").write_text("2")
    (tmp_path / "beside.py").write_text("b")
    make(tmp_path / "repo/.git")
    boundary = boundary_of(str(tmp_path / "repo/packages/one"))
    assert admit("../two.py", boundary).path == str(tmp_path / "repo/packages/two.py")
    assert refusal("../../../beside.py", boundary) is Code.OUTSIDE_WORKSPACE


@pytest.mark.proves("PATH-2", "T3")
def test_a_home_folder_kept_in_git_does_not_open_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".git").mkdir()
    (tmp_path / "project").mkdir()
    (tmp_path / ".netrc").write_text("secret")
    assert refusal("../.netrc", boundary_of(str(tmp_path / "project"))) is Code.OUTSIDE_WORKSPACE


@pytest.mark.proves("T3", "A17.2")
def test_what_a_git_file_points_at_opens_nothing(workspace: Path) -> None:
    (workspace / ".git").rmdir()
    (workspace / ".git").write_text(f"gitdir: {workspace}2/.git")
    assert refusal("../work2/b.py", boundary_of(str(workspace))) is Code.OUTSIDE_WORKSPACE


@pytest.mark.proves("PATH-2")
def test_external_paths_are_admitted_only_when_the_user_says_so(workspace: Path) -> None:
    open_boundary = boundary_of(str(workspace), allow_external=True)
    outside = admit("../work2/b.py", open_boundary)
    assert outside.path == f"{workspace}2/b.py"
    assert outside.place is Place.OUTSIDE
    with os.fdopen(open_admitted(outside)) as stream:
        assert stream.read() == "b"
    assert refusal("../work2/b.py", open_boundary, Want.TARGET) is Code.OUTSIDE_WORKSPACE


@pytest.mark.proves("PATH-2")
def test_a_dependency_is_marked(workspace: Path) -> None:
    assert admit("node_modules/pkg/index.js", boundary_of(str(workspace))).place is Place.DEPENDENCY


@pytest.mark.proves("PATH-5", "T33")
@pytest.mark.parametrize(
    ("path", "place"),
    [
        pytest.param("{ws}/src/a.py", Place.IN_ROOT, id="a file of the workspace"),
        pytest.param("{ws}/src/not/there.py", Place.IN_ROOT, id="a file that is not there"),
        pytest.param("{ws}/node_modules/pkg/index.js", Place.DEPENDENCY, id="a package of the workspace"),
        pytest.param("{ws}/out.py", Place.OUTSIDE, id="a link that leads out"),
        pytest.param("{ws}2/b.py", Place.OUTSIDE, id="a neighbour"),
        pytest.param("/usr/lib/python3/dist-packages/x.py", Place.DEPENDENCY, id="an installed library"),
        pytest.param("/usr/include/stdio.h", Place.DEPENDENCY, id="a system header"),
        pytest.param("/home/me/go/pkg/mod/example.com/x@v1/x.go", Place.DEPENDENCY, id="Go's module cache"),
        pytest.param("/home/me/.cargo/registry/src/index/serde/lib.rs", Place.DEPENDENCY, id="Cargo's registry"),
        pytest.param("/home/me/.aws/credentials", Place.OUTSIDE, id="a secret"),
    ],
)
def test_results_are_told_apart_by_where_they_lie(workspace: Path, path: str, place: Place) -> None:
    assert classify(AbsPath(path.format(ws=workspace)), boundary_of(str(workspace))) is place


@pytest.mark.proves("PATH-2")
@pytest.mark.parametrize(
    ("request_path", "code"),
    [
        pytest.param("src", None, id="a folder"),
        pytest.param("src/a.py", Code.NOT_A_FILE, id="a file"),
        pytest.param("none", Code.FILE_MISSING, id="nothing"),
        pytest.param("outside", Code.OUTSIDE_WORKSPACE, id="a link to a folder outside"),
    ],
)
def test_a_folder_can_be_asked_for(workspace: Path, request_path: str, code: Code | None) -> None:
    boundary = boundary_of(str(workspace))
    if code is None:
        assert admit(request_path, boundary, Want.FOLDER).path == str(workspace / request_path)
    else:
        assert refusal(request_path, boundary, Want.FOLDER) is code


@pytest.mark.proves("T28")
@pytest.mark.parametrize(
    ("request_path", "code"),
    [
        pytest.param("src/a.py", None, id="a file that is there"),
        pytest.param("src/new.py", None, id="a new file"),
        pytest.param("new/folder/new.py", None, id="a new file in new folders"),
        pytest.param("src", Code.NOT_A_FILE, id="a folder"),
        pytest.param("pipe", Code.NOT_A_FILE, id="a FIFO"),
        pytest.param("out.py", Code.OUTSIDE_WORKSPACE, id="a link that leads out"),
        pytest.param("outside/new.py", Code.OUTSIDE_WORKSPACE, id="new, in a folder outside"),
        pytest.param("dangling.py", Code.OUTSIDE_WORKSPACE, id="new, where a dangling link leads"),
        pytest.param(".git/hooks/pre-commit", Code.PROTECTED, id="a git hook"),
        pytest.param("deep/.git/config", Code.PROTECTED, id="a nested repository"),
    ],
)
def test_a_target_of_a_write_is_stricter(workspace: Path, request_path: str, code: Code | None) -> None:
    boundary = boundary_of(str(workspace))
    if code is None:
        assert admit(request_path, boundary, Want.TARGET).path == str(workspace / request_path)
    else:
        assert refusal(request_path, boundary, Want.TARGET) is code


@pytest.mark.proves("T11")
def test_our_own_files_are_no_target_even_inside_the_workspace(workspace: Path) -> None:
    state = workspace / "state/pilotfish"
    state.mkdir(parents=True)
    (workspace / "alias").symlink_to("state")
    boundary = boundary_of(str(workspace), private=[str(state)])
    assert refusal("state/pilotfish/trust.json", boundary, Want.TARGET) is Code.PROTECTED
    assert refusal("alias/pilotfish/trust.json", boundary, Want.TARGET) is Code.PROTECTED
    assert admit("state/other.json", boundary, Want.TARGET)


@pytest.mark.proves("F55")
def test_a_workspace_that_is_gone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        boundary_of(str(tmp_path / "gone"))
    assert refused.value.code is Code.ROOT_GONE


@pytest.mark.proves("F43", "F46")
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param("/Users/me/Work/Main.py", "/Users/me/Work/Main.py", id="already right"),
        pytest.param("/users/ME/work/main.PY", "/Users/me/Work/Main.py", id="wrong case everywhere"),
        pytest.param("/Users/me/Work/cafe\u0301.py", "/Users/me/Work/caf\u00e9.py", id="decomposed, kept composed"),
        pytest.param("/Users/me/Work/new.py", "/Users/me/Work/new.py", id="not there yet"),
        pytest.param("/users/me/Gone/X.py", "/Users/me/Gone/X.py", id="below what is not there"),
    ],
)
def test_a_name_is_spelled_as_the_file_system_spells_it(asked: str, expected: str) -> None:
    folders = {"/": ["Users"], "/Users": ["me"], "/Users/me": ["Work"], "/Users/me/Work": ["Main.py", "caf\u00e9.py"]}
    assert spelled(asked, lambda folder: folders.get(folder, [])) == expected


@pytest.mark.proves("F45")
def test_a_name_that_is_not_utf8_is_admitted(tmp_path: Path) -> None:
    try:
        with open(os.path.join(os.fsencode(tmp_path), b"\xff.py"), "wb"):
            pass
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    assert os.fsencode(admit("\udcff.py", boundary_of(str(tmp_path))).path).endswith(b"/\xff.py")
