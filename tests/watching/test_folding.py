"""Where a name is found in any case and composition of its letters, as on macOS and Windows: a file is one document."""

import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from unicodedata import normalize

import anyio
import pytest

from pilotfish.api.answers import State
from pilotfish.api.questions import Touch
from pilotfish.protocol.uris import path_of
from pilotfish.system.clock import WallClock
from pilotfish.system.watching.portable import events_watcher
from support.folding import folding
from support.servers.importer import importer
from support.services.watched import MAIN, WatchedService, watched_service
from support.watching.watched import BOUND_SECONDS

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.proves("PLAT-1", "DOC-4"),
    pytest.mark.skipif(sys.platform != "linux", reason="the disk itself is so, and this stands in for it"),
]

KEPT = normalize("NFD", "Café.fake")
SPELLINGS = [KEPT, normalize("NFC", KEPT), "CAFÉ.FAKE", "cafe\u0301.Fake"]


@pytest.fixture
async def work(tmp_path: Path) -> AsyncGenerator[WatchedService]:
    for name in ("disk", "mount"):
        (tmp_path / name).mkdir()
    with folding(tmp_path / "disk", tmp_path / "mount") as mount, anyio.fail_after(BOUND_SECONDS):
        async with watched_service(mount, importer, watch=lambda: aclosing(events_watcher(WallClock()))) as service:
            yield service


async def test_a_file_by_any_spelling_is_one_document_and_told_under_the_name_that_the_disk_has(
    work: WatchedService,
) -> None:
    work.write(SPELLINGS[1], "import gone.fake\n")
    for spelling in SPELLINGS:
        answer = await work.check(spelling)
        assert answer.meta.state is State.FRESH
        assert list(answer.data or {}) == [KEPT], spelling
    opened = [one.params for one in work.servers[0].received if one.method == "textDocument/didOpen"]
    assert [path_of(one["textDocument"]["uri"]) for one in opened] == [str(work.root / KEPT)]


async def test_what_is_written_by_another_spelling_is_a_change_of_the_file_that_is_there(work: WatchedService) -> None:
    work.write(KEPT, "x")
    work.write(MAIN, "import gone.fake\n")
    await work.errors()
    await work.watches()
    before = len(work.told())
    work.write("CAFÉ.FAKE", "y")
    work.write("GONE.fake")
    (work.root / "gone.FAKE").unlink()
    await work.caught_up()
    assert {told for one in work.told()[before:] for told in one} == {f"changed {KEPT}"}
    feedback = await work.service.touched(Touch(("MAIN.fake", MAIN, SPELLINGS[1]), "edit"), work.client)
    assert (feedback.state, feedback.text.count("there is no gone.fake")) == (State.FRESH, 1)
