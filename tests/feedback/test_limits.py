"""The numbers that hosts' users were promised."""

import pytest
from msgspec.structs import replace

from pilotfish.config.schema import DEFAULTS, FeedbackSettings
from pilotfish.config.schema import PRESETS as CONFIGURED
from pilotfish.feedback.limits import DEFAULT, PRESETS

LLXPRT = FeedbackSettings(
    include_severities=("error",),
    max_per_file=20,
    max_other_files=5,
    max_total_lines=50,
    max_bytes=None,
    other_files_order="path",
    other_files_after=("write",),
    only_new=False,
)


def as_configured(limits: FeedbackSettings) -> dict[str, object]:
    """The limits under the names of the configuration file."""
    return {
        "includeSeverities": list(limits.include_severities),
        "maxPerFile": limits.max_per_file,
        "maxOtherFiles": limits.max_other_files,
        "maxTotalLines": limits.max_total_lines,
        "maxBytes": limits.max_bytes,
        "otherFilesOrder": limits.other_files_order,
        "otherFilesAfter": list(limits.other_files_after),
        "onlyNew": limits.only_new,
    }


@pytest.mark.proves("CFG-6")
@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_what_the_configuration_means_by_its_name(name: str) -> None:
    assert as_configured(PRESETS[name]) == CONFIGURED[name]


@pytest.mark.proves("CFG-6")
def test_the_configuration_has_no_preset_and_no_default_of_its_own() -> None:
    assert (set(PRESETS), DEFAULTS["feedback"]) == (set(CONFIGURED), as_configured(DEFAULT))


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
                other_files_order="severity",
                other_files_after=("edit", "write", "patch"),
                only_new=False,
            ),
            id="pi",
        ),
    ],
)
def test_the_presets_have_these_numbers(name: str, limits: FeedbackSettings) -> None:
    assert PRESETS[name] == limits
