"""Which servers serve a file and for which root."""

import itertools
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.model import AbsPath
from pilotfish.servers.catalogue import load, with_guests
from pilotfish.servers.resolve import Candidate, Resolver, SearchScope, choose, interpreter
from pilotfish.servers.spec import (
    FileRule,
    Grouping,
    NpmRequirement,
    Rank,
    Role,
    RootRule,
    RootStrategy,
    ServerSpec,
)
from pilotfish.servers.tree import DiskTree
from support.files.virtual_tree import VirtualTree

WORK = AbsPath("/w")
SCOPE = SearchScope(WORK)


def spec(name: str, root: RootRule | None = None, rank: Rank | None = None, **rule: tuple[str, ...]) -> ServerSpec:
    files = FileRule(rule.get("extensions", (".x",)), rule.get("names", ()), rule.get("shebangs", ()))
    return ServerSpec(name, name, ("x",), (name,), files, root or RootRule(), rank=rank or Rank())


def found(
    specs: list[ServerSpec], files: Mapping[str, str | None], path: str, scope: SearchScope = SCOPE
) -> dict[str, str]:
    """The candidates for `path` and their roots, in order."""
    resolver = Resolver(specs, VirtualTree(files))
    return {candidate.spec.id: candidate.root for candidate in resolver.candidates(AbsPath(path), scope)}


def catalogue_ids(files: Mapping[str, str | None], path: str) -> dict[str, str]:
    return found(list(load().values()), files, path)


# --- Which servers ------------------------------------------------------------------------------------------------


@pytest.mark.proves("REG-2")
@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        pytest.param("/w/a.x", "", ["by-extension"], id="extension"),
        pytest.param("/w/a.X", "", ["by-extension"], id="extension in another case"),
        pytest.param("/w/a.long.x", "", ["by-extension", "by-long-extension"], id="two extensions"),
        pytest.param("/w/Makefile", "", ["by-name"], id="name"),
        pytest.param("/w/Makefile.x", "", ["by-extension"], id="a name that only starts the same"),
        pytest.param("/w/Docker.dev", "", ["by-glob"], id="glob of a name"),
        pytest.param("/w/deep/.ci/jobs/a.y", "", ["by-path"], id="glob of a path"),
        pytest.param("/w/jobs/a.y", "", [], id="only half of the path"),
        pytest.param("/w/run", "#!/usr/bin/env python3\n", ["by-shebang"], id="shebang"),
        pytest.param("/w/run", "print()\n", [], id="no shebang"),
        pytest.param("/w/run.y", "#!/usr/bin/python\n", [], id="a shebang counts only without an extension"),
    ],
)
def test_a_file_is_served_by_every_server_that_it_matches(path: str, text: str, expected: list[str]) -> None:
    specs = [
        spec("by-extension"),
        spec("by-long-extension", extensions=(".long.x",)),
        spec("by-name", extensions=(), names=("Makefile",)),
        spec("by-glob", extensions=(), names=("Docker.*",)),
        spec("by-path", extensions=(), names=(".ci/jobs/*.y",)),
        spec("by-shebang", extensions=(), shebangs=("python",)),
    ]
    assert sorted(found(specs, {path: text}, path)) == expected


@pytest.mark.proves("REG-2")
def test_the_callers_first_line_spares_reading_the_file() -> None:
    tree = VirtualTree({"/w/run": "#!/bin/sh"})
    resolver = Resolver([spec("py", extensions=(), shebangs=("python",))], tree)
    assert resolver.candidates(AbsPath("/w/run"), SCOPE, "#!/usr/bin/python")
    assert not resolver.serves(AbsPath("/w/run"), "text")
    assert ("read", "/w/run") not in tree.questions


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#!/bin/bash", "bash"),
        ("#! /usr/bin/python3.12 -u", "python"),
        ("#!/usr/bin/env node", "node"),
        ("#!/usr/bin/env -S FOO=1 deno run", "deno"),
        ("#!/usr/bin/env /opt/bin/ruby2", "ruby"),
        ("#!/usr/bin/env", None),
        ("#!", None),
        ("#!/usr/bin/7", None),
        ("import os", None),
        ("", None),
    ],
)
def test_a_shebang_names_its_interpreter(line: str, expected: str | None) -> None:
    assert interpreter(line) == expected


