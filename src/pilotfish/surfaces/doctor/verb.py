"""`pilotfish doctor`: what works here, what is missing, and how to get it. Changes nothing.

Exit codes: 0 nothing to do, 1 something to do.
"""

import json
import os
import platform
import sys
import zipfile
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from typing import Any

import anyio
import click

from pilotfish.config.load import Loaded
from pilotfish.errors import Code, Failure, Refused
from pilotfish.ipc.client import Introduction, Terms, open_link
from pilotfish.ipc.logs import last_lines
from pilotfish.ipc.rendezvous import DaemonPlace
from pilotfish.library.workspace import computer
from pilotfish.sanitise import sanitised_lines
from pilotfish.surfaces.cli.project import workspace_of
from pilotfish.surfaces.cli.terminal.config_text import show_json
from pilotfish.surfaces.cli.workspace import host_option, root_of, root_option
from pilotfish.surfaces.doctor.report import DoctorReport, report_json, report_lines
from pilotfish.surfaces.doctor.servers import languages_of
from pilotfish.surfaces.doctor.setup import findings
from pilotfish.surfaces.redaction import redacted, redacted_text
from pilotfish.system import calls
from pilotfish.version import VERSION

TODO = 1

LOG_LINES = 2000

MAX_TEXT = 2_000_000  # Code points of one member


@click.command()
@root_option
@host_option
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--bundle", metavar="FILE", help="Write a zip file for a bug report, secrets removed.")
@click.pass_context
def doctor(context: click.Context, root: str | None, as_json: bool, bundle: str | None) -> None:  # noqa: FBT001 -- click passes flags
    """Show what works, what is missing, and how to get it.

    Starts every language server that this workspace uses, once, and stops it again. Exit code: 0, 1 if there is
    something to do.
    """
    workspace, loaded = workspace_of(os.path.abspath(root_of(root)))
    languages, unserved = anyio.run(languages_of, workspace, computer(os.environ).spawn, _say)
    report = DoctorReport(
        version=VERSION,
        system=f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        root=workspace.root,
        trusted=workspace.config.trusted,
        languages=languages,
        findings=findings(loaded, os.environ),
        unserved=unserved,
    )
    if as_json:
        click.echo(json.dumps(report_json(report), indent=2))
    else:
        click.echo("\n".join(report_lines(report)))
    if bundle is not None:
        held = write_bundle(bundle, report, loaded, os.environ)
        click.echo(f"\nWrote {bundle}. Read it before you share it. It contains:", err=True)
        click.echo("\n".join(f"  {line}" for line in held), err=True)
    context.exit(0 if report.is_well else TODO)


def _say(server: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"starting {server} …", err=True)


# --- The file for a bug report ---------------------------------------------------------------------------------------

# It contains no file of the workspace. Secrets are removed from every member, the home folder is written `~`, and of
# the environment it has only the names of variables, and `PATH`.


def write_bundle(file: str, report: DoctorReport, loaded: Loaded, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Write the file, readable by its owner alone, and return a line for each member. Raises `Refused` if it exists."""
    home = environment.get("HOME", "")
    members: dict[str, str] = {}
    for name, text in _members(report, loaded, environment):
        shorter = text.replace(home, "~") if len(home) > 1 else text
        members[name] = sanitised_lines(redacted_text(shorter), MAX_TEXT)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | calls.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Refused(Code.INVALID_INPUT, f"the bundle cannot be written: {error}") from None
    with os.fdopen(descriptor, "wb") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return tuple(f"{name}  {len(text.encode())} bytes" for name, text in members.items())


def _members(report: DoctorReport, loaded: Loaded, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield "doctor.txt", "\n".join(report_lines(report)) + "\n"
    yield "doctor.json", _json(report_json(report))
    yield "config.json", _json(show_json(loaded))
    yield "status.json", _json(_ask(report.root, environment, "status"))
    yield "stats.json", _json(_ask(report.root, environment, "stats"))
    yield "daemon.log", "\n".join(last_lines(DaemonPlace(environment).log, LOG_LINES)) + "\n"
    yield "environment.txt", "\n".join((f"PATH={environment.get('PATH', '')}", *sorted(environment))) + "\n"
    packages = sorted(f"{one.name}=={one.version}" for one in distributions())
    yield "packages.txt", "\n".join(packages) + "\n"


def _ask(root: str, environment: Mapping[str, str], method: str) -> Any:
    """The daemon's answer, if it runs."""
    try:
        with open_link(Introduction(cwd=root, root=root), Terms(environment, start=False)) as link:
            return link.request(method)
    except Failure as failure:
        return {"unavailable": failure.message}


def _json(value: object) -> str:
    return json.dumps(redacted(value), indent=1) + "\n"
