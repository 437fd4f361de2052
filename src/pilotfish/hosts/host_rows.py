"""All hosts that setup knows, by their names."""

from collections.abc import Mapping

from pilotfish.hosts.hook_rows import HOOK_ROWS
from pilotfish.hosts.other_rows import OTHER_ROWS
from pilotfish.hosts.shared.host_row import HostRow

HOSTS: Mapping[str, HostRow] = {row.name: row for row in (*HOOK_ROWS, *OTHER_ROWS)}
