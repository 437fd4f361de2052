"""Trust that a person has given in a coding agent counts here, too: what its own file says (TRUST-7, T57).

- Granted by hosts that ask a person before they write it, and that `setup` has wired. A flag of Codex writes "trusted"
  unasked, and Qwen Code trusts everything by default: of those only a refusal counts, and a refusal by any host wins.
- A file that another user may write grants nothing, nor does one that a variable names: a project can set variables.
- Trust of a folder is that of a repository. One above it, or around it, says nothing about it; a worktree belongs to
  the repository that lists it.
- It never counts for what a project's file says to run: no dialogue of a host has shown that.

Whatever goes wrong on the way is raised, and means that nobody trusts the workspace.
"""

import hashlib
import os
import stat
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct

from pilotfish.config.files import UnreadableFile, UserFile, read_user_file
from pilotfish.config.jsonc import parse
from pilotfish.config.places import Places
from pilotfish.model import AbsPath
from pilotfish.paths import ancestors, is_inside, top_folder
from pilotfish.protocol.codec import fields, member
from pilotfish.system import calls
from pilotfish.system.ownership import is_foreign, is_own_folder, own_home
from pilotfish.system.real_path import real_path
from pilotfish.system.regular_files import read_regular
from pilotfish.system.source_files import REPOSITORIES

MAX_BYTES = 33_554_432  # Of a host's file: that of Claude Code holds the history of every project

MAX_WORKTREES = 1_000
MAX_GITDIR_BYTES = 4_096


class Territory(Struct, frozen=True):
    """A workspace, and the repository that it belongs to."""

    folder: AbsPath
    repository: AbsPath  # The nearest folder with a `.git`; without one, the workspace
    is_linked: bool = False  # Whether it is a worktree of another repository, or pretends to be one


class FolderRule(Struct, frozen=True):
    text: str
    folder: str  # What it is about: the folder that the text names, or the one above that
    trusted: bool


class TrustRecord(Struct, frozen=True):
    """Where one host keeps what it was told about folders."""

    host: str
    title: str
    file: str  # Below the home folder
    rules: Callable[[bytes, bytes | None], Iterable[FolderRule]]
    """What it says, read from the file and from its `settings`."""
    judge: Callable[[Sequence[FolderRule], Territory], bool | None]
    """Whether the host trusts a workspace; None where its file says nothing."""
    settings: str = ""  # A file that says whether the record counts
    wired: tuple[str, ...] = ()
    """Which files `setup` changes, below the home folder or that of the project; none where only refusals count."""

    def path(self, places: Places) -> AbsPath:
        return AbsPath(os.path.join(places.home, self.file))

    def receipts(self, places: Places, *folders: AbsPath) -> tuple[AbsPath, ...]:
        """What `setup` leaves behind where it has wired the host: for every project, or for one of these."""
        files = (os.path.join(base, name) for base in (places.home, *folders) for name in self.wired)
        return tuple(receipt_of(places, real_path(file)) for file in files)

    def is_wired(self, places: Places, *folders: AbsPath) -> bool:
        return any(map(os.path.isfile, self.receipts(places, *folders)))


class HostTrust(Struct, frozen=True):
    title: str
    file: AbsPath
    trusted: bool

    @property
    def why(self) -> str:
        return f"{'trusted' if self.trusted else 'not trusted'} in {self.title} ({self.file})"


def receipt_of(places: Places, file: str) -> AbsPath:
    """Where `setup` keeps that it has changed a file."""
    return AbsPath(os.path.join(places.state, "setup", f"{receipt_name(file)}.json"))


def receipt_name(file: str) -> str:
    return hashlib.sha256(os.fsencode(file)).hexdigest()[:24]


