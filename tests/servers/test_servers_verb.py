"""`pilotfish servers`, as somebody at a terminal and as a script sees it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pilotfish.model import AbsPath
from pilotfish.servers.catalogue import load, proofs
from pilotfish.servers.locate import ProgramMissing
from pilotfish.surfaces.cli.servers import servers
from pilotfish.surfaces.cli.terminal.servers_text import ListedServer, table_lines


class Shell:
    """A user with a home, a workspace and one program on PATH."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "work"
        self.config = folder / ".config/pilotfish/lsp.json"
        self.bin = folder / "bin"
        for place in (self.workspace, self.config.parent, self.bin):
            place.mkdir(parents=True)
        self.environment = {"HOME": str(folder), "PATH": str(self.bin), "PILOTFISH_HOME": str(folder / "state")}

    def program(self, path: str) -> None:
        place = self.workspace.parent / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("")
        place.chmod(0o755)

    def run(self, *words: str) -> Result:
        cleared = {name: None for name in os.environ if name.startswith("XDG_")}
        arguments = ["--root", str(self.workspace), *words]
        return CliRunner().invoke(servers, arguments, env={**cleared, **self.environment})

    def states(self) -> dict[str, str]:
        return {row["id"]: row["state"] for row in json.loads(self.run("--json").stdout)["servers"]}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(Path(os.path.realpath(tmp_path)))


@pytest.mark.proves("REG-7")
def test_the_whole_catalogue_is_listed_with_what_is_installed(shell: Shell) -> None:
    shell.program("bin/gopls")
    result = shell.run()
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert len(lines) == len(load()) + 2
    assert lines[-1] == f"{len(load())} servers, 1 installed"
    assert next(line for line in lines if line.startswith("gopls ")).split()[1:2] == ["installed"]
    assert str(shell.bin / "gopls") in result.stdout


@pytest.mark.proves("REG-7", "CFG-4")
def test_states_are_installed_missing_disabled_and_untrusted(shell: Shell) -> None:
    shell.program("bin/gopls")
    shell.program("bin/ruff")
    shell.program("work/node_modules/.bin/biome")
    shell.config.write_text('{"lsp": {"ruff": {"disabled": true}}}')
    states = shell.states()
    assert (states["gopls"], states["ruff"], states["biome"]) == ("installed", "disabled", "untrusted")
    assert states["zls"] == "missing"


@pytest.mark.proves("CFG-3")
def test_everything_is_disabled_when_the_configuration_says_so(shell: Shell) -> None:
    shell.program("bin/gopls")
    shell.config.write_text('{"lsp": false}')
    assert set(shell.states().values()) == {"disabled"}


@pytest.mark.proves("TRUST-2", "TRUST-6")
def test_a_broken_configuration_is_said(shell: Shell) -> None:
    shell.config.write_text('{"lsp": {')
    done = shell.run("python")
    assert "The configuration has an error: " in done.stderr
    assert str(shell.config) in done.stderr
    assert "basedpyright" in done.stdout


def test_a_trusted_project_supplies_its_own_servers(shell: Shell) -> None:
    shell.program("work/node_modules/.bin/biome")
    shell.config.write_text(json.dumps({"security": {"trustedProjectRoots": [str(shell.workspace)]}}))
    assert shell.states()["biome"] == "installed"


@pytest.mark.proves("CFG-4")
def test_a_custom_server_is_listed_too(shell: Shell) -> None:
    shell.config.write_text('{"lsp": {"mine": {"command": ["mine"], "extensions": [".mine"]}}}')
    assert shell.states()["mine"] == "missing"


@pytest.mark.proves("REG-7")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pyright"], {"basedpyright", "pyright"}),
        ([".kt"], {"kotlin-language-server", "kotlin-lsp"}),
        (["Kotlin"], {"kotlin-language-server", "kotlin-lsp"}),
        (["rust", "analyzer"], {"rust-analyzer"}),
        (["go.mod"], {"gopls"}),
        (["tsserver"], {"typescript"}),
        (["c#"], {"csharp-ls", "omnisharp", "roslyn"}),
        (["make"], {"autotools"}),
        (["go"], {"gopls", "golangci-lint"}),
        (["shell"], {"bash"}),
    ],
)
def test_words_narrow_the_list(shell: Shell, words: list[str], expected: set[str]) -> None:
    rows = json.loads(shell.run("--json", *words).stdout)["servers"]
    found = {row["id"] for row in rows} - {"ast-grep", "typos"}
    assert found == expected


@pytest.mark.parametrize("word", ["tsx", "react", "TSX", ".tsx"])
def test_a_language_is_found_by_what_people_call_it(shell: Shell, word: str) -> None:
    assert {"typescript", "typescript-native"} <= {
        row["id"] for row in json.loads(shell.run("--json", word).stdout)["servers"]
    }


def test_a_word_that_nothing_matches_says_so(shell: Shell) -> None:
    result = shell.run("klingon")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "No server is known for klingon.\n"
    assert shell.run("pyton").stderr == "No server is known for pyton. Did you mean python?\n"
    assert shell.run("gopsl").stderr == "No server is known for gopsl. Did you mean gopls?\n"


def test_json_has_everything_a_script_needs(shell: Shell) -> None:
    row = json.loads(shell.run("--json", "rust-analyzer").stdout)["servers"][0]
    assert row.items() >= {
        "id": "rust-analyzer", "name": "rust-analyzer", "state": "missing", "languages": ["rust"],
        "extensions": [".rs"], "command": ["rust-analyzer"], "role": "main", "risk": "runs-project-code", "path": None,
        "install": "rustup component add rust-analyzer rust-src (needs rustup, which is not installed)",
    }.items()  # fmt: skip


