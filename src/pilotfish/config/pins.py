"""What a person approved with `pilotfish trust`: one private file per workspace, outside every workspace (T3, T4, T15).

A pin names the folder by its real path **and** its device, inode and birth, and holds what was approved word for word,
so that a later change can be shown and not only noticed. The file's name is the hash of the path; the path stands
inside and is checked. The folder must be ours and closed to everybody else (0700), the file too (0600); a record that
is not does not count. Records appear and disappear whole: written beside, flushed, then renamed.
"""

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from pilotfish.model import AbsPath
from pilotfish.system.ownership import make_private_folders
from pilotfish.system.regular_files import replace_file

VERSION = 2
"""1 did not know when the folder was created, and hashed fewer files: such a record does not count any more."""


class Pin(Struct, frozen=True):
    """One approval."""

    path: str
    device: int
    inode: int
    incarnation: str
    """What tells the folder from a later one with its name and inode."""
    digest: str
    file: str
    """The project's config file, relative to the workspace; empty when it has none."""
    entries: Mapping[str, Any]
    """The servers' entries that run something, as approved."""
    programs: Mapping[str, str]
    """The files of the workspace that the entries name, with their hashes."""
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
    names = sorted(name for name in _list_folder(folder) if name.endswith(".json"))
    found: list[Pin] = []
    bad: list[BadPin] = []
    for name in names:
        try:
            pin = _read(folder, AbsPath(os.path.join(folder, name)))
        except BadPin as error:
            bad.append(error)
        else:
            found += [pin] if pin else []
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
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
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
    return _decoded(data, path)


def _decoded(data: bytes, path: AbsPath) -> Pin:
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
    if status.st_uid != os.geteuid():
        raise BadPin(f"{path} belongs to another user")
    if status.st_mode & 0o077:
        raise BadPin(f"{path} is open to other users (mode {stat.S_IMODE(status.st_mode):o})")


def _list_folder(folder: AbsPath) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _sync_folder(folder: AbsPath) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
