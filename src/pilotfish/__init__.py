"""Pilotfish: red squiggles for coding agents.

`pilotfish.open` is the library, `pilotfish.open_blocking` the same for code without an event loop, and
`pilotfish.ToolRegistry` the tools of the Opta set; the other names are types of what they answer. They are imported on
first use, because programs that start for every edit import this package too; for the same reason `typing` is not
imported here.

Tags in comments of this package, such as (T49), (F57) or (DIAG-11), are rows of `tests/requirements.toml`.
"""

import sys

if sys.platform == "win32":
    from pilotfish.system.windows_os import install

    install()

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pilotfish.api.answers import Answer, Diagnostic, Feedback, Hover, Location, NotFresh, State, Symbol
    from pilotfish.batch.patches import Judgement, Patch
    from pilotfish.library.blocking import BlockingWorkspace, open_blocking
    from pilotfish.library.opta import BlockingToolRegistry, ToolRegistry
    from pilotfish.library.workspace import Workspace, open  # noqa: A004 -- the name people look for
else:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)


__all__ = [
    "Answer",
    "BlockingToolRegistry",
    "BlockingWorkspace",
    "Diagnostic",
    "Feedback",
    "Hover",
    "Judgement",
    "Location",
    "NotFresh",
    "Patch",
    "State",
    "Symbol",
    "ToolRegistry",
    "Workspace",
    "open",
    "open_blocking",
]

_HOMES = {
    **dict.fromkeys(
        ("Answer", "Diagnostic", "Feedback", "Hover", "Location", "NotFresh", "State", "Symbol"),
        "pilotfish.api.answers",
    ),
    "Judgement": "pilotfish.batch.patches",
    "Patch": "pilotfish.batch.patches",
    "BlockingToolRegistry": "pilotfish.library.opta",
    "BlockingWorkspace": "pilotfish.library.blocking",
    "ToolRegistry": "pilotfish.library.opta",
    "Workspace": "pilotfish.library.workspace",
    "open": "pilotfish.library.workspace",
    "open_blocking": "pilotfish.library.blocking",
}