@pytest.mark.proves("CFG-4")
def test_a_disabled_server_is_no_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    disabled = ServerSpec("off", "off", ("x",), ("off",), FileRule((".x",)), RootRule(), disabled=True)
    assert found([disabled], {}, "/w/a.x") == {}


@pytest.mark.proves("PATH-2")
@pytest.mark.parametrize(
    "path",
    [
        "/w/node_modules/pkg/a.x", "/w/.venv/lib/python3/site-packages/a.x", "/w/vendor/lib/a.x",
        "/w/sub/node_modules/@scope/pkg/deep/a.x", "/w/venv/a.x", "/w/go/pkg/mod/x/a.x",
    ],
)  # fmt: skip
def test_a_file_of_a_dependency_starts_nothing(path: str) -> None:
    tree = VirtualTree({path: ""})
    assert Resolver([spec("s")], tree).candidates(AbsPath(path), SCOPE) == ()
    assert tree.questions == []


@pytest.mark.proves("PATH-2")
def test_a_workspace_inside_a_dependency_is_a_workspace() -> None:
    """Somebody works on that package; only what lies below counts as its dependency."""
    scope = SearchScope(AbsPath("/w/node_modules/pkg"))
    assert found([spec("s")], {}, "/w/node_modules/pkg/a.x", scope) == {"s": "/w/node_modules/pkg"}
    assert found([spec("s")], {}, "/w/node_modules/pkg/node_modules/b/a.x", scope) == {}


# --- Which root ---------------------------------------------------------------------------------------------------

MARKED = {"/w/m": "", "/w/a/m": "", "/w/a/b/weak": "", "/w/a/b/c/f.x": "", "/m": ""}


@pytest.mark.proves("REG-3")
@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param(RootRule(("m",)), "/w/a", id="nearest"),
        pytest.param(RootRule(("m", "weak")), "/w/a/b", id="nearest of several"),
        pytest.param(RootRule(("m", "weak"), strong=("m",)), "/w/a", id="a strong one before a nearer one"),
        pytest.param(RootRule(("none", "weak"), strong=("none",)), "/w/a/b", id="no strong one"),
        pytest.param(RootRule(("m",), strategy=RootStrategy.OUTERMOST), "/w", id="outermost, not above the workspace"),
        pytest.param(RootRule(("m",), strategy=RootStrategy.WORKSPACE), "/w", id="always the workspace"),
        pytest.param(RootRule(("none",)), "/w", id="no marker: the workspace"),
        pytest.param(RootRule(()), "/w", id="no markers at all"),
        pytest.param(RootRule(("none",), required=True), None, id="no marker, and one is required"),
        pytest.param(RootRule(("w*k",)), "/w/a/b", id="glob"),
        pytest.param(RootRule(("b/weak",)), "/w/a", id="path below the folder"),
        pytest.param(RootRule(("b/w*k",)), "/w/a", id="glob at the end of a path"),
        pytest.param(RootRule(("[",)), "/w", id="a glob that is none"),
        pytest.param(RootRule(("m",), exclusions=("weak",)), None, id="exclusion nearer than the root"),
        pytest.param(RootRule(("weak",), exclusions=("weak",)), None, id="exclusion in the root itself"),
        pytest.param(RootRule(("weak",), exclusions=("m",)), "/w/a/b", id="exclusion further than the root"),
        pytest.param(RootRule(("none",), exclusions=("m",)), None, id="exclusion, and no root"),
    ],
)
def test_the_root_follows_the_rule(rule: RootRule, expected: str | None) -> None:
    roots = found([spec("s", rule)], MARKED, "/w/a/b/c/f.x")
    assert roots == ({} if expected is None else {"s": expected})


