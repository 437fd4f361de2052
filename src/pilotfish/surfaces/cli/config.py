"""`pilotfish config show|check|schema`, `pilotfish trust`, `pilotfish untrust`: the config verbs of the command line.

They run without the daemon.

Granting trust needs a person at a terminal, who is shown what would run and answers; the default answer is no.
Without a terminal the only way is `--hash`, with the digest that a terminal showed of this very folder; it is not shown
elsewhere, so that a program that is refused does not learn how to go on (T6, T11, T16, T51).
"""

import json
import os
import sys
from dataclasses import replace
from typing import Any

import click

from pilotfish.config.files import WorkspaceFiles, open_workspace
from pilotfish.config.host_trust import HostTrust, host_trusted_folders
from pilotfish.config.load import Loaded, load, load_from
from pilotfish.config.places import Places, user_places
from pilotfish.config.problems import printable
from pilotfish.config.schema import json_schema
from pilotfish.config.sheets import read_user_sheet
from pilotfish.config.trust import (
    BadPin,
    Pin,
    Stale,
    Trust,
    Trusted,
    TrustOffer,
    find_obstacle,
    pin_of,
    read_offer,
    read_pins,
    remove_pin,
    was_shown,
    write_pin,
)
from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.policy.boundary import boundary_of
from pilotfish.service.workspace import Workspace
from pilotfish.surfaces.cli.project import waiting_servers
from pilotfish.surfaces.cli.terminal.config_text import (
    check_json,
    check_lines,
    offer_json,
    offer_lines,
    pin_json,
    pin_line,
    show_json,
    show_lines,
)
from pilotfish.surfaces.cli.workspace import config_request, host_option, json_option, root_of, root_option
from pilotfish.system.real_path import real_path

directory_argument = click.argument("directory", metavar="[DIR]", required=False)


@click.group()
def config() -> None:
    """Show and check the configuration."""


