"""Every program that we start has a trap: what starts one is looked for in our sources, and has to name its tests."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.proves("T46")

TOP = Path(__file__).parents[2]
SOURCES = TOP / "src"

CALLS = re.compile(
    r"subprocess\.run|(?:subprocess|anyio|asyncio|os|pty|_posixsubprocess)\."
    r"(?:Popen|call|check_call|check_output|run_process|open_process|create_subprocess_\w+|system|popen|startfile"
    r"|exec\w+|spawn\w+|posix_spawn\w*|fork|forkpty|fork_exec)"
    r"|(?:\w+\.)*_?spawn|webbrowser\.\w+|(?:\w+\.)*ProcessPoolExecutor|multiprocessing\.\w+"
)
"""What starts a program, or may."""

OURS = "attack/test_variables.py::test_a_module_of_the_current_folder_is_not_loaded_into_ours"
SERVERS = (
    "attack/test_traps.py::test_a_server_that_may_run_anywhere_runs_nothing_of_a_trap",
    "attack/test_confined_files.py::test_a_server_writes_only_its_own_folder_and_reads_no_secret",
    "attack/test_clangd_options.py::test_no_option_writes_reads_or_loads_what_a_project_names",
    "attack/test_tsserver_plugins.py::test_no_plugin_that_a_project_names_is_loaded_untrusted",
)

STARTS: dict[str, tuple[str, ...]] = {
    # tar, of a copy that goes to another machine
    "pilotfish/batch/copies.py": ("batch/test_copies.py::test_a_copy_is_packed_by_no_tar_that_a_project_brings_along",),
    "pilotfish/client/session.py": SERVERS,
    "pilotfish/daemon/start.py": (OURS,),
    # the commands that `setup` has written, which are ours
    "pilotfish/hosts/shared/status.py": (OURS,),
    "pilotfish/ipc/hook_program.py": (OURS,),
    "pilotfish/ipc/starter.py": (OURS,),
    # the watcher beside a server, which formats or generates
    "pilotfish/pool/sidecar.py": (
        "watching/test_sidecar.py::test_in_a_workspace_that_nobody_trusts_what_follows_from_options_does_not_run",
    ),
    "pilotfish/servers/versions.py": ("servers/test_versions.py::test_a_program_is_asked_last_and_once_in_no_project",),
    # pip and npm
    "pilotfish/surfaces/install.py": (
        "install/test_install.py::test_nothing_of_the_folder_where_the_person_stands_runs_or_steers",
        "install/test_install.py::test_install_scripts_of_npm_packages_do_not_run",
    ),
    "pilotfish/system/apt.py": ("servers/test_advice.py::test_no_variable_of_the_user_steers_apt",),
    "pilotfish/system/git.py": (
        "attack/test_git.py::test_nothing_of_a_repository_runs",
        "attack/test_git.py::test_nothing_is_written_or_read_beyond_the_repository",
    ),
    # What it starts is chosen as on other systems; on Windows itself no trap was set.
    "pilotfish/system/jobs.py": SERVERS,
    "pilotfish/system/process.py": SERVERS,
    "pilotfish/system/supervisor.py": SERVERS,
}
"""By module: the tests that set a trap for what it starts."""


def starts(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and CALLS.fullmatch(called := ast.unparse(node.func)):
            yield called


def test_whatever_starts_a_program_has_a_trap() -> None:
    found = {str(file.relative_to(SOURCES)): [*starts(file)] for file in SOURCES.rglob("*.py")}
    assert {name for name, calls in found.items() if calls} == STARTS.keys()


@pytest.mark.parametrize("test", sorted({test for tests in STARTS.values() for test in tests}))
def test_and_the_trap_is_there(test: str) -> None:
    file, _, name = test.partition("::")
    assert re.search(rf"^(?:async )?def {name}\(", (TOP / "tests" / file).read_text(), re.MULTILINE)
