"""What a shell may offer for an argument, as click asks for it. Everything is imported when a shell asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem


def files(_context: click.Context, _argument: click.Parameter, begun: str) -> list[CompletionItem]:
    """The shell knows them best."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(begun, type="file")]


def folders(_context: click.Context, _argument: click.Parameter, begun: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(begun, type="dir")]


def servers(_context: click.Context, _argument: click.Parameter, begun: str) -> list[str]:
    """The ids of the catalogue."""
    from pilotfish.servers.catalogue import load

    return [name for name in load() if name.startswith(begun)]


def hosts(_context: click.Context, _argument: click.Parameter, begun: str) -> list[str]:
    """Those that setup knows."""
    from pilotfish.hosts.host_rows import HOSTS

    return [name for name in sorted(HOSTS) if name.startswith(begun)]
