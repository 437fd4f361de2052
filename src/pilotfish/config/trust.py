"""Whether what a workspace names may run (TRUST-1 … TRUST-7, T1 … T6).

Two steps, in this order. `read_grant` decides from the user's own data alone: the policy, the list of roots, the record
that `pilotfish trust` left, those of coding agents. It runs before a byte below the workspace is read, so nothing in
there can influence it. `settle` can only take away: where the grant is a record of ours, what the project's file asks
for now must be what was approved then.

Anything that goes wrong on the way means untrusted. A workspace that holds the files that decide (a home folder opened
as a project) is never trusted, because who may edit it may edit those.
"""

import hashlib
import json
import os
import shlex
import stat
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from pilotfish.config.files import WorkspaceFiles
from pilotfish.config.gate import Split
from pilotfish.config.host_trust import read_host_trust
from pilotfish.config.named_files import TooManyNames, named_files
from pilotfish.config.places import Places, user_files
from pilotfish.config.problems import shown
from pilotfish.config.schema import ProjectConfigPolicy, SecuritySettings
from pilotfish.config.trusted_roots import covers
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.protocol.wire import Json
from pilotfish.system import calls
from pilotfish.system.ownership import make_private_folders
from pilotfish.system.real_path import real_path
from pilotfish.system.regular_files import replace_file


def trust_advice(root: str | None) -> str:
    """What to do where trust is missing. Models read it, too: the decision is a person's, and never theirs."""
    command = f"pilotfish trust {shlex.quote(root or '.')}"
    return f"Only a person can allow it, at a terminal: `{command}` shows what would run, and asks."


# --- Records of what a person approved with `pilotfish trust` (T3, T4, T15) -------------------------------------------

# One private file per workspace, outside every workspace. A pin names the folder by its real path **and** its device,
# inode and birth, and holds what was approved word for word, so that a later change can be shown and not only noticed.
# The file's name is the hash of the path; the path stands inside and is checked. The folder must be ours and closed to
# everybody else (0700), the file too (0600); a record that is not does not count. Records appear and disappear whole.

VERSION = 2  # 1 did not know when the folder was created, and hashed fewer files: such a record does not count any more


class Pin(Struct, frozen=True):
    path: str
    device: int
    inode: int
    incarnation: str  # What tells the folder from a later one with its name and inode
    digest: str
    file: str  # The project's config file, relative to the workspace; empty when it has none
    entries: Mapping[str, Any]  # The servers' entries that run something, as approved
    programs: Mapping[str, str]  # The files of the workspace that the entries name, with their hashes
    version: int = VERSION


class BadPin(Exception):
    """The record exists and does not count; the message says why."""


def pin_file(folder: AbsPath, root: AbsPath) -> AbsPath:
    """Where the record of `root` is kept, if it has one."""
    name = hashlib.sha256(os.fsencode(root)).hexdigest()
    return AbsPath(os.path.join(folder, f"{name}.json"))


def read_pin(folder: AbsPath, root: AbsPath) -> Pin | None:
    """The record of `root`, or None when it has none; raises `BadPin`."""
    pin = _read(folder, pin_file(folder, root))
    if pin is not None and pin.path != root:
        raise BadPin(f"the trust record of {root} names another folder")
    return pin


def read_pins(folder: AbsPath) -> tuple[Pin | BadPin, ...]:
    """Every record by path, those that do not count last."""
    found: list[Pin] = []
    bad: list[BadPin] = []
    names = os.listdir(folder) if os.path.isdir(folder) else ()
    for name in sorted(name for name in names if name.endswith(".json")):
        try:
            pin = _read(folder, AbsPath(os.path.join(folder, name)))
            found += [pin] if pin else []
        except BadPin as error:
            bad.append(error)
    found.sort(key=lambda pin: pin.path)
    return (*found, *bad)


def write_pin(folder: AbsPath, pin: Pin) -> None:
    """Store `pin`, replacing the record of the same folder; raises `BadPin` when the store is not private."""
    make_private_folders(folder)
    _check_private(os.lstat(folder), folder, stat.S_ISDIR)
    content = json.dumps(msgspec.structs.asdict(pin), indent=2).encode()
    replace_file(pin_file(folder, AbsPath(pin.path)), content, 0o600)
    _sync_folder(folder)


def remove_pin(folder: AbsPath, root: AbsPath) -> bool:
    """Remove the record of `root`; False when it had none."""
    try:
        os.unlink(pin_file(folder, root))
    except FileNotFoundError:
        return False
    _sync_folder(folder)
    return True


