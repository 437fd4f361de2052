"""What a workspace edit makes of the files as they are: carried out in memory, strictly, before a byte is written.

The operations are followed in their order, each on what those before it left; what comes out is one final state per
path, so that writing needs no order any more. Anything that may not or cannot be done refuses the whole: a text that is
not the one the server saw, a file outside or protected, a target that is there already, two edits of one place.
Nothing is read but the files that are edited, and nothing is written.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.api.answers import FileChange
from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath, Encoding
from pilotfish.operations.edits.changes import file_change, ordered
from pilotfish.paths import is_inside, shown_path
from pilotfish.policy.boundary import Admitted
from pilotfish.protocol.edits import (
    Create,
    Delete,
    EditOperation,
    EditPlan,
    OnExisting,
    Rename,
    Resource,
    TextChange,
    apply_edits,
)
from pilotfish.protocol.notebooks import is_notebook
from pilotfish.protocol.positions import Text
from pilotfish.system.ports import Identity

MAX_FILES = 1_000
"""Files of one edit. A rename in a very large project touches hundreds; beyond this a person should look first."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

WRITABLE = 0o222
"""A read-only file is not replaced either, though its folder would allow it."""


class Free(Struct, frozen=True):
    """Nothing is there, and a file may be."""

    place: Admitted


class Regular(Struct, frozen=True):
    """A file that may be changed."""

    place: Admitted
    identity: Identity
    mode: int


class StagedFolder(Struct, frozen=True):
    place: Admitted


class StagedTree(Struct, frozen=True):
    """All that is below a folder; `folders` has the folder itself first, and each before those in it."""

    files: tuple[Regular, ...]
    folders: tuple[Admitted, ...]


class Disk(Protocol):
    """The files as they are. Everything raises `Refused` for what may not be changed."""

    def at(self, path: AbsPath, *, itself: bool = False) -> Free | Regular | StagedFolder:
        """What is at a path. With `itself`, a symbolic link is refused and not followed."""
        ...

    def read(self, file: Regular) -> tuple[str, bool]:
        """The text without its byte-order mark, and whether there is one."""
        ...

    def tree(self, folder: StagedFolder) -> StagedTree: ...


class Put(Struct, frozen=True):
    """A file gets new content, or that of another file as it is, and the mode of `like`."""

    place: Admitted
    before: Regular | None
    content: bytes | Regular
    like: Regular | None


class Drop(Struct, frozen=True):
    place: Admitted
    before: Regular


class FileEffect(Struct, frozen=True):
    """What becomes of one file. Texts are there where they were needed."""

    old: AbsPath | None
    new: AbsPath | None
    before: str | None = None
    after: str | None = None
    edits: int = 0


class Staged(Struct, frozen=True):
    """All that is to be done: nothing, when `steps` is empty."""

    steps: tuple[Put | Drop, ...]
    emptied: tuple[Admitted, ...]
    """Folders that were moved or deleted, each before those in it."""
    effects: tuple[FileEffect, ...]

    def changes(self, workspace: AbsPath) -> tuple[FileChange, ...]:
        """As surfaces see it."""

        def shown(path: AbsPath | None) -> str | None:
            return None if path is None else shown_path(path, workspace)

        return ordered(
            file_change(shown(one.old), shown(one.new), one.before, one.after, one.edits) for one in self.effects
        )


class _File(Struct, frozen=True):
    """A file on the stage: where it came from, and its text as far as it was looked at."""

    origin: Regular | None
    before: str | None = None
    text: str | None = None
    mark: bool = False
    edits: int = 0

    @property
    def changed(self) -> bool:
        return self.text != self.before


