"""The texts before an edit, for hosts whose events say only what was replaced: each file is read once for it."""

import os
from collections.abc import Mapping

from msgspec.structs import replace

from pilotfish.api.questions import Touch
from pilotfish.errors import Refused
from pilotfish.hosts.shared.old_texts import Undo, old_text
from pilotfish.model import AbsPath
from pilotfish.system.files import DiskFiles


async def with_old_texts(touch: Touch, undos: Mapping[str, Undo], cwd: str) -> Touch:
    """The touch with the old texts that follow from what is on disk now."""
    files = DiskFiles()
    before = dict(touch.before or {})
    for path, undo in undos.items():
        try:
            file = await files.read_text(AbsPath(os.path.join(cwd, path)))
        except Refused:
            # The check of the file says why, and without an old text it still has its verdict.
            continue
        text = old_text(file.text, undo)
        if text is not None:
            before[path] = text
    return replace(touch, before=before) if before else touch
