"""`pilotfish doctor` as a new user reads it: the texts are in `golden/`."""

import json
import os
import platform
import re
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from pilotfish.servers.install import bundles
from pilotfish.surfaces.cli.setup import setup
from pilotfish.surfaces.doctor.servers import plain_version
from pilotfish.surfaces.doctor.verb import doctor
from pilotfish.surfaces.redaction import redacted, redacted_text
from pilotfish.system.confinement import confinable
from pilotfish.version import VERSION
from support.daemon.homes import TESTS, DaemonHome, daemon_home, fake_server
from support.servers import real

GOLDEN = Path(__file__).parent / "golden"

UPDATE = "PILOTFISH_UPDATE_GOLDEN"
"""Set it to write the texts anew; then read them."""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DaemonHome]:
    """A user with an empty home and nothing on the `PATH`."""
    with daemon_home(tmp_path) as home:
        nothing = tmp_path / "bin"
        nothing.mkdir()
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            monkeypatch.delenv(name, raising=False)
        for name in ("HOME", "PILOTFISH_HOME"):
            monkeypatch.setenv(name, home.environment[name])
        monkeypatch.setenv("PATH", str(nothing))
        monkeypatch.chdir(home.root)
        (Path(home.environment["HOME"]) / ".config/pilotfish/lsp.json").unlink()
        yield home


def run(command: click.Command, *arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def steady(text: str, home: DaemonHome) -> str:
    """The text as it would be for everybody."""
    replaced = {
        str(home.root): "/project",
        home.environment["PILOTFISH_HOME"]: "/home/you/.local/state/pilotfish",
        home.environment["HOME"]: "/home/you",
        os.environ["PATH"]: "/usr/bin",
        sys.executable: "/usr/bin/python3",
        str(TESTS): "/fake",
        f"pilotfish {VERSION}": "pilotfish 1.0",
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}": "Linux x86_64, Python 3.12.1",
    }
    for found, shown in replaced.items():
        text = text.replace(found, shown)
    text = re.sub(r"starts in \S+ m?s", "starts in 120 ms", text)
    text = re.sub(r"\w+ +watching: .*(\n +→ .*)?", "ok    watching: 1 folder; the system allows 524288 watches", text)
    text = re.sub(r"(?m)^( +)confined: .*", r"\1confined: no new privileges", text)
    return re.sub(r"-I -c '.*?' /fake support\.[\w.]+:(\w+)", r"\1-server", text)


def matches(name: str, done: Result, home: DaemonHome) -> None:
    file, text = GOLDEN / f"{name}.txt", steady(done.output, home)
    if os.environ.get(UPDATE):
        file.write_text(text)
    expected = file.read_text()
    # Another system holds nothing, and says nothing of it.
    assert text == (expected if confinable() else re.sub(r"(?m)^ +confined: .*\n", "", expected))


pytestmark = pytest.mark.proves("CLI-1", "REG-5", "REG-6")


def test_an_empty_machine_is_told_what_to_install(machine: DaemonHome) -> None:
    machine.write("main.py", "x = 1\n")
    machine.write("util.py", "y = 2\n")
    machine.write("index.ts", "let x = 1\n")
    machine.write("main.go", "package main\n")
    machine.write("notes.unheard-of", "\n")
    machine.write("README.md", "# x\n")
    machine.write("pyproject.toml", "[project]\n")
    done = run(doctor)
    matches("empty_machine", done, machine)
    assert done.exit_code == 1
    assert machine.processes() == {}


def test_a_server_that_does_not_start_is_shown_with_its_last_words(machine: DaemonHome) -> None:
    machine.configure("complaining")
    machine.write("a.x", "x\n")
    done = run(doctor)
    matches("broken_server", done, machine)
    assert done.exit_code == 1
    assert "\x1b" not in done.output


def test_a_healthy_machine_is_told_so(machine: DaemonHome) -> None:
    machine.configure()
    machine.write("a.x", "x\n")
    machine.write("b.x", "x\n")
    done = run(doctor)
    matches("healthy", done, machine)
    assert done.exit_code == 0
    assert machine.processes() == {}