class Stage(Struct):
    """The files so far. `seen` are the texts that the server has of them: what it says is about those."""

    disk: Disk
    encoding: Encoding
    seen: Mapping[AbsPath, str]
    _files: dict[AbsPath, _File | None] = field(default_factory=dict[AbsPath, _File | None])
    """By real path; None where there is nothing any more."""
    _entries: dict[AbsPath, Free | Regular] = field(default_factory=dict[AbsPath, Free | Regular])
    """What was on disk at each of those paths."""
    _emptied: dict[AbsPath, Admitted] = field(default_factory=dict[AbsPath, Admitted])

    def copy(self) -> "Stage":
        return Stage(self.disk, self.encoding, self.seen, {**self._files}, {**self._entries}, {**self._emptied})

    def perform(self, plan: EditPlan) -> None:
        """Raises `Refused`, or `Malformed` when edits contradict each other; the stage is then of no use any more."""
        for operation in plan.operations:
            self._perform(operation)
            if len(self._files) > MAX_FILES:
                raise Refused(Code.LIMIT_EXCEEDED, f"more than {MAX_FILES} files would change")

    def texts(self) -> dict[AbsPath, str]:
        """The text of every file that was edited, at its place by now."""
        return {path: file.text for path, file in self._files.items() if file is not None and file.text is not None}

    def staged(self) -> Staged:
        steps = tuple(step for path in self._files if (step := self._step(path)) is not None)
        return Staged(steps, tuple(self._emptied.values()), tuple(self._effects()))

    # --- Operations --------------------------------------------------------------------------------------------------

    def _perform(self, operation: EditOperation) -> None:
        match operation:
            case TextChange():
                path = self._at(operation.resource)
                file = self._read(path)
                text = apply_edits(Text(file.text or ""), operation.edits, self.encoding)
                self._files[path] = replace(file, text=text, edits=file.edits + len(operation.edits))
            case Create():
                self._create(operation)
            case Rename():
                self._rename(operation)
            case Delete():
                self._delete(operation)
            case _:
                assert_never(operation)

    def _create(self, operation: Create) -> None:
        path = self._at(operation.resource)
        if self._files[path] is None:
            self._files[path] = _File(None, None, "")
        elif operation.on_existing is OnExisting.FAIL:
            raise exists(path)
        elif operation.on_existing is OnExisting.OVERWRITE:
            self._files[path] = replace(self._read(path), text="")

    def _rename(self, operation: Rename) -> None:
        folder = self._maybe_folder(operation.source)
        if folder is not None:
            self._move_folder(folder, operation)
            return
        source, target = self._at(operation.source, itself=True), self._at(operation.target)
        file = self._there(source)
        if source == target:
            return
        if self._files[target] is not None:
            if operation.on_existing is OnExisting.IGNORE:
                return
            if operation.on_existing is OnExisting.FAIL:
                raise exists(target)
        self._files[source], self._files[target] = None, file

    def _move_folder(self, source: AbsPath, operation: Rename) -> None:
        target = _path_of(operation.target)
        if self._is_taken(operation.target):
            if operation.on_existing is OnExisting.IGNORE:
                return
            raise exists(target)
        if is_inside(target, source):
            raise Refused(Code.INVALID_INPUT, f"{source} cannot be moved into itself")
        for path in self._leave(source):
            moved = AbsPath(target + path[len(source) :])
            place = self._at(Resource(operation.target.uri, moved))
            self._files[path], self._files[place] = None, self._files[path]

    def _delete(self, operation: Delete) -> None:
        folder = self._maybe_folder(operation.resource)
        if folder is not None:
            for path in self._leave(folder):
                if not operation.recursive:
                    raise Refused(Code.INVALID_INPUT, f"{folder} is not empty")
                self._files[path] = None
            return
        path = self._at(operation.resource, itself=True)
        if self._files[path] is not None or not operation.ignore_missing:
            self._there(path)
            self._files[path] = None

    # --- What is where -----------------------------------------------------------------------------------------------

    def _at(self, resource: Resource, *, itself: bool = False) -> AbsPath:
        """The real path of a file or of the place for one; what is there is on the stage from now on."""
        named = _path_of(resource)
        if named in self._files:
            return named
        entry = self.disk.at(named, itself=itself)
        if isinstance(entry, StagedFolder):
            raise Refused(Code.NOT_A_FILE, f"{named} is a folder")
        self._bring(entry)
        return entry.place.path

    def _bring(self, entry: Free | Regular) -> None:
        path = entry.place.path
        if path not in self._files:
            self._entries[path] = entry
            self._files[path] = _File(entry) if isinstance(entry, Regular) else None

    def _there(self, path: AbsPath) -> _File:
        file = self._files[path]
        if file is None:
            raise Refused(Code.FILE_MISSING, f"{path} does not exist")
        return file

    def _read(self, path: AbsPath) -> _File:
        """The file with its text; that must be the one that the server saw."""
        file = self._there(path)
        if file.text is not None or file.origin is None:
            return file
        if not file.origin.mode & WRITABLE:
            raise Refused(Code.PROTECTED, f"{path} is read-only")
        if is_notebook(path):
            raise Refused(Code.UNSUPPORTED, f"{path} is a notebook, whose cells only an editor of notebooks can write")
        text, mark = self.disk.read(file.origin)
        if self.seen.get(file.origin.place.path, text) != text:
            raise Refused(Code.STALE, f"{path} has changed since the server read it", hint="Ask again.")
        return replace(file, before=text, text=text, mark=mark)

    def _maybe_folder(self, resource: Resource) -> AbsPath | None:
        """The folder that is there by now, on disk or by what was moved into it."""
        path = _path_of(resource)
        if path in self._files:
            return None
        entry = self.disk.at(path)
        if isinstance(entry, StagedFolder) and entry.place.path not in self._emptied:
            return entry.place.path
        return path if any(self._living_below(path)) else None

    def _is_taken(self, resource: Resource) -> bool:
        path = _path_of(resource)
        if path in self._files:
            return self._files[path] is not None
        return self._maybe_folder(resource) is not None or isinstance(self.disk.at(path), Regular)

    def _leave(self, folder: AbsPath) -> tuple[AbsPath, ...]:
        """Every file that is below a folder by now; the folder itself is going."""
        entry = self.disk.at(folder, itself=True)
        if isinstance(entry, StagedFolder):
            tree = self.disk.tree(entry)
            for file in tree.files:
                self._bring(file)
            self._emptied.update((place.path, place) for place in tree.folders)
        return tuple(self._living_below(folder))

    def _living_below(self, folder: AbsPath) -> Iterator[AbsPath]:
        return (path for path, file in self._files.items() if file is not None and is_inside(path, folder))

    def _regular(self, path: AbsPath) -> Regular | None:
        entry = self._entries[path]
        return entry if isinstance(entry, Regular) else None

    # --- What comes of it --------------------------------------------------------------------------------------------

    def _step(self, path: AbsPath) -> Put | Drop | None:
        file, before, place = self._files[path], self._regular(path), self._entries[path].place
        if file is None:
            return None if before is None else Drop(place, before)
        if file.origin is not None and not file.changed:
            return None if file.origin == before else Put(place, before, file.origin, file.origin)
        return Put(place, before, _content(file, path), file.origin or before)

    def _effects(self) -> Iterator[FileEffect]:
        moved = {
            file.origin.place.path for file in self._files.values() if file is not None and file.origin is not None
        }
        for path, file in self._files.items():
            if file is None:
                if self._regular(path) is not None and path not in moved:
                    yield FileEffect(path, None)
                continue
            same = None if self._regular(path) is None else path
            old = same if file.origin is None else file.origin.place.path
            if old != path or file.origin is None or file.changed:
                yield FileEffect(old, path, file.before, file.text, file.edits)


def _content(file: _File, path: AbsPath) -> bytes:
    try:
        return (BYTE_ORDER_MARK if file.mark else b"") + (file.text or "").encode()
    except UnicodeEncodeError:
        raise Refused(Code.UNSUPPORTED, f"the new text of {path} cannot be written as UTF-8") from None


def _path_of(resource: Resource) -> AbsPath:
    if resource.path is None:
        raise Refused(Code.EXTERNAL, f"{resource.uri} is not a file on this machine")
    return resource.path


def exists(path: AbsPath) -> Refused:
    """Why nothing is put or moved there."""
    return Refused(Code.INVALID_INPUT, f"{path} is there already")