def _read(folder: AbsPath, path: AbsPath) -> Pin | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | calls.O_NOFOLLOW | calls.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadPin(f"the trust record {path} cannot be read: {error.strerror}") from None
    try:
        _check_private(os.lstat(folder), folder, stat.S_ISDIR)
        _check_private(os.fstat(descriptor), path, stat.S_ISREG)
        with open(descriptor, "rb", closefd=False) as stream:
            data = stream.read()
    finally:
        os.close(descriptor)
    try:
        # The standard decoder, because a path that is not UTF-8 is kept with lone surrogates.
        value = msgspec.convert(json.loads(data), type=dict[str, Any])
        if value.get("version") == 1:
            raise BadPin("it was approved with an earlier version of pilotfish trust; approve it again")
        pin = msgspec.convert(value, type=Pin)
    except (ValueError, RecursionError) as error:
        raise BadPin(f"the trust record {path} is damaged: {error}") from None
    if pin.version != VERSION:
        raise BadPin(f"the trust record {path} has the unknown version {pin.version}")
    return pin


def _check_private(status: os.stat_result, path: str, of_type: Any) -> None:
    if not of_type(status.st_mode):
        raise BadPin(f"{path} is not of the right type")
    if status.st_uid != calls.user():
        raise BadPin(f"{path} belongs to another user")
    if calls.mode_of(status) & 0o077:
        raise BadPin(f"{path} is open to other users (mode {stat.S_IMODE(status.st_mode):o})")


