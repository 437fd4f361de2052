"""Uses in components: `.svelte`, `.astro` and `.vue` files import those of TypeScript, whose server may not read them.

Where such a file mentions the name that a question over the project is about, its own servers are asked what is meant
there, and if it is the same symbol, for its uses. What could not be asked is named, and the answer is partial.
"""

from collections.abc import Sequence

from msgspec import Struct

from pilotfish.api.answers import error_of
from pilotfish.api.questions import Operation, Question
from pilotfish.errors import Failure
from pilotfish.model import AbsPath, Position
from pilotfish.operations.fallback import no_server_for
from pilotfish.operations.locate import mentions, name_of
from pilotfish.policy.boundary import Want, admit
from pilotfish.servers.resolve import Candidate
from pilotfish.service.diagnostics.missing_imports import component_servers
from pilotfish.service.questions.completeness import ProjectFiles, listed
from pilotfish.service.questions.subject import MAX_PLACES, AskQuestion, Subject, require_ok
from pilotfish.service.texts import Texts
from pilotfish.service.workspaces import Visit

MAX_COMPONENTS = 30
"""Components that one question is asked in."""

Meaning = frozenset[tuple[str, int, int]]
"""Where a name is defined: file, line and character."""


class ComponentUse(Struct, frozen=True):
    """A place in a component that means what a question is about, and who can be asked there."""

    path: AbsPath
    subject: Subject
    servers: tuple[Candidate, ...]


class ComponentUses(Struct, frozen=True):
    uses: tuple[ComponentUse, ...] = ()
    unread: tuple[str, ...] = ()
    """Why other components that mention the name are not in the answer."""


def not_included(name: str, paths: Sequence[AbsPath], why: str, root: AbsPath) -> str:
    return f"{name} in {listed(paths, root)} is not included: {why or 'its servers do not offer this'}"


class Components:
    def __init__(self, texts: Texts, files: ProjectFiles, ask: AskQuestion) -> None:
        """`ask`: answers what a place means."""
        self._texts = texts
        self._files = files
        self._ask = ask

    async def uses(
        self,
        name: str,
        subject: Subject,
        servers: Sequence[Candidate],
        visit: Visit,
    ) -> ComponentUses:
        """Where components mean the symbol at a place of a file, which these servers were asked about."""
        workspace = visit.workspace
        read = {extension for one in servers for extension in one.spec.extensions}
        others = {one for spec in component_servers(workspace, read) for one in spec.files.extensions} - read
        if not name or subject.path is None or subject.position is None or not others:
            return ComponentUses()
        found = sorted(await self._files.mentioning(workspace, workspace.root, name, others) or ())
        if not found:
            return ComponentUses()
        meant = await self._meaning(subject.path, subject.position, visit)
        uses, unread = list[ComponentUse](), dict[str, list[AbsPath]]()
        if len(found) > MAX_COMPONENTS:
            unread[f"{len(found)} components mention it"] = found[MAX_COMPONENTS:]
        for path in found[:MAX_COMPONENTS]:
            try:
                uses += await self._use(path, name, meant, visit)
            except Failure as failure:
                unread.setdefault(error_of(failure).message, []).append(path)
        reasons = tuple(not_included(name, paths, why, workspace.root) for why, paths in unread.items())
        return ComponentUses(tuple(uses), reasons)

    async def _use(self, path: AbsPath, name: str, meant: Meaning, visit: Visit) -> list[ComponentUse]:
        """The first place of a component that means the symbol; raises a `Failure` where nobody can say."""
        workspace = visit.workspace
        choice = workspace.servers_for(path)
        if not choice.servers:
            raise workspace.why_unavailable(choice.expected) if choice.expected else no_server_for(path)
        text = await self._texts.text(admit(path, workspace.boundary, Want.PLACE).path)
        for place in mentions(text, name_of(name))[:MAX_PLACES]:
            if meant & await self._meaning(path, place, visit):
                return [ComponentUse(path, Subject(path, text, place), choice.servers)]
        return []

    async def _meaning(self, path: AbsPath, place: Position, visit: Visit) -> Meaning:
        line, character = place.line + 1, place.character + 1
        there = Question(operation=Operation.DEFINITION, file_path=path, line=line, character=character)
        answer = await self._ask(there, visit)
        require_ok(answer)
        return frozenset((one.path, one.line, one.character) for one in answer.data or ())