@pytest.mark.proves("REG-3")
@pytest.mark.parametrize(
    ("git", "expected"),
    [
        pytest.param(None, "/w/tree", id="a repository of its own"),
        pytest.param("gitdir: /w/.git/worktrees/tree\n", "/w/tree", id="a linked worktree"),
        pytest.param("gitdir: ../.git/modules/tree\n", "/w", id="a submodule is a part of the whole"),
    ],
)
def test_a_repository_inside_the_workspace_bounds_the_search(git: str | None, expected: str) -> None:
    files = {"/w/m": "", "/w/tree/.git": git, "/w/tree/src/f.x": ""}
    assert found([spec("s", RootRule(("m",)))], files, "/w/tree/src/f.x") == {"s": expected}


@pytest.mark.proves("REG-3")
def test_a_worktree_with_its_own_marker_does_not_join_the_outer_build() -> None:
    files = {"/w/m": "", "/w/tree/.git": "gitdir: /w/.git/worktrees/tree", "/w/tree/m": "", "/w/tree/src/f.x": ""}
    rule = RootRule(("m",), strategy=RootStrategy.OUTERMOST)
    assert found([spec("s", rule)], files, "/w/tree/src/f.x") == {"s": "/w/tree"}


@pytest.mark.proves("REG-3")
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/repo/pkg/one/f.x", "/repo/pkg/one", id="inside the workspace"),
        pytest.param("/repo/pkg/two/f.x", "/repo", id="beside it, in the same worktree"),
        pytest.param("/elsewhere/deep/f.x", "/elsewhere/deep", id="outside: its own folder"),
    ],
)
def test_the_search_ends_where_the_file_is_at_home(path: str, expected: str) -> None:
    scope = SearchScope(AbsPath("/repo/pkg/one"), AbsPath("/repo"))
    assert found([spec("s", RootRule(("none",)))], {"/repo/.git": None, path: ""}, path, scope) == {"s": expected}


@pytest.mark.proves("REG-3")
@pytest.mark.parametrize(
    ("grouping", "files", "expected"),
    [
        pytest.param("npm", {"/w/package.json": '{"workspaces": ["pkg/*"]}'}, "/w", id="npm"),
        pytest.param("npm", {"/w/package.json": '{"workspaces": ["other/*"]}'}, "/w/pkg/one", id="npm, not ours"),
        pytest.param("npm", {"/w/package.json": "{"}, "/w/pkg/one", id="npm, broken"),
        pytest.param("pnpm", {"/w/pnpm-workspace.yaml": "packages:\n  - 'pkg/*'\n"}, "/w", id="pnpm"),
        pytest.param("cargo", {"/w/Cargo.toml": "[workspace]\nmembers = []"}, "/w", id="Cargo"),
        pytest.param("cargo", {"/w/Cargo.toml": "[package]"}, "/w/pkg/one", id="Cargo, no workspace"),
        pytest.param("go-work", {"/w/go.work": "go 1.22\nuse ./pkg/one\n"}, "/w", id="go.work"),
        pytest.param("go-work", {"/w/go.work": "use ./pkg/two"}, "/w/pkg/one", id="go.work, not ours"),
        pytest.param("uv", {"/w/pyproject.toml": '[tool.uv.workspace]\nmembers = ["pkg/*"]'}, "/w", id="uv workspace"),
    ],
)
def test_a_monorepo_is_one_root_for_the_packages_it_claims(
    grouping: Grouping, files: dict[str, str], expected: str
) -> None:
    rule = RootRule(("m",), grouping=(grouping,))
    tree = {**files, "/w/pkg/one/m": "", "/w/pkg/one/src/f.x": ""}
    assert found([spec("s", rule)], tree, "/w/pkg/one/src/f.x") == {"s": expected}


@pytest.mark.proves("REG-3")
def test_the_nearest_workspace_of_cargo_counts() -> None:
    """A crate such as `fuzz` detaches itself with a workspace of its own."""
    files = {"/w/Cargo.toml": "[workspace]", "/w/fuzz/Cargo.toml": "[workspace]\n[package]", "/w/fuzz/a.rs": ""}
    assert catalogue_ids(files, "/w/fuzz/a.rs")["rust-analyzer"] == "/w/fuzz"


