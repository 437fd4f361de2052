"""Where the two sides meet, and what they check."""

import os
import shutil
import socket
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.config.places import user_places
from pilotfish.daemon import claim as claiming
from pilotfish.daemon.claim import claim_daemon, listen, make_private, take_lock, try_lock
from pilotfish.ipc import rendezvous
from pilotfish.ipc.rendezvous import (
    MAX_SOCKET_PATH,
    Busy,
    DaemonPlace,
    NoDaemon,
    Unsafe,
    connect,
    peer_user,
    state_folder,
)

FOLDERS = st.sampled_from(["", "relative", "/home/me", "/home/me/", "/a/../b", "/ü\udcff", "~/x"])
NAMES = ("HOME", "XDG_STATE_HOME", "PILOTFISH_HOME", "XDG_CONFIG_HOME")


@given(st.dictionaries(st.sampled_from(NAMES), FOLDERS))
def test_both_modules_that_know_the_state_folder_agree(environment: dict[str, str]) -> None:
    assert state_folder(environment) == user_places(environment).state


@pytest.fixture
def place(tmp_path: Path) -> DaemonPlace:
    return DaemonPlace({"PILOTFISH_HOME": str(tmp_path / "state")})


@pytest.mark.proves("F70", "T22", "A13.2")
@pytest.mark.parametrize("length", [10, 150])
def test_a_socket_path_fits_and_a_folder_that_a_neighbour_took_is_not_used(tmp_path: Path, length: int) -> None:
    long, is_short = DaemonPlace({"PILOTFISH_HOME": str(tmp_path / ("x" * length))}), length > MAX_SOCKET_PATH
    with pytest.raises(NoDaemon):
        connect(long, 1.0)
    folders: list[str] = []
    for _ in range(2):
        claim = claim_daemon(long)
        assert claim is not None
        connect(long, 1.0).close()
        folders.append(long.socket_folder)
        claim.listener.close()
        os.close(claim.lock)
        assert len(os.fsencode(long.socket)) <= MAX_SOCKET_PATH
        if is_short:
            # What a neighbour does who has seen the name, once the folder was cleared away.
            shutil.rmtree(long.socket_folder)
            Path(long.socket_folder).touch()
    assert len(set(folders)) == (2 if is_short else 1)
    for folder in set(folders) if is_short else ():
        Path(folder).unlink()


def test_the_names_carry_the_version_of_the_protocol(place: DaemonPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendezvous, "PROTOCOL", rendezvous.PROTOCOL + 1)
    newer = DaemonPlace({"PILOTFISH_HOME": place.state})
    assert {newer.socket, newer.lock, newer.start_lock}.isdisjoint({place.socket, place.lock, place.start_lock})


def test_nobody_listens_where_there_is_nothing(place: DaemonPlace) -> None:
    with pytest.raises(NoDaemon):
        connect(place, 1.0)
    make_private(place.folder)
    with pytest.raises(NoDaemon):
        connect(place, 1.0)


@pytest.mark.proves("F69")
def test_a_socket_that_nobody_listens_at_is_stale_and_replaced_under_the_lock(place: DaemonPlace) -> None:
    make_private(place.folder)
    listen(place).close()
    with pytest.raises(NoDaemon):
        connect(place, 1.0)
    claim = claim_daemon(place)
    assert claim is not None
    connect(place, 1.0).close()
    claim.listener.close()
    os.close(claim.lock)


@pytest.mark.proves("F68")
def test_whoever_comes_second_is_told_that_another_serves(place: DaemonPlace) -> None:
    claim = claim_daemon(place)
    assert claim is not None
    assert claim_daemon(place) is None
    claim.listener.close()
    os.close(claim.lock)


@pytest.mark.proves("F68")
def test_one_that_holds_the_lock_and_does_not_listen_is_waited_for(place: DaemonPlace) -> None:
    claim = claim_daemon(place)
    assert claim is not None
    claim.listener.close()
    with pytest.raises(TimeoutError):
        claim_daemon(place, seconds=1)
    timer = threading.Timer(0.1, os.close, [claim.lock])
    timer.start()
    second = claim_daemon(place)
    timer.join()
    assert second is not None
    second.listener.close()
    os.close(second.lock)


def test_a_full_daemon_is_busy_and_not_dead(place: DaemonPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claiming, "BACKLOG", 0)
    claim = claim_daemon(place)
    assert claim is not None
    knocking = [connect(place, 1.0)]
    with pytest.raises(Busy):
        knocking += iter(lambda: connect(place, 1.0), None)
    assert claim_daemon(place) is None
    for end in (*knocking, claim.listener):
        end.close()
    os.close(claim.lock)


def test_a_lock_whose_file_was_replaced_is_no_lock(place: DaemonPlace) -> None:
    make_private(place.folder)
    held = take_lock(place.lock)
    os.unlink(place.lock)
    other = try_lock(place.lock)
    assert other is not None
    assert try_lock(place.lock) is None
    os.close(held)
    os.close(other)


def test_a_claim_knows_when_its_lock_is_gone(place: DaemonPlace) -> None:
    claim = claim_daemon(place)
    assert claim is not None
    assert claim.holds()
    os.unlink(place.lock)
    assert not claim.holds()
    Path(place.lock).touch()
    assert not claim.holds()
    claim.listener.close()
    os.close(claim.lock)


@pytest.mark.proves("T22")
def test_a_folder_of_ours_that_is_open_to_others_is_closed_by_the_daemon(place: DaemonPlace) -> None:
    os.makedirs(place.folder, 0o777)
    os.chmod(place.folder, 0o777)
    make_private(place.folder)
    assert os.stat(place.folder).st_mode & 0o777 == 0o700


@pytest.mark.proves("T22")
def test_a_client_does_not_enter_a_folder_that_is_open_to_others(place: DaemonPlace) -> None:
    claim = claim_daemon(place)
    assert claim is not None
    os.chmod(place.folder, 0o770)
    with pytest.raises(Unsafe):
        connect(place, 1.0)
    claim.listener.close()
    os.close(claim.lock)


@pytest.mark.proves("T22", "T23")
def test_a_client_does_not_speak_to_another_user(place: DaemonPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = claim_daemon(place)
    assert claim is not None
    monkeypatch.setattr(rendezvous, "peer_user", Mock(return_value=os.geteuid() + 1))
    with pytest.raises(Unsafe):
        connect(place, 1.0)
    claim.listener.close()
    os.close(claim.lock)


def test_the_user_at_the_other_end_is_known() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert peer_user(one) == os.geteuid()
