"""The tool `hook_post_edit`: called by a host's own hook after an edit, instead of starting a program.

No failure here is an error, because an edit must never look as if it had failed: without feedback the text is empty.
`format: "hook"` wraps it for hosts that read a hook's answer from the tool's text.
"""

from collections.abc import Mapping
from typing import cast

from pilotfish.api.questions import Touch
from pilotfish.config.schema import TouchKind
from pilotfish.protocol.codec import encode
from pilotfish.surfaces.mcp.tools import JsonObject, said

MAX_FILES = 100
"""Of one edit; of a larger patch the first ones are checked."""

KINDS: Mapping[object, TouchKind] = {"edit": "edit", "write": "write", "patch": "patch"}

NAMES = ("filePath", "file_path", "path", "files", "paths")
"""Names under which hosts send the changed files."""


def touch_of(arguments: Mapping[str, object]) -> Touch:
    """The edit that a hook reports; without files where it names none."""
    paths: list[str] = []
    for name in NAMES:
        value = arguments.get(name)
        several = cast("list[object]", value) if isinstance(value, list) else [value]
        paths += [path for path in several if isinstance(path, str) and path]
    usual: TouchKind = "patch" if len(paths) > 1 else "edit"
    return Touch(tuple(dict.fromkeys(paths[:MAX_FILES])), KINDS.get(arguments.get("kind"), usual))


def hook_result(arguments: Mapping[str, object], text: str) -> JsonObject:
    """The result of the call: the feedback, or nothing at all."""
    if arguments.get("format") == "hook":
        wrapped = {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": text}} if text else {}
        text = encode(wrapped).decode()
    return said(text)