@pytest.mark.proves("REG-3")
@pytest.mark.parametrize(
    ("version", "minimum", "below", "fits"),
    [
        ("7.0.2", 7, None, True), ("6.0.3", 7, None, False), (None, 7, None, False), ("7.0.2", None, 7, False),
        ("5.9.3", None, 7, True), (None, None, 7, True), ("next", 7, None, False), ("next", None, 7, True),
    ],
)  # fmt: skip
def test_a_server_may_need_some_versions_of_a_package(
    version: str | None, minimum: int | None, below: int | None, fits: bool
) -> None:
    rule = RootRule(("m",), requires=NpmRequirement("ts", minimum, below))
    package = {"/w/node_modules/ts/package.json": f'{{"version": "{version}"}}'} if version else {}
    assert bool(found([spec("s", rule)], {"/w/m": "", **package}, "/w/src/f.x")) is fits


@pytest.mark.proves("REG-3")
@pytest.mark.parametrize(
    ("asked", "installed", "fits"),
    [
        ("^7.0.2", None, True), ("7", None, True), (">= 7.1", None, True), ("~6.0.1", None, False),
        ("next", None, False), ("^7.0.2", "5.9.3", False), ("^5.9.3", "7.0.2", True),
    ],
)  # fmt: skip
def test_before_a_package_is_installed_the_manifest_says_which_version(
    asked: str, installed: str | None, fits: bool
) -> None:
    """Else the server that is advised would be the wrong one after `npm install`."""
    rule = RootRule(("m",), requires=NpmRequirement("ts", 7))
    files = {"/w/m": "", "/w/package.json": f'{{"devDependencies": {{"ts": "{asked}"}}}}', "/w/src/package.json": "{}"}
    if installed:
        files["/w/node_modules/ts/package.json"] = f'{{"version": "{installed}"}}'
    assert bool(found([spec("s", rule)], files, "/w/src/f.x")) is fits


@pytest.mark.parametrize("manifest", ["[]", "{", '{"version": 7}', "null", "[" * 100_000])
def test_a_broken_manifest_is_no_version(manifest: str) -> None:
    rule = RootRule(("m",), requires=NpmRequirement("ts", 7))
    assert found([spec("s", rule)], {"/w/node_modules/ts/package.json": manifest}, "/w/f.x") == {}


# --- The catalogue's own rules ------------------------------------------------------------------------------------

TYPESCRIPT = {"typescript", "typescript-native", "vtsls", "deno"}


@pytest.mark.proves("REG-3")
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"/w/package.json": "{}"}, {"typescript": "/w", "vtsls": "/w"}, id="npm"),
        pytest.param({"/w/deno.json": "{}"}, {"deno": "/w"}, id="Deno"),
        pytest.param({"/w/deno.json": "{}", "/w/package.json": "{}"}, {"deno": "/w"}, id="both: Deno"),
        pytest.param(
            {"/w/deno.json": "{}", "/w/web/package.json": "{}"},
            {"typescript": "/w/web", "vtsls": "/w/web", "deno": "/w"},
            id="a package inside a Deno project",
        ),
        pytest.param({"/w/package.json": "{}", "/w/web/deno.jsonc": "{}"}, {"deno": "/w/web"}, id="Deno in a package"),
        pytest.param(
            {"/w/package.json": "{}", "/w/web/tsconfig.json": "{}"},
            {"typescript": "/w", "vtsls": "/w"},
            id="a tsconfig in a folder is no project of its own",
        ),
        pytest.param(
            {"/w/package.json": "{}", "/w/node_modules/typescript/package.json": '{"version": "7.0.2"}'},
            {"typescript-native": "/w", "vtsls": "/w"},
            id="TypeScript 7",
        ),
    ],
)
def test_typescript_and_deno_keep_out_of_each_others_way(files: dict[str, str], expected: dict[str, str]) -> None:
    roots = catalogue_ids({**files, "/w/web/a.ts": ""}, "/w/web/a.ts")
    assert {name: root for name, root in roots.items() if name in TYPESCRIPT} == expected


