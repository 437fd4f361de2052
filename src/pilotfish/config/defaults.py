"""Default values: of every key, under a host, and by the name of a preset."""

from collections.abc import Mapping
from typing import Final

import msgspec

from pilotfish.config.schema import ConfigFile, RestartPolicy
from pilotfish.protocol.wire import Json

DEFAULTS: Final[Mapping[str, Json]] = msgspec.json.decode(msgspec.json.encode(ConfigFile()))
"""The default of every key, as a file would write it."""

LLXPRT_FEEDBACK: Mapping[str, Json] = {
    "includeSeverities": ["error"],
    "maxPerFile": 20,
    "maxOtherFiles": 5,
    "maxTotalLines": 50,
    "maxBytes": None,
    "order": "line",
    "otherFilesOrder": "path",
    "otherFilesAfter": ["edit", "write", "patch"],
}

PRESETS: Mapping[str, Mapping[str, Json]] = {
    "llxprt": LLXPRT_FEEDBACK,
    # OpenCode bounds files and lines per file, and nothing else.
    "opencode": {**LLXPRT_FEEDBACK, "maxTotalLines": None},
    "pi": {
        **LLXPRT_FEEDBACK,
        "includeSeverities": ["error", "warning"],
        "maxOtherFiles": 3,
        "maxBytes": 2048,
        "order": "severity",
        "otherFilesOrder": "severity",
    },
}
"""The named sets of limits and order. Each sets the same keys, so that choosing one in a project undoes whatever
another one set below it; what is told at all (`onlyNew`, `noVerdict`) is not part of a preset."""

HOST_DEFAULTS: Mapping[str | None, Mapping[str, Json]] = {
    # Whatever its linter says Aider takes for errors, and has its model mend them.
    "aider": {"feedback": {"noVerdict": "silent"}},
    # LLxprt promises silence where there is no verdict.
    "llxprt": {"feedback": {"preset": "llxprt", "noVerdict": "silent"}},
    "opencode": {"feedback": {"preset": "opencode"}},
    "pi": {"feedback": {"preset": "pi"}},
}
"""Defaults under a host: its users were promised these numbers."""

HOST_RESTART: Mapping[str | None, RestartPolicy] = {"llxprt": RestartPolicy.NEVER}
"""What follows a crash under a host, where it is not `BACKOFF`: LLxprt promises no restarts."""

SAME_SEVERITIES = frozenset({"llxprt"})
"""Hosts whose users were promised that `includeSeverities` holds for the diagnostics that a model asks for, too."""
