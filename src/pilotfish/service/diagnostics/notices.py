"""Why a file has no verdict, said once: silence must mean that an edit is clean (FMT-8, TRUST-6).

A server that is missing, failed or withheld is named once per client session and kind of files, and the reason once; a
verdict that is only late is mentioned once per file, until the file has one; that files outside of the workspace are
not checked, once.
"""

import os
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from pilotfish.api.answers import OURSELVES, Answer, Error, error_of, error_text
from pilotfish.config.trust import trust_advice
from pilotfish.errors import Code
from pilotfish.feedback.text import named
from pilotfish.model import AbsPath
from pilotfish.paths import ancestors
from pilotfish.servers.spec import Role
from pilotfish.servers.toolchains import Shortfall
from pilotfish.service.diagnostics.verdicts import WITHOUT_SERVER, FileVerdict, Outcome
from pilotfish.service.recent import Recent
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession, Visit
from pilotfish.system.ownership import top_of
from pilotfish.system.watching.ignoring import is_ignored, rules_above

MAX_SESSIONS = 1_000
"""Client sessions whose notices are remembered; one that fell out is told again."""


class Notices:
    def __init__(self) -> None:
        self._said: Recent[str, set[str]] = Recent(MAX_SESSIONS)

    def take(self, visit: Visit, verdicts: Sequence[FileVerdict]) -> tuple[str, ...]:
        """What has not been said yet about these files, in one line each; afterwards it has been."""
        said = self._said_to(visit.client)
        return _unsaid(said, _notices(visit.workspace, verdicts, said))

    def answered(self, client: ClientSession, verdicts: Sequence[FileVerdict]) -> None:
        """These files have a verdict now, whoever waited for it: when the next one is late, that is said again."""
        said = self._said_to(client)
        for verdict in verdicts:
            if verdict.answered:
                said.discard(f"late {verdict.path}")

    def take_restrictions(self, visit: Visit, verdicts: Sequence[FileVerdict]) -> tuple[str, ...]:
        """The same about servers that run restricted. They have judged the files: this alone is no reason to speak."""
        workspace, told = visit.workspace, list[tuple[str, str]]()
        for outcome in (outcome for verdict in verdicts for outcome in verdict.outcomes):
            restricted = workspace.restriction(workspace.specs[outcome.server])
            if outcome.diagnostics is not None and restricted is not None:
                why = f"{outcome.server} runs restricted, because this workspace is not trusted: {restricted.reason}."
                told.append((f"restricted {outcome.server}", f"{why} {trust_advice(workspace.root)}"))
        return _unsaid(self._said_to(visit.client), told)

    def is_first(self, client: ClientSession, packages: frozenset[str]) -> bool:
        """Whether one of these packages is missing that this client session has not heard of."""
        said = self._said_to(client)
        unsaid = {f"package {package}" for package in packages} - said
        said |= unsaid
        return bool(unsaid)

    def take_lacking(self, client: ClientSession, found: Iterable[Shortfall]) -> tuple[str, ...]:
        """What a project lacks, without which its files are not judged as they should be."""
        left_out = "Where a header is not found, undeclared names are not told as errors. "
        told = ((str(one), f"{left_out if one.hides_uses else ''}{one}") for one in found if not one.of_packages)
        return _unsaid(self._said_to(client), told)

    def take_lines(self, client: ClientSession, lines: Iterable[str]) -> tuple[str, ...]:
        """Those of these lines that have not been said yet."""
        return _unsaid(self._said_to(client), ((line, line) for line in lines))

    def reason(self, client: ClientSession, answer: Answer[Any]) -> str:
        """Why an answer is not fresh, where a server that cannot judge is explained only if it has not been yet."""
        said, reason = self._said_to(client), answer.meta.reason or ""
        for error in answer.errors:
            of_server, text = f"none {error.server_id} ", error_text(error)
            if not is_lacking(error) or text not in reason:
                continue
            if any(one.startswith(of_server) for one in said):
                reason = reason.replace(text, in_few_words(error))
            said.add(of_server)
        return reason

    def _said_to(self, client: ClientSession) -> set[str]:
        said = self._said.get(client.id)
        if said is None:
            said = set[str]()
            self._said.put(client.id, said)
        return said


def is_lacking(error: Error) -> bool:
    """Whether a server is missing or withheld: it cannot answer, however long one waits."""
    return error.code in WITHOUT_SERVER and error.server_id != OURSELVES


def in_few_words(error: Error) -> str:
    """What has to do where the reason is told elsewhere, or was told before: an answer stays partial without it."""
    return f"not checked by {error.server_id}"


def _unsaid(said: set[str], notices: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    unsaid = list[str]()
    for key, text in notices:
        if key not in said:
            said.add(key)
            unsaid.append(text)
    return tuple(unsaid)


def _notices(
    workspace: Workspace, verdicts: Sequence[FileVerdict], said: AbstractSet[str]
) -> Iterable[tuple[str, str]]:
    for verdict in verdicts:
        for outcome in verdict.outcomes:
            if outcome.diagnostics is None:
                notice = _without_verdict(workspace, verdict, outcome, said)
                if notice[0] in said or not (_lacks_server(outcome) and _is_build_result(verdict.path)):
                    yield notice
        if verdict.refused and verdict.refused.code is Code.OUTSIDE_WORKSPACE and _is_code(workspace, verdict.path):
            where = f"it is outside of the workspace {workspace.root}, and only files in there are"
            yield "outside", f"{named(verdict.path, workspace.root)} was not checked: {where}."


def _lacks_server(outcome: Outcome) -> bool:
    return outcome.failure is not None and outcome.failure.code in WITHOUT_SERVER


def _is_build_result(path: AbsPath) -> bool:
    """Whether it lies below a folder that git ignores: what a tool has made is nobody's to check."""
    folder = AbsPath(os.path.dirname(path))
    rules = rules_above(folder)
    return any(is_ignored(AbsPath(one), rules) for one in ancestors(folder, top_of(folder)))


def _is_code(workspace: Workspace, path: AbsPath) -> bool:
    """Whether a server would be missed: notes, data and scripts that lie anywhere are no reason to speak."""
    kind, specs = os.path.splitext(path)[1], workspace.specs.values()
    able = [one for one in specs if kind in one.files.extensions and one.serves_code and not one.disabled]
    return any(one.rank.named or (one.rank.role is Role.MAIN and not one.auxiliary) for one in able)


def _without_verdict(
    workspace: Workspace, verdict: FileVerdict, outcome: Outcome, said: AbstractSet[str]
) -> tuple[str, str]:
    failure = outcome.failure
    if failure is None or failure.code is Code.REQUEST_TIMEOUT:
        path = named(verdict.path, workspace.root)
        return f"late {verdict.path}", f"{path} is not checked yet: {outcome.server} has not answered in time."
    kind = os.path.splitext(verdict.path)[1] or os.path.basename(verdict.path)
    served = workspace.specs[outcome.server].files.extensions
    if served and kind.startswith(".") and kind not in served:
        # One that imports files of that server.
        kind = served[0]
    text = error_of(failure).message.replace("\n", " ")
    if _lacks_server(outcome):
        of_server = f"none {outcome.server} "
        # Of further kinds of files, the reason is known.
        why = " either." if any(one.startswith(of_server) for one in said) else f": {text}"
        return f"{of_server}{kind}", f"{kind} files are not checked by {outcome.server}{why}"
    return f"failed {outcome.server}", f"{outcome.server} does not check files: {text}"