@pytest.mark.proves("REG-2")
def test_linters_run_beside_the_main_server_only_where_they_are_set_up() -> None:
    plain = catalogue_ids({"/w/package.json": "{}"}, "/w/a.ts")
    assert not {"eslint", "biome", "oxlint"} & plain.keys()
    configured = {"/w/package.json": "{}", "/w/eslint.config.js": "", "/w/biome.json": "{}", "/w/.oxlintrc.json": "{}"}
    assert {"typescript", "eslint", "biome", "oxlint"} <= catalogue_ids(configured, "/w/a.ts").keys()


# --- Beside another one -------------------------------------------------------------------------------------------

VUE_PROJECT: Mapping[str, str | None] = {"/w/package.json": "{}", "/w/tsconfig.json": "{}", "/w/node_modules/vue": None}


@pytest.mark.proves("REG-2")
@pytest.mark.parametrize(
    ("files", "installed", "servers", "whole"),
    [
        pytest.param(VUE_PROJECT, "vue typescript vtsls", ["vue", "typescript"], True, id="with the first"),
        pytest.param(VUE_PROJECT, "vue vtsls", ["vue", "vtsls"], True, id="or the next"),
        pytest.param(VUE_PROJECT, "vue", ["vue"], False, id="alone, and that is said"),
        pytest.param(VUE_PROJECT, "typescript", [], None, id="which has nothing to say without it"),
        pytest.param(
            {"/w/package.json": '{"dependencies": {"vue": "3"}}'}, "vue typescript", ["vue", "typescript"], True,
            id="not installed yet",
        ),
        pytest.param({"/w/package.json": "{}"}, "vue typescript", ["vue"], False, id="a project without such files"),
    ],
)  # fmt: skip
def test_a_server_that_asks_another_one_shares_its_files_with_that(
    files: Mapping[str, str | None], installed: str, servers: list[str], whole: bool | None
) -> None:
    resolver = Resolver(with_guests(load()).values(), VirtualTree(files))
    choice = choose(resolver.candidates(AbsPath("/w/a.vue"), SCOPE), lambda one: one.spec.id in installed.split())
    assert [one.spec.id for one in choice.servers] == servers
    assert {one.language_id for one in choice.servers} <= {"vue"}
    assert not servers or (choice.servers[0].spec.freshness.not_checked is None) is whole
    assert (choice.expected is None) is bool(servers)


def test_the_other_server_is_not_taken_for_a_rival() -> None:
    resolver = Resolver(with_guests(load()).values(), VirtualTree(VUE_PROJECT))
    candidates = resolver.candidates(AbsPath("/w/a.vue"), SCOPE)
    assert next(one.spec.id for one in candidates if one.spec.rank.role is Role.MAIN) == "vue"
    assert with_guests(load())["typescript"].extensions[-1] == ".vue"


# --- Choosing -----------------------------------------------------------------------------------------------------


def candidate(name: str, rank: Rank, *, favoured: bool = False) -> Candidate:
    return Candidate(spec(name, rank=rank), WORK, "x", favoured)


@pytest.mark.proves("REG-2", "REG-5")
@pytest.mark.parametrize(
    ("installed", "servers", "expected"),
    [
        pytest.param("first second lint", ["first", "lint"], None, id="the preferred one and its companion"),
        pytest.param("second lint", ["second", "lint"], None, id="the next one that is installed"),
        pytest.param("lint", ["lint"], "first", id="none: the companion alone, and the one to install is named"),
        pytest.param("", [], "first", id="nothing"),
        pytest.param("first twin", ["first"], None, id="a companion that would say the same again"),
        pytest.param("second twin", ["second", "twin"], None, id="which another main server does not make superfluous"),
    ],
)
def test_one_main_server_and_its_companions_are_chosen(
    installed: str, servers: list[str], expected: str | None
) -> None:
    candidates = [
        candidate("first", Rank(conflicts=("twin",))),
        candidate("second", Rank()),
        candidate("lint", Rank(Role.COMPANION)),
        candidate("twin", Rank(Role.COMPANION)),
    ]
    choice = choose(candidates, lambda each: each.spec.id in installed.split())
    assert [each.spec.id for each in choice.servers] == servers
    assert (choice.expected.spec.id if choice.expected else None) == expected


