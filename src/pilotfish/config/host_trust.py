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
from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec
from msgspec import Struct

from pilotfish.config.files import UserFile, read_user_file
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

MAX_BYTES = 33_554_432
"""Of a host's file: that of Claude Code holds the history of every project."""

MAX_WORKTREES = 1_000
MAX_GITDIR_BYTES = 4_096


class Territory(Struct, frozen=True):
    """A workspace, and the repository that it belongs to."""

    folder: AbsPath
    repository: AbsPath
    """The nearest folder with a `.git`; without one, the workspace."""
    is_linked: bool = False
    """Whether it is a worktree of another repository, or pretends to be one."""


class HostFiles(Struct, frozen=True):
    """The user's files of one host that decide."""

    record: bytes
    settings: bytes | None = None


Judge = Callable[[HostFiles, Territory], bool | None]
"""Whether the host trusts a workspace; None where its file says nothing."""


class TrustRecord(Struct, frozen=True):
    """Where one host keeps what it was told about folders."""

    host: str
    title: str
    file: str
    """Below the home folder."""
    judge: Judge
    settings: str = ""
    """A file that says whether the record counts."""
    wired: tuple[str, ...] = ()
    """Which files `setup` changes, below the home folder or that of the project; none where only refusals count."""
    listed: Callable[[HostFiles], Iterator[str]] = lambda _files: iter(())
    """The folders that it trusts."""

    def path(self, places: Places) -> AbsPath:
        return AbsPath(os.path.join(places.home, self.file))

    def receipts(self, places: Places, *folders: AbsPath) -> tuple[AbsPath, ...]:
        """What `setup` leaves behind where it has wired the host: for every project, or for one of these."""
        files = (os.path.join(base, name) for base in (places.home, *folders) for name in self.wired)
        return tuple(receipt_of(places, real_path(file)) for file in files)

    def is_wired(self, places: Places, *folders: AbsPath) -> bool:
        return any(map(os.path.isfile, self.receipts(places, *folders)))


class HostTrust(Struct, frozen=True):
    """Which host trusts a folder, or refuses it."""

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
    found: HostTrust | None = None
    for record in RECORDS:
        said, own = _judged(record, places, territory)
        if said is False:
            return HostTrust(record.title, record.path(places), trusted=False)
        if said and own and found is None and record in granting:
            found = HostTrust(record.title, record.path(places), trusted=True)
    return found


def host_trusted_folders(places: Places) -> Iterator[tuple[str, HostTrust]]:
    """Every folder that a wired host trusts, with that host."""
    for record in RECORDS:
        files = _read(record, places) if record.is_wired(places) else None
        if files is not None:
            for folder in record.listed(files[0]):
                yield folder, HostTrust(record.title, record.path(places), trusted=True)


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
    except (OSError, ValueError, msgspec.MsgspecError):
        return False
    return said is not None and said.trusted


def _judged(record: TrustRecord, places: Places, territory: Territory) -> tuple[bool | None, bool]:
    """What a host says, and whether only the user can have written that."""
    read = _read(record, places)
    if read is None:
        return None, False
    files, own = read
    is_home = bool({territory.folder, territory.repository} & {places.home, own_home(), top_folder(territory.folder)})
    elsewhere = not is_inside(real_path(record.path(places)), territory.repository)
    return record.judge(files, territory), own and elsewhere and not is_home


def _read(record: TrustRecord, places: Places) -> tuple[HostFiles, bool] | None:
    path = record.path(places)
    file = read_user_file(path, MAX_BYTES)
    if file is None:
        return None
    settings_path = AbsPath(os.path.join(places.home, record.settings))
    settings = read_user_file(settings_path, MAX_BYTES) if record.settings else None
    own = _is_own(path, file) and (settings is None or _is_own(settings_path, settings))
    return HostFiles(file.data, settings.data if settings is not None else None), own


def _is_own(path: AbsPath, file: UserFile) -> bool:
    real = real_path(path)
    shared = calls.mode_of(os.stat(real)) & (stat.S_IWGRP | stat.S_IWOTH)
    return file.tampering is None and not shared and is_own_folder(os.path.dirname(real))


# --- Claude Code ----------------------------------------------------------------------------------------------------


def _claude_code(files: HostFiles, territory: Territory) -> bool | None:
    """By the main folder of a repository, or by the folder itself where there is none."""
    accepted = set(_claude_code_folders(files))
    if territory.is_linked:
        return any(_lists_worktree(folder, territory.repository) for folder in accepted) or None
    return territory.repository in accepted or None