@config.command()
@root_option
@host_option
@click.option("--changed", "changed_only", is_flag=True, help="Leave out defaults and the catalogue.")
@json_option
def show(root: str | None, changed_only: bool, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """Print the merged configuration with the origin of every value."""
    loaded = _load(root_of(root))
    _print(show_json(loaded) if as_json else "\n".join(show_lines(loaded, changed_only=changed_only)))
    if loaded.errors and not as_json:
        click.echo(f"{len(loaded.errors)} error(s): see `pilotfish config check`", err=True)


@config.command()
@root_option
@host_option
@json_option
@click.pass_context
def check(context: click.Context, root: str | None, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """List errors and warnings; exit 1 if there is an error."""
    loaded = _with_unused_entries(_load(root_of(root)))
    _print(check_json(loaded) if as_json else "\n".join(check_lines(loaded)))
    context.exit(1 if loaded.errors else 0)


@config.command()
def schema() -> None:
    """Print the JSON Schema of lsp.json."""
    _print(json_schema())


@click.command()
@directory_argument
@root_option
@click.option("--list", "listing", is_flag=True, help="List what is trusted.")
@click.option("--hash", "digest", metavar="DIGEST", help="Approve what has this hash, without a terminal.")
@json_option
def trust(directory: str | None, root: str | None, listing: bool, digest: str | None, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """Show what a workspace asks to run, and ask whether to trust it."""
    if listing:
        _print(_list_json() if as_json else "\n".join(_list_lines()))
    else:
        _offer_and_ask(directory or root_of(root), digest, as_json=as_json)


@click.command()
@directory_argument
@root_option
@json_option
def untrust(directory: str | None, root: str | None, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """Withdraw the trust that `pilotfish trust` gave."""
    places = user_places(os.environ)
    # By name only: trust in a workspace that is gone can be withdrawn, too.
    workspace = AbsPath(real_path(directory or root_of(root)))
    removed = remove_pin(places.pins, workspace)
    remove_pin(places.shown, workspace)
    name = printable(workspace)
    text = f"no longer trusted: {name}" if removed else f"not approved with pilotfish trust: {name}"
    _print({"root": workspace, "removed": removed} if as_json else text)
    if isinstance(still := _read_trust(workspace), Trusted):
        message = f"{name} is still trusted: {still.why}"
        hint = f"Edit {places.global_file}."
        if still.is_adopted:
            hint = f"Take it back there, or set security.hostTrust to false in {places.global_file}."
        raise Refused(Code.INVALID_CONFIG, message, hint=hint)


def _offer_and_ask(directory: str, digest: str | None, *, as_json: bool) -> None:
    """The workspace stays open from showing to storing: what is stored is what was shown."""
    request = config_request(directory)
    with open_workspace(directory) as workspace:
        loaded = load_from(workspace, request)
        offer = read_offer(workspace, loaded.project_file, loaded.project)
        verdict = loaded.config.trust
        lines = "\n".join(offer_lines(offer, workspace.path, waiting_servers(workspace.path)))
        _print(offer_json(offer, workspace.path, verdict) if as_json else lines)
        if isinstance(verdict, Trusted) and not verdict.is_adopted:
            click.echo(f"Already trusted: {verdict.why}.", err=True)
            return
        if reason := find_obstacle(workspace, loaded.user_rules, request.places, request.host):
            raise Refused(Code.UNTRUSTED, f"an approval would not count: {reason}")
        if digest is None:
            _ask(request.places, workspace, offer, verdict)
        else:
            _approve_shown(request.places, workspace, offer, digest)
        try:
            write_pin(request.places.pins, pin_of(workspace, offer))
        except (BadPin, OSError) as error:
            raise Refused(Code.UNTRUSTED, f"the approval cannot be stored: {error}") from None
    click.echo(f"Trusted: {printable(workspace.path)}", err=True)


def _approve_shown(places: Places, workspace: WorkspaceFiles, offer: TrustOffer, digest: str) -> None:
    """Return when a person was shown this offer; raises `Refused` otherwise."""
    hint = "Run `pilotfish trust` in a terminal. It shows the hash for --hash, too."
    if not offer.entries:
        message = "this workspace asks to run nothing of its own, so there is nothing that a hash could name"
        raise Refused(Code.UNTRUSTED, message, hint="Run `pilotfish trust` in a terminal.")
    if digest != offer.digest:
        raise Refused(Code.UNTRUSTED, "the hash does not match what this workspace asks to run now")
    if not was_shown(places, workspace, offer):
        raise Refused(Code.UNTRUSTED, "no terminal has shown this offer of this folder", hint=hint)


def _ask(places: Places, workspace: WorkspaceFiles, offer: TrustOffer, verdict: Trust) -> None:
    """Return when a person at a terminal approves; raises `Refused` otherwise."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        more = " It shows the hash for --hash, too." if offer.entries else ""
        hint = f"Run `pilotfish trust` in a terminal.{more}"
        raise Refused(Code.UNTRUSTED, "granting trust needs a person at a terminal", hint=hint)
    for line in verdict.differences if isinstance(verdict, Stale) else ():
        click.echo(f"  changed since it was trusted: {line}")
    if offer.entries:
        try:
            write_pin(places.shown, pin_of(workspace, offer))
        except (BadPin, OSError) as error:
            raise Refused(Code.UNTRUSTED, f"the approval cannot be stored: {error}") from None
        click.echo(offer.digest)
    if not click.confirm("Trust it?", default=False):
        raise Refused(Code.UNTRUSTED, "not trusted")


def _list_lines() -> list[str]:
    entries = [f"{entry}  trusted (security.trustedProjectRoots)" for entry in _read_trusted_roots()]
    entries += [f"{printable(folder)}  {printable(said.why)}" for folder, said in _read_host_trust()]
    return [*entries, *(pin_line(pin, verdict) for pin, verdict in _read_pins())] or ["Nothing is trusted."]


def _list_json() -> dict[str, Any]:
    hosts = [{"root": folder, "host": said.title, "file": said.file} for folder, said in _read_host_trust()]
    approved = [pin_json(pin, verdict) for pin, verdict in _read_pins()]
    return {"entries": _read_trusted_roots(), "approved": approved, "hosts": hosts}


def _read_host_trust() -> list[tuple[str, HostTrust]]:
    """The folders that hosts trust, where that counts."""

    def counts(folder: str) -> bool:
        trust = _read_trust(folder)
        return isinstance(trust, Trusted) and trust.is_adopted

    return [(folder, said) for folder, said in host_trusted_folders(user_places(os.environ)) if counts(folder)]


def _read_trusted_roots() -> list[str]:
    sheet = read_user_sheet(user_places(os.environ), None, lambda name: name)
    section = sheet.value.get("security") if sheet else None
    entries = section.get("trustedProjectRoots") if isinstance(section, dict) else None
    return [str(entry) for entry in entries] if isinstance(entries, list) else []


def _read_pins() -> list[tuple[Any, Trust | None]]:
    pins = read_pins(user_places(os.environ).pins)
    return [(pin, _read_trust(pin.path) if isinstance(pin, Pin) else None) for pin in pins]


def _read_trust(root: str) -> Trust | None:
    try:
        return _load(root).config.trust
    except Refused:
        return None


def _load(root: str) -> Loaded:
    return load(config_request(root))


def _with_unused_entries(loaded: Loaded) -> Loaded:
    """With warnings about entries that change nothing, which depends on the programs that are here."""
    folder = loaded.config.root
    problems = Workspace(loaded, boundary_of(folder, folder), user_places(os.environ), os.environ).unused_entries()
    for sheet in loaded.sheets:
        problems = tuple(map(sheet.placed, problems))
    return replace(loaded, problems=(*loaded.problems, *problems))


def _print(output: str | dict[str, Any]) -> None:
    click.echo(output if isinstance(output, str) else json.dumps(output, indent=2))