@pytest.mark.proves("REG-2")
@pytest.mark.parametrize(
    ("installed", "servers", "expected"),
    [
        ("usual custom lint", ["usual", "custom", "lint"], None),
        ("custom lint", ["custom", "lint"], None),
        ("usual", ["usual"], None),
        ("", [], "usual"),
    ],
)
def test_a_custom_server_runs_beside_the_main_one(installed: str, servers: list[str], expected: str | None) -> None:
    candidates = [
        candidate("custom", Rank(Role.COMPANION, named=True)),
        candidate("usual", Rank()),
        candidate("lint", Rank(Role.COMPANION)),
    ]
    choice = choose(candidates, lambda each: each.spec.id in installed.split())
    assert [each.spec.id for each in choice.servers] == servers
    assert (choice.expected.spec.id if choice.expected else None) == expected


@pytest.mark.proves("REG-2")
@pytest.mark.parametrize(
    ("installed", "servers", "expected"),
    [
        ("usual one two lint twin", ["one", "two", "lint"], None),
        ("usual two lint", ["two", "lint"], None),
        ("usual lint", ["lint"], "one"),
    ],
)
def test_main_servers_that_the_configuration_names_replace_the_usual_one(
    installed: str, servers: list[str], expected: str | None
) -> None:
    candidates = [
        candidate("one", Rank(conflicts=("twin",), named=True)),
        candidate("two", Rank(named=True)),
        candidate("usual", Rank()),
        candidate("lint", Rank(Role.COMPANION)),
        candidate("twin", Rank(Role.COMPANION)),
    ]
    choice = choose(candidates, lambda each: each.spec.id in installed.split())
    assert [each.spec.id for each in choice.servers] == servers
    assert (choice.expected.spec.id if choice.expected else None) == expected


@pytest.mark.proves("REG-2")
def test_what_the_configuration_names_comes_before_what_the_project_has_set_up() -> None:
    specs = [
        spec("favourite", rank=Rank(favoured_by=("favourite.toml",))),
        spec("named", rank=Rank(preference=90, named=True)),
    ]
    assert list(found(specs, {"/w/favourite.toml": ""}, "/w/src/a.x")) == ["named", "favourite"]


@pytest.mark.proves("REG-2")
def test_what_the_project_has_set_up_comes_before_every_preference() -> None:
    specs = [
        spec("usual", rank=Rank(preference=10)),
        spec("favourite", rank=Rank(preference=90, favoured_by=("favourite.toml",))),
    ]
    assert list(found(specs, {"/w/a.x": ""}, "/w/a.x")) == ["usual", "favourite"]
    assert list(found(specs, {"/w/favourite.toml": ""}, "/w/src/a.x")) == ["favourite", "usual"]


# --- Cost, and what is never done ---------------------------------------------------------------------------------


@pytest.mark.proves("REG-3")
@pytest.mark.parametrize("depth", [2, 4, 8])
def test_the_cost_grows_with_the_depth_and_not_with_the_tree(depth: int) -> None:
    """50,000 folders: the questions are those of an empty tree, and at most a fixed number for each folder."""
    letters = [f"d{number}" for number in range(37)]
    crowd = {f"/w/{a}/{b}/{c}/f.ts": "" for a, b, c in itertools.product(letters, letters, letters)}
    assert len(crowd) > 50_000
    path = AbsPath("/w/" + "/".join(f"d{level}" for level in range(depth)) + "/f.ts")
    questions: list[int] = []
    for files in ({}, crowd):
        tree = VirtualTree({**files, str(path): ""})
        Resolver(load().values(), tree).candidates(path, SCOPE)
        questions.append(len(tree.questions))
    assert questions[0] == questions[1]
    assert questions[0] <= 60 * (depth + 1)


