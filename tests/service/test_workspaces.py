"""Workspaces: the configuration as the files say it now, and nothing worse than the last good one."""

import json
import os
from pathlib import Path
from typing import Any, cast

import pytest

from pilotfish.api.answers import State
from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.service import workspaces as workspaces_module
from pilotfish.service.diagnostics.affected import searched_roots
from pilotfish.service.workspaces import ClientSession, Workspaces
from support.files.config_home import Home, make_home
from support.servers.script import Script
from support.services.checks import full, server_with
from support.services.several import custom, service_on


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


def client(home: Home, cwd: str | None = None, host: str | None = None) -> ClientSession:
    root = AbsPath(str(home.workspace))
    return ClientSession("test", root, AbsPath(cwd or root), host)


def workspaces(home: Home) -> Workspaces:
    return Workspaces(home.places, {**home.environment, "PATH": ""})


def write_later(path: Path, content: str) -> None:
    """Write a file so that its time of change differs, however coarse the file system's clock is."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    os.utime(path, ns=(before + 10**9, before + 10**9))


def test_a_configuration_that_nobody_changed_is_not_read_again(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    known = workspaces(home)
    first = known.of(client(home))

    def unread(*_: object) -> None:
        raise AssertionError("the configuration was read again")

    monkeypatch.setattr(workspaces_module, "load", unread)
    assert known.of(client(home)) is first


@pytest.mark.proves("CFG-10")
@pytest.mark.parametrize("where", ["global", "project"])
def test_a_configuration_that_changed_is_read_before_the_next_use(home: Home, where: str) -> None:
    known = workspaces(home)
    assert known.of(client(home)).config.timing.first_touch_timeout_ms == 10_000
    file = Path(home.places.global_file) if where == "global" else home.workspace / ".pilotfish" / "lsp.json"
    for limit in (1234, 4321):
        write_later(file, f'{{"timing": {{"firstTouchTimeoutMs": {limit}}}}}')
        assert known.of(client(home)).config.timing.first_touch_timeout_ms == limit
    file.unlink()
    assert known.of(client(home)).config.timing.first_touch_timeout_ms == 10_000


@pytest.mark.proves("CFG-8")
def test_a_broken_configuration_keeps_the_last_good_one_in_force_and_says_so(home: Home) -> None:
    known = workspaces(home)
    file = Path(home.places.global_file)
    write_later(file, '{"timing": {"firstTouchTimeoutMs": 1234}}')
    known.of(client(home))
    write_later(file, '{"timing": {"firstTouchTimeoutMs": -1}}')
    workspace = known.of(client(home))
    assert workspace.config.timing.first_touch_timeout_ms == 1234
    assert workspace.warnings
    write_later(file, '{"timing": {"firstTouchTimeoutMs": 4321}}')
    mended = known.of(client(home))
    assert mended.config.timing.first_touch_timeout_ms == 4321
    assert not mended.warnings


def test_each_host_has_its_own_configuration(home: Home) -> None:
    known = workspaces(home)
    assert known.of(client(home, host="pi")).config.feedback.max_bytes == 2048
    assert known.of(client(home)).config.feedback.max_bytes is None


@pytest.mark.proves("PATH-1")
def test_a_relative_path_is_meant_from_where_the_client_stands(home: Home) -> None:
    below = home.workspace / "sub"
    below.mkdir()
    known = workspaces(home)
    assert known.of(client(home, str(below))).boundary.cwd == str(below)
    assert known.of(client(home)).boundary.cwd == str(home.workspace)


def test_a_root_that_is_gone_is_refused(home: Home) -> None:
    home.workspace.rmdir()
    with pytest.raises(Refused) as refused:
        workspaces(home).of(client(home))
    assert refused.value.code is Code.ROOT_GONE


def test_the_configurations_of_many_roots_do_not_pile_up(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspaces_module, "MAX_WORKSPACES", 2)
    known = workspaces(home)
    first = known.of(client(home))
    for name in ("one", "two"):
        folder = home.path / name
        folder.mkdir()
        known.of(ClientSession("test", AbsPath(str(folder)), AbsPath(str(folder))))
    assert known.of(client(home)) is not first


@pytest.mark.anyio
@pytest.mark.proves("CFG-10", "POOL-2")
async def test_a_changed_entry_has_a_server_of_its_own_from_the_next_use_on(tmp_path: Path) -> None:
    def answering(script: Script) -> None:
        server_with(diagnosticProvider={})(script)
        script.on("textDocument/diagnostic", lambda params: full("wrong"))

    config = {"lsp": {"one": custom(), "two": custom(".y")}}
    async with service_on(tmp_path, {"one": answering, "two": answering}, config) as ground:
        for name in ("a.x", "b.y"):
            assert (await ground.touched(ground.write(name))).state is State.FRESH
        user_file = Path(
            ground.service.workspaces.of(ground.client).config.origins[("lsp", "one", "command")].file or ""
        )
        write_later(user_file, user_file.read_text().replace('".x"]', '".x"], "initialization": {"changed": true}'))
        for name in ("a.x", "b.y"):
            assert (await ground.touched(name)).state is State.FRESH
        assert [launch.name for launch in ground.launches] == ["one", "two", "one"]
        (asked,) = ground.sent("one", "initialize")
        assert asked["initializationOptions"] == {"changed": True}


@pytest.mark.proves("CFG-10", "F81")
def test_what_is_written_while_a_configuration_is_read_is_seen_at_the_next_use(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, file = workspaces(home), Path(home.places.global_file)
    loading = workspaces_module.load

    def overtaken(*given: Any) -> Any:
        loaded = loading(*given)
        monkeypatch.setattr(workspaces_module, "load", loading)
        write_later(file, '{"timing": {"firstTouchTimeoutMs": 4321}}')
        return loaded

    monkeypatch.setattr(workspaces_module, "load", overtaken)
    assert known.of(client(home)).config.timing.first_touch_timeout_ms == 10_000
    assert known.of(client(home)).config.timing.first_touch_timeout_ms == 4321


# --- A plugin of one server in another ------------------------------------------------------------------------------


def npm_program(modules: Path, package: str, program: str, version: str) -> None:
    """A program of npm that nobody runs."""
    folder = modules / package
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({"name": package, "version": version}))
    (folder / "cli.js").write_text("#!/bin/false\n")
    (folder / "cli.js").chmod(0o755)
    (modules / ".bin").mkdir(exist_ok=True)
    (modules / ".bin" / program).symlink_to(folder / "cli.js")


@pytest.mark.proves("TRUST-1", "TRUST-8")
@pytest.mark.parametrize(
    ("trusted", "has_vue", "installed", "location"),
    [
        pytest.param(True, True, True, "tools", id="beside the program"),
        pytest.param(True, False, True, None, id="no files for it"),
        pytest.param(True, True, False, "workspace", id="the project's own, where it is trusted"),
        pytest.param(False, True, True, None, id="it runs what the project names"),
        pytest.param(False, True, False, None, id="never the project's own, where it is not"),
    ],
)
def test_the_plugin_of_vue_is_given_to_typescript_where_both_may_run(
    home: Home, trusted: bool, has_vue: bool, installed: bool, location: str | None
) -> None:
    tools, own = home.workspace.parent / "tools" / "node_modules", home.workspace / "node_modules"
    npm_program(tools, "typescript-language-server", "typescript-language-server", "5.3.0")
    npm_program(tools, "svelte-language-server", "svelteserver", "0.18.4")
    npm_program(tools, "@mdx-js/language-server", "mdx-language-server", "0.6.4")
    npm_program(tools if installed else own, "@vue/language-server", "vue-language-server", "3.3.11")
    (tools / "typescript" / "lib").mkdir(parents=True)
    (tools / "typescript" / "lib" / "tsserver.js").touch()
    if has_vue:
        (own / "vue").mkdir(parents=True)
    (home.workspace / "tsconfig.json").write_text("{}")
    if trusted:
        global_file = Path(home.places.global_file)
        write_later(global_file, json.dumps({"security": {"trustedProjectRoots": [str(home.workspace)]}}))
    known = Workspaces(home.places, {**home.environment, "PATH": str(tools / ".bin")}).of(client(home))
    (server,) = known.servers_for(AbsPath(str(home.workspace / "a.ts"))).servers

    async def nothing(*_: object) -> None:
        pass

    extensions = searched_roots(known, [AbsPath(str(home.workspace / "a.ts"))])[0].extensions
    assert extensions & {".svelte", ".mdx", ".astro"} == ({".svelte", ".mdx"} if trusted else {".svelte"})
    options = cast("dict[str, Any]", known.recipe(server, nothing).options().initialization)
    given = {one["name"]: one["location"] for one in options["plugins"]}
    folder = {"tools": tools, "workspace": own, None: None}[location]
    assert given.pop("@vue/typescript-plugin", None) == (folder and str(folder.resolve() / "@vue" / "language-server"))
    assert given.keys() == {"pilotfish-affected"}


@pytest.mark.proves("DIAG-11")
@pytest.mark.parametrize("asked", ["typescript-native", "vtsls"])
def test_an_edit_of_typescript_may_break_components_of_vue_whoever_judges_it(home: Home, asked: str) -> None:
    tools, own = home.workspace.parent / "tools" / "node_modules", home.workspace / "node_modules"
    npm_program(tools, "@vtsls/language-server", "vtsls", "0.3.0")
    npm_program(tools, "@vue/language-server", "vue-language-server", "3.3.11")
    npm_program(own, "typescript", "tsc", "7.0.2")
    (own / "vue").mkdir(parents=True)
    (home.workspace / "tsconfig.json").write_text("{}")
    others = {"typescript-native", "vtsls"} - {asked}
    config = {
        "security": {"trustedProjectRoots": [str(home.workspace)]},
        "lsp": {other: {"disabled": True} for other in others},
    }
    write_later(Path(home.places.global_file), json.dumps(config))
    known = Workspaces(home.places, {**home.environment, "PATH": str(tools / ".bin")}).of(client(home))
    (target,) = searched_roots(known, [AbsPath(str(home.workspace / "a.ts"))])
    assert [one.spec.id for one in target.servers] == [asked]
    assert ".vue" in target.extensions


@pytest.mark.proves("TRUST-6")
@pytest.mark.parametrize(("version", "runs"), [(None, True), ("4.2.19", True), ("5.0.0", False)])
def test_untrusted_svelte_is_not_judged_by_a_compiler_of_another_major_version(
    home: Home, version: str | None, runs: bool
) -> None:
    tools = home.workspace.parent / "tools" / "node_modules"
    npm_program(tools, "svelte-language-server", "svelteserver", "0.18.4")
    if version is not None:
        (home.workspace / "node_modules" / "svelte").mkdir(parents=True)
        manifest = home.workspace / "node_modules" / "svelte" / "package.json"
        manifest.write_text(json.dumps({"version": version}))
    known = Workspaces(home.places, {**home.environment, "PATH": str(tools / ".bin")}).of(client(home))
    choice = known.servers_for(AbsPath(str(home.workspace / "App.svelte")))
    assert [one.spec.id for one in choice.servers] == ["svelte"] * runs
    if not runs:
        assert choice.missing is not None
        failure = known.why_unavailable(choice.missing)
        assert failure.code is Code.UNTRUSTED
        step = f"`pilotfish trust {home.workspace}` shows what would run, and asks."
        assert failure.hint == f"Only a person can allow it, at a terminal: {step}"
        assert known.shortcomings()["svelte"] == f"{failure.message}. {failure.hint}"
