"""Settings for tests of how things are found, which say nothing about the texts before an edit."""

from typing import Any

EVERY_ERROR = {"onlyNew": False, "otherFilesAfter": ["write"], "noVerdict": "silent", "wording": "report"}
"""A server's findings as they are and nothing else: a scripted server finds the same in every text, so nothing of it is
ever new."""


def listing_every_error(config: dict[str, Any]) -> dict[str, Any]:
    """The same configuration with `EVERY_ERROR`, except where it says otherwise."""
    return {**config, "feedback": {**EVERY_ERROR, **config.get("feedback", {})}}