def test_missing_servers_for_documents_and_settings_are_nothing_to_do(machine: DaemonHome) -> None:
    machine.configure()
    machine.write("a.x", "x\n")
    machine.write("README.md", "# x\n")
    machine.write("pyproject.toml", "[project]\n")
    done = run(doctor)
    matches("documents", done, machine)
    assert done.exit_code == 0


@pytest.mark.proves("TRUST-6")
def test_a_companion_that_only_trust_keeps_from_running_is_to_do(machine: DaemonHome) -> None:
    program = Path(os.environ["PATH"]) / "vscode-eslint-language-server"
    program.write_text("#!/bin/sh\ntouch pwned\n")
    program.chmod(0o755)
    machine.write("index.js", "let x = 1\n")
    machine.write("eslint.config.js", "export default []\n")
    report = json.loads(run(doctor, "--json").output)
    states = {
        one["id"]: (one["state"], one["advice"]) for language in report["languages"] for one in language["servers"]
    }
    assert states["eslint"] == ("withheld", [f"pilotfish trust {machine.root}"])
    assert report["ok"] is False
    assert f". pilotfish trust {machine.root}" in run(doctor).output
    assert not (machine.root / "pwned").exists()


@pytest.fixture
def bash_server() -> dict[str, Path]:
    """Found before the machine is empty."""
    real.require(["bash"])
    return real.programs_of("bash")


def test_a_program_without_which_a_server_finds_no_errors_is_to_do(
    bash_server: dict[str, Path], machine: DaemonHome
) -> None:
    programs = Path(os.environ["PATH"])
    for name, program in bash_server.items():
        (programs / name).symlink_to(program)
    machine.write("a.sh", "#!/bin/bash\necho $1\n")
    done = run(doctor)
    assert done.exit_code == 1
    assert "needs shellcheck for nearly all diagnostics, and it is not installed" in done.output
    # Not every platform has a package of it that we could install.
    step = "pilotfish install shellcheck" if "shellcheck" in bundles() else "bash: shellcheck is not installed"
    assert done.output.endswith(f"1 thing to do:\n  1. {step}\n")
    (programs / "shellcheck").write_text("#!/bin/sh\n")
    (programs / "shellcheck").chmod(0o755)
    assert run(doctor).output.endswith("Everything works.\n")


def test_a_folder_without_sources_has_nothing_to_do(machine: DaemonHome) -> None:
    done = run(doctor)
    assert (done.exit_code, "No language server handles any file here" in done.output) == (0, True)


@pytest.mark.proves("CFG-8", "TRUST-4")
def test_what_is_wrong_with_the_configuration_and_what_is_withheld_is_to_do(machine: DaemonHome) -> None:
    machine.configure(tming={"requestTimeoutMs": 1})
    (machine.root / ".pilotfish").mkdir()
    machine.write(".pilotfish/lsp.json", json.dumps({"lsp": {"toy": {"command": ["evil"]}}}))
    report = json.loads(run(doctor, "--json").output)
    todo = {found["subject"]: found for found in report["findings"] if found["grade"] == "todo"}
    assert report["ok"] is False
    assert "tming" in todo["configuration"]["message"]
    assert "toy.command" in todo["trust"]["message"]
    assert todo["trust"]["advice"] == [f"pilotfish trust {machine.root}"]


def test_lsp_false_is_said(machine: DaemonHome) -> None:
    file = Path(machine.environment["HOME"]) / ".config/pilotfish/lsp.json"
    file.write_text('{"lsp": false}')
    machine.write("main.py", "x = 1\n")
    done = run(doctor)
    assert (done.exit_code, "LSP disabled by configuration" in done.output) == (0, True)


