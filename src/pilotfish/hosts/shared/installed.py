"""Whether a host is installed on this machine."""

import os
import shutil

from pilotfish.hosts.shared.host_spec import HostSpec, Where
from pilotfish.hosts.shared.receipts import Receipts
from pilotfish.system.real_path import real_path


def is_installed(host: HostSpec, where: Where, receipts: Receipts) -> bool:
    """Whether its program is on the PATH, or something of it in the home folder that `setup` did not put there."""
    path = where.environment.get("PATH", os.defpath)
    if any(shutil.which(name, path=path) for name in host.programs):
        return True
    return any(_has_others_files(os.path.join(where.home, name), receipts) for name in host.folders)


def _has_others_files(path: str, receipts: Receipts) -> bool:
    path = real_path(path)
    if path not in receipts.folders():
        return os.path.exists(path) and not _is_ours(path, receipts)
    try:
        names = os.listdir(path)
    except OSError:
        return False
    return any(_has_others_files(os.path.join(path, name), receipts) for name in names)


def _is_ours(path: str, receipts: Receipts) -> bool:
    kept = receipts.find(path)
    return kept is not None and not kept.receipt.existed
