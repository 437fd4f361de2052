"""What a shell is offered, asked for as the shell's own function asks."""

import os
import subprocess
import sys
from collections.abc import Iterable

import pytest

from pilotfish.surfaces.cli.main import VERBS, run

pytestmark = pytest.mark.proves("CLI-1")

PROGRAM = "import sys; from pilotfish.surfaces.cli.main import run; sys.exit(run(sys.argv[1:]))"


def offered(line: str) -> list[str]:
    """What bash gets for a line whose last word is being typed."""
    words = line.split(" ")
    asked = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1), "_PILOTFISH_COMPLETE": "bash_complete"}
    argv = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, **asked}, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "some"),
    [
        pytest.param("pilotfish ", {f"plain,{verb}" for verb in VERBS}, id="verbs"),
        pytest.param("pilotfish work", {"plain,workspace-symbols"}, id="the rest of a verb"),
        pytest.param("pilotfish calls ", {"plain,in", "plain,out"}, id="the second word of a verb"),
        pytest.param("pilotfish check --sev", {"plain,--severity"}, id="an option"),
        pytest.param("pilotfish check --severity e", {"plain,error"}, id="the value of an option"),
        pytest.param("pilotfish check src/", {"file,src/"}, id="a file"),
        pytest.param("pilotfish hover ma", {"file,ma"}, id="a place"),
        pytest.param("pilotfish rename-file a", {"file,a"}, id="a file of an operation"),
        pytest.param("pilotfish check --root s", {"dir,s"}, id="a folder"),
        pytest.param("pilotfish setup cla", {"plain,claude-code"}, id="a host"),
        pytest.param("pilotfish restart basedp", {"plain,basedpyright"}, id="a server"),
        pytest.param("pilotfish completion z", {"plain,zsh"}, id="a shell"),
        pytest.param("pilotfish rename a.py greet", set[str](), id="nothing for a new name"),
    ],
)
def test_a_shell_is_offered(line: str, some: Iterable[str]) -> None:
    assert set(some) <= set(offered(line))


def test_verbs_are_offered_without_being_imported() -> None:
    code = (
        "import sys; from pilotfish.surfaces.cli.main import run\n"
        "try: run([])\n"
        "finally: print('pydantic' in sys.modules, 'anyio' in sys.modules)"
    )
    asked = {"COMP_WORDS": "pilotfish\n", "COMP_CWORD": "1", "_PILOTFISH_COMPLETE": "bash_complete"}
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, **asked}, check=True)
    assert done.stdout.splitlines()[-1] == "False False"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_a_shell_calls_us(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    printed = capsys.readouterr().out
    assert f"_PILOTFISH_COMPLETE={shell}_complete" in printed


def test_bash_takes_the_script_and_completes(capsys: pytest.CaptureFixture[str]) -> None:
    run(["completion", "bash"])
    program = f'pilotfish() {{ {sys.executable} -m pilotfish "$@"; }}; export -f pilotfish'
    typed = "COMP_WORDS=(pilotfish untr); COMP_CWORD=1; _pilotfish_completion bash_pilotfish; echo ${COMPREPLY[@]}"
    script = (
        capsys.readouterr()
        .out.replace("complete -o nosort", "true")
        .replace(" $1)", f" {sys.executable} -m pilotfish)")
    )
    done = subprocess.run(["bash", "-c", f"{program}\n{script}\n{typed}"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "untrust"


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", "csh"]) == 3
    assert "bash" in capsys.readouterr().err
