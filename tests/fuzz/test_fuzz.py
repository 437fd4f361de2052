"""Every fuzz target holds for all that fuzzing has found, and for some thousands of random inputs."""

import re
from itertools import islice
from pathlib import Path

import pytest

from fuzz.known import NAMES, target
from fuzz.mutate import mutations

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
"""What reads files of ours, of the user or of a host, or messages."""

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


def test_whatever_reads_files_of_a_repository_has_a_target() -> None:
    page = (TOP / "docs" / "ATTACKS.md").read_text()
    rows = re.findall(r"^\| .* \| `([\w/]+\.py)` \| .* \| `(\w+)` \|$", page, re.MULTILINE)
    assert rows
    assert all((SOURCES / file).exists() and name in NAMES for file, name in rows), rows
    reads = re.compile(r"\bast\.(?:parse|literal_eval)\(|\bjson\.loads\(|\btomllib\.loads?\(|[^.\w]compile\(")
    found = {str(file.relative_to(SOURCES)) for file in SOURCES.rglob("*.py") if reads.search(file.read_text())}
    assert found == OF_OURS | (found & {file for file, _ in rows})
