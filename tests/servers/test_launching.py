"""A spec made ready to run."""

import pytest
from msgspec.structs import replace

from pilotfish.servers.catalogue import load
from pilotfish.servers.launch import Allowed, Unfilled, Withheld, admitted, filled, sidecar
from pilotfish.servers.spec import FileRule, Rank, Restricted, Risk, RootRule, ServerSpec, Shown

SPEC = ServerSpec("s", "Server", ("x",), ("s", "--stdio"), FileRule((".x",)), RootRule())
SHOWN = Shown("1.0", "1.2")
RESTRICTED = Restricted("plugins are off", {"A": "0"}, {"plugins": {"load": False}}, {"s": {"run": False}})


@pytest.mark.proves("T7", "T46")
@pytest.mark.parametrize(
    ("risk", "restricted", "trusted", "may_start"),
    [
        pytest.param(Risk.PARSES, None, False, True, id="it only parses"),
        pytest.param(Risk.RUNS_PROJECT_CODE, None, False, False, id="it runs project code"),
        pytest.param(Risk.RUNS_PROJECT_CODE, RESTRICTED, False, True, id="it can be restricted"),
        pytest.param(Risk.RUNS_PROJECT_CODE, None, True, True, id="the project is trusted"),
    ],
)
def test_what_runs_project_code_needs_trust(
    risk: Risk, restricted: Restricted | None, trusted: bool, may_start: bool
) -> None:
    spec = replace(SPEC, risk=risk, restricted=restricted)
    verdict = admitted(replace(spec, shown=SHOWN), trusted=trusted, version="1.1")
    assert isinstance(verdict, Allowed if may_start else Withheld)
    untested = admitted(spec, trusted=trusted, version="1.1")
    assert isinstance(untested, Allowed if trusted else Withheld)


@pytest.mark.proves("T46", "TRUST-8")
@pytest.mark.parametrize(
    ("version", "reason"),
    [
        pytest.param("1.0", None, id="the first that was shown"),
        pytest.param("1.2", None, id="the last"),
        pytest.param("0.9", "version 0.9 of Server has not been tested", id="older"),
        pytest.param("1.3", "hostile projects (1.0 to 1.2 has)", id="newer"),
        pytest.param("", "whose version is unknown", id="unknown"),
        pytest.param(None, None, id="not installed"),
    ],
)
def test_only_versions_that_were_shown_to_run_nothing_need_no_trust(version: str | None, reason: str | None) -> None:
    spec = replace(SPEC, risk=Risk.PARSES, shown=SHOWN)
    verdict = admitted(spec, trusted=False, version=version)
    if reason is None:
        assert verdict == Allowed(spec)
    else:
        assert isinstance(verdict, Withheld)
        assert reason in verdict.reason
    assert admitted(spec, trusted=True, version=version) == Allowed(spec)


@pytest.mark.proves("T46")
def test_a_command_of_the_user_runs_as_the_user_says_unless_it_runs_project_code() -> None:
    named = replace(SPEC, rank=Rank(named=True))
    assert isinstance(admitted(replace(named, risk=Risk.PARSES), trusted=False, version=""), Allowed)
    assert isinstance(admitted(named, trusted=False, version=""), Withheld)


@pytest.mark.proves("T7")
def test_restrictions_win_over_everything_and_leave_the_rest() -> None:
    spec = replace(
        SPEC,
        restricted=RESTRICTED,
        shown=SHOWN,
        env={"A": "1", "B": "1"},
        initialization={"plugins": {"load": True, "path": "/p"}},
        settings={"s": {"run": True}, "other": 1},
    )
    verdict = admitted(spec, trusted=False)
    assert isinstance(verdict, Allowed)
    assert verdict.given_up == "plugins are off"
    assert verdict.spec.env == {"A": "0", "B": "1"}
    assert verdict.spec.initialization == {"plugins": {"load": False, "path": "/p"}}
    assert verdict.spec.settings == {"s": {"run": False}, "other": 1}
    assert admitted(spec, trusted=True) == Allowed(spec)


@pytest.mark.proves("T7", "T46")
def test_no_server_starts_untrusted_that_runs_project_code_or_was_not_tested() -> None:
    for spec in load().values():
        verdict = admitted(spec, trusted=False)
        if (spec.risk is Risk.RUNS_PROJECT_CODE and spec.restricted is None) or spec.shown is None:
            assert isinstance(verdict, Withheld)
            assert spec.name in verdict.reason
        else:
            assert isinstance(verdict, Allowed)