def _claude_code_folders(files: HostFiles) -> Iterator[str]:
    projects = fields(member(msgspec.json.decode(files.record), "projects"))
    return (path for path, said in projects.items() if member(said, "hasTrustDialogAccepted") is True)


def _lists_worktree(main: str, worktree: AbsPath) -> bool:
    """Whether a trusted repository knows of a worktree; what the worktree itself says counts for nothing."""
    places = os.path.join(main, ".git", "worktrees")
    try:
        names = sorted(os.listdir(places))[:MAX_WORKTREES]
    except OSError:
        return False
    return any(_points_to(os.path.join(places, name, "gitdir"), worktree) for name in names)


def _points_to(file: str, worktree: AbsPath) -> bool:
    said = os.fsdecode(read_regular(file, MAX_GITDIR_BYTES) or b"").strip()
    return os.path.isabs(said) and real_path(os.path.dirname(said)) == worktree


# --- Gemini CLI and Qwen Code ---------------------------------------------------------------------------------------

TRUSTING = ("TRUST_FOLDER", "TRUST_PARENT")


class FolderRule(Struct, frozen=True):
    text: str
    folder: str
    """What it is about, symlinks resolved."""
    trusted: bool


def _gemini(files: HostFiles, territory: Territory) -> bool | None:
    """Of the rules around a folder the longest one counts, as it is written."""
    settings = parse(files.settings).value if files.settings else {}
    if member(settings, "security", "folderTrust", "enabled") is False:
        return None
    return _ruled(max(_rules_around(files, territory), key=lambda rule: len(rule.text), default=None), territory)


def _qwen(files: HostFiles, territory: Territory) -> bool | None:
    """Of the rules around a folder the deepest one counts. Trust says nothing: by default everything has it."""
    rule = max(_rules_around(files, territory), key=lambda rule: len(rule.folder), default=None)
    return False if rule is not None and not rule.trusted else None


def _rules(files: HostFiles) -> Iterator[FolderRule]:
    for path, level in fields(parse(files.record).value).items():
        real = real_path(path)
        if os.path.isabs(path) and level in (*TRUSTING, "DO_NOT_TRUST"):
            yield FolderRule(path, os.path.dirname(real) if level == "TRUST_PARENT" else real, level in TRUSTING)


def _rules_around(files: HostFiles, territory: Territory) -> Iterator[FolderRule]:
    return (rule for rule in _rules(files) if is_inside(territory.folder, rule.folder))


def _ruled(rule: FolderRule | None, territory: Territory) -> bool | None:
    if rule is None or (rule.trusted and not is_inside(rule.folder, territory.repository)):
        return None
    return rule.trusted


# --- Pi and Codex ---------------------------------------------------------------------------------------------------


def _pi(files: HostFiles, territory: Territory) -> bool | None:
    """The nearest folder of which it says yes or no."""
    said = fields(msgspec.json.decode(files.record))
    around = [path for path, yes in said.items() if is_inside(territory.folder, path) and isinstance(yes, bool)]
    nearest = max(around, key=len, default=None)
    return _ruled(None if nearest is None else FolderRule(nearest, nearest, said[nearest] is True), territory)


def _pi_folders(files: HostFiles) -> Iterator[str]:
    return (path for path, trusted in fields(msgspec.json.decode(files.record)).items() if trusted is True)


def _codex(files: HostFiles, territory: Territory) -> bool | None:
    projects = fields(tomllib.loads(files.record.decode()).get("projects"))
    refused = {path for path, said in projects.items() if member(said, "trust_level") == "untrusted"}
    refused |= set(map(real_path, refused))
    return False if refused & {territory.folder, territory.repository} else None


RECORDS = (
    TrustRecord(
        "claude-code",
        "Claude Code",
        ".claude.json",
        _claude_code,
        wired=(".claude/settings.json", ".claude/settings.local.json"),
        listed=_claude_code_folders,
    ),
    TrustRecord(
        "gemini",
        "Gemini CLI",
        ".gemini/trustedFolders.json",
        _gemini,
        settings=".gemini/settings.json",
        wired=(".gemini/settings.json",),
        listed=lambda files: (rule.folder for rule in _rules(files) if rule.trusted),
    ),
    TrustRecord(
        "pi",
        "Pi",
        ".pi/agent/trust.json",
        _pi,
        wired=(".pi/agent/extensions/pilotfish.ts", ".pi/extensions/pilotfish.ts"),
        listed=_pi_folders,
    ),
    TrustRecord("qwen", "Qwen Code", ".qwen/trustedFolders.json", _qwen),
    TrustRecord("codex", "Codex", ".codex/config.toml", _codex),
)
