"""Every fuzz target holds for all that fuzzing has found, and for some thousands of random inputs."""

import ast
import re
from itertools import islice
from pathlib import Path

import pytest

from fuzz.known import NAMES, target
from fuzz.mutate import mutations
from fuzz.waits import HOSTILE

TOP = Path(__file__).parents[2]
SOURCES = TOP / "src" / "pilotfish"

OF_OURS = {
    "config/host_trust.py",
    "config/trust.py",
    "daemon/tracing.py",
    "hosts/edits/toml_edit.py",
    "hosts/edits/yaml_edit.py",
    "ipc/client.py",
    "protocol/codec.py",
    "servers/catalogue.py",
    "service/changes/journal.py",
    "surfaces/cli/one_server.py",
}
"""What parses files of ours, of the user or of a host, or messages."""

OPENS_OTHERS = {
    "batch/judge.py": "files of a copy of ours, as bytes",
    "client/handshake.py": "our own",
    "config/host_trust.py": "one path in the .git of a repository that the user trusts",
    "config/trust.py": "our own",
    "daemon/claim.py": "our own",
    "daemon/methods.py": "by system/files.py",
    "daemon/start.py": "our own",
    "ipc/hook_program.py": "/dev/null",
    "ipc/logs.py": "our own",
    "ipc/rendezvous.py": "our own",
    "library/workspace.py": "by system/files.py",
    "policy/boundary.py": "opened to be looked at, not read",
    "policy/openat.py": "what we write",
    "pool/mirror.py": "files of a worktree, as bytes: not parsed, and up to a number",
    "servers/catalogue.py": "our own",
    "servers/install.py": "our own",
    "servers/locate.py": "our own",
    "servers/tree.py": "for those in the table",
    "servers/worktrees.py": "by servers/tree.py, as lines up to a size",
    "service/changes/journal.py": "our own",
    "service/changes/transaction.py": "what we write",
    "service/launches.py": "our own",
    "service/texts.py": "by system/files.py",
    "store.py": "our own",
    "surfaces/cli/batch.py": "what the user names on the command line",
    "surfaces/cli/main.py": "our own",
    "surfaces/cli/terminal/printing.py": "lines to print, in the process of the command line",
    "surfaces/doctor/verb.py": "our own",
    "surfaces/doctor/setup.py": "/proc",
    "surfaces/install.py": "our own",
    "surfaces/mcp/server.py": "our own",
    "system/confinement.py": "opened for the kernel, not read",
    "system/ownership.py": "one line of git's, up to a size, in which a word is looked for",
    "system/pipes.py": "our own",
    "system/process.py": "/proc",
    "system/regular_files.py": "for those in the table",
    "system/supervisor.py": "/proc",
    "system/vitals.py": "/proc",
    "system/watching/inotify.py": "/proc",
    "system/watching/listing.py": "folders",
    "system/watching/tree.py": "compared with what it was, not parsed",
}
"""What opens files that are not a repository's, or does not parse them."""

BESIDE_THE_PARSER = {
    "config/files.py", "config/named_files.py", "hosts/shared/changes.py", "hosts/shared/hook_settings.py",
    "servers/versions.py", "service/diagnostics/project_words.py", "service/project_shapes.py",
    "service/questions/project.py",
}  # fmt: skip
"""In the table, and without hostile files of their own: what they open, another row parses, or they are for `setup`."""

RANDOM_INPUTS = 2_000
"""Of each target: a second or so. `./fuzz` runs millions, guided by coverage."""


@pytest.mark.proves("P9", "F31", "F32", "T36")
@pytest.mark.parametrize("name", NAMES)
def test_a_target_holds_for_known_and_random_inputs(name: str) -> None:
    fuzzed = target(name)
    known = fuzzed.inputs()
    random = islice(mutations(known, fuzzed.words, number=1), RANDOM_INPUTS // fuzzed.share)
    for data in [b"", *known, *random]:
        try:
            fuzzed.run(data)
        except Exception as error:
            raise AssertionError(f"{name} fails for {data!r}") from error


def table() -> dict[str, str]:
    """By what reads files of a repository: the target that fuzzes it."""
    page = (TOP / "docs" / "ATTACKS.md").read_text()
    rows = re.findall(r"^\| .* \| ((?:`[\w/]+\.py`(?:, )?)+) \| .* \| `(\w+)` \|$", page, re.MULTILINE)
    return {file: name for files, name in rows for file in re.findall(r"`(.*?)`", files)}


def opens(file: Path) -> bool:
    """Whether some line may open a file, or reads one of a tree."""
    names = {"open", "fdopen", "read_regular", "read_text", "read_bytes"}
    for call in (node.func for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)):
        if isinstance(call, ast.Name) and call.id in names:
            return True
        owner = ast.unparse(call.value).lower() if isinstance(call, ast.Attribute) else ""
        name = call.attr if isinstance(call, ast.Attribute) else ""
        if name in names - {"open"} or (name == "open" and owner == "os") or (name == "read" and "tree" in owner):
            return True
    return False


def test_whatever_reads_files_of_a_repository_has_a_target() -> None:
    rows = table()
    assert rows
    assert all((SOURCES / file).exists() and name in NAMES for file, name in rows.items()), rows
    reads = re.compile(r"\bast\.(?:parse|literal_eval)\(|\bjson\.loads\(|\btomllib\.loads?\(|[^.\w]compile\(")
    found = {str(file.relative_to(SOURCES)) for file in SOURCES.rglob("*.py") if reads.search(file.read_text())}
    assert found == OF_OURS | (found & rows.keys())


def test_whatever_opens_files_is_in_the_table_or_opens_none_of_a_repository() -> None:
    found = {str(file.relative_to(SOURCES)) for file in SOURCES.rglob("*.py") if opens(file)}
    assert found - table().keys() == OPENS_OTHERS.keys()


def test_waits_are_measured_for_whatever_parses_files_of_a_repository() -> None:
    assert {*HOSTILE} == table().keys() - BESIDE_THE_PARSER
