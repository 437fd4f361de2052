"""`pilotfish config show|check|schema`, `pilotfish trust`, `pilotfish untrust`: the config verbs of the command line.

They run without the daemon. Everything heavy (pydantic, the catalogue) is imported inside the verbs, so that the root
command can list them for the price of click.

Granting trust needs a person at a terminal, who is shown what would run and answers; the default answer is no.
Without a terminal the only way is `--hash`, with the digest that the terminal showed; it is not shown elsewhere, so
that a program that is refused is not told how to go on (T6, T11, T16).
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from pilotfish.errors import Code, Refused
from pilotfish.surfaces.cli.workspace import root_of, root_option

if TYPE_CHECKING:
    from pilotfish.config.load import ConfigRequest, Loaded
    from pilotfish.config.places import Places
    from pilotfish.config.trust import Trust, TrustOffer

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
directory_argument = click.argument("directory", metavar="[DIR]", required=False)
host_option = click.option("--host", metavar="NAME", default=None, help="As this host would see it (pi, llxprt, …).")


@click.group()
def config() -> None:
    """Show and check the configuration."""


@config.command()
@root_option
@host_option
@click.option("--changed", "changed_only", is_flag=True, help="Leave out defaults and the catalogue.")
@json_option
def show(root: str | None, host: str | None, changed_only: bool, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """Print the merged configuration with the origin of every value."""
    from pilotfish.surfaces.cli.terminal.config_text import show_json, show_lines

    loaded = _loaded(root_of(root), host)
    _print(show_json(loaded) if as_json else "\n".join(show_lines(loaded, changed_only=changed_only)))
    if loaded.errors and not as_json:
        click.echo(f"{len(loaded.errors)} error(s): see `pilotfish config check`", err=True)


@config.command()
@root_option
@host_option
@json_option
@click.pass_context
def check(context: click.Context, root: str | None, host: str | None, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """List everything that is wrong; exit 1 when something is."""
    from pilotfish.surfaces.cli.terminal.config_text import check_json, check_lines

    loaded = _loaded(root_of(root), host)
    _print(check_json(loaded) if as_json else "\n".join(check_lines(loaded)))
    context.exit(1 if loaded.errors else 0)


@config.command()
def schema() -> None:
    """Print the JSON Schema of lsp.json."""
    from pilotfish.config.schema import json_schema

    _print(json_schema())


@click.command()
@directory_argument
@root_option
@click.option("--list", "listing", is_flag=True, help="Show what is trusted.")
@click.option("--hash", "digest", metavar="DIGEST", help="Approve without a terminal what a terminal showed.")
@json_option
def trust(directory: str | None, root: str | None, listing: bool, digest: str | None, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """Show what a workspace would run, and allow it."""
    if listing:
        _print(_list_json() if as_json else "\n".join(_list_lines()))
    else:
        _offer_and_ask(directory or root_of(root), digest, as_json=as_json)


@click.command()
@directory_argument
@root_option
@json_option
def untrust(directory: str | None, root: str | None, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """Take back what `pilotfish trust` allowed."""
    from pilotfish.config.pins import remove_pin
    from pilotfish.config.problems import printable
    from pilotfish.config.trust import Trusted
    from pilotfish.model import AbsPath

    places = _places()
    # By name only: a workspace that is gone can still be forgotten.
    workspace = AbsPath(os.path.realpath(directory or root_of(root)))
    removed = remove_pin(places.pins, workspace)
    name = printable(workspace)
    text = f"Forgotten: {name}" if removed else f"There was no approval of {name}."
    _print({"root": workspace, "removed": removed} if as_json else text)
    if isinstance(still := _verdict(workspace), Trusted):
        message = f"{name} is still trusted: {still.why}"
        raise Refused(Code.INVALID_CONFIG, message, hint=f"Edit {places.global_file}.")


def _offer_and_ask(directory: str, digest: str | None, *, as_json: bool) -> None:
    """One open workspace from showing to storing: what is stored is what was shown."""
    from pilotfish.config.files import open_workspace
    from pilotfish.config.load import load_from
    from pilotfish.config.pins import BadPin, write_pin
    from pilotfish.config.problems import printable
    from pilotfish.config.trust import Trusted, barred, offer_of, pin_of
    from pilotfish.surfaces.cli.terminal.config_text import offer_json, offer_lines

    request = _request(directory)
    with open_workspace(directory) as workspace:
        loaded = load_from(workspace, request)
        offer = offer_of(workspace, loaded.project_file, loaded.project)
        verdict = loaded.config.trust
        lines = "\n".join(offer_lines(offer, workspace.path))
        _print(offer_json(offer, workspace.path, verdict) if as_json else lines)
        if isinstance(verdict, Trusted):
            click.echo(f"Already trusted: {verdict.why}.", err=True)
            return
        if reason := barred(workspace, loaded.user_rules, request.places, request.host):
            raise Refused(Code.UNTRUSTED, f"approving it would change nothing: {reason}")
        _approved(offer, verdict, digest)
        try:
            write_pin(request.places.pins, pin_of(workspace, offer))
        except (BadPin, OSError) as error:
            raise Refused(Code.UNTRUSTED, f"the approval cannot be stored: {error}") from None
    click.echo(f"Trusted: {printable(workspace.path)}", err=True)


def _approved(offer: TrustOffer, verdict: Trust, digest: str | None) -> None:
    """Return when a person approves; raise `Refused` otherwise."""
    from pilotfish.config.trust import Stale

    if digest is not None:
        if digest != offer.digest:
            raise Refused(Code.UNTRUSTED, "the hash is not that of what this workspace asks to run now")
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        hint = "Run `pilotfish trust` in a terminal. It shows the hash for --hash, too."
        raise Refused(Code.UNTRUSTED, "granting trust needs a person at a terminal", hint=hint)
    for line in verdict.differences if isinstance(verdict, Stale) else ():
        click.echo(f"  changed since it was trusted: {line}")
    click.echo(offer.digest)
    if not click.confirm("Trust it?", default=False):
        raise Refused(Code.UNTRUSTED, "not trusted")


def _list_lines() -> list[str]:
    from pilotfish.surfaces.cli.terminal.config_text import pin_line

    entries = [f"{entry}  trusted (security.trustedProjectRoots)" for entry in _listed_roots()]
    return [*entries, *(pin_line(pin, verdict) for pin, verdict in _pins())] or ["Nothing is trusted."]


def _list_json() -> dict[str, Any]:
    from pilotfish.surfaces.cli.terminal.config_text import pin_json

    return {"entries": _listed_roots(), "approved": [pin_json(pin, verdict) for pin, verdict in _pins()]}


def _listed_roots() -> list[str]:
    from pilotfish.config.sheets import user_sheet

    sheet = user_sheet(_places(), None, lambda name: name)
    section = sheet.value.get("security") if sheet else None
    entries = section.get("trustedProjectRoots") if isinstance(section, dict) else None
    return [str(entry) for entry in entries] if isinstance(entries, list) else []


def _pins() -> list[tuple[Any, Trust | None]]:
    from pilotfish.config.pins import Pin, all_pins

    pins = all_pins(_places().pins)
    return [(pin, _verdict(pin.path) if isinstance(pin, Pin) else None) for pin in pins]


def _verdict(root: str) -> Trust | None:
    try:
        return _loaded(root, None).config.trust
    except Refused:
        return None


def _loaded(root: str, host: str | None) -> Loaded:
    from pilotfish.config.load import load

    return load(_request(root, host))


def _request(root: str, host: str | None = None) -> ConfigRequest:
    from pilotfish.config.load import Catalogue, ConfigRequest
    from pilotfish.servers.catalogue import builtin_layer, canonical_id

    return ConfigRequest(root, _places(), Catalogue(builtin_layer(), canonical_id), host)


def _places() -> Places:
    from pilotfish.config.places import user_places

    return user_places(os.environ)


def _print(output: str | dict[str, Any]) -> None:
    click.echo(output if isinstance(output, str) else json.dumps(output, indent=2))
