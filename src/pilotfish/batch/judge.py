"""One warm copy of a workspace, and the patches that are judged in it, one after the other."""

import itertools
import os
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from pilotfish.api.answers import State
from pilotfish.batch.copies import DiffReader
from pilotfish.batch.patches import Judgement, Patch, judgement_of, unjudged
from pilotfish.errors import Code, Failure, Refused
from pilotfish.model import AbsPath, Severity
from pilotfish.policy.boundary import Want, admit
from pilotfish.service.diagnostics.affected import EditedText
from pilotfish.service.diagnostics.verdicts import milliseconds_since
from pilotfish.service.patch_checks import BaseStates, CopyMoves, PatchCheck
from pilotfish.service.service import Service, System
from pilotfish.service.workspaces import ClientSession, Visit
from pilotfish.system.clock import current_time
from pilotfish.system.real_path import real_path

_numbers = itertools.count(1)
"""Tells the judges of one process apart."""


class JudgeSettings(Struct, frozen=True):
    """What judges of one batch have in common; can be sent to another machine."""

    root: AbsPath
    """The workspace that is copied."""
    worst: Severity = Severity.ERROR
    """The least severity that counts."""
    host: str | None = None
    git: str | None = None
    is_long: bool = False
    """So many patches are known to come that most files of the base will be needed."""


@asynccontextmanager
async def open_judge(
    settings: JudgeSettings, shell: System, states: BaseStates, fill: Callable[[AbsPath], None]
) -> AsyncGenerator["PatchJudge"]:
    """A judge with a copy of its own, which `fill` makes in an empty folder; at the end nothing of it is left."""
    with tempfile.TemporaryDirectory(prefix="pilotfish-batch-", ignore_cleanup_errors=True) as made:
        folder = real_path(made)
        # Servers name the project by its folder.
        copy = AbsPath(os.path.join(folder, "copy", os.path.basename(settings.root) or "root"))
        os.makedirs(copy)
        await anyio.to_thread.run_sync(fill, copy)
        client = ClientSession(
            f"batch {os.getpid()}.{next(_numbers)}", copy, copy, settings.host, copy_of=settings.root
        )
        async with Service(shell).running() as service:
            try:
                yield PatchJudge(service, client, settings, states, AbsPath(folder))
            finally:
                service.end(client)


class JudgedPatch(Struct, frozen=True):
    """A judgement; `may_pass`: what is missing in it may be there in another try."""

    judgement: Judgement
    may_pass: bool = False


