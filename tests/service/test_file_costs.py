"""What the check of a file costs at a server."""

from pathlib import Path

import pytest

from pilotfish.service.diagnostics.ledger import FileCosts


@pytest.mark.proves("DIAG-10")
def test_cheap_files_come_before_heavy_ones_by_what_they_took_or_else_by_their_size(tmp_path: Path) -> None:
    sizes = {"small": 10, "large": 200_000, "known to be slow": 1, "gone": None}
    for name, size in sizes.items():
        if size is not None:
            (tmp_path / name).write_bytes(b" " * size)
    costs = FileCosts()
    costs.learn(str(tmp_path / "known to be slow"), 3.0)
    costs.learn(str(tmp_path / "known to be slow"), 2.0)
    ordered = sorted((str(tmp_path / name) for name in sizes), key=costs.of)
    assert [Path(path).name for path in ordered] == ["gone", "small", "known to be slow", "large"]
