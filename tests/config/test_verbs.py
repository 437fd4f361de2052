"""The config verbs as a person and a program meet them."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pilotfish.errors import Refused
from pilotfish.protocol.wire import Json
from pilotfish.surfaces.cli.config import config, trust, untrust
from support.files.config_home import Home


def run(home: Home, command: str, *arguments: str) -> Result:
    verb = {"config": config, "trust": trust, "untrust": untrust}[command]
    return CliRunner().invoke(verb, arguments, env=environment(home))


def environment(home: Home) -> dict[str, str | None]:
    """The home's, and nothing of whoever runs the tests."""
    return {**dict.fromkeys(("XDG_CONFIG_HOME", "XDG_STATE_HOME", "PILOTFISH_HOME")), **home.environment}


def rooted(home: Home) -> tuple[str, str]:
    return ("--root", str(home.workspace))


@pytest.mark.proves("CFG-11", "A13.7")
def test_show_prints_every_value_with_its_origin(home: Home) -> None:
    user = home.user({"timing": {"requestTimeoutMs": 1234}, "feedback": {"preset": "pi"}})
    project = home.project({"lsp": {"pyright": {"roots": ["x"], "command": ["./evil"]}}})
    result = run(home, "config", "show", *rooted(home))
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert f"workspace: {home.workspace}" in lines
    assert "trust: untrusted (you have not trusted this workspace)" in lines
    assert f"timing.requestTimeoutMs = 1234  # global {user}" in lines
    assert "timing.initializeTimeoutMs = 15000  # default" in lines
    assert f"feedback.maxBytes = 2048  # global {user} (preset pi)" in lines
    assert f'lsp.pyright.roots = ["x"]  # project {project}' in lines
    assert 'lsp.pyright.command = ["pyright-langserver", "--stdio"]  # catalogue' in lines
    assert "evil" not in result.stdout


@pytest.mark.proves("CFG-11")
def test_show_can_leave_out_what_nobody_set(home: Home) -> None:
    home.user({"timing": {"requestTimeoutMs": 1234}})
    result = run(home, "config", "show", "--changed", *rooted(home))
    settings = [line for line in result.stdout.splitlines() if " = " in line]
    assert len(settings) == 1
    assert settings[0].startswith("timing.requestTimeoutMs = 1234")


@pytest.mark.proves("CFG-11")
def test_show_as_json_has_an_origin_for_every_leaf(home: Home) -> None:
    home.user({"lsp": {"pyright": {"env": {"A": "1"}}}})
    result = run(home, "config", "show", "--json", *rooted(home))
    shown = json.loads(result.stdout)
    assert shown["config"]["lsp"]["pyright"]["env"] == {"A": "1"}
    assert shown["origins"]["lsp.pyright.env.A"] == {"source": "global", "file": str(home.places.global_file)}
    assert shown["trust"]["state"] == "untrusted"
    assert shown["problems"] == []


@pytest.mark.proves("CFG-3", "CFG-11")
def test_show_says_when_everything_is_off(home: Home) -> None:
    home.project({"lsp": False})
    assert "LSP disabled by configuration" in run(home, "config", "show", *rooted(home)).stdout


@pytest.mark.proves("CFG-11", "CFG-8")
def test_check_lists_everything_and_fails_on_errors_only(home: Home) -> None:
    assert run(home, "config", "check", *rooted(home)).exit_code == 0
    home.project({"lsp": {"pyright": {"command": ["./evil"]}}})
    warned = run(home, "config", "check", *rooted(home))
    assert warned.exit_code == 0
    assert "1 warning(s)" in warned.stdout
    assert ":1:22: lsp.pyright.command" in warned.stdout
    file = home.project(b'{\n  "timming": 1,\n  "navigationTools": "no"\n}')
    result = run(home, "config", "check", *rooted(home))
    assert result.exit_code == 1
    assert f"error: {file}:2:3: timming = 1: unknown key; accepted: one of " in result.stdout
    assert 'did you mean "timing"?' in result.stdout
    assert f'error: {file}:3:3: navigationTools = "no": wrong type; accepted: true or false' in result.stdout
    shown = json.loads(run(home, "config", "check", "--json", *rooted(home)).stdout)
    assert shown["ok"] is False
    assert {problem["path"]: problem["line"] for problem in shown["problems"]} == {"timming": 2, "navigationTools": 3}


