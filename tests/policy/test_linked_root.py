"""A workspace behind a symbolic link is one workspace, and its files are one document each."""

import os
from pathlib import Path

import pytest

from pilotfish.policy.boundary import admit, boundary_of
from pilotfish.protocol.uris import path_of, uri_of


@pytest.mark.proves("C117", "PATH-1")
def test_a_file_named_through_a_linked_root_is_the_document_that_the_server_knows(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "a.py").write_text("x = 1\n")
    link = tmp_path / "link"
    link.symlink_to(real)
    boundary = boundary_of(str(link), str(link))
    named = [admit(name, boundary).path for name in ("a.py", str(link / "a.py"), str(real / "a.py"))]
    # A server resolves links itself and speaks of the target.
    assert set(named) == {path_of(uri_of(named[0]))} == {os.path.realpath(real / "a.py")}
