"""All hosts that setup knows, by their names."""

from collections.abc import Mapping

from pilotfish.surfaces.setup.hook_rows import HOOK_ROWS
from pilotfish.surfaces.setup.host_row import HostRow
from pilotfish.surfaces.setup.other_rows import OTHER_ROWS

HOSTS: Mapping[str, HostRow] = {row.name: row for row in (*HOOK_ROWS, *OTHER_ROWS)}
