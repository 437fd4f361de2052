"""Watched files: which changes a server is told of, in which order, and which folders matter."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lsprotocol import converters
from lsprotocol import types as lsp

from pilotfish.model import AbsPath
from pilotfish.protocol.codec import encode
from pilotfish.protocol.watching import (
    Change,
    Coalescer,
    Flush,
    PathChange,
    WatchRegistration,
    asks_for,
    batch,
    may_match,
    roots_to_watch,
    watch_registrations,
)

ROOT = AbsPath("/home/me/project")
ROOTS = (ROOT,)
LIBRARY = AbsPath("/usr/lib/python3")

C, H, D = Change.CREATED, Change.CHANGED, Change.DELETED


def changes(*pairs: tuple[str, Change]) -> list[PathChange]:
    return [PathChange(AbsPath(path), change) for path, change in pairs]


def registered(*watchers: object) -> tuple[WatchRegistration, ...]:
    return tuple(watch_registrations({"watchers": list(watchers)}))


def told(found: Sequence[PathChange], *watchers: object) -> list[tuple[str, int]]:
    params = batch(found, registered(*watchers), ROOTS)
    return [(event.uri, event.type) for event in params.changes] if params else []


def pattern(glob: object, kind: int | None = None) -> dict[str, object]:
    return {"globPattern": glob} if kind is None else {"globPattern": glob, "kind": kind}


def below(base: object, glob: str) -> dict[str, object]:
    return pattern({"baseUri": base, "pattern": glob})


# --- Registrations × changes --------------------------------------------------------------------------------------


@pytest.mark.proves("C73", "C110", "WATCH-1")
@pytest.mark.parametrize(
    ("watcher", "expected"),
    [
        pytest.param(pattern("**/*.ts"), ["/home/me/project/a.ts", "/elsewhere/a.ts"], id="globstar"),
        pytest.param(pattern("*.ts"), ["/home/me/project/a.ts"], id="relative to the workspace"),
        pytest.param(pattern(f"{ROOT}/**/*"), ["/home/me/project/a.ts", "/home/me/project/src"], id="absolute"),
        pytest.param(pattern("**/{src,lib}"), ["/home/me/project/src"], id="a folder, by braces"),
        pytest.param(pattern("**/[!a].ts"), [], id="negated class"),
        pytest.param(below(f"file://{ROOT}", "*"), ["/home/me/project/a.ts", "/home/me/project/src"], id="base"),
        pytest.param(below({"uri": f"file://{ROOT}", "name": "x"}, "src"), ["/home/me/project/src"], id="base folder"),
        pytest.param(below(f"file://{LIBRARY}", "**"), [f"{LIBRARY}/os.py"], id="base outside of the root"),
    ],
)
def test_a_server_is_told_of_what_its_globs_match(watcher: object, expected: list[str]) -> None:
    found = changes((f"{ROOT}/a.ts", H), (f"{ROOT}/src", C), ("/elsewhere/a.ts", H), (f"{LIBRARY}/os.py", H))
    assert [uri for uri, _ in told(found, watcher)] == [f"file://{path}" for path in expected]


@pytest.mark.proves("C110", "WATCH-1")
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param(None, [C, H, D], id="all by default"),
        pytest.param(7, [C, H, D], id="all"),
        pytest.param(1, [C], id="created"),
        pytest.param(2, [H], id="changed"),
        pytest.param(4, [D], id="deleted"),
        pytest.param(5, [C, D], id="created and deleted"),
        pytest.param(0, [], id="none"),
    ],
)
def test_a_server_is_told_of_the_kinds_it_asked_for(kind: int | None, expected: list[Change]) -> None:
    found = changes(("/a", C), ("/b", H), ("/c", D))
    assert [change for _, change in told(found, pattern("**", kind))] == expected


@pytest.mark.proves("C110")
def test_a_change_that_two_watchers_want_is_told_once() -> None:
    assert told(changes(("/a.ts", H)), pattern("**"), pattern("**/*.ts")) == [("file:///a.ts", 2)]


@pytest.mark.proves("C51", "C110")
@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(pattern("{a"), id="bad glob"),
        pytest.param({}, id="no glob"),
        pytest.param(3, id="no object"),
        pytest.param(below("untitled:a", "*"), id="base that is no folder"),
    ],
)
def test_a_bad_watcher_is_left_out_and_the_others_stand(bad: object) -> None:
    assert told(changes(("/a.ts", H)), bad, pattern("**/*.ts")) == [("file:///a.ts", 2)]


@pytest.mark.parametrize("options", [None, {}, {"watchers": None}, {"watchers": {}}, 3])
def test_options_without_watchers_watch_nothing(options: object) -> None:
    assert list(watch_registrations(options)) == []


@pytest.mark.proves("WATCH-1")
def test_the_notification_has_these_bytes_and_is_one_of_the_protocol() -> None:
    params = batch(changes(("/a b.ts", C), ("/c.ts", D)), registered(pattern("**")), ROOTS)
    data = encode(params)
    assert data == b'{"changes":[{"uri":"file:///a%20b.ts","type":1},{"uri":"file:///c.ts","type":3}]}'
    converters.get_converter().structure(
        {"changes": [{"uri": "file:///a%20b.ts", "type": 1}]}, lsp.DidChangeWatchedFilesParams
    )


def test_a_server_that_wants_none_of_it_is_told_nothing() -> None:
    assert batch(changes(("/a.ts", C)), registered(pattern("**/*.rs")), ROOTS) is None
    assert batch([], registered(pattern("**")), ROOTS) is None


# --- Coalescing ---------------------------------------------------------------------------------------------------


def flushed(*pairs: tuple[str, Change]) -> list[tuple[str, Change]]:
    coalescer = Coalescer()
    for found in changes(*pairs):
        coalescer.add(found)
    return [(found.path, found.change) for found in coalescer.flush().changes]


@pytest.mark.proves("C111")
@pytest.mark.parametrize(
    ("happened", "expected"),
    [
        pytest.param([C], [C], id="created"),
        pytest.param([H], [H], id="changed"),
        pytest.param([D], [D], id="deleted"),
        pytest.param([C, C], [C], id="created twice"),
        pytest.param([C, H, H], [C], id="created and written"),
        pytest.param([C, D], [C, D], id="created and deleted stay in order"),
        pytest.param([C, D, D], [C, D], id="deleted twice"),
        pytest.param([C, D, C], [C], id="created, deleted and created again"),
        pytest.param([C, D, H], [C], id="created, deleted and there again"),
        pytest.param([H, H], [H], id="changed twice"),
        pytest.param([H, C], [H], id="replaced"),
        pytest.param([H, D], [D], id="changed and deleted"),
        pytest.param([D, C], [H], id="deleted and created is a change"),
        pytest.param([D, H], [H], id="deleted and there again"),
        pytest.param([D, D], [D], id="gone twice"),
        pytest.param([D, C, D], [D], id="deleted in the end"),
    ],
)
def test_changes_of_one_path_become_the_least_that_says_as_much(happened: list[Change], expected: list[Change]) -> None:
    assert flushed(*(("/a", change) for change in happened)) == [("/a", change) for change in expected]


@pytest.mark.proves("C111", "WATCH-2")
@pytest.mark.parametrize(
    ("happened", "expected"),
    [
        pytest.param([("/d", C), ("/d/a", C), ("/d", C)], [("/d", C), ("/d/a", C)], id="folder before its files"),
        pytest.param([("/d/a", H), ("/d/a", D), ("/d", D)], [("/d/a", D), ("/d", D)], id="files before their folder"),
        pytest.param([("/a", D), ("/b", C)], [("/a", D), ("/b", C)], id="rename"),
        pytest.param([("/t", C), ("/t", D), ("/a", H)], [("/t", C), ("/t", D), ("/a", H)], id="atomic write"),
        pytest.param([("/a", D), ("/b", C), ("/a", C)], [("/b", C), ("/a", H)], id="by the time of the last state"),
    ],
)
def test_paths_keep_the_order_in_which_they_reached_their_last_state(
    happened: list[tuple[str, Change]], expected: list[tuple[str, Change]]
) -> None:
    assert flushed(*happened) == expected


@pytest.mark.proves("WATCH-2")
def test_a_branch_switch_is_one_batch() -> None:
    coalescer = Coalescer()
    for index in range(10_000):
        coalescer.add(PathChange(AbsPath(f"{ROOT}/{index}.py"), H))
        coalescer.add(PathChange(AbsPath(f"{ROOT}/{index}.py"), H))
    params = batch(coalescer.flush().changes, registered(pattern("**/*.py"), pattern("**/*.pyi")), ROOTS)
    assert params is not None
    assert len(params.changes) == 10_000
    assert coalescer.flush() == Flush(())


@pytest.mark.proves("C111")
def test_too_many_paths_ask_for_a_rescan_and_hold_no_memory() -> None:
    coalescer = Coalescer(limit=3)
    for path in ("/a", "/b", "/c", "/c"):
        coalescer.add(PathChange(AbsPath(path), H))
    coalescer.add(PathChange(AbsPath("/d"), H))
    coalescer.add(PathChange(AbsPath("/e"), H))
    assert coalescer.flush() == Flush((), rescan=True)
    coalescer.add(PathChange(AbsPath("/f"), H))
    assert coalescer.flush() == Flush((PathChange(AbsPath("/f"), H),))


@pytest.mark.proves("C111")
def test_changes_that_the_host_lost_ask_for_a_rescan() -> None:
    coalescer = Coalescer()
    coalescer.add(PathChange(AbsPath("/a"), H))
    coalescer.lose()
    assert coalescer.flush() == Flush((), rescan=True)
    assert coalescer.flush() == Flush(())


def replay(disk: dict[str, int], happened: Sequence[tuple[str, Change]], stamp: int) -> dict[str, int]:
    """What a server knows of the disk after it was told: which files exist, and since when it must read them again."""
    known = dict(disk)
    for path, change in happened:
        if change is D:
            known.pop(path, None)
        else:
            known[path] = stamp
    return known


@pytest.mark.proves("C111")
@given(
    st.dictionaries(st.sampled_from("abc"), st.just(0)),
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(list(Change))), max_size=12),
)
@settings(max_examples=300, deadline=None)
@example({}, [("a", C), ("a", D)])
def test_a_batch_leaves_a_server_with_the_same_knowledge_as_every_change_by_itself(
    disk: dict[str, int], happened: list[tuple[str, Change]]
) -> None:
    batched = flushed(*happened)
    assert replay(disk, batched, stamp=1) == replay(disk, happened, stamp=1)
    assert len(batched) <= len(happened)
    assert len({path for path, _ in batched}) == len({path for path, _ in happened})


# --- What to watch ------------------------------------------------------------------------------------------------


@pytest.mark.proves("WATCH-4", "C110")
@pytest.mark.parametrize(
    ("watchers", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([pattern("**/*.ts")], [ROOT], id="anywhere is the workspace"),
        pytest.param([pattern("*.ts")], [ROOT], id="relative"),
        pytest.param([pattern(f"{ROOT}/**/*")], [ROOT], id="absolute"),
        pytest.param([pattern(f"{ROOT}/src/**/*")], [f"{ROOT}/src"], id="a part of the workspace"),
        pytest.param([pattern(f"{ROOT}/src/**/*"), pattern("**/*.ts")], [ROOT], id="not twice"),
        pytest.param([below(f"file://{LIBRARY}", "**"), pattern("**")], [ROOT, LIBRARY], id="outside"),
        pytest.param([below("file:///home/me", "*.toml")], ["/home/me"], id="files above the workspace"),
        pytest.param([below("file:///home/me", "**/*.toml")], [ROOT], id="not everything above the workspace"),
        pytest.param([below("file:///", "**")], [ROOT], id="never the whole machine"),
        pytest.param([pattern("/**/*.ts")], [ROOT], id="nor by an absolute glob"),
        pytest.param([below("file:///home/me/project2", "**")], ["/home/me/project2"], id="by whole segments"),
    ],
)
def test_these_folders_are_watched(watchers: list[object], expected: list[str]) -> None:
    assert list(roots_to_watch(registered(*watchers), ROOTS)) == expected


@pytest.mark.proves("WATCH-4")
def test_a_folder_in_which_nothing_can_match_is_not_watched() -> None:
    registrations = registered(pattern("*.toml"), below(f"file://{ROOT}/src", "**/*.ts"))
    folders = [ROOT, f"{ROOT}/src", f"{ROOT}/src/x", f"{ROOT}/docs", "/home"]
    found = [folder for folder in folders if may_match(registrations, AbsPath(folder), ROOTS)]
    assert found == [ROOT, f"{ROOT}/src", f"{ROOT}/src/x", "/home"]


@pytest.mark.proves("WATCH-4")
@pytest.mark.parametrize(
    ("watcher", "expected"),
    [
        pytest.param(pattern("**/*"), False, id="everything does not mean it"),
        pytest.param(pattern("**/node_modules/**"), True, id="by name"),
        pytest.param(pattern("node_modules/.package-lock.json"), True, id="relative"),
        pytest.param(pattern("src/node_modules/x"), False, id="another folder of the name"),
        pytest.param(below(f"file://{ROOT}/node_modules/x", "*"), True, id="base inside"),
        pytest.param(below(f"file://{ROOT}", "*"), False, id="base above"),
    ],
)
def test_an_ignored_folder_is_watched_only_if_a_server_means_it(watcher: object, expected: bool) -> None:
    assert asks_for(registered(watcher), AbsPath(f"{ROOT}/node_modules"), ROOTS) is expected
