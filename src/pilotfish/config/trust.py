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
from collections.abc import Callable, Mapping

from msgspec import Struct, field

from pilotfish.config.files import WorkspaceFiles
from pilotfish.config.gate import Split
from pilotfish.config.host_trust import read_host_trust
from pilotfish.config.named_files import TooManyNames, named_files
from pilotfish.config.pins import BadPin, Pin, read_pin, remove_pin, write_pin
from pilotfish.config.places import Places, user_files
from pilotfish.config.problems import shown
from pilotfish.config.schema import ProjectConfigPolicy, SecuritySettings
from pilotfish.config.trusted_roots import covers
from pilotfish.model import AbsPath
from pilotfish.paths import is_inside
from pilotfish.protocol.wire import Json
from pilotfish.system.real_path import real_path

DIGEST = b"pilotfish trust 2"
"""The prefix of every digest, so that a later way of computing it never gives the same one."""


class Approval(Struct, frozen=True):
    """What a person approved: the servers' entries, and the files of the workspace that they name."""

    entries: Mapping[str, Json]
    files: Mapping[str, str]


class Trusted(Struct, frozen=True):
    """Programs that the workspace names may run: all of them, or what was approved."""

    why: str
    approval: Approval | None = None
    is_adopted: bool = False
    """Given in a host: it counts for programs of the project, and not for what the project's file says to run."""


class Untrusted(Struct, frozen=True):
    """No program that the workspace names may run."""

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
        case Trusted(approval=Approval(files=files)) | Stale(files=files):
            return tuple(files)
        case _:
            return ()


TrustGrant = Trusted | Untrusted | Pin
"""A verdict, or the record of what the user approved of this folder at that time."""


class TrustOffer(Struct, frozen=True):
    """What a project asks to run."""

    file: str
    """Its config file, relative to the workspace; empty when nothing in there needs trust."""
    entries: Mapping[str, Json] = field(default_factory=dict[str, Json])
    programs: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def digest(self) -> str:
        """Over all parts, each preceded by its length, so that no two offers have the same bytes."""
        parts = [DIGEST, self.file.encode()]
        for name, value in (*sorted(self.entries.items()), *sorted(self.programs.items())):
            parts += name.encode(), _canonical(value)
        joined = b"".join(len(part).to_bytes(8, "big") + part for part in (*parts, b"%d" % len(self.entries)))
        return f"sha256:{hashlib.sha256(joined).hexdigest()}"


def read_grant(
    workspace: WorkspaceFiles, security: SecuritySettings | None, places: Places, host: str | None
) -> TrustGrant:
    """Decide from the user's data alone. `security` is None when the user's file has errors that leave it open."""
    try:
        return _read_grant(workspace, security, places, host)
    except Exception as error:  # noqa: BLE001 -- whatever goes wrong while deciding means untrusted (TRUST-4)
        return Untrusted(f"trust could not be decided: {error}")


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


def changed_files(approval: Approval, server: str, workspace: AbsPath, root: AbsPath) -> tuple[str, ...]:
    """Which files that an approved server would run, or read, in `root` are not what was approved (T49).

    Looked at just before each start: an approval is of what was there, not of what is there by now.
    """
    entry = approval.entries.get(server)
    now = {**named_files(workspace, entry), **named_files(workspace, entry, root)}
    before = {name: said for name, said in approval.files.items() if name in now}
    return tuple(sorted(name for name, said in now.items() if before.get(name) != said))


def settle(grant: TrustGrant, offer: Callable[[], TrustOffer]) -> Trust:
    """The verdict; `offer` is called only where it matters."""
    if not isinstance(grant, Pin):
        return grant
    try:
        return _compare(grant, offer())
    except TooManyNames as error:
        return Untrusted(f"what it asks to run cannot be checked: {error}")


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


def _read_grant(
    workspace: WorkspaceFiles, security: SecuritySettings | None, places: Places, host: str | None
) -> TrustGrant:
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
        return _adopted(workspace, security, places)
    if (pin.device, pin.inode, pin.incarnation) != (workspace.device, workspace.inode, workspace.incarnation()):
        return Untrusted("the folder that was trusted has been replaced by another one of the same name")
    return pin


def _adopted(workspace: WorkspaceFiles, security: SecuritySettings, places: Places) -> TrustGrant:
    said = read_host_trust(workspace.path, places) if security.host_trust else None
    if said is None:
        return Untrusted("you have not trusted this workspace")
    return Trusted(said.why, is_adopted=True) if said.trusted else Untrusted(said.why)


def _compare(pin: Pin, offer: TrustOffer) -> Trust:
    if pin.digest == offer.digest == TrustOffer(pin.file, pin.entries, pin.programs).digest:
        return Trusted("approved with pilotfish trust", Approval(pin.entries, pin.programs))
    differences = tuple(_differences(pin, offer))
    why, files = "what it asks to run has changed since it was trusted", tuple({*pin.programs, *offer.programs})
    return Stale(why, differences or ("the record is inconsistent",), files)


def _differences(pin: Pin, offer: TrustOffer) -> list[str]:
    lines = [f"file: {shown(pin.file)} → {shown(offer.file)}"] if pin.file != offer.file else []
    for title, before, after in (("", pin.entries, offer.entries), ("content of ", pin.programs, offer.programs)):
        for name in sorted({*before, *after}):
            lines += _difference(title + name, before.get(name), after.get(name))
    return lines


def _difference(name: str, before: Json, after: Json) -> list[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        keys = sorted({*before, *after})
        return [line for key in keys for line in _difference(f"{name}.{key}", before.get(key), after.get(key))]
    if before == after:
        return []
    # Whole: a person decides by this line.
    return [f"{shown(name, len(name) + 2)}: {json.dumps(before)} → {json.dumps(after)}"]


def _canonical(value: Json) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


# --- What a terminal has shown ----------------------------------------------------------------------------------------

# `pilotfish trust --hash` approves nothing else (T51). One private file for each workspace, in the form of a record of
# approval: what was shown, of which folder. It grants nothing by itself.


def remember_shown(places: Places, workspace: WorkspaceFiles, offer: TrustOffer) -> None:
    """Keep that a person was shown `offer`; raises `BadPin` or `OSError` when that cannot be kept."""
    write_pin(_folder(places), pin_of(workspace, offer))


def was_shown(places: Places, workspace: WorkspaceFiles, offer: TrustOffer) -> bool:
    """Whether a person was shown exactly this, of exactly this folder."""
    try:
        return read_pin(_folder(places), workspace.path) == pin_of(workspace, offer)
    except (BadPin, OSError):
        return False


def forget_shown(places: Places, workspace: AbsPath) -> None:
    remove_pin(_folder(places), workspace)


def _folder(places: Places) -> AbsPath:
    return AbsPath(os.path.join(places.state, "shown"))
