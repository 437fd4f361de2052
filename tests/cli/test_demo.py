"""What `pilotfish demo` says where it fails; `tests/package/test_wheel.py` runs it."""

import pytest

from pilotfish.api.answers import Feedback, State
from pilotfish.errors import ServerFailed
from pilotfish.surfaces.cli.demo import require_both

pytestmark = pytest.mark.proves("CLI-1")


def test_a_demo_on_a_busy_machine_says_why_it_failed_in_a_sentence() -> None:
    late = Feedback("", State.PARTIAL, 3000, "1 of 1 possibly affected files were not checked")
    with pytest.raises(ServerFailed) as failed:
        require_both(late)
    why = "1 of 1 possibly affected files were not checked."
    assert failed.value.message == f"The demo did not see both files break: {why}"
    assert "try again" in (failed.value.hint or "")
    require_both(Feedback("main.py: ERROR", State.FRESH, 3))
