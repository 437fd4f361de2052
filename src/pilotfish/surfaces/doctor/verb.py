"""`pilotfish doctor`: what works here, what is missing, and how to get it. Changes nothing.

Exit codes: 0 nothing to do, 1 something to do.
"""

import json
import os
import platform
import sys

import anyio
import click

from pilotfish.config.load import Loaded
from pilotfish.library.workspace import computer
from pilotfish.surfaces.cli.project import workspace_of
from pilotfish.surfaces.cli.workspace import host_option, root_of, root_option
from pilotfish.surfaces.doctor.bundle import write_bundle
from pilotfish.surfaces.doctor.report import DoctorReport, report_json, report_lines
from pilotfish.surfaces.doctor.servers import languages_of
from pilotfish.surfaces.doctor.setup import findings
from pilotfish.version import VERSION

TODO = 1


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
    report, loaded = _examined(os.path.abspath(root_of(root)))
    if as_json:
        click.echo(json.dumps(report_json(report), indent=2))
    else:
        click.echo("\n".join(report_lines(report)))
    if bundle is not None:
        held = write_bundle(bundle, report, loaded, os.environ)
        click.echo(f"\nWrote {bundle}. Read it before you share it. It contains:", err=True)
        click.echo("\n".join(f"  {line}" for line in held), err=True)
    context.exit(0 if report.is_well else TODO)


def _examined(root: str) -> tuple[DoctorReport, Loaded]:
    workspace, loaded = workspace_of(root)
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
    return report, loaded


def _say(server: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"starting {server} …", err=True)