@pytest.mark.proves("TUI-1")
@pytest.mark.parametrize("width", [1, 20, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    rows = [ListedServer(spec, ProgramMissing("x", ()), "pip install " + "x" * 99) for spec in load().values()]
    assert max(map(len, table_lines(rows, width))) <= width


def test_what_is_printed_has_no_control_characters() -> None:
    spec = next(iter(load().values()))
    hostile = ListedServer(spec, ProgramMissing("x", ()), "pip\x1b[2J install\nx")
    assert all(line.isprintable() for line in table_lines([hostile], None))


def chosen(shell: Shell, word: str) -> dict[str, tuple[bool, str]]:
    rows = json.loads(shell.run("--json", word).stdout)["servers"]
    return {row["id"]: (row["choice"]["used"], row["choice"]["why"]) for row in rows if row["choice"]}


@pytest.fixture
def python_user(shell: Shell) -> Shell:
    """Trusts the workspace, and has three servers for Python."""
    (shell.workspace / "ruff.toml").write_text("")
    shell.config.write_text(json.dumps({"security": {"trustedProjectRoots": [str(shell.workspace)]}}))
    for program in ("pyright-langserver", "ty", "ruff"):
        shell.program(f"bin/{program}")
    return shell


@pytest.mark.proves("REG-2", "REG-7")
def test_a_language_says_which_server_would_be_used_and_why(python_user: Shell) -> None:
    found = chosen(python_user, "python")
    assert found["pyright"] == (True, "the first in the catalogue's order that can run here")
    assert found["ruff"] == (True, "it runs beside the others")
    used, why = found["ty"]
    assert (used, why.startswith("pyright comes before it")) == (False, True)
    assert found["basedpyright"] == (False, "it is not installed")
    assert "sgconfig.yml" in found["ast-grep"][1]
    assert "For python here:\n  pyright " in python_user.run("python").stdout


@pytest.mark.proves("REG-2")
def test_a_file_of_the_project_comes_before_the_order_of_the_catalogue(python_user: Shell) -> None:
    (python_user.workspace / "ty.toml").write_text("")
    used, why = chosen(python_user, ".py")["ty"]
    assert used
    assert why.startswith("the project has its configuration: ty.toml")


@pytest.mark.proves("CFG-4", "REG-2")
def test_what_the_configuration_names_comes_before_everything(python_user: Shell) -> None:
    (python_user.workspace / "ty.toml").write_text("")
    config = json.loads(python_user.config.read_text())
    config["lsp"] = {"zuban": {"command": ["ruff"]}, "ruff": {"disabled": True}}
    python_user.config.write_text(json.dumps(config))
    found = chosen(python_user, "python")
    assert found["zuban"] == (True, "your configuration names its command")
    assert found["ruff"] == (False, "the configuration disables it")
    assert not found["ty"][0]


@pytest.mark.proves("TRUST-2")
def test_a_server_that_is_withheld_says_so(shell: Shell) -> None:
    shell.program("bin/rust-analyzer")
    used, why = chosen(shell, "rust")["rust-analyzer"]
    assert not used
    assert "trusted" in why


def test_words_that_name_no_language_explain_no_choice(python_user: Shell) -> None:
    assert chosen(python_user, "pyright") == {}
    assert "here:" not in python_user.run("pyright").stdout


@pytest.mark.proves("REG-9")
def test_a_proven_server_says_with_what(shell: Shell) -> None:
    proof = proofs()["ty"]
    text = shell.run("ty").stdout
    assert f"ty {proof.version} was proven on {proof.date}, {proof.machine}:" in text
    assert "right       goToDefinition" in text
    row = next(row for row in json.loads(shell.run("--json", "ty").stdout)["servers"] if row["id"] == "ty")
    assert row["proof"].items() >= {"version": proof.version, "freshness": "it is asked", "reach": "project"}.items()
    assert row["listed"] is None


@pytest.mark.proves("REG-9")
def test_a_listed_server_says_so_and_why(shell: Shell) -> None:
    text = shell.run("zls").stdout
    assert "zls is listed: no run of ours has shown that it works (PyPI, npm and Debian do not carry it)." in text
    shell.config.write_text('{"lsp": {"mine": {"command": ["mine"], "extensions": [".mine"]}}}')
    row = json.loads(shell.run("--json", "mine").stdout)["servers"][0]
    assert (row["proof"], row["listed"]) == (None, None)
    assert "listed" not in shell.run("mine").stdout


IMPORTS = "import sys\nfrom pilotfish.surfaces.cli.servers import servers\n{run}\nprint(*sorted(sys.modules))"


@pytest.mark.proves("REG-7")
def test_the_verb_imports_nothing_heavy(shell: Shell) -> None:
    run = f"servers(['--root', {str(shell.workspace)!r}], standalone_mode=False)"
    ended = subprocess.run(
        [sys.executable, "-c", IMPORTS.format(run=run)],
        capture_output=True,
        text=True,
        check=True,
        env=shell.environment,
    )
    modules = ended.stdout.splitlines()[-1].split()
    assert "pilotfish.servers.catalogue" in modules
    assert not {"pydantic", "anyio"} & set(modules)


def test_the_workspace_may_be_named_relatively(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shell.workspace)
    assert AbsPath(os.getcwd())
    assert CliRunner().invoke(servers, ["gopls"], env=shell.environment).exit_code == 0
