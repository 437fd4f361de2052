"""What goes in and what comes out: one JSON object a line, either way."""

import re
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct, field

from pilotfish.api.answers import SeverityWord, State, diagnostic_of
from pilotfish.model import Severity
from pilotfish.service.patch_checks import PatchVerdict

PatchId = str | int

_MOVING = re.compile(r"^(?:deleted file|new file|rename from) ", re.MULTILINE)


class BadPatch(ValueError):
    """A line that is no patch; the message says why."""


class Patch(Struct, frozen=True):
    """A proposed change: new texts by path below the workspace, None where a file goes; or a unified diff."""

    id: PatchId
    files: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    diff: str | None = None
    base: str | None = None
    """A commit of the workspace's repository. Without one: the files as they are when the batch begins."""

    @property
    def moves_files(self) -> bool:
        """Whether files go, or come and go: a server then reads its project anew. A new file alone is not seen here."""
        return None in self.files.values() or (self.diff is not None and _MOVING.search(self.diff) is not None)


class IntroducedDiagnostic(Struct, frozen=True, omit_defaults=True):
    """A diagnostic that is there with the patch and not without it; lines and characters count from 1."""

    file: str
    line: int
    character: int
    severity: SeverityWord
    message: str
    server: str
    code: str | None = None


class Judgement(Struct, frozen=True, omit_defaults=True):
    """What a patch does. With any state but `fresh`, `reason` says what is not known."""

    id: PatchId
    state: State
    introduced: tuple[IntroducedDiagnostic, ...]
    fixed: int
    ms: int
    reason: str | None = None


def read_patch(line: bytes | str) -> Patch:
    """Raises `BadPatch`."""
    try:
        patch = msgspec.json.decode(line, type=Patch)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadPatch(str(error)) from None
    if (patch.diff is None) == (not patch.files):
        raise BadPatch("a patch has either `files` or a `diff`")
    return patch


def judgement_of(patch: Patch, verdict: PatchVerdict, worst: Severity, milliseconds: int) -> Judgement:
    """`worst`: the least severity that counts."""
    introduced = [
        IntroducedDiagnostic(file, one.line, one.character, one.severity, one.message, one.server, one.code)
        for file, found in sorted(verdict.introduced.items())
        for one in (diagnostic_of(each) for each in found if each.severity <= worst)
    ]
    fixed = sum(one.severity <= worst for found in verdict.fixed.values() for one in found)
    return Judgement(patch.id, verdict.state, tuple(introduced), fixed, milliseconds, verdict.reason)


def unjudged(patch: Patch, reason: str, milliseconds: int = 0) -> Judgement:
    return Judgement(patch.id, State.UNAVAILABLE, (), 0, milliseconds, reason)


def line_of(judgement: Judgement) -> bytes:
    return msgspec.json.encode(judgement) + b"\n"


def judged_ids(lines: Iterable[bytes]) -> Iterator[PatchId]:
    """The patches of an earlier output. A line that was cut short counts for nothing."""
    for line in lines:
        if line.endswith(b"\n"):
            try:
                yield msgspec.json.decode(line, type=Judgement).id
            except msgspec.DecodeError:
                continue


async def each(patches: Iterable[Patch] | AsyncIterable[Patch]) -> AsyncIterator[Patch]:
    if isinstance(patches, AsyncIterable):
        async for patch in patches:
            yield patch
        return
    for patch in patches:
        yield patch
