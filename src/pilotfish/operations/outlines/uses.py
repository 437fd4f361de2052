"""Places that use something, by the symbol around them."""

from collections.abc import Iterable, Sequence

from pilotfish.api.answers import Location, Use


def grouped(places: Iterable[Location]) -> tuple[Use, ...]:
    """One row for each file and symbol, in the order of the places."""
    rows: dict[tuple[str, str | None], list[Location]] = {}
    for place in places:
        rows.setdefault((place.path, place.within), []).append(place)
    return tuple(_row(path, within, found) for (path, within), found in rows.items())


def _row(path: str, within: str | None, places: Sequence[Location]) -> Use:
    lines = tuple(dict.fromkeys(place.line for place in places))
    return Use(path=path, lines=lines, within=within, text=places[0].text)
