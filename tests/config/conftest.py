"""What the tests of the configuration share."""

from pathlib import Path

import pytest

from support.files.config_home import Home, make_home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)
