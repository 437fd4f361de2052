"""The numbers that hosts' users were promised."""

import pytest
from msgspec.structs import replace

from pilotfish.config.schema import FeedbackSettings
from support.values.limits import SEEDS

LLXPRT = FeedbackSettings(
    include_severities=("error",),
    max_per_file=20,
    max_other_files=5,
    max_total_lines=50,
    max_bytes=None,
    other_files_order="path",
    other_files_after=("edit", "write", "patch"),
    wording="report",
    only_new=False,
)


@pytest.mark.proves("CFG-6")
@pytest.mark.parametrize(
    ("name", "limits"),
    [
        pytest.param("llxprt", LLXPRT, id="llxprt"),
        pytest.param("opencode", replace(LLXPRT, max_total_lines=None), id="opencode"),
        pytest.param(
            "pi",
            FeedbackSettings(
                include_severities=("error", "warning"),
                max_per_file=20,
                max_other_files=3,
                max_total_lines=50,
                max_bytes=2048,
                order="severity",
                other_files_order="severity",
                other_files_after=("edit", "write", "patch"),
                wording="report",
                only_new=False,
            ),
            id="pi",
        ),
    ],
)
def test_the_presets_have_these_numbers(name: str, limits: FeedbackSettings) -> None:
    assert SEEDS[name] == limits