VALUES = {"root": "/w", "rootUri": "file:///w", "npm:typescript/lib": "/n/typescript/lib"}


@pytest.mark.proves("T13")
def test_placeholders_are_filled_wherever_they_are_whole() -> None:
    spec = replace(
        SPEC,
        command=("s", "--root", "${root}", "--root=${root}"),
        initialization={"tsdk": "${npm:typescript/lib}", "list": ["${root}", 1, None], "deep": {"uri": "${rootUri}"}},
        settings={"s": {"root": "${root}"}, "kept": "$root ${} ${a b}"},
        watch=("w", "${root}"),
    )
    ready = filled(spec, VALUES.get)
    assert ready.command == ("s", "--root", "/w", "--root=${root}")
    assert ready.initialization == {
        "tsdk": "/n/typescript/lib", "list": ["/w", 1, None], "deep": {"uri": "file:///w"},
    }  # fmt: skip
    assert ready.settings == {"s": {"root": "/w"}, "kept": "$root ${} ${a b}"}
    assert ready.watch == ("w", "/w")


def test_a_placeholder_without_a_value_is_an_error_and_never_left_out() -> None:
    """Leaving one out could mean the project's own program instead."""
    for spec in (
        replace(SPEC, command=("s", "${npm:other}")),
        replace(SPEC, settings={"plugins": [{"location": "${npm:other}"}]}),
    ):
        with pytest.raises(Unfilled, match="npm:other"):
            filled(spec, VALUES.get)


def test_only_the_plugin_of_a_guest_that_is_not_there_is_left_out_of_its_list() -> None:
    spec = replace(SPEC, settings={"plugins": [{"location": "${root}"}, {"location": "${guest:other}"}]})
    assert filled(spec, VALUES.get).settings == {"plugins": [{"location": "/w"}]}
    there = {**VALUES, "guest:other": "/o"}
    assert filled(spec, there.get).settings == {"plugins": [{"location": "/w"}, {"location": "/o"}]}


PYTHON = {"pythonEnvironment", "pythonPackages", "pythonPrefix"}


@pytest.mark.proves("T7", "T13")
def test_every_placeholder_of_the_catalogue_is_one_that_exists() -> None:
    asked: set[str] = set()

    def fill(name: str) -> str:
        asked.add(name.split(":", maxsplit=1)[0])
        return "/x"

    for spec in load().values():
        for trusted in (True, False):
            if isinstance(verdict := admitted(spec, trusted=trusted), Allowed):
                filled(verdict.spec, fill)
    # `root` is for the entries of users.
    assert asked == {"rootUri", "rootName", "state", "pid", "npm", "program", "plugins", "preload", "guest", *PYTHON}


@pytest.mark.proves("WATCH-3", "T13")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({"autogenerate": True, "rojoProjectFile": "a.project.json"}, "a.project.json", id="asked for"),
        pytest.param({"autogenerate": True, "rojoProjectFile": "-rf"}, "./-rf", id="a name that looks like an option"),
        pytest.param({"autogenerate": False, "rojoProjectFile": "a.project.json"}, None, id="switched off"),
        pytest.param({"autogenerate": 1, "rojoProjectFile": "a.project.json"}, None, id="not quite true"),
        pytest.param({"autogenerate": True}, None, id="no project file"),
        pytest.param({"autogenerate": True, "rojoProjectFile": ""}, None, id="an empty project file"),
        pytest.param({}, None, id="nothing said"),
    ],
)
def test_rojo_runs_beside_luau_when_its_options_ask_for_it(
    options: dict[str, str | bool], expected: str | None
) -> None:
    luau = replace(load()["luau"], initialization={"luau-lsp": {"sourcemap": {**options}}})
    command = ("rojo", "sourcemap", expected, "--watch", "-o", "sourcemap.json")
    assert sidecar(luau) == (command if expected else None)


@pytest.mark.proves("WATCH-3")
def test_a_configured_sidecar_is_taken_as_it_is() -> None:
    assert sidecar(replace(load()["luau"], watch=("mine", "--watch"))) == ("mine", "--watch")
    assert sidecar(SPEC) is None