@pytest.mark.proves("CFG-11")
def test_schema_is_json_schema(home: Home) -> None:
    schema = json.loads(run(home, "config", "schema").stdout)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert {"lsp", "timing", "feedback", "navigationTools", "security"} <= schema["properties"].keys()


@pytest.mark.proves("CFG-9")
def test_the_host_can_be_named(home: Home) -> None:
    shown = json.loads(run(home, "config", "show", "--json", "--host", "pi", *rooted(home)).stdout)
    assert shown["origins"]["feedback.maxBytes"] == {"source": "host", "preset": "pi"}


# --- Trust --------------------------------------------------------------------------------------------------------

EVIL: Json = {"lsp": {"pyright": {"command": ["sh", "-c", "x" * 500], "env": {"A": "\x1b[2K"}}}}


@pytest.mark.proves("T6", "TRUST-5", "T16")
@pytest.mark.parametrize("answer", ["", "y\n", "yes\n"])
def test_without_a_terminal_nothing_is_granted_and_no_hash_is_told(home: Home, answer: str) -> None:
    home.project(EVIL)
    result = CliRunner().invoke(trust, [str(home.workspace)], env=environment(home), input=answer)
    assert isinstance(result.exception, Refused)
    assert "terminal" in result.exception.message
    assert "sha256:" not in result.output + str(result.exception)
    assert not home.load().config.trusted


def test_a_hash_is_promised_only_where_there_is_one(home: Home) -> None:
    def hint() -> str:
        failure = run(home, "trust", str(home.workspace)).exception
        assert isinstance(failure, Refused)
        return failure.hint or ""

    assert hint() == "Run `pilotfish trust` in a terminal."
    home.project(EVIL)
    assert "--hash" in hint()


@pytest.mark.proves("T1", "T16", "T32", "A17.20")
def test_what_would_run_is_shown_whole_and_harmless(home: Home) -> None:
    home.project(EVIL)
    shown = run(home, "trust", str(home.workspace)).stdout
    assert "x" * 500 in shown
    assert 'env.A = "\\u001b[2K"' in shown
    assert "\x1b" not in shown
    assert f"in {home.workspace} or a folder of it" in shown


def at_terminal(home: Home, answer: str) -> tuple[int, str]:
    """Run `trust` in a pseudo-terminal, type `answer`, and return the exit code and what the screen showed."""
    script = "from pilotfish.surfaces.cli.config import trust; trust()"
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(home.workspace)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**home.environment, "PATH": os.environ["PATH"]},
        close_fds=True,
    )
    os.close(theirs)
    os.write(ours, answer.encode())
    screen = b""
    try:
        while chunk := os.read(ours, 4096):
            screen += chunk
    except OSError:  # Linux says so when the other side is closed
        pass
    finally:
        os.close(ours)
    return process.wait(timeout=30), screen.decode().replace("\r\n", "\n")


@pytest.mark.proves("TRUST-6", "T16", "A13.4")
@pytest.mark.parametrize(("answer", "granted"), [("y\n", True), ("n\n", False), ("\n", False)], ids=["y", "n", "enter"])
def test_at_a_terminal_a_person_is_asked_and_no_is_the_default(home: Home, answer: str, granted: bool) -> None:
    home.project({"lsp": {"pyright": {"command": ["./own", "--stdio"]}}})
    code, screen = at_terminal(home, answer)
    assert 'command = ["./own", "--stdio"]' in screen
    assert "Trust it? [y/N]" in screen
    assert "sha256:" in screen
    assert (code == 0) is granted
    assert home.load().config.trusted is granted
    again, screen = at_terminal(home, "n\n")
    assert ("Already trusted" in screen) is granted
    assert (again == 0) is granted


@pytest.mark.proves("T6", "T4", "TRUST-6")
def test_the_hash_that_a_terminal_showed_grants_exactly_that(home: Home) -> None:
    home.project({"lsp": {"pyright": {"command": ["./own"]}}})
    _, screen = at_terminal(home, "n\n")
    digest = next(word for word in screen.split() if word.startswith("sha256:"))
    home.project({"lsp": {"pyright": {"command": ["./worse"]}}})
    assert isinstance(run(home, "trust", str(home.workspace), "--hash", digest).exception, Refused)
    assert not home.load().config.trusted
    home.project({"lsp": {"pyright": {"command": ["./own"]}}})
    assert run(home, "trust", str(home.workspace), "--hash", digest).exit_code == 0
    assert home.load().config.servers["pyright"].command == ("./own",)


