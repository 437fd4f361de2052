"""What is right: an answer must name what the fixture says it must, on the first call."""

import re

from parity.fixtures import Place

MISSING = re.compile(r"\b(?:missing|shared)_\d+")
"""Names that edits use and that nothing defines."""


def is_right(operation: str, place: Place, answer: str) -> bool:
    """References name the file of the call, the others the function itself."""
    match operation:
        case "definition":
            return is_definition(place, answer)
        case "references":
            return place.file in answer
        case "symbols":
            return f"f{place.file.removeprefix('module_').split('.')[0]}_0" in answer
        case _:
            return place.name in answer


def is_definition(place: Place, answer: str) -> bool:
    """The file, and its line counted from 0 or from 1."""
    return (
        place.target in answer
        and re.search(rf"\b(?:{place.target_line}|{place.target_line + 1})\b", answer) is not None
    )
