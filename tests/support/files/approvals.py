"""What a person at a terminal does: looks at what a workspace asks to run, and approves it."""

from collections.abc import Mapping

from pilotfish.config.files import open_workspace
from pilotfish.config.load import Catalogue, ConfigRequest, load_from
from pilotfish.config.pins import write_pin
from pilotfish.config.places import user_places
from pilotfish.config.trust import TrustOffer, pin_of, read_offer
from pilotfish.servers.catalogue import builtin_layer, canonical_id


def approve(root: str, environment: Mapping[str, str]) -> TrustOffer:
    """What `pilotfish trust` does after the answer yes."""
    request = ConfigRequest(root, user_places(environment), Catalogue(builtin_layer(), canonical_id))
    with open_workspace(root) as workspace:
        loaded = load_from(workspace, request)
        offer = read_offer(workspace, loaded.project_file, loaded.project)
        write_pin(request.places.pins, pin_of(workspace, offer))
    return offer
