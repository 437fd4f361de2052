"""`pilotfish servers`: the catalogue, and which servers are installed. Runs without the daemon and starts nothing."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import TYPE_CHECKING

import click

from pilotfish.surfaces.cli.workspace import json_option, root_of, root_option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotfish.config.places import Places
    from pilotfish.servers.spec import ServerSpec
    from pilotfish.surfaces.cli.terminal.servers_text import ListedServer


@click.command()
@click.argument("words", metavar="[WORD]…", nargs=-1)
@root_option
@json_option
@click.pass_context
def servers(context: click.Context, words: tuple[str, ...], root: str | None, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """List the known language servers and which are installed.

    WORD narrows the list to a server, a language or an extension.
    """
    from pilotfish.surfaces.cli.terminal.servers_text import rows_json, table_lines

    rows = _rows(os.path.realpath(root_of(root)), words)
    if as_json:
        click.echo(json.dumps(rows_json(rows), indent=2))
    elif rows:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        click.echo("\n".join(table_lines(rows, width)))
    if not rows:
        click.echo(f"No server is known for {' '.join(words)}.", err=True)
        context.exit(1)


def _rows(root: str, words: tuple[str, ...]) -> list[ListedServer]:
    from pilotfish.config.places import user_places
    from pilotfish.model import AbsPath
    from pilotfish.servers.advice import PROGRAMS, install_command
    from pilotfish.servers.environment import beside_us, search_path
    from pilotfish.servers.locate import Lookup, ProgramMissing, locate, tool_folders
    from pilotfish.surfaces.cli.terminal.servers_text import ListedServer, is_wanted

    places = user_places(os.environ)
    specs, trusted = _specs(root, places)
    territory = (AbsPath(root),)
    path = search_path(os.environ.get("PATH", ""), territory, trusted=trusted)
    beside = beside_us(path, territory, trusted=trusted)
    lookup = Lookup(territory, trusted, path, tool_folders(places.state), beside)
    managers = {program for program in PROGRAMS.values() if shutil.which(program, path=os.pathsep.join(path))}
    rows: list[ListedServer] = []
    for spec in specs.values():
        if all(is_wanted(spec, word) for word in words):
            located = locate(spec.command[0], territory[0], lookup) if spec.command else ProgramMissing(spec.id, ())
            rows.append(ListedServer(spec, located, install_command(spec, managers.__contains__)))
    return rows


def _specs(root: str, places: Places) -> tuple[Mapping[str, ServerSpec], bool]:
    """The servers of this workspace, and whether it is trusted."""
    from pilotfish.config.places import project_files
    from pilotfish.servers.catalogue import builtin_layer, canonical_id, effective_servers, load

    # Reading the configuration is a seventh of what this verb takes, and most people have none.
    speaking = (places.global_file, places.pins, *(os.path.join(root, name) for _, name in project_files()))
    if not any(map(os.path.lexists, speaking)):
        return load(), False
    from pilotfish.config.load import Catalogue, ConfigRequest
    from pilotfish.config.load import load as load_config

    config = load_config(ConfigRequest(root, places, Catalogue(builtin_layer(), canonical_id))).config
    if not config.enabled:
        from msgspec.structs import replace

        return {server_id: replace(spec, disabled=True) for server_id, spec in load().items()}, config.trusted
    return effective_servers(config.servers), config.trusted
