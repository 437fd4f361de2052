"""What a server looks up is what the catalogue names: judged from a trace, and as it was recorded."""

import pytest

from pilotfish.servers.catalogue import load
from support.proving.lookups import HARMLESS, look_ups, looked_up, named
from support.proving.play import NotProven
from support.proving.rows import rows

pytestmark = pytest.mark.proves("F95", "P7")


def test_what_the_catalogue_names_is_told_by_its_pattern() -> None:
    found = ["ty.toml", "../ty.toml", "~/.config/ty/ty.toml", ".git/HEAD"]
    assert {"ty.toml", "../ty.toml", "~/.config/ty/ty.toml"} <= {*look_ups(rows()["ty"], found)}


@pytest.mark.parametrize("path", ["mypy.ini", "../mypy.ini", "~/.config/mypy.ini"])
def test_what_it_does_not_name_is_not_proven(path: str) -> None:
    with pytest.raises(NotProven, match="does not name"):
        look_ups(rows()["ty"], ["ty.toml", path])


def test_the_catalogue_still_names_what_was_looked_up() -> None:
    traces = looked_up()
    assert len(traces) > 70
    assert [server for server, one in traces.items() if {*one.patterns} - {*named(load()[server])}] == []


def test_whatever_is_harmless_says_why() -> None:
    assert all([*HARMLESS.values(), *(why for row in rows().values() for why in row.harmless.values())])