class PatchJudge:
    def __init__(
        self, service: Service, client: ClientSession, settings: JudgeSettings, states: BaseStates, folder: AbsPath
    ) -> None:
        self._service = service
        self._client = client
        self._settings = settings
        self._states = states
        self._files = CopiedFiles()
        self._diffs: DiffReader | None = None
        self._folder = folder

    async def begin(self, patch: Patch) -> None:
        """Start the servers for this patch and have what is needed of the base first; whatever fails, `judge` says."""
        with suppress(Failure, OSError):
            await (await self._check_of(patch)).begin()

    async def judge(self, patch: Patch) -> JudgedPatch:
        """What the patch does; a refusal and a failure of a server are in the judgement."""
        started = current_time()
        try:
            verdict = await (await self._check_of(patch)).judge()
        except Failure as failure:
            return JudgedPatch(unjudged(patch, self._placed(failure.message), milliseconds_since(started)))
        except OSError as error:
            return JudgedPatch(unjudged(patch, f"the patch could not be written: {error}", milliseconds_since(started)))
        verdict = replace(verdict, reason=verdict.reason and self._placed(verdict.reason))
        judgement = judgement_of(patch, verdict, self._settings.worst, milliseconds_since(started))
        return JudgedPatch(judgement, verdict.may_pass and verdict.state is not State.FRESH)

    async def _check_of(self, patch: Patch) -> PatchCheck:
        workspace = self._service.workspaces.of(self._client)
        texts = patch.files if patch.diff is None else await self._applied(patch.diff)
        proposed = dict[AbsPath, str | None]()
        for name, text in texts.items():
            if os.path.isabs(name):
                raise Refused(Code.OUTSIDE_WORKSPACE, f"the path of a patch is relative to the workspace: {name}")
            # By real path inside the copy; refused is what leads out of it, or may not be written.
            proposed[admit(name, workspace.boundary, Want.TARGET).path] = text
        edits = list[EditedText]()
        for path, text in proposed.items():
            before = await anyio.to_thread.run_sync(self._files.base_text, path)
            if before is not None or text is not None:
                edits.append(EditedText(path, before, text))
        moves, visit = CopyMoves(partial(self._move, {}), partial(self._move, proposed)), Visit(self._client, workspace)
        with_hints = self._settings.worst is Severity.HINT
        return self._service.patch_checks.of(visit, edits, moves, self._states, with_hints=with_hints)

    def _placed(self, message: str) -> str:
        """Of the copy nobody needs to know."""
        return message.replace(self._client.root, self._settings.root)

    async def _move(self, texts: Mapping[AbsPath, str | None]) -> None:
        await anyio.to_thread.run_sync(self._files.move, texts)

    async def _applied(self, diff: str) -> Mapping[str, str | None]:
        if self._settings.git is None:
            raise Refused(Code.INVALID_INPUT, "git was not found, so no diff can be applied")
        if self._diffs is None:
            await self._move({})
            reader = DiffReader(self._settings.git, self._folder)
            await anyio.to_thread.run_sync(reader.begin, self._client.root)
            self._diffs = reader
        return await anyio.to_thread.run_sync(self._diffs.files, diff)


class CopiedFiles:
    """The files of a copy that patches have changed, and what they were at the base. Blocking."""

    def __init__(self) -> None:
        self._base: dict[AbsPath, bytes | None] = {}
        self._now: dict[AbsPath, str | None] = {}
        """What differs from the base."""
        self._made: set[str] = set()
        """Folders that are not there at the base."""

    def base_text(self, path: AbsPath) -> str | None:
        """None where it is not there."""
        content = self._at_base(path)
        return None if content is None else content.decode(errors="replace")

    def move(self, texts: Mapping[AbsPath, str | None]) -> None:
        """Write what differs between what is there and the base with these texts."""
        changes: dict[AbsPath, bytes | None] = {}
        for path in self._now.keys() - texts.keys():
            changes[path] = self._at_base(path)
            del self._now[path]
        for path, text in texts.items():
            content = None if text is None else text.encode(errors="surrogateescape")
            is_there = path in self._now and self._now[path] == text
            if not is_there and (path in self._now or content != self._at_base(path)):
                self._at_base(path)
                self._now[path] = text
                changes[path] = content
        # What goes makes room: a file for a folder of its name, and a folder for a file.
        for path, content in sorted(changes.items(), key=lambda change: change[1] is not None):
            self._write(path, content)

    def _at_base(self, path: AbsPath) -> bytes | None:
        if path not in self._base:
            try:
                with open(path, "rb") as file:
                    self._base[path] = file.read()
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                # An earlier patch may have a file where this one has a folder, and the other way round.
                self._base[path] = None
        return self._base[path]

    def _write(self, path: AbsPath, content: bytes | None) -> None:
        folder = os.path.dirname(path)
        if content is None:
            with suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(path)
            while folder in self._made and not os.listdir(folder):
                os.rmdir(folder)
                self._made.discard(folder)
                folder = os.path.dirname(folder)
            return
        self._make(folder)
        with open(path, "wb") as file:
            file.write(content)

    def _make(self, folder: str) -> None:
        if not os.path.isdir(folder):
            self._make(os.path.dirname(folder))
            os.mkdir(folder)
            self._made.add(folder)
