"""Which files a registration is about: document selectors and the filters of file operations.

Lenient: a filter that is malformed or has a bad glob selects nothing, and the others beside it still count.
Every document here is a file, so a filter for another scheme, or for the cells of a notebook, selects nothing.
"""

from pilotfish.model import AbsPath
from pilotfish.protocol.codec import fields, items, member
from pilotfish.protocol.glob_regex import BadGlob
from pilotfish.protocol.globs import file_glob, slashed

SCHEMES = (None, "*", "file")


def selects(selector: object, path: AbsPath, language_id: str | None) -> bool:
    """Whether a `documentSelector` takes in this document. Null leaves it to us, and we ask about all that we route."""
    if selector is None:
        return True
    return any(_filter_selects(item, path, language_id) for item in items(selector))


def wants_file_operation(options: object, path: AbsPath, *, is_folder: bool) -> bool:
    """Whether `FileOperationRegistrationOptions` take in this file or folder."""
    return any(_operation_wanted(item, path, is_folder=is_folder) for item in items(member(options, "filters")))


def _filter_selects(item: object, path: AbsPath, language_id: str | None) -> bool:
    if isinstance(item, str):
        # Before 3.0 a filter could be just the language.
        item = {"language": item}
    found = fields(item)
    language, pattern = found.get("language"), found.get("pattern")
    if "notebook" in found or not found.keys() & {"language", "scheme", "pattern"}:
        return False
    # A document that is not open has no language yet; we would not ask this server about one that it does not know.
    spoken = language_id is None or language in (None, "*", language_id)
    if found.get("scheme") not in SCHEMES or not spoken:
        return False
    return pattern is None or pattern == slashed(path) or _matches(pattern, path)


def _operation_wanted(item: object, path: AbsPath, *, is_folder: bool) -> bool:
    found = fields(item)
    pattern = fields(found.get("pattern"))
    if found.get("scheme") not in SCHEMES or pattern.get("matches") not in (None, "folder" if is_folder else "file"):
        return False
    return _matches(pattern.get("glob"), path, ignore_case=member(pattern, "options", "ignoreCase") is True)


def _matches(pattern: object, path: AbsPath, *, ignore_case: bool = False) -> bool:
    try:
        return file_glob(pattern, ignore_case=ignore_case).matches(path)
    except BadGlob:
        return False