@pytest.mark.proves("T8")
def test_finding_a_root_runs_nothing_and_reads_only_manifests(tmp_path: Path) -> None:
    for name in (".yarnrc.yml", "rust-toolchain", ".git", "package.json", "Cargo.toml"):
        (tmp_path / name).write_text("hostile")
    tree = VirtualTree({str(path): "hostile" for path in tmp_path.iterdir()})
    for name in ("a.ts", "a.rs", "a.py", "a.go"):
        Resolver(load().values(), tree).candidates(AbsPath(str(tmp_path / name)), SearchScope(AbsPath(str(tmp_path))))
    read = {os.path.basename(path) for kind, path in tree.questions if kind == "read"}
    assert read <= {".git", "package.json", "Cargo.toml", "pyproject.toml", "pnpm-workspace.yaml", "go.work"}


SEGMENTS = st.sampled_from(["a", "b", "c"])
FOLDERS = st.lists(SEGMENTS, max_size=4).map(lambda parts: "/".join(["/w", *parts]))


@pytest.mark.proves("REG-3")
@settings(max_examples=200, deadline=None)
@given(marked=st.sets(FOLDERS, max_size=6), folder=FOLDERS)
def test_the_root_is_the_longest_marked_prefix(marked: set[str], folder: str) -> None:
    """Against a naive answer: of all marked folders that the path starts with, the longest."""
    holding = [place for place in marked if f"{folder}/".startswith(f"{place}/")]
    expected = max(holding, key=len, default="/w")
    assert found([spec("s", RootRule(("m",)))], {f"{place}/m": "" for place in marked}, f"{folder}/f.x") == {
        "s": expected
    }


# --- The real file system -----------------------------------------------------------------------------------------


@pytest.mark.proves("T43")
def test_the_disk_answers_and_never_blocks(tmp_path: Path) -> None:
    tree = DiskTree()
    (tmp_path / "file").write_bytes(b"text\xff")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    assert tree.exists(str(tmp_path / "file"))
    assert not tree.exists(str(tmp_path / "none"))
    assert sorted(tree.names(str(tmp_path))) == ["device", "file", "pipe"]
    assert tree.names(str(tmp_path / "none")) == ()
    assert tree.read(str(tmp_path / "file"), 2) == "te"
    assert tree.read(str(tmp_path / "file"), 9) == "text\ufffd"
    for odd in ("pipe", "device", "none", "."):
        assert tree.read(str(tmp_path / odd), 9) is None


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs Linux's /proc")
def test_a_file_that_opens_and_refuses_to_be_read_is_none() -> None:
    assert DiskTree().read("/proc/self/mem", 9) is None


@pytest.mark.proves("REG-3", "REG-4")
@pytest.mark.parametrize(
    ("files", "favourite", "linted"),
    [
        pytest.param({"/w/pyproject.toml": "[project]\n"}, "basedpyright", False, id="nothing is said"),
        pytest.param({"/w/pyproject.toml": "[tool.ruff.lint]\n"}, "basedpyright", True, id="a table below tool.ruff"),
        pytest.param({"/w/pyproject.toml": "[tool.ruffian]\n"}, "basedpyright", False, id="another tool"),
        pytest.param({"/w/pyproject.toml": "[tool.ty.rules]\n"}, "ty", False, id="the project uses ty"),
        pytest.param({"/w/ruff.toml": ""}, "basedpyright", True, id="a file of its own"),
    ],
)
def test_a_project_says_in_its_manifest_which_tools_it_uses(
    files: dict[str, str], favourite: str, linted: bool
) -> None:
    found = catalogue_ids({**files, "/w/a.py": ""}, "/w/a.py")
    assert ("ruff" in found) is linted
    assert next(iter(found)) == favourite
