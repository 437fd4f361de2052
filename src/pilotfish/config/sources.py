"""Reading what speaks for the user and what speaks for a project (CFG-1, CFG-9): the first file that says something.

The candidates and their order are in `config.dialects`. Parent folders are never looked at.
"""

import os
from dataclasses import replace

from pilotfish.config.dialects import project_files, user_files
from pilotfish.config.files import UnreadableFile, WorkspaceFiles, read_user_file
from pilotfish.config.places import Places
from pilotfish.config.problems import Problem, ProblemGrade
from pilotfish.config.sheet import Names, Reader, Sheet
from pilotfish.config.values import ConfigSource
from pilotfish.model import AbsPath


def user_sheet(places: Places, host: str | None, canonical_id: Names) -> Sheet | None:
    """What the user says; None when no file says anything."""
    for dialect, path in user_files(places, host):
        sheet = _from_user(path, Reader(ConfigSource.GLOBAL, canonical_id, dialect))
        if sheet is not None:
            return sheet
    return None


def project_sheet(workspace: WorkspaceFiles, canonical_id: Names) -> Sheet | None:
    """What the project says; None when no file says anything."""
    for dialect, name in project_files():
        sheet = _from_project(workspace, name, Reader(ConfigSource.PROJECT, canonical_id, dialect))
        if sheet is not None:
            return sheet
    return None


def _from_user(path: AbsPath, reader: Reader) -> Sheet | None:
    try:
        file = read_user_file(path)
    except UnreadableFile as error:
        return reader.broken(path, str(error))
    sheet = reader.sheet(file.data, path) if file else None
    if file is None or sheet is None or file.tampering is None:
        return sheet
    problem = Problem(ProblemGrade.ERROR, path, ("security",), f"cannot grant trust: {file.tampering}")
    return replace(sheet, problems=(*sheet.problems, problem), sound=False, believable=False)


def _from_project(workspace: WorkspaceFiles, name: str, reader: Reader) -> Sheet | None:
    path = AbsPath(os.path.join(workspace.path, name))
    try:
        data = workspace.read(name)
    except UnreadableFile as error:
        return reader.broken(path, str(error))
    return None if data is None else reader.sheet(data, path)
