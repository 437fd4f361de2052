"""Reading the files of a user and a project: order, defaults, provenance, and what holds when one is broken."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pilotfish.config import load as load_module
from pilotfish.config.files import MAX_PROJECT_BYTES, WorkspaceFiles
from pilotfish.config.merge import ConfigSource, ValueOrigin
from pilotfish.config.places import Places
from pilotfish.config.problems import ProblemGrade
from pilotfish.config.schema import FeedbackSettings, PoolSettings, SecuritySettings, TimingSettings
from pilotfish.config.trust import TrustGrant
from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath, Severity
from pilotfish.protocol.wire import Json
from support.files.config_home import SERVERS, Home


@pytest.mark.proves("CFG-1", "CFG-5", "CFG-6", "CFG-7")
def test_without_any_file_the_defaults_hold(home: Home) -> None:
    loaded = home.load()
    config = loaded.config
    assert loaded.problems == ()
    assert config.enabled
    assert config.timing == TimingSettings(15_000, 10_000, 3_000, 10_000)
    assert config.feedback == FeedbackSettings(
        include_severities=("error",),
        max_per_file=20,
        max_other_files=5,
        max_total_lines=50,
        max_bytes=None,
        other_files_order="severity",
        other_files_after=("edit", "write", "patch"),
        only_new=True,
        no_verdict="say",
    )
    assert config.pool == PoolSettings(10, None, "half")
    assert config.navigation_tools
    assert config.mcp.tools == "named"
    assert config.servers.keys() == SERVERS.keys()
    assert not config.trusted


@pytest.mark.proves("CFG-1")
@pytest.mark.parametrize("variable", [None, "XDG_CONFIG_HOME"])
def test_the_users_file_is_where_the_environment_says(home: Home, variable: str | None, tmp_path: Path) -> None:
    environment = {**home.environment, **({variable: str(tmp_path / "xdg")} if variable else {})}
    moved = Home(home.path, home.workspace, environment)
    file = moved.user({"navigationTools": False})
    expected = tmp_path / "xdg" if variable else home.path / ".config"
    assert file == expected / "pilotfish" / "lsp.json"
    assert not moved.load().config.navigation_tools


@pytest.mark.parametrize("value", ["relative/path", ""])
def test_a_relative_xdg_folder_is_ignored(home: Home, value: str) -> None:
    moved = Home(home.path, home.workspace, {**home.environment, "XDG_CONFIG_HOME": value})
    assert moved.places == home.places


def test_pilotfish_home_moves_the_state_and_not_the_config(home: Home, tmp_path: Path) -> None:
    moved = Home(home.path, home.workspace, {**home.environment, "PILOTFISH_HOME": str(tmp_path / "state")})
    assert moved.places.pins == str(tmp_path / "state" / "trust")
    assert moved.places.global_file == home.places.global_file
    assert home.places.pins == str(home.path / ".local/state/pilotfish/trust")


@pytest.mark.proves("CFG-2", "CFG-11")
def test_values_come_from_the_strongest_layer_and_say_so(home: Home) -> None:
    user = home.user({"lsp": {"pyright": {"roots": ["a"], "env": {"A": "1"}}}, "timing": {"requestTimeoutMs": 1}})
    project = home.project({"lsp": {"pyright": {"roots": ["b"]}}, "feedback": {"maxPerFile": 3}})
    loaded = home.load()
    origins = loaded.config.origins
    assert loaded.config.servers["pyright"].roots == ("b",)
    assert origins["lsp", "pyright", "roots"] == ValueOrigin(ConfigSource.PROJECT, AbsPath(str(project)))
    assert origins["lsp", "pyright", "env", "A"] == ValueOrigin(ConfigSource.GLOBAL, AbsPath(str(user)))
    assert origins["lsp", "pyright", "command"] == ValueOrigin(ConfigSource.CATALOGUE)
    assert origins["timing", "initializeTimeoutMs"] == ValueOrigin(ConfigSource.DEFAULT)
    assert [sheet.file for sheet in loaded.sheets] == [str(user), str(project)]


@pytest.mark.proves("CFG-3")
@pytest.mark.parametrize("where", ["user", "project"])
def test_lsp_false_turns_everything_off(home: Home, where: str) -> None:
    (home.user if where == "user" else home.project)({"lsp": False})
    (home.project if where == "user" else home.user)({"lsp": {"mine": {"command": ["m"], "extensions": [".m"]}}})
    config = home.load().config
    assert not config.enabled
    assert config.servers == {}
    assert config.origins["lsp",].source is (ConfigSource.GLOBAL if where == "user" else ConfigSource.PROJECT)


@pytest.mark.proves("CFG-4")
def test_a_server_that_is_off_by_default_can_be_turned_on(home: Home) -> None:
    assert home.load().config.servers["spare"].disabled
    home.user({"lsp": {"spare": {"disabled": False}}})
    assert not home.load().config.servers["spare"].disabled


CUSTOM: dict[str, tuple[Json, str | None]] = {
    "complete": ({"mine": {"command": ["m"], "extensions": [".m"]}}, None),
    "without extensions": ({"mine": {"command": ["m"]}}, "lacks extensions"),
    "without a command": ({"mine": {"extensions": [".m"]}}, "lacks command"),
    "with nothing": ({"mine": {}}, "lacks command and extensions"),
    "turned off": ({"mine": {"disabled": True}}, None),
    "a slip": ({"pyrigth": {"disabled": False}}, 'did you mean "pyright"?'),
}


@pytest.mark.proves("CFG-4", "CFG-8")
@pytest.mark.parametrize(("servers", "message"), CUSTOM.values(), ids=CUSTOM)
def test_a_custom_server_needs_a_command_and_extensions(home: Home, servers: Json, message: str | None) -> None:
    file = home.user({"lsp": servers})
    loaded = home.load()
    assert isinstance(servers, dict)
    (server,) = servers
    assert (server in loaded.config.servers) is (message is None)
    if message is None:
        assert loaded.errors == ()
    else:
        assert message in str(loaded.errors[0])
        assert str(loaded.errors[0]).startswith(f"{file}:1:10: lsp.")


@pytest.mark.proves("TRUST-4", "CFG-4")
def test_a_custom_server_of_an_untrusted_project_is_known_but_has_no_command(home: Home) -> None:
    home.project({"lsp": {"mine": {"command": ["m"], "extensions": [".m"]}}})
    loaded = home.load()
    assert loaded.errors == ()
    mine = loaded.config.servers["mine"]
    assert mine.command == ()
    assert mine.withheld == ("command",)


@pytest.mark.proves("CFG-5")
def test_the_catalogue_may_raise_a_limit_and_the_user_may_set_it(home: Home) -> None:
    def limit() -> int:
        return home.load().config.servers["rust-analyzer"].timing.initialize_timeout_ms

    assert limit() == 60_000
    home.user({"timing": {"initializeTimeoutMs": 20_000}})
    assert limit() == 60_000
    home.user({"timing": {"initializeTimeoutMs": 90_000}})
    assert limit() == 90_000
    home.user({"lsp": {"rust": {"timeouts": {"initializeTimeoutMs": 5_000}}}})
    assert limit() == 5_000
    assert home.load().config.servers["pyright"].timing.initialize_timeout_ms == 15_000


@pytest.mark.proves("CFG-4")
def test_a_server_may_be_called_by_another_tools_name(home: Home) -> None:
    home.user({"lsp": {"ts_ls": {"disabled": True}}})
    loaded = home.load()
    assert loaded.config.servers["typescript"].disabled
    assert "ts_ls" not in loaded.config.servers
    home.user({"lsp": {"ts_ls": {"disabled": True}, "typescript": {"roots": ["x"]}}})
    assert "another name for typescript" in str(home.load().errors[0])


@pytest.mark.proves("CFG-6", "POOL-2")
def test_a_host_brings_the_rules_that_its_users_were_promised(home: Home) -> None:
    pi = home.load(host="pi").config
    assert pi.feedback == FeedbackSettings(
        preset="pi",
        include_severities=("error", "warning"),
        max_per_file=20,
        max_other_files=3,
        max_total_lines=50,
        max_bytes=2048,
        order="severity",
        other_files_order="severity",
        other_files_after=("edit", "write", "patch"),
        wording="report",
        only_new=True,
        no_verdict="say",
    )
    assert pi.feedback.severities == {Severity.ERROR, Severity.WARNING}
    assert pi.origins["feedback", "maxBytes"] == ValueOrigin(ConfigSource.HOST, preset="pi")
    assert home.load(host="opencode").config.feedback.max_total_lines is None
    assert home.load(host="llxprt").config.servers["pyright"].restart == "never"
    assert pi.servers["pyright"].restart == "backoff"
    home.user({"feedback": {"preset": "llxprt"}, "lsp": {"pyright": {"restart": "backoff"}}})
    assert home.load(host="pi").config.feedback.max_other_files == 5
    assert home.load(host="llxprt").config.servers["pyright"].restart == "backoff"


@pytest.mark.proves("CFG-6", "FMT-8")
def test_whether_a_missing_verdict_is_said_is_not_part_of_a_preset(home: Home) -> None:
    def no_verdict(host: str | None) -> str:
        return home.load(host=host).config.feedback.no_verdict

    assert {no_verdict(host) for host in (None, "pi", "opencode")} == {"say"}
    assert no_verdict("llxprt") == "silent"
    home.user({"feedback": {"noVerdict": "say", "preset": "llxprt"}})
    assert (no_verdict("pi"), no_verdict("llxprt")) == ("say", "say")
    home.project({"feedback": {"noVerdict": "silent"}})
    assert no_verdict("pi") == "silent"


@pytest.mark.proves("CFG-6")
@pytest.mark.parametrize("only_new", [True, False])
@pytest.mark.parametrize("preset", ["pi", "llxprt", "opencode"])
def test_a_preset_leaves_it_open_whether_only_new_diagnostics_are_shown(
    home: Home, preset: str, only_new: bool
) -> None:
    home.user({"feedback": {"onlyNew": only_new}})
    home.project({"feedback": {"preset": preset}})
    assert home.load().config.feedback.only_new is only_new
    assert home.load(host=preset).config.feedback.only_new is only_new


@pytest.mark.proves("CFG-1")
def test_a_schema_reference_is_welcome(home: Home) -> None:
    home.user({"$schema": "https://example.org/lsp.schema.json"})
    loaded = home.load()
    assert loaded.problems == ()
    assert ("$schema",) not in loaded.config.origins


# --- Broken files -------------------------------------------------------------------------------------------------


@pytest.mark.proves("CFG-8")
def test_a_file_with_errors_counts_without_them(home: Home) -> None:
    home.user({"lsp": {"eslint": {"disabled": True}, "pyright": {"comand": ["x"]}}, "timing": {"requestTimeoutMs": 0}})
    loaded = home.load()
    assert loaded.config.servers["eslint"].disabled
    assert loaded.config.timing.request_timeout_ms == 10_000
    assert {problem.path for problem in loaded.errors} == {("lsp", "pyright", "comand"), ("timing", "requestTimeoutMs")}
    assert all(problem.place for problem in loaded.errors)


@pytest.mark.proves("CFG-8", "CFG-10", "F80")
@pytest.mark.parametrize(
    "broken", [b'{"lsp": ', b"\xff", b'{"navigationTools": "no"}'], ids=["syntax", "bytes", "value"]
)
@pytest.mark.parametrize("where", ["user", "project"])
def test_a_broken_file_keeps_its_last_good_version_in_force(home: Home, where: str, broken: bytes) -> None:
    write = home.user if where == "user" else home.project
    other = home.project if where == "user" else home.user
    write({"lsp": {"eslint": {"disabled": True}}, "navigationTools": False})
    first = home.load()
    write(broken)
    other({"lsp": {"pyright": {"disabled": True}}})
    second = home.load(first)
    assert all(problem.place for problem in second.errors)
    assert "last valid version" in str(second.warnings[0])
    assert second.config.servers["eslint"].disabled
    assert not second.config.navigation_tools
    assert second.config.servers["pyright"].disabled, "the other file is read as it is now"
    assert home.load(second).config == second.config, "the good version is remembered for as long as it takes"
    write({})
    third = home.load(second)
    assert third.problems == ()
    assert third.config.navigation_tools


@pytest.mark.proves("CFG-1", "CFG-8")
def test_a_file_that_is_gone_is_not_remembered(home: Home) -> None:
    file = home.user({"navigationTools": False})
    first = home.load()
    file.unlink()
    second = home.load(first)
    assert second.config.navigation_tools
    home.user(b"{")
    assert home.load(second).config.navigation_tools


@pytest.mark.proves("F80", "TRUST-4")
def test_trust_is_decided_anew_although_the_last_good_file_stays(home: Home) -> None:
    home.user({"security": {"trustedProjectRoots": [str(home.workspace)]}})
    home.project({"lsp": {"pyright": {"command": ["./own"]}}})
    first = home.load()
    assert first.config.servers["pyright"].command == ("./own",)
    home.project(b"{")
    second = home.load(first)
    assert second.config.servers["pyright"].command == ("./own",)
    home.user({})
    assert home.load(second).config.servers["pyright"].command == ("pyright-langserver", "--stdio")


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_folder(path: Path) -> None:
    path.mkdir()


def make_huge(path: Path) -> None:
    path.write_bytes(b" " * (MAX_PROJECT_BYTES + 1))


def make_link_out(path: Path) -> None:
    outside = path.parent.parent.parent / "outside.json"
    outside.write_text('{"navigationTools": false}')
    path.symlink_to(outside)


def make_link_in(path: Path) -> None:
    (path.parent / "other.json").write_text('{"navigationTools": false}')
    path.symlink_to("other.json")


@pytest.mark.proves("T43", "T3")
@pytest.mark.parametrize("make", [make_fifo, make_folder, make_huge, make_link_out, make_link_in])
@pytest.mark.parametrize("name", [".pilotfish/lsp.json", ".pi/lsp.json", "opencode.json"])
def test_what_is_no_plain_file_of_the_project_is_not_read(home: Home, make: object, name: str) -> None:
    path = home.workspace / name
    path.parent.mkdir(exist_ok=True)
    assert callable(make)
    make(path)
    loaded = home.load()
    assert loaded.config.navigation_tools
    (problem,) = loaded.problems
    assert "cannot be read" in problem.message
    assert problem.grade is (ProblemGrade.ERROR if "pilotfish" in name else ProblemGrade.WARNING)


@pytest.mark.proves("T3")
def test_a_config_folder_that_is_a_link_is_not_followed(home: Home) -> None:
    outside = home.workspace.parent / "shared"
    outside.mkdir()
    (outside / "lsp.json").write_text('{"navigationTools": false}')
    (home.workspace / ".pilotfish").symlink_to(outside)
    loaded = home.load()
    assert loaded.config.navigation_tools
    assert "symbolic link" in str(loaded.errors[0])


def test_a_file_where_the_config_folder_would_be_is_not_an_error(home: Home) -> None:
    home.project(b"x", ".pi")
    assert home.load().problems == ()


@pytest.mark.parametrize("make", [make_fifo, make_folder, make_huge])
def test_a_users_file_that_is_none_is_an_error_and_trusts_nothing(home: Home, make: object) -> None:
    path = Path(home.places.global_file)
    path.parent.mkdir(parents=True)
    assert callable(make)
    make(path)
    loaded = home.load()
    assert "cannot be read" in str(loaded.errors[0])
    assert not loaded.config.trusted


def test_a_users_file_may_be_a_link(home: Home) -> None:
    real = home.path / "dotfiles.json"
    real.write_text('{"navigationTools": false}')
    path = Path(home.places.global_file)
    path.parent.mkdir(parents=True)
    path.symlink_to(real)
    assert not home.load().config.navigation_tools


def test_a_workspace_that_is_gone_is_refused(home: Home) -> None:
    home.workspace.rmdir()
    with pytest.raises(Refused) as caught:
        home.load()
    assert caught.value.code is Code.ROOT_GONE


def test_loading_leaves_no_descriptor_open(home: Home) -> None:
    home.user({})
    home.project({"lsp": {"pyright": {"command": ["./x"]}}})
    home.load()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        home.load()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.proves("CFG-10")
def test_every_file_that_would_change_the_result_is_named_for_watching(home: Home) -> None:
    watched = {os.path.relpath(path, home.workspace.parent.parent) for path in home.load(host="pi").watched}
    assert watched >= {
        "home/.config/pilotfish/lsp.json",
        "home/.pi/agent/lsp.json",
        "code/project/.pilotfish/lsp.json",
        "code/project/.pi/lsp.json",
        "code/project/opencode.jsonc",
    }
    assert any(path.startswith("home/.local/state/pilotfish/trust/") for path in watched)


# --- The order of reading -----------------------------------------------------------------------------------------

opened: list[str] | None = None


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if opened is not None and event in {"open", "os.listdir", "os.scandir"}:
        opened.append(str(arguments[0]))


@contextmanager
def audited() -> Generator[list[str]]:
    """Every open and listing of this process; the hook itself cannot be taken out again."""
    global opened  # noqa: PLW0603 -- an audit hook has no other way to be switched off
    if not _audit.__dict__.get("installed"):
        sys.addaudithook(_audit)
        _audit.__dict__["installed"] = True
    opened = []
    try:
        yield opened
    finally:
        opened = None


@pytest.mark.proves("T2", "P33")
@pytest.mark.parametrize("approval", ["none", "listed", "broken"])
def test_nothing_below_the_workspace_is_opened_before_trust_is_decided(
    home: Home, approval: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    security: dict[str, Json] = {
        "none": {},
        "listed": {"security": {"trustedProjectRoots": [str(home.workspace)]}},
        "broken": {"security": 3},
    }
    home.user(security[approval])
    home.project({"lsp": {"pyright": {"command": ["./evil"]}}})
    home.load()  # whatever is imported late is imported now
    seen_before: list[str] = []
    decide = load_module.read_grant

    with audited() as seen:

        def decided(
            workspace: WorkspaceFiles, security: SecuritySettings | None, places: Places, host: str | None
        ) -> TrustGrant:
            grant = decide(workspace, security, places, host)
            seen_before.extend(seen)
            return grant

        monkeypatch.setattr(load_module, "read_grant", decided)
        home.load()

    def below(path: str) -> bool:
        # The project's files are opened relative to the descriptor of the workspace.
        return not os.path.isabs(path) or path.startswith(f"{home.workspace}/")

    assert seen_before, "the user's file was opened before"
    assert not any(below(path) for path in seen_before)
    assert any(below(path) for path in seen if path not in seen_before), "and the project's after"


@pytest.mark.proves("T2")
def test_the_decision_is_the_same_whatever_the_project_says(home: Home) -> None:
    verdicts: set[object] = set()
    for content in (b"{", b"{}", b'{"security": {"projectConfigPolicy": "always"}}', b'{"lsp": false}'):
        home.project(content)
        verdicts.add(home.load().config.trust)
    assert len(verdicts) == 1