def read_host_trust(folder: AbsPath, places: Places) -> HostTrust | None:
    """What hosts say about a workspace; a refusal comes before everything else."""
    granting = [record for record in RECORDS if record.is_wired(places, folder)]
    if not granting:
        return None
    territory = territory_of(folder)
    is_home = bool({territory.folder, territory.repository} & {places.home, own_home(), top_folder(territory.folder)})
    found: HostTrust | None = None
    for record in RECORDS:
        rules, own = _read(record, places)
        said, path = record.judge(rules, territory), record.path(places)
        if said is False:
            return HostTrust(record.title, path, trusted=False)
        counts = own and not is_home and not is_inside(real_path(path), territory.repository)
        if said and counts and found is None and record in granting:
            found = HostTrust(record.title, path, trusted=True)
    return found


def host_trusted_folders(places: Places) -> Iterator[tuple[str, HostTrust]]:
    """Every folder that a wired host trusts, with that host."""
    for record in RECORDS:
        rules: tuple[FolderRule, ...] = ()
        # Where one file cannot be read, no host's trust counts, see `trust.read_grant`.
        with suppress(OSError, UnreadableFile, ValueError, msgspec.MsgspecError):
            rules = _read(record, places)[0] if record.is_wired(places) else ()
        for rule in rules:
            if rule.trusted:
                yield rule.folder, HostTrust(record.title, record.path(places), trusted=True)


def deciding_files(places: Places) -> tuple[AbsPath, ...]:
    """When one of these changes, a workspace may be trusted or not trusted any more."""
    names = (name for record in RECORDS for name in (record.file, record.settings) if name)
    receipts = (receipt for record in RECORDS for receipt in record.receipts(places))
    return (*(AbsPath(os.path.join(places.home, name)) for name in names), *receipts)


def territory_of(folder: AbsPath) -> Territory:
    """The repository of a real folder, by the names above it alone: nothing below it is read."""
    for candidate in map(AbsPath, ancestors(folder)):
        with suppress(OSError):
            status = os.lstat(os.path.join(candidate, ".git"))
            if not is_foreign(status):
                return Territory(folder, candidate, is_linked=not stat.S_ISDIR(status.st_mode))
    return Territory(folder, folder)


def inner_repository(folder: AbsPath, workspace: AbsPath) -> AbsPath | None:
    """The repository of a folder, where it is not that of the workspace: one inside it, or none of it at all."""
    own = territory_of(workspace).repository
    around = ancestors(folder, own)
    if not around:
        return folder
    has_own = (top for top in around[:-1] if any(os.path.lexists(os.path.join(top, name)) for name in REPOSITORIES))
    return next(map(AbsPath, has_own), None)


def is_host_trusted(repository: AbsPath, places: Places) -> bool:
    """Whether a host trusts a repository by itself, a worktree of the workspace's for example."""
    try:
        said = read_host_trust(repository, places)
    except (OSError, UnreadableFile, ValueError, msgspec.MsgspecError):
        return False
    return said is not None and said.trusted


def _read(record: TrustRecord, places: Places) -> tuple[tuple[FolderRule, ...], bool]:
    path = record.path(places)
    file = read_user_file(path, MAX_BYTES)
    if file is None:
        return (), False
    settings_path = AbsPath(os.path.join(places.home, record.settings))
    settings = read_user_file(settings_path, MAX_BYTES) if record.settings else None
    own = _is_own(path, file) and (settings is None or _is_own(settings_path, settings))
    return tuple(record.rules(file.data, settings.data if settings is not None else None)), own


def _is_own(path: AbsPath, file: UserFile) -> bool:
    real = real_path(path)
    shared = calls.mode_of(os.stat(real)) & (stat.S_IWGRP | stat.S_IWOTH)
    return file.tampering is None and not shared and is_own_folder(os.path.dirname(real))


# --- What hosts write down --------------------------------------------------------------------------------------------

TRUSTING = ("TRUST_FOLDER", "TRUST_PARENT")


def _of_claude_code(record: bytes, _settings: bytes | None) -> Iterator[FolderRule]:
    for path, said in fields(member(msgspec.json.decode(record), "projects")).items():
        if member(said, "hasTrustDialogAccepted") is True:
            yield FolderRule(path, path, trusted=True)


