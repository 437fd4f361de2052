"""The files of a project, the servers for questions that name none, and what a server has read of them.

For every use of something a server must know the whole project.
Some servers read every file below their root, some only what was opened and what that imports (`Completeness` in the
catalogue). Beside them the words of the project are asked which files mention the name. Where a server may not have
read such a file it is opened, so that the answer has its uses; what cannot be opened makes the answer partial, and is
named. Where the server has read everything, its answer stands: other mentions are comments, strings or other things of
the same name, and are only counted.

A question that names no file is for the servers of the files that mention its name, or of most files there are; those
that run already are asked in any case.
"""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack

import anyio
import anyio.to_thread
import msgspec
from msgspec import Raw, Struct

from pilotfish.client.session import Session
from pilotfish.errors import Code, Failure, Refused, Unavailable
from pilotfish.feedback.word_index import MAX_FILE_BYTES
from pilotfish.model import AbsPath
from pilotfish.operations.rows import ROWS, OperationRow
from pilotfish.paths import distance, is_inside, shown_path
from pilotfish.policy.boundary import Want, admit
from pilotfish.pool.plan import Running
from pilotfish.protocol.codec import Malformed, decode, decode_items
from pilotfish.protocol.notebooks import code_bytes, is_notebook
from pilotfish.protocol.uris import uri_of
from pilotfish.protocol.wire import WirePlace, WirePosition, WireRange, WireSymbol
from pilotfish.servers.resolve import Candidate
from pilotfish.servers.roots import Search
from pilotfish.servers.spec import Completeness, LoadedFiles, ProjectRequests, Role
from pilotfish.servers.tree import DiskTree
from pilotfish.service.diagnostics.ledger import FileToSend
from pilotfish.service.diagnostics.project_words import ProjectWords
from pilotfish.service.use_server import Access
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

MAX_KINDS = 3
"""Kinds of files whose servers are started for a question that names no file."""

MAX_ROOTS = 8
"""Roots of one kind for which a server is started: the packages of a repository."""

MAX_LOOKED_AT = 200
"""Files of one kind whose root is looked for."""


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
    def __init__(self, access: Access, words: ProjectWords) -> None:
        self._pool = access.pool
        self._texts = access.texts
        self._ledgers = access.ledgers
        self._words = words

    async def mentioning(
        self, workspace: Workspace, root: AbsPath, name: str, extensions: Collection[str]
    ) -> frozenset[AbsPath] | None:
        """The files of the workspace that mention a name as a whole word; None when that is not known."""
        top = workspace.root if is_inside(root, workspace.root) else root
        found = await self._words.mentions(top, {name}, extensions, INDEX_SECONDS)
        return frozenset(found.files) if found is not None and found.complete else None

    async def sources(self, workspace: Workspace, extensions: Collection[str] = ("",)) -> frozenset[AbsPath] | None:
        """Every source file of the workspace with one of these extensions; None when that is not known."""
        found = await self._words.files(workspace.root, INDEX_SECONDS)
        wanted = tuple(extensions)
        return None if found is None else frozenset(path for path in found.files if path.endswith(wanted))

    async def main_servers(self, workspace: Workspace, name: str | None) -> tuple[Candidate, ...]:
        """Of the files that mention a name, or of every source file where none does, or nothing is named.

        Raises `Unavailable` when no file of the workspace has a server.
        """
        named = None if name is None else await self.mentioning(workspace, workspace.root, name, ("",))
        served = frozenset(path for path in named or () if is_code(path, workspace))
        files = served or await self.sources(workspace) or frozenset()
        found: dict[tuple[str, AbsPath], Candidate] = {}
        for one in (*_servers_of_kinds(files, workspace), *self.running(workspace)):
            found.setdefault((one.spec.id, one.root), one)
        if not found:
            raise _why_none(files, workspace)
        return tuple(found.values())

    async def offered(self, workspace: Workspace) -> tuple[OperationRow, ...]:
        """The operations that some main server of this workspace may answer; all where there is no server yet."""
        servers = _servers_of_kinds(await self.sources(workspace) or (), workspace)
        lacks = [one.spec.lacks for one in servers if one.spec.rank.role is Role.MAIN]
        return tuple(
            row
            for row in ROWS.values()
            if not lacks
            or row.request is None
            or any((row.request.prepare or row.request.method) not in lacking for lacking in lacks)
        )

    def running(self, workspace: Workspace) -> tuple[Candidate, ...]:
        """The servers that run for this workspace."""
        return tuple(
            Candidate(workspace.specs[key.server], key.root, "")
            for key, entry in self._pool.entries().items()
            if isinstance(entry.slot, Running) and key.server in workspace.specs and workspace.holds(key.root)
        )

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
            language = language_at(session, workspace, path)
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


def language_at(session: Session, workspace: Workspace, path: AbsPath) -> str | None:
    """The language id of a file for this server; None when it does not serve such files."""
    open_as = session.documents.language_id(path)
    if open_as is not None:
        return open_as
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
    by_path = re.compile(rule.skipped_paths) if rule.skipped_paths else None
    by_line = re.compile(rule.skipped_lines.encode(), re.MULTILINE) if rule.skipped_lines else None
    return {
        path
        for path in paths
        if not is_inside(path, root)
        or (by_path is not None and by_path.search(os.path.relpath(path, root)))
        or (by_line is not None and by_line.search(head_of(path, MAX_HEAD_BYTES)))
    }


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