def approve_at_terminal(home: Home) -> None:
    _, screen = at_terminal(home, "y\n")
    assert "Trusted" in screen


@pytest.mark.proves("T4")
def test_a_stale_approval_is_shown_with_what_changed(home: Home) -> None:
    home.project({"lsp": {"pyright": {"command": ["./own"]}}})
    approve_at_terminal(home)
    home.project({"lsp": {"pyright": {"command": ["./worse"]}}})
    _, screen = at_terminal(home, "n\n")
    assert "changed since it was trusted" in screen
    assert '["./own"] → ["./worse"]' in screen
    assert "stale" in run(home, "trust", "--list").stdout


@pytest.mark.proves("TRUST-6")
def test_list_shows_entries_and_approvals_with_their_state(home: Home) -> None:
    assert "Nothing is trusted." in run(home, "trust", "--list").stdout
    home.user({"security": {"trustedProjectRoots": ["~/code/**"]}})
    approve_at_terminal(home)
    lines = run(home, "trust", "--list").stdout.splitlines()
    assert lines[0] == "~/code/**  trusted (security.trustedProjectRoots)"
    assert lines[1].startswith(f"{home.workspace}  trusted (approved with pilotfish trust)  sha256:")
    shown = json.loads(run(home, "trust", "--list", "--json").stdout)
    assert shown["entries"] == ["~/code/**"]
    assert shown["approved"][0]["trust"]["state"] == "trusted"
    home.workspace.rename(home.workspace.with_name("moved"))
    assert "  gone  " in run(home, "trust", "--list").stdout


@pytest.mark.proves("TRUST-6")
def test_untrust_forgets_and_says_what_still_trusts(home: Home) -> None:
    approve_at_terminal(home)
    assert home.load().config.trusted
    result = run(home, "untrust", str(home.workspace))
    assert result.exit_code == 0
    assert not home.load().config.trusted
    assert "not approved" in run(home, "untrust", str(home.workspace)).stdout
    home.user({"security": {"trustedProjectRoots": [str(home.workspace)]}})
    still = run(home, "untrust", str(home.workspace)).exception
    assert isinstance(still, Refused)
    assert "still trusted" in still.message
    assert str(home.places.global_file) in (still.hint or "")


def test_the_root_option_names_the_workspace_too(home: Home) -> None:
    approve_at_terminal(home)
    shown = json.loads(run(home, "untrust", "--json", *rooted(home)).stdout)
    assert shown == {"root": str(home.workspace), "removed": True}
    assert isinstance(run(home, "trust", *rooted(home)).exception, Refused)


def test_untrust_works_for_a_workspace_that_is_gone(home: Home) -> None:
    approve_at_terminal(home)
    home.workspace.rmdir()
    assert run(home, "untrust", str(home.workspace)).exit_code == 0
    assert "Nothing is trusted." in run(home, "trust", "--list").stdout


@pytest.mark.proves("TRUST-1")
def test_trust_is_refused_where_it_could_not_count(home: Home) -> None:
    home.user({"security": {"projectConfigPolicy": "never"}})
    result = run(home, "trust", str(home.workspace))
    assert isinstance(result.exception, Refused)
    assert "never" in result.exception.message


def test_the_offer_can_be_had_as_json(home: Home) -> None:
    home.project({"lsp": {"pyright": {"command": ["./own"]}}})
    result = run(home, "trust", "--json", str(home.workspace))
    shown = json.loads(result.stdout)
    assert shown["asks"]["servers"] == {"pyright": {"command": ["./own"]}}
    assert isinstance(result.exception, Refused)


@pytest.mark.proves("T15")
def test_a_store_that_is_not_private_is_refused(home: Home) -> None:
    Path(home.places.pins).mkdir(parents=True, mode=0o755)
    _, screen = at_terminal(home, "y\n")
    assert "cannot be stored" in screen
    assert not home.load().config.trusted


def test_listing_the_verbs_costs_neither_pydantic_nor_the_catalogue() -> None:
    script = "import sys; from pilotfish.surfaces.cli.main import run; run(['--help']); print(*sys.modules)"
    modules = subprocess.check_output([sys.executable, "-c", script], text=True).split()
    assert not [name for name in modules if name.startswith(("pydantic", "pilotfish.servers", "pilotfish.config"))]