def _of_gemini(record: bytes, settings: bytes | None) -> Iterator[FolderRule]:
    """Qwen Code writes the same. Where folders are not asked about, nothing that was said of them counts."""
    if member(parse(settings).value if settings else {}, "security", "folderTrust", "enabled") is False:
        return
    for path, level in fields(parse(record).value).items():
        real = real_path(path)
        if os.path.isabs(path) and level in (*TRUSTING, "DO_NOT_TRUST"):
            yield FolderRule(path, os.path.dirname(real) if level == "TRUST_PARENT" else real, level in TRUSTING)


def _of_pi(record: bytes, _settings: bytes | None) -> Iterator[FolderRule]:
    for path, trusted in fields(msgspec.json.decode(record)).items():
        if isinstance(trusted, bool):
            yield FolderRule(path, path, trusted)


def _of_codex(record: bytes, _settings: bytes | None) -> Iterator[FolderRule]:
    for path, said in fields(tomllib.loads(record.decode()).get("projects")).items():
        if member(said, "trust_level") == "untrusted":
            yield from (FolderRule(path, folder, trusted=False) for folder in {path, real_path(path)})


# --- What follows for a workspace -------------------------------------------------------------------------------------


def _by_repository(rules: Sequence[FolderRule], territory: Territory) -> bool | None:
    """By the main folder of a repository, or by the folder itself where there is none."""
    accepted = {rule.folder for rule in rules}
    if territory.is_linked:
        return any(_lists_worktree(folder, territory.repository) for folder in accepted) or None
    return territory.repository in accepted or None


def _lists_worktree(main: str, worktree: AbsPath) -> bool:
    """Whether a trusted repository knows of a worktree; what the worktree itself says counts for nothing."""
    places = os.path.join(main, ".git", "worktrees")
    try:
        names = sorted(os.listdir(places))[:MAX_WORKTREES]
    except OSError:
        return False
    files = (os.path.join(places, name, "gitdir") for name in names)
    pointers = (os.fsdecode(read_regular(file, MAX_GITDIR_BYTES) or b"").strip() for file in files)
    return any(os.path.isabs(said) and real_path(os.path.dirname(said)) == worktree for said in pointers)


def _around(rules: Sequence[FolderRule], territory: Territory) -> list[FolderRule]:
    return [rule for rule in rules if is_inside(territory.folder, rule.folder)]


def _by_longest_rule(rules: Sequence[FolderRule], territory: Territory) -> bool | None:
    """Of the rules around a folder the longest one counts, as it is written."""
    rule = max(_around(rules, territory), key=lambda rule: len(rule.text), default=None)
    if rule is None or (rule.trusted and not is_inside(rule.folder, territory.repository)):
        return None
    return rule.trusted


def _by_deepest_refusal(rules: Sequence[FolderRule], territory: Territory) -> bool | None:
    """Of the rules around a folder the deepest one counts. Trust says nothing: by default everything has it."""
    rule = max(_around(rules, territory), key=lambda rule: len(rule.folder), default=None)
    return False if rule is not None and not rule.trusted else None


def _by_own_refusal(rules: Sequence[FolderRule], territory: Territory) -> bool | None:
    return False if {rule.folder for rule in rules} & {territory.folder, territory.repository} else None


RECORDS = (
    TrustRecord(
        "claude-code",
        "Claude Code",
        ".claude.json",
        _of_claude_code,
        _by_repository,
        wired=(".claude/settings.json", ".claude/settings.local.json"),
    ),
    TrustRecord(
        "gemini",
        "Gemini CLI",
        ".gemini/trustedFolders.json",
        _of_gemini,
        _by_longest_rule,
        settings=".gemini/settings.json",
        wired=(".gemini/settings.json",),
    ),
    TrustRecord(
        "pi",
        "Pi",
        ".pi/agent/trust.json",
        _of_pi,
        _by_longest_rule,
        wired=(".pi/agent/extensions/pilotfish.ts", ".pi/extensions/pilotfish.ts"),
    ),
    TrustRecord("qwen", "Qwen Code", ".qwen/trustedFolders.json", _of_gemini, _by_deepest_refusal),
    TrustRecord("codex", "Codex", ".codex/config.toml", _of_codex, _by_own_refusal),
)
