"""`pilotfish doctor --bundle FILE`: a zip file for a bug report.

It contains no file of the workspace. Secrets are removed from every member, the home folder is written `~`, and of the
environment it has only the names of variables, and `PATH`.
"""

import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from typing import Any

from pilotfish.config.load import Loaded
from pilotfish.errors import Code, Failure, Refused
from pilotfish.ipc.client import Introduction, Terms, open_link
from pilotfish.ipc.log_tail import last_lines
from pilotfish.ipc.rendezvous import DaemonPlace
from pilotfish.sanitise import sanitised_lines
from pilotfish.surfaces.cli.terminal.config_text import show_json
from pilotfish.surfaces.doctor.report import DoctorReport, report_json, report_lines
from pilotfish.surfaces.redaction import redacted, redacted_text
from pilotfish.system import calls

LOG_LINES = 2000

MAX_TEXT = 2_000_000
"""Code points of one member."""


def write_bundle(file: str, report: DoctorReport, loaded: Loaded, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Write the file, readable by its owner alone, and return a line for each member. Raises `Refused` if it exists."""
    members = {name: _harmless(text, environment) for name, text in _members(report, loaded, environment)}
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


def _harmless(text: str, environment: Mapping[str, str]) -> str:
    home = environment.get("HOME", "")
    shorter = text.replace(home, "~") if len(home) > 1 else text
    return sanitised_lines(redacted_text(shorter), MAX_TEXT)