def _sync_folder(folder: AbsPath) -> None:
    descriptor = os.open(folder, os.O_RDONLY | calls.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- The decision -----------------------------------------------------------------------------------------------------

DIGEST = b"pilotfish trust 2"
"""The prefix of every digest, so that a later way of computing it never gives the same one."""


class Trusted(Struct, frozen=True):
    """Programs that the workspace names may run: all of them, or what was approved."""

    why: str
    approval: Pin | None = None
    is_adopted: bool = False
    """Given in a host: it counts for programs of the project, and not for what the project's file says to run."""


class Untrusted(Struct, frozen=True):
    why: str


class Stale(Struct, frozen=True):
    """The workspace was approved, and asks to run something else now. Nothing of it may run."""

    why: str
    differences: tuple[str, ...]
    files: tuple[str, ...] = ()
    """The files whose content counts: with the approved one back in place the approval holds again."""


Trust = Trusted | Untrusted | Stale


def approved_files(trust: Trust) -> tuple[str, ...]:
    """The files of the workspace that the verdict rests on, relative to it."""
    match trust:
        case Trusted(approval=Pin(programs=files)) | Stale(files=files):
            return tuple(files)
        case _:
            return ()


TrustGrant = Trusted | Untrusted | Pin  # A verdict, or the record of what the user approved of this folder at that time


class TrustOffer(Struct, frozen=True):
    """What a project asks to run."""

    file: str  # Its config file, relative to the workspace; empty when nothing in there needs trust
    entries: Mapping[str, Json] = field(default_factory=dict[str, Json])
    programs: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def digest(self) -> str:
        """Over all parts, each preceded by its length, so that no two offers have the same bytes."""
        parts = [DIGEST, self.file.encode()]
        for name, value in (*sorted(self.entries.items()), *sorted(self.programs.items())):
            parts += name.encode(), json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
        joined = b"".join(len(part).to_bytes(8, "big") + part for part in (*parts, b"%d" % len(self.entries)))
        return f"sha256:{hashlib.sha256(joined).hexdigest()}"


def read_grant(
    workspace: WorkspaceFiles, security: SecuritySettings | None, places: Places, host: str | None
) -> TrustGrant:
    """Decide from the user's data alone. `security` is None when the user's file has errors that leave it open."""
    try:
        reason = find_obstacle(workspace, security, places, host)
        if security is None or reason is not None:
            return Untrusted(reason or "")
        if security.project_config_policy is ProjectConfigPolicy.ALWAYS:
            return Trusted("security.projectConfigPolicy is always")
        for entry in security.trusted_project_roots:
            if covers(entry, workspace.path, places.home):
                return Trusted(f"security.trustedProjectRoots has {entry}")
        pin = read_pin(places.pins, workspace.path)
        if pin is None:
            said = read_host_trust(workspace.path, places) if security.host_trust else None
            if said is None:
                return Untrusted("you have not trusted this workspace")
            return Trusted(said.why, is_adopted=True) if said.trusted else Untrusted(said.why)
        if (pin.device, pin.inode, pin.incarnation) != (workspace.device, workspace.inode, workspace.incarnation()):
            return Untrusted("the folder that was trusted has been replaced by another one of the same name")
    except Exception as error:  # noqa: BLE001 -- whatever goes wrong while deciding means untrusted (TRUST-4)
        return Untrusted(f"trust could not be decided: {error}")
    return pin


def find_obstacle(
    workspace: WorkspaceFiles, security: SecuritySettings | None, places: Places, host: str | None
) -> str | None:
    """Why an approval would not count here, or None when it would."""
    for decisive in (places.pins, *(path for _, path in user_files(places, host))):
        if is_inside(real_path(decisive), workspace.path):
            return f"{decisive} decides trust and is inside this workspace"
    if security is None:
        return "the user's config file has errors, so nothing can grant trust"
    if security.project_config_policy is ProjectConfigPolicy.NEVER:
        return "security.projectConfigPolicy is never"
    return None


def read_offer(workspace: WorkspaceFiles, file: str, project: Split) -> TrustOffer:
    """What the project's file asks to run, with the hashes of the workspace's own files that it would run."""
    entries = project.entries()
    files: dict[str, str] = {}
    for entry in entries.values():
        files |= named_files(workspace.path, entry)
    return TrustOffer(file if entries else "", entries, files)


def changed_files(approval: Pin, server: str, workspace: AbsPath, root: AbsPath) -> tuple[str, ...]:
    """Which files that an approved server would run, or read, in `root` are not what was approved (T49).

    Looked at just before each start: an approval is of what was there, not of what is there by now.
    """
    entry = approval.entries.get(server)
    now = {**named_files(workspace, entry), **named_files(workspace, entry, root)}
    before = {name: said for name, said in approval.programs.items() if name in now}
    return tuple(sorted(name for name, said in now.items() if before.get(name) != said))


def settle(grant: TrustGrant, offer: Callable[[], TrustOffer]) -> Trust:
    """The verdict; `offer` is called only where it matters."""
    if not isinstance(grant, Pin):
        return grant
    try:
        now = offer()
    except TooManyNames as error:
        return Untrusted(f"what it asks to run cannot be checked: {error}")
    if grant.digest == now.digest == TrustOffer(grant.file, grant.entries, grant.programs).digest:
        return Trusted("approved with pilotfish trust", grant)
    differences = [f"file: {shown(grant.file)} → {shown(now.file)}"] if grant.file != now.file else []
    for title, before, after in (("", grant.entries, now.entries), ("content of ", grant.programs, now.programs)):
        for name in sorted({*before, *after}):
            differences += _difference(title + name, before.get(name), after.get(name))
    why, files = "what it asks to run has changed since it was trusted", tuple({*grant.programs, *now.programs})
    return Stale(why, tuple(differences) or ("the record is inconsistent",), files)


def pin_of(workspace: WorkspaceFiles, offer: TrustOffer) -> Pin:
    """The record of approving `offer`; raises `BadPin` where a later folder could not be told from this one."""
    incarnation = workspace.incarnation()
    if incarnation is None:
        raise BadPin(f"the file system of {workspace.path} does not tell when a folder was created")
    return Pin(
        path=workspace.path,
        device=workspace.device,
        inode=workspace.inode,
        incarnation=incarnation,
        digest=offer.digest,
        file=offer.file,
        entries=offer.entries,
        programs=offer.programs,
    )


def _difference(name: str, before: Json, after: Json) -> list[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        keys = sorted({*before, *after})
        return [line for key in keys for line in _difference(f"{name}.{key}", before.get(key), after.get(key))]
    if before == after:
        return []
    # Whole: a person decides by this line.
    return [f"{shown(name, len(name) + 2)}: {json.dumps(before)} → {json.dumps(after)}"]


# --- What a terminal has shown ----------------------------------------------------------------------------------------

# `pilotfish trust --hash` approves nothing else (T51). One private file for each workspace, in the form of a record of
# approval: what was shown, of which folder. It grants nothing by itself.


def was_shown(places: Places, workspace: WorkspaceFiles, offer: TrustOffer) -> bool:
    """Whether a person was shown exactly this, of exactly this folder."""
    try:
        return read_pin(places.shown, workspace.path) == pin_of(workspace, offer)
    except (BadPin, OSError):
        return False
