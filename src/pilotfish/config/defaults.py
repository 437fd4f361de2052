"""What holds when no file says otherwise, and the named sets of feedback rules.

Every preset sets every feedback key, so that choosing one in a project undoes whatever another one set below it.
A host that has a preset of its own name gets it as its default: that host's users were promised these numbers.
"""

from collections.abc import Mapping

from pilotfish.protocol.wire import Json

LLXPRT_FEEDBACK: Mapping[str, Json] = {
    "includeSeverities": ["error"],
    "maxPerFile": 20,
    "maxOtherFiles": 5,
    "maxTotalLines": 50,
    "maxBytes": None,
    "otherFilesOrder": "path",
    "otherFilesAfter": ["write"],
    "onlyNew": False,
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
        "otherFilesOrder": "severity",
        "otherFilesAfter": ["edit", "write", "patch"],
    },
}

SECURITY: Mapping[str, Json] = {
    "projectConfigPolicy": "trusted-only",
    "trustedProjectRoots": [],
    "allowExternalPaths": False,
}

DEFAULTS: Mapping[str, Json] = {
    "navigationTools": True,
    "timing": {
        "initializeTimeoutMs": 15_000,
        "requestTimeoutMs": 10_000,
        "diagnosticsWaitTimeoutMs": 3_000,
        "firstTouchTimeoutMs": 10_000,
    },
    "feedback": dict(LLXPRT_FEEDBACK),
    "pool": {"idleMinutes": 10, "memoryMiBPerServer": None, "memoryMiB": None},
    "mcp": {"tools": "named"},
    "security": dict(SECURITY),
}

RESTART: Mapping[str | None, str] = {"llxprt": "never"}
"""What a crash leads to under a host, where it differs from `DEFAULT_RESTART`: LLxprt promises no restarts."""

DEFAULT_RESTART = "backoff"
