"""What files were before an edit: what the host says, what was last seen of them, what git has committed.

An edit is judged by what it changed. Where nobody has checked a file before the edit, its old text is checked for it,
and this is where that text comes from, the surest source first.
"""

from collections.abc import Mapping
from functools import partial

import anyio.to_thread

from pilotfish.feedback.linemap import lines_of
from pilotfish.model import AbsPath
from pilotfish.service.diagnostics.file_states import FileStates
from pilotfish.service.texts import old_text_to_send
from pilotfish.service.workspace import Workspace
from pilotfish.system.git import committed_content

ALIKE = 0.5
"""Share of lines that a moved file has kept: whoever moves one adjusts its imports."""


async def text_before(states: FileStates, workspace: Workspace, path: AbsPath, now: str) -> str | None:
    """The text that became `now`, where the host has not said it; None where nobody knows. Empty for a new file."""
    seen = states.text_before(path, now)
    return seen if seen is not None else await committed_text(workspace, path, now)


async def committed_text(workspace: Workspace, path: AbsPath, now: str) -> str | None:
    """What the last commit has of a file, with the line ends of `now`; None where it has nothing of it."""
    git = workspace.program("git")
    content = None if git is None else await anyio.to_thread.run_sync(partial(committed_content, git), path)
    text = None if content is None else _decoded(content, now)
    return None if text is None else await anyio.to_thread.run_sync(old_text_to_send, path, text)


def moved_files(created: Mapping[AbsPath, str], deleted: Mapping[AbsPath, str]) -> dict[AbsPath, AbsPath]:
    """Which of the created files is which of the deleted ones under another name, the most alike first."""
    scores = sorted(
        ((_likeness(text, old), path, gone) for path, text in created.items() for gone, old in deleted.items()),
        reverse=True,
    )
    found = dict[AbsPath, AbsPath]()
    for score, path, gone in scores:
        if score >= ALIKE and path not in found and gone not in found.values():
            found[path] = gone
    return found


def _likeness(one: str, other: str) -> float:
    lines, others = set(lines_of(one)), set(lines_of(other))
    return len(lines & others) / max(len(lines), len(others), 1)


def _decoded(content: bytes, now: str) -> str | None:
    """A committed text with the line ends that the file has: git may convert them."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    if "\r\n" in now and "\r\n" not in text:
        return text.replace("\n", "\r\n")
    return text
