"""The hosts that have a hook."""

from pilotfish.hosts.registry import PLAIN, load_hosts


def dialect_names() -> tuple[str, ...]:
    """Whatever `dialect_of` takes."""
    return (*(name for name, host in load_hosts().items() if host.dialect is not None), PLAIN)