# --- Main servers -----------------------------------------------------------------------------------------------------


def _servers_of_kinds(files: Iterable[AbsPath], workspace: Workspace) -> list[Candidate]:
    """The servers of the most frequent kinds of files that have one, most frequent first."""
    kinds: dict[str, list[AbsPath]] = {}
    for path in sorted(files):
        if kind := os.path.splitext(path)[1]:
            kinds.setdefault(kind, []).append(path)
    found: dict[tuple[str, AbsPath], Candidate] = {}
    taken = 0
    for paths in sorted(kinds.values(), key=len, reverse=True):
        of_kind: dict[tuple[str, AbsPath], Candidate] = {}
        for path in paths[:MAX_LOOKED_AT]:
            for one in workspace.servers_for(path).servers:
                if one.spec.serves_code and len(of_kind) < MAX_ROOTS:
                    of_kind.setdefault((one.spec.id, one.root), one)
        found |= of_kind
        taken += bool(of_kind)
        if taken == MAX_KINDS:
            break
    return list(found.values())


def _why_none(files: Iterable[AbsPath], workspace: Workspace) -> Unavailable:
    """What the main language of the files lacks, and how to get it."""
    missing = Counter[str]()
    reasons: dict[str, Unavailable] = {}
    for path in sorted(files)[:MAX_LOOKED_AT]:
        if (one := workspace.servers_for(path).missing) is not None:
            missing[one.spec.id] += 1
            if one.spec.id not in reasons:
                reasons[one.spec.id] = workspace.why_unavailable(one)
    if missing:
        return reasons[min(missing, key=lambda server: (workspace.specs[server].auxiliary, -missing[server]))]
    message = "No language server is installed for the files of this workspace."
    return Unavailable(Code.SERVER_MISSING, message, hint="pilotfish servers lists what could be installed.")


def is_code(path: AbsPath, workspace: Workspace) -> bool:
    return any(one.spec.serves_code for one in workspace.servers_for(path).servers)


# --- What a server says about projects --------------------------------------------------------------------------------

# By `workspace/executeCommand`; the catalogue names the requests. The only shape so far is that of tsserver: a body,
# 1-based lines, 1-based UTF-16 offsets, kinds as words.

COMMAND = "workspace/executeCommand"

_KINDS = {
    "module": 2, "class": 5, "local class": 5, "method": 6, "property": 7, "accessor": 7, "getter": 7, "setter": 7,
    "constructor": 9, "enum": 10, "interface": 11, "type": 11, "function": 12, "local function": 12, "var": 13,
    "let": 13, "local var": 13, "const": 14, "alias": 13, "enum member": 22,
}  # fmt: skip
"""The protocol's number of each kind of tsserver."""

_FUNCTIONS = frozenset({"function", "local function", "method", "constructor", "getter", "setter"})
_VARIABLES = frozenset({"var", "let", "const", "local var", "parameter"})


class _Place(Struct, frozen=True):
    line: int
    offset: int


class _Found(Struct, frozen=True, rename="camel"):
    name: str
    kind: str
    file: str
    start: _Place
    end: _Place
    container_name: str | None = None
    container_kind: str | None = None

    @property
    def is_local(self) -> bool:
        return self.kind in _VARIABLES and self.container_kind in _FUNCTIONS


class _Project(Struct, frozen=True, rename="camel"):
    file_names: tuple[str, ...] = ()


class _Reply(Struct, frozen=True):
    success: bool = True
    body: Raw = Raw(b"null")


async def files_of_project(session: Session, requests: ProjectRequests, path: AbsPath) -> frozenset[AbsPath]:
    """The files of the project that a file belongs to; none where the server does not say."""
    try:
        answer = await _asked(session, requests, requests.files, {"file": path, "needFileNameList": True})
        project = decode(decode(answer, _Reply).body, _Project)
    except (Failure, Malformed):
        return frozenset()
    return frozenset(AbsPath(name) for name in project.file_names)


async def symbols_of_projects(session: Session, requests: ProjectRequests, query: str) -> Raw:
    """The symbols of every open project, as `workspace/symbol` has them. Raises a `Failure`, or `Malformed`."""
    answer = await _asked(session, requests, requests.symbols, {"searchValue": query, "maxResultCount": 1000})
    found = decode_items(decode(answer, _Reply).body, _Found)
    return Raw(msgspec.json.encode([_symbol(one) for one in found.items if not one.is_local]))


async def _asked(session: Session, requests: ProjectRequests, name: str, arguments: object) -> Raw:
    return await session.request(COMMAND, {"command": requests.command, "arguments": [name, arguments]})


def _symbol(found: _Found) -> WireSymbol:
    place = WireRange(_position(found.start), _position(found.end))
    return WireSymbol(
        name=found.name,
        kind=_KINDS.get(found.kind, 13),
        location=WirePlace(uri=uri_of(AbsPath(found.file)), range=place),
        container_name=found.container_name,
    )


def _position(place: _Place) -> WirePosition:
    return WirePosition(place.line - 1, place.offset - 1)
