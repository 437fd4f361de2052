"""The rules of feedback that the seeds ask for: each preset, with everything that is known and not only what is new."""

from collections.abc import Mapping

from msgspec import convert

from pilotfish.config.schema import PRESETS, FeedbackSettings

SEEDS: Mapping[str, FeedbackSettings] = {
    name: convert({**rules, "onlyNew": False}, FeedbackSettings) for name, rules in PRESETS.items()
}
LLXPRT = SEEDS["llxprt"]
