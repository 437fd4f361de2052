"""Whether a server knows the whole project when it is asked for every use of something.

Some servers read every file below their root, some only what was opened and what that imports (`Completeness` in the
catalogue). Beside them the words of the project are asked which files mention the name. Where a server may not have
read such a file it is opened, so that the answer has its uses; what cannot be opened makes the answer partial, and is
named. Where the server has read everything, its answer stands: other mentions are comments, strings or other things of
the same name, and are only counted.
"""

import os
import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack

import anyio
import anyio.to_thread
from msgspec import Struct

from pilotfish.client.session import Session
from pilotfish.errors import Refused
from pilotfish.feedback.word_index import MAX_FILE_BYTES
from pilotfish.model import AbsPath
from pilotfish.paths import distance, is_inside, shown_path
from pilotfish.policy.boundary import Want, admit
from pilotfish.protocol.notebooks import code_bytes, is_notebook
from pilotfish.servers.resolve import Candidate
from pilotfish.servers.roots import Search
from pilotfish.servers.spec import Completeness, LoadedFiles
from pilotfish.servers.tree import DiskTree
from pilotfish.service.diagnostics.ledger import FileToSend
from pilotfish.service.diagnostics.ledgers import Ledgers
from pilotfish.service.diagnostics.project_words import ProjectWords
from pilotfish.service.questions.project_requests import files_of_project
from pilotfish.service.texts import Texts
from pilotfish.service.workspace import Workspace
from pilotfish.system.regular_files import read_regular

INDEX_SECONDS = 20.0
"""How long a question may wait for the words of a project: 50,000 files take some ten seconds."""

MAX_OPENED = 60
"""Files that one question opens at one server."""

LOADING_SHARE = 0.5
"""The part of a question's time limit that may pass opening files."""

MAX_LISTED = 5
"""Files that an answer names; the others are counted."""

MAX_HEAD_BYTES = 16 * 1024
"""Of a file in which a build condition is looked for."""


class SearchedFiles(Struct, frozen=True):
    """What one server had read when it was asked about a name."""

    name: str | None
    mentioning: frozenset[AbsPath] = frozenset()
    """Files of the server's languages that mention the name; all of them where there is no name."""
    unloaded: frozenset[AbsPath] = frozenset()
    """Those that it is not known to have read."""
    indexed: bool = True
    """False: which files mention the name is not known."""
    is_whole: bool = True
    """Whether it reads every file of the project by itself."""
    lacks: tuple[str, ...] = ()
    """Files of which the project would need one, so that the server knows what belongs to it."""

    def caveat(self, server: str, answered: Collection[AbsPath], root: AbsPath) -> str | None:
        """Why an answer with results in these files may not be whole."""
        lacks = f"no {' or '.join(self.lacks)}: only opened files were searched" if self.lacks else None
        if not self.indexed:
            return None if self.is_whole else lacks or f"{server} may not have read every file of the project"
        missing = sorted(self.unloaded.difference(answered))
        if not missing:
            return None
        if self.name is None:
            count = f"{len(missing)} of {len(self.mentioning)} source files were not searched"
            return f"{lacks}; {count}" if lacks else count
        also = f"also mentioned in {listed(missing, root)}, which {server} has not loaded"
        return f"{lacks}; {also}" if lacks else also

    def unknown(self, server: str, root: AbsPath) -> str | None:
        """What to say where the server found nothing, not even the declaration."""
        if not self.mentioning or self.name is None:
            return None
        return f"{server} does not know what {self.name} is; it is mentioned in {listed(sorted(self.mentioning), root)}"

    def other_mentions(self, answered: Collection[AbsPath]) -> int:
        """Files that mention the name, and have no result although they were searched."""
        return 0 if self.name is None else len(self.mentioning - self.unloaded - set(answered))


def listed(paths: Sequence[AbsPath], root: AbsPath) -> str:
    """The first of some files, and how many others there are."""
    shown = ", ".join(shown_path(path, root) for path in paths[:MAX_LISTED])
    return f"{shown} and {len(paths) - MAX_LISTED} more" if len(paths) > MAX_LISTED else shown


