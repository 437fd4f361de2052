"""The numbers that hosts' users were promised."""

import pytest

from pilotfish.config.defaults import DEFAULTS
from pilotfish.config.defaults import PRESETS as CONFIGURED
from pilotfish.feedback.limits import DEFAULT, PRESETS, Limits
from pilotfish.model import Severity

WORDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFORMATION: "info", Severity.HINT: "hint"}


def as_configured(limits: Limits) -> dict[str, object]:
    """The limits under the names of the configuration file."""
    return {
        "includeSeverities": [WORDS[severity] for severity in limits.include_severities],
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
        pytest.param("llxprt", Limits((Severity.ERROR,), 20, 5, 50, None, "path", ("write",)), id="llxprt"),
        pytest.param("opencode", Limits((Severity.ERROR,), 20, 5, None, None, "path", ("write",)), id="opencode"),
        pytest.param(
            "pi",
            Limits((Severity.ERROR, Severity.WARNING), 20, 3, 50, 2048, "severity", ("edit", "write", "patch")),
            id="pi",
        ),
    ],
)
def test_the_presets_have_these_numbers(name: str, limits: Limits) -> None:
    assert PRESETS[name] == limits
