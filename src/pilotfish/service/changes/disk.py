"""The files of one workspace that an edit may change, as they are on disk now.

Every path passes the boundary. Dependencies inside the workspace are other people's code and are refused, too.
"""

import os
import stat

from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.operations.edits.staging import MAX_FILES, Disk, Free, Regular, StagedFolder, StagedTree
from pilotfish.policy.boundary import Boundary, Place, Want, admit, open_admitted
from pilotfish.policy.openat import identity_of, parent_of, status_of
from pilotfish.system.ports import EditableFiles


class DiskNow(Disk):
    def __init__(self, boundary: Boundary, files: EditableFiles) -> None:
        self._boundary = boundary
        self._files = files

    def at(self, path: AbsPath, *, itself: bool = False) -> Free | Regular | StagedFolder:
        try:
            place = admit(path, self._boundary, Want.TARGET)
        except Refused as refusal:
            if refusal.code is not Code.NOT_A_FILE:
                raise
            place = admit(path, self._boundary, Want.TREE)
        if place.place is not Place.IN_ROOT:
            raise Refused(Code.EXTERNAL, f"{path} is not changed: it is in a folder of dependencies")
        if itself and os.path.islink(path):
            raise Refused(Code.NOT_A_FILE, f"{path} is a symbolic link")
        try:
            with parent_of(place.root, place.segments) as (folder, name):
                status = status_of(folder, name)
        except Refused as refusal:
            if refusal.code is not Code.FILE_MISSING:
                raise
            status = None
        if status is None:
            return Free(place)
        if stat.S_ISDIR(status.st_mode):
            return StagedFolder(place)
        return Regular(place, identity_of(status), stat.S_IMODE(status.st_mode))

    def read(self, file: Regular) -> tuple[str, bool]:
        path, descriptor = file.place.path, open_admitted(file.place)
        try:
            found = self._files.read_opened(path, descriptor)
        finally:
            os.close(descriptor)
        if found.identity != file.identity:
            raise Refused(Code.STALE, f"{path} has changed since it was listed", hint="Try again.")
        if found.encoding != "utf-8":
            raise Refused(Code.UNSUPPORTED, f"{path} is not changed: its encoding is {found.encoding}")
        return found.text, found.bom

    def tree(self, folder: StagedFolder) -> StagedTree:
        files: list[Regular] = []
        folders = [folder.place]
        for place in folders:
            with os.scandir(place.path) as entries:
                paths = sorted(entry.path for entry in entries)
            for path in paths:
                entry = self.at(AbsPath(path), itself=True)
                if isinstance(entry, StagedFolder):
                    folders.append(entry.place)
                elif isinstance(entry, Regular):
                    files.append(entry)
            if len(files) + len(folders) > MAX_FILES:
                raise Refused(Code.LIMIT_EXCEEDED, f"more than {MAX_FILES} files in {folder.place.path}")
        return StagedTree(tuple(files), tuple(folders))