class ProjectFiles:
    def __init__(self, texts: Texts, ledgers: Ledgers, words: ProjectWords) -> None:
        self._texts = texts
        self._ledgers = ledgers
        self._words = words

    async def mentioning(
        self, workspace: Workspace, root: AbsPath, name: str, extensions: Collection[str]
    ) -> frozenset[AbsPath] | None:
        """The files of the workspace that mention a name as a whole word; None when that is not known."""
        found = await self._words.mentions(self._top(workspace, root), {name}, extensions, INDEX_SECONDS)
        return frozenset(found.files) if found is not None and found.complete else None

    async def sources(self, workspace: Workspace, extensions: Collection[str] = ("",)) -> frozenset[AbsPath] | None:
        """Every source file of the workspace with one of these extensions; None when that is not known."""
        found = await self._words.files(workspace.root, INDEX_SECONDS)
        wanted = tuple(extensions)
        return None if found is None else frozenset(path for path in found.files if path.endswith(wanted))

    async def load(
        self,
        session: Session,
        candidate: Candidate,
        workspace: Workspace,
        name: str | None,
        near: AbsPath | None,
        held: ExitStack,
    ) -> SearchedFiles:
        """Open the files that the server may not have read and that mention the name; `held` keeps them open."""
        rule, extensions = candidate.spec.completeness, candidate.spec.extensions
        lacks, is_whole = _lacking(rule, candidate.root), _is_whole(rule, candidate.root)
        if name is None:
            found = await self.sources(workspace, extensions)
        else:
            found = await self.mentioning(workspace, candidate.root, name, extensions)
        if found is None:
            return SearchedFiles(name, indexed=False, is_whole=is_whole, lacks=lacks)
        ordered = sorted(found, key=lambda path: (distance(path, near or candidate.root), path))
        if is_whole:
            if not session.documents.paths:
                # A server without a document has no project yet.
                await self._open(session, workspace, ordered[:1], held)
            # Servers read no notebook by themselves, or with other lines than they are sent.
            notebooks = [path for path in ordered if is_notebook(path)]
            await self._open(session, workspace, notebooks[:MAX_OPENED], held)
            unloaded = await anyio.to_thread.run_sync(_skipped, rule, candidate.root, tuple(ordered))
            unloaded |= set(notebooks)
            unloaded -= set(session.documents.paths)
            if name is not None and rule.types_in_strings:
                in_strings = await anyio.to_thread.run_sync(_in_strings, rule.types_in_strings, name, ordered)
                unloaded |= set(in_strings) - await self._checked(session, workspace, in_strings, held)
        else:
            unloaded = found - await self._loaded(session, candidate, workspace, ordered, near, held)
        return SearchedFiles(name, found, frozenset(unloaded), is_whole=is_whole, lacks=lacks)

    async def _loaded(
        self,
        session: Session,
        candidate: Candidate,
        workspace: Workspace,
        wanted: Sequence[AbsPath],
        near: AbsPath | None,
        held: ExitStack,
    ) -> set[AbsPath]:
        """Open what is wanted and not loaded, nearest first; returns what is loaded then."""
        loaded = set(session.documents.paths)
        requests = candidate.spec.completeness.requests
        with anyio.move_on_after(session.request_seconds * LOADING_SHARE):
            if requests is not None and near is not None and near in loaded:
                loaded |= await files_of_project(session, requests, near)
            opened = 0
            for path in wanted:
                if path in loaded or opened == MAX_OPENED:
                    continue
                if await self._open(session, workspace, (path,), held):
                    opened += 1
                    loaded.add(path)
                    if requests is not None:
                        loaded |= await files_of_project(session, requests, path)
        return loaded

    async def _checked(
        self, session: Session, workspace: Workspace, paths: Sequence[AbsPath], held: ExitStack
    ) -> set[AbsPath]:
        """Have these files checked by the server; returns those that were."""
        checked = set[AbsPath]()
        with anyio.move_on_after(session.request_seconds * LOADING_SHARE):
            for path in paths[:MAX_OPENED]:
                if await self._open(session, workspace, (path,), held) and session.supports("textDocument/diagnostic"):
                    await session.pull(path)
                    checked.add(path)
        return checked

    async def _open(self, session: Session, workspace: Workspace, paths: Iterable[AbsPath], held: ExitStack) -> bool:
        ledger, is_open = self._ledgers.of(session), False
        for path in paths:
            language = _language(session, workspace, path)
            if language is None:
                continue
            try:
                admitted = admit(path, workspace.boundary, Want.PLACE).path
                text = (await self._texts.text(admitted)).string
            except Refused:
                continue
            held.enter_context(ledger.using(path))
            is_old = self._ledgers.is_older(path, session)
            ledger.send(session, FileToSend(path, language, text, is_old=is_old))
            is_open = True
        return is_open

    @staticmethod
    def _top(workspace: Workspace, root: AbsPath) -> AbsPath:
        return workspace.root if is_inside(root, workspace.root) else root


def _language(session: Session, workspace: Workspace, path: AbsPath) -> str | None:
    servers = workspace.servers_for(path).servers
    return next((one.language_id for one in servers if one.spec.id == session.server), None)


def _lacking(rule: Completeness, root: AbsPath) -> tuple[str, ...]:
    return rule.needs if rule.needs and not Search(DiskTree(), [root]).has(root, rule.needs) else ()


def _is_whole(rule: Completeness, root: AbsPath) -> bool:
    if rule.loads is not LoadedFiles.PROJECT or _lacking(rule, root):
        return False
    return not Search(DiskTree(), [root]).has(root, rule.narrowed_by)


def _skipped(rule: Completeness, root: AbsPath, paths: Sequence[AbsPath]) -> set[AbsPath]:
    """The files that a server which reads the project may leave out. Blocking: for a thread."""
    outside = {path for path in paths if not is_inside(path, root)}
    by_path = re.compile(rule.skipped_paths) if rule.skipped_paths else None
    by_line = re.compile(rule.skipped_lines.encode(), re.MULTILINE) if rule.skipped_lines else None
    inside = [path for path in paths if path not in outside]
    named = {path for path in inside if by_path is not None and by_path.search(os.path.relpath(path, root))}
    conditional = {
        path
        for path in inside
        if by_line is not None and path not in named and by_line.search(head_of(path, MAX_HEAD_BYTES))
    }
    return outside | named | conditional


def _in_strings(before: str, name: str, paths: Sequence[AbsPath]) -> list[AbsPath]:
    """The files in which a name stands in a string that is a type, after what is matched by `before`.

    Blocking: for a thread.
    """
    word = re.escape(name.encode(errors="surrogateescape"))
    string = rb"""\s*(["'])(?:[\w.\[\], |]*[^\w"'])?%s(?:[^\w"'][\w.\[\], |]*)?\1""" % word
    pattern = re.compile(b"(?:" + before.encode() + b")" + string)
    return [path for path in paths if pattern.search(head_of(path, MAX_FILE_BYTES))]


def head_of(path: AbsPath, most: int) -> bytes:
    """The first bytes of a file; nothing where it cannot be read. Blocking: for a thread."""
    # A notebook is read as a whole, or not at all.
    content = read_regular(path, MAX_FILE_BYTES if is_notebook(path) else most, follows=False) or b""
    return code_bytes(path, content)[:most]
