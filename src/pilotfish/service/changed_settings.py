"""Changes of the files that configure servers: what these broke, in files that were judged before (DIAG-11).

Such a change may affect every file of a server, which is started anew for it. So may a change of installed packages,
which stand here by the folder that they are in. What a file was under the old settings can only be known from before:
of one that nobody has judged by then, nothing is told. Nor is anything told where the settings are new, such as the
first database of compilers: what comes to light then was wrong all the time.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from pilotfish.model import AbsPath
from pilotfish.servers.inputs import InputEvidence
from pilotfish.service.diagnostics.file_states import FileStates, text_before
from pilotfish.service.diagnostics.runner import CheckRunner
from pilotfish.service.workspace import Workspace
from pilotfish.system.ownership import is_of_linked_worktree

MAX_FILES = 200
"""That are judged again after a change of settings, those that were used last."""

REWRITTEN = "(what it was is not known)"
"""In the place of the old text of a file that nobody has seen."""


class ChangedSettings:
    def __init__(self, runner: CheckRunner, states: FileStates) -> None:
        self._runner = runner
        self._states = states
        self._known: dict[tuple[str, AbsPath], InputEvidence] = {}
        self._renewed: dict[AbsPath, frozenset[AbsPath]] = {}
        """By root: the folders of packages that were found changed and that nobody was told of."""

    def learn(self) -> Mapping[tuple[str, AbsPath], InputEvidence]:
        """What each server goes by, and went by where it is being started anew: perhaps for the very change."""
        roots = self._runner.roots()
        found = self._runner.inputs()
        for key, inputs in found.items():
            if (before := self._known.get(key, inputs)) is not inputs:
                self._renewed[key[1]] = self._renewed.get(key[1], frozenset()) | inputs.take_packages(before)
        self._known = {key: inputs for key, inputs in (self._known | found).items() if key[1] in roots}
        return self._known

    def take_packages(self, is_meant: Callable[[AbsPath], bool]) -> dict[AbsPath, frozenset[AbsPath]]:
        """By root: the folders of installed packages that servers read, in which something was changed."""
        for (_, root), inputs in self.learn().items():
            if is_meant(root):
                self._renewed[root] = self._renewed.get(root, frozenset()) | inputs.take_packages()
        found = {root: folders for root, folders in self._renewed.items() if folders and is_meant(root)}
        self._renewed = {root: folders for root, folders in self._renewed.items() if not is_meant(root)}
        return found

    def configures(self, path: AbsPath) -> bool:
        """Whether a server goes by this file."""
        return bool(self._configured_by(path))

    def judged_by(self, changed: Iterable[AbsPath], workspace: Workspace) -> list[AbsPath]:
        """The files of a workspace that were judged by the servers that these files configure."""
        servers = sorted({one for path in changed for one in self._configured_by(path) if workspace.holds(one[1])})
        files = (file for one in servers for file in self._states.judged_by(*one))
        return [path for path in dict.fromkeys(files) if not is_of_linked_worktree(path, workspace.root)][:MAX_FILES]

    def rewritten(self) -> frozenset[AbsPath]:
        """Those that were there when servers started, and are another now."""
        found = (inputs.rewritten() for inputs in self.learn().values())
        return frozenset(path for path in found if path is not None)

    async def old_texts(
        self,
        workspace: Workspace,
        changed: Iterable[AbsPath],
        said: Mapping[AbsPath, str],
        rewritten: Collection[AbsPath],
    ) -> dict[AbsPath, str]:
        """Of these files, those that configure servers and were there before, with what they were.

        `rewritten`: what servers knew to be another, before they were started anew for it.
        """
        found = dict[AbsPath, str]()
        for path in changed:
            if path in rewritten or self.configures(path):
                known = said.get(path)
                text = known if known is not None else await text_before(self._states, workspace, path, "")
                text = text or (REWRITTEN if path in rewritten else None)
                found |= {path: text} if text else {}
        # What was changed earlier and is not judged yet lies between these and what files were before, too.
        earlier = {path: text for path, text in said.items() if found and text and self.configures(path)}
        return earlier | found

    def _configured_by(self, path: AbsPath) -> frozenset[tuple[str, AbsPath]]:
        """The servers, each with its root."""
        return frozenset(server for server, inputs in self.learn().items() if inputs.configures(path))
