"""Diagnostics of texts that are not on disk, and of the files that they would break (DIAG-9).

The files on disk are checked first, to compare with, unless what is known of them stands: of many texts, one after the
other, only the first one pays for that. The verdict on a proposed text is never kept as a state of the file.
"""

import os
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from pilotfish.errors import Refused
from pilotfish.feedback.delta import Comparison, delta
from pilotfish.model import AbsPath
from pilotfish.policy.boundary import Boundary, Want, admit
from pilotfish.service.diagnostics.affected import EditedText
from pilotfish.service.diagnostics.broken_files import ProjectCheck
from pilotfish.service.diagnostics.file_states import NO_FILE
from pilotfish.service.diagnostics.picture import Picture
from pilotfish.service.diagnostics.proposals import ProposalRunner
from pilotfish.service.diagnostics.runner import Patience
from pilotfish.service.diagnostics.verdicts import FileVerdict
from pilotfish.service.texts import text_to_send
from pilotfish.service.workspaces import Visit
from pilotfish.system.clock import current_time


class Previewed(Struct, frozen=True):
    """The verdicts on the files that were asked about, and what changed in those and in the ones they would break."""

    asked: tuple[FileVerdict, ...]
    changes: Mapping[AbsPath, Comparison]
    related: tuple[FileVerdict, ...] = ()
    """Files elsewhere that the texts may break."""
    unchecked: int = 0
    """How many of these were not checked in time."""


class Previews:
    def __init__(self, picture: Picture, project: ProjectCheck, proposal_runner: ProposalRunner) -> None:
        self._picture = picture
        self._project = project
        self._proposal_runner = proposal_runner
        self.who_used = picture.who_used

    async def run(self, visit: Visit, paths: Sequence[str], texts: Mapping[str, str], patience: Patience) -> Previewed:
        """A path that is outside, protected or, without a text, missing is refused in its own verdict.

        Raises `Unavailable` after `"lsp": false`.
        """
        workspace = visit.workspace
        workspace.require_enabled()
        wait = workspace.wait_seconds
        proposed, refused = _admitted(texts, workspace.boundary)
        plain = [path for path in paths if path not in texts]
        created = _missing(proposed)
        on_disk = [*plain, *sorted(proposed.keys() - created)]
        before = await self._picture.check(visit, on_disk, patience)

        async def check(path: AbsPath, patience: Patience) -> Sequence[FileVerdict]:
            return await self._picture.check(visit, [path], patience, anew=True)

        # A file with a proposed text need not be readable as it is: then nothing is compared.
        refused += [one for one in before if one.refused and one.path not in proposed]
        edits = [EditedText(path, _text_of(path, before), text) for path, text in proposed.items()]
        asked = proposed.keys() | {one.path for one in before}
        others = await self._project.as_they_are(workspace, edits, current_time() + wait, check)
        further = [one for one in others.verdicts if one.path not in asked]
        readable = [one for one in (*before, *further) if not one.refused]
        texts_of_others = {one.path: one.text for one in readable if one.path not in proposed}
        judged = await self._proposal_runner.run(visit, proposed, texts_of_others, patience.first or wait, wait)
        after = {one.path: one for one in judged}
        known = {one.path: one.checked for one in (*before, *further) if one.is_final} | dict.fromkeys(created, NO_FILE)
        changes = {path: delta(known.get(path), one.checked) for path, one in after.items()}
        shown = [one for one in after.values() if one.path in asked or (one.is_final and changes[one.path].introduced)]
        return Previewed(
            asked=(*(one for one in shown if one.path in asked), *refused),
            changes={one.path: changes[one.path] for one in shown},
            related=tuple(further),
            unchecked=others.unchecked,
        )


def _text_of(path: AbsPath, verdicts: Sequence[FileVerdict]) -> str | None:
    """What the file has now; empty where there is none, None where it cannot be read."""
    found = [one for one in verdicts if one.path == path]
    if not found:
        return ""
    return None if found[0].refused else found[0].text


def _admitted(texts: Mapping[str, str], boundary: Boundary) -> tuple[dict[AbsPath, str], list[FileVerdict]]:
    """The texts by real path, and the paths that may not be written."""
    proposed: dict[AbsPath, str] = {}
    refused: list[FileVerdict] = []
    for path, text in texts.items():
        try:
            real = admit(path, boundary, Want.TARGET).path
            proposed[real] = text_to_send(real, text)
        except Refused as refusal:
            refused.append(FileVerdict(AbsPath(os.path.join(boundary.cwd, path)), "", (), refusal))
    return proposed, refused


def _missing(paths: Iterable[AbsPath]) -> set[AbsPath]:
    return {path for path in paths if not os.path.isfile(path)}
