"""Which offers a terminal has shown: `pilotfish trust --hash` approves no other (T51).

One private file for each workspace, in the form of a record of approval: what was shown, of which folder. It grants
nothing by itself.
"""

import os

from pilotfish.config.files import WorkspaceFiles
from pilotfish.config.pins import BadPin, read_pin, remove_pin, write_pin
from pilotfish.config.places import Places
from pilotfish.config.trust import TrustOffer, pin_of
from pilotfish.model import AbsPath


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