def test_a_program_inside_an_untrusted_workspace_is_not_started(machine: DaemonHome) -> None:
    program = machine.root / ".venv/bin/basedpyright-langserver"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\ntouch pwned\n")
    program.chmod(0o755)
    machine.write("main.py", "x = 1\n")
    done = run(doctor)
    assert f"pilotfish trust {machine.root}" in done.output
    assert not (machine.root / "pwned").exists()


@pytest.mark.proves("T32")
def test_a_bundle_says_what_it_holds_and_holds_no_secret(machine: DaemonHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_TOKEN", "hush-hush-1234")
    secret = "ghp_0123456789abcdefghij"
    machine.configure(lsp={"toy": fake_server("answering", env={"API_KEY": "hush-hush-5678"}, settings={"x": secret})})
    machine.write("a.x", "x\n")
    file = machine.root.parent / "bundle.zip"
    done = run(doctor, "--bundle", str(file))
    assert done.exit_code == 0, done.output
    with zipfile.ZipFile(file) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    for name in texts:
        assert f"  {name}  " in done.output
    whole = "".join(texts.values())
    assert "MY_API_TOKEN" in texts["environment.txt"]
    assert [word for word in ("hush-hush", secret, machine.environment["HOME"]) if word in whole] == []
    assert os.stat(file).st_mode & 0o777 == 0o600
    assert run(doctor, "--bundle", str(file)).exit_code != 0


@pytest.mark.parametrize(
    ("said", "left"),
    [
        pytest.param('password = "swordfish"', "swordfish", id="assigned"),
        pytest.param("GITHUB_TOKEN=ghp_abcdefghijklmnop1234", "ghp_", id="environment"),
        pytest.param("https://me:swordfish@example.com/", "swordfish", id="url"),
        pytest.param("Authorization: Bearer abcdefghijklmnop", "abcdefgh", id="header"),
        pytest.param("-----BEGIN PRIVATE KEY-----\nAAAA\n", "AAAA", id="key without an end"),
    ],
)
def test_what_looks_like_a_secret_is_taken_out(said: str, left: str) -> None:
    assert left not in redacted_text(said)


def test_settings_that_only_sound_like_secrets_stay() -> None:
    assert redacted({"maxTokens": 5, "apiKey": "x", "deep": [{"token": ["y"]}]}) == {
        "maxTokens": 5,
        "apiKey": "‹redacted›",
        "deep": [{"token": "‹redacted›"}],
    }


def test_a_host_that_is_here_is_told_how_to_be_wired_and_one_that_is_wired_is_well(machine: DaemonHome) -> None:
    (Path(machine.environment["HOME"]) / ".claude").mkdir()
    first = next(one for one in json.loads(run(doctor, "--json").output)["findings"] if one["subject"] == "Claude Code")
    assert (first["grade"], first["advice"]) == ("note", ["pilotfish setup claude-code"])
    assert run(setup, "claude-code").exit_code == 0
    then = next(one for one in json.loads(run(doctor, "--json").output)["findings"] if one["subject"] == "Claude Code")
    assert (then["grade"], then["message"]) == ("ok", "wired (global)")


@pytest.mark.server("basedpyright")
def test_a_real_server_is_started_and_says_its_version(machine: DaemonHome) -> None:
    program = Path(sys.executable).parent / "basedpyright-langserver"
    (Path(os.environ["PATH"]) / program.name).symlink_to(program)
    machine.write("main.py", "x = 1\n")
    (python,) = json.loads(run(doctor, "--json").output)["languages"]
    (server,) = python["servers"]
    assert (server["id"], server["state"], server["version"]) == ("basedpyright", "works", version("basedpyright"))
    assert server["initializeMs"] > 0
    assert server["givenUp"] is None  # its environment is read as data, so trust changes nothing


def test_a_version_that_describes_a_build_is_the_version_of_the_program() -> None:
    build = '{"GoVersion":"go1.22.5","Path":"x/gopls","Main":{"Path":"x/gopls","Version":"v0.16.1"},"Deps":[]}'
    assert (plain_version(build), plain_version("1.40.2"), plain_version(None)) == ("0.16.1", "1.40.2", "")
