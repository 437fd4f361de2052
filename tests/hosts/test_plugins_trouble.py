"""The Pi extension when the daemon is missing, dead, hung, leaving or somebody else: the edit stays as it is.

What is proven here of the text that both plugins share holds for OpenCode, too.
"""

import os
import select
import signal
from pathlib import Path

import pytest

from pilotfish.daemon.claim import listen
from pilotfish.protocol.frames import frame
from support.daemon.homes import WAIT_SECONDS, DaemonHome, ended
from support.daemon.surroundings import another_user, given
from support.hosts.daemon_trouble import a_hung_daemon, impostor
from support.hosts.pi_events import asked, edited, result, status_after
from support.hosts.plugins import NOWHERE, driven

pytestmark = pytest.mark.host("node")


@pytest.mark.proves("HOOK-1", "FMT-8")
def test_the_extension_starts_the_daemon_and_another_when_that_was_killed(own: DaemonHome, tmp_path: Path) -> None:
    with driven("pi", own, tmp_path, waitMs=50_000) as pi:
        assert "bad word" in edited(pi)["content"][1]["text"]
        (daemon,) = own.daemons()
        os.kill(daemon, signal.SIGKILL)
        assert "bad word" in edited(pi)["content"][1]["text"]


@pytest.mark.proves("FMT-8")
@pytest.mark.parametrize(
    ("command", "said"),
    [
        pytest.param(NOWHERE, "pilotfish cannot be run", id="no program"),
        pytest.param(["false"], "did not start", id="one that fails"),
        pytest.param(["true"], "run pilotfish setup again", id="one that starts nothing"),
    ],
)
def test_without_a_daemon_to_be_had_the_edit_is_untouched(
    own: DaemonHome, tmp_path: Path, command: list[str], said: str
) -> None:
    with driven("pi", own, tmp_path, command=command) as pi:
        assert edited(pi) is None
        assert said in status_after(pi)


@pytest.mark.proves("FMT-8", "HOOK-1")
def test_a_daemon_that_hangs_costs_one_bounded_wait_and_is_heard_when_it_is_back(
    shared: DaemonHome, tmp_path: Path
) -> None:
    shared.write("a.x", "bad\n")
    with driven("pi", shared, tmp_path, waitMs=50_000) as pi:
        assert edited(pi) is not None
        with a_hung_daemon(shared):
            pi.configure(waitMs=300)
            assert edited(pi) is None
            assert "did not answer within 0.3 s" in status_after(pi)
            pi.configure(waitMs=50_000)
            assert edited(pi) is None
            assert "the daemon does not answer" in status_after(pi)
        while edited(pi) is None:
            pass


@pytest.mark.proves("FMT-8")
def test_a_daemon_that_hangs_from_the_first_word_on_costs_one_bounded_wait(shared: DaemonHome, tmp_path: Path) -> None:
    with a_hung_daemon(shared), driven("pi", shared, tmp_path, waitMs=300) as pi:
        for said in ("did not answer within", "does not answer"):
            assert edited(pi) is None
            assert said in status_after(pi)


def test_esc_ends_the_wait(shared: DaemonHome, tmp_path: Path) -> None:
    with driven("pi", shared, tmp_path, waitMs=1_000_000) as pi, a_hung_daemon(shared):
        begun = pi.begin("fire", **result("edit", {"path": "a.x"}))
        pi("abort")
        assert pi.result(begun) is None
        assert "cancelled" in status_after(pi)


@pytest.mark.proves("FMT-8", "T22")
@pytest.mark.parametrize(
    "nonsense",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\nhello", id="another protocol"),
        pytest.param(b"Content-Length: 999999999999\r\n\r\n", id="a length without end"),
        pytest.param(b"Content-Length: 3\r\n\r\n{[}", id="no JSON"),
        pytest.param(b"Content-Length: 4\r\n\r\nnull", id="no message"),
        pytest.param(b'Content-Length: 25\r\n\r\n{"id":1,"error":"upside"}', id="an odd error"),
        pytest.param(b"\xff" * 200_000, id="a flood"),
        pytest.param(b"", id="nothing at all"),
    ],
)
def test_nonsense_in_place_of_the_daemon_leaves_the_edit_untouched(
    own: DaemonHome, tmp_path: Path, nonsense: bytes
) -> None:
    with impostor(own, [nonsense]), driven("pi", own, tmp_path, command=NOWHERE) as pi:
        for _ in range(2):
            assert edited(pi) is None
            assert "no verdict" in status_after(pi)


def answer(number: int, result: str) -> bytes:
    return frame(f'{{"jsonrpc":"2.0","id":{number},"result":{result}}}'.encode())


def failure(number: int, code: str) -> bytes:
    data = f'{{"kind":"unavailable","code":"{code}"}}'
    return frame(f'{{"jsonrpc":"2.0","id":{number},"error":{{"code":1,"message":"no","data":{data}}}}}'.encode())


CLOSING = frame(b'{"jsonrpc":"2.0","method":"closing","params":{"code":"shutting_down","message":"ending"}}')


@pytest.mark.proves("F71", "F79")
@pytest.mark.parametrize(
    "farewell",
    [
        pytest.param([failure(1, "upgrade")], id="instead of a welcome"),
        pytest.param([answer(1, "{}"), CLOSING], id="with a word"),
        pytest.param([answer(1, "{}"), b""], id="without a word"),
        pytest.param([answer(1, "{}"), b"Content-Length: 9"], id="in the middle of a word"),
        pytest.param([answer(1, "{}"), failure(2, "shutting_down")], id="with an error"),
    ],
)
def test_a_daemon_that_is_leaving_is_asked_for_once_more(
    own: DaemonHome, tmp_path: Path, farewell: list[bytes]
) -> None:
    spoken = [answer(1, "{}"), answer(2, '{"text": "so", "state": "fresh"}')]
    with impostor(own, farewell, spoken), driven("pi", own, tmp_path) as pi:
        assert edited(pi)["content"][1]["text"] == "\nso"


@pytest.mark.proves("F71", "F79")
def test_a_daemon_that_ends_before_it_looks_who_knocks_is_asked_for_once_more(own: DaemonHome, tmp_path: Path) -> None:
    spoken = [answer(1, "{}"), answer(2, '{"text": "so", "state": "fresh"}')]
    with impostor(own, spoken):
        os.rename(own.place.socket, f"{own.place.socket}.next")
        starting = ["sh", "-c", f"mv {own.place.socket}.next {own.place.socket}"]
        with listen(own.place) as ending, driven("pi", own, tmp_path, command=starting) as pi:
            begun = pi.begin("fire", **result("edit", {"path": "a.x"}))
            assert select.select([ending], [], [], WAIT_SECONDS)[0]
            ending.close()
            assert pi.result(begun)["content"][1]["text"] == "\nso"


def test_a_change_that_may_have_been_made_is_not_asked_for_twice(own: DaemonHome, tmp_path: Path) -> None:
    talks = [answer(1, "{}"), b""], [answer(1, "{}"), answer(2, '{"ok": true}')]
    with impostor(own, *talks), driven("pi", own, tmp_path) as pi:
        told = asked(pi, operation="rename", filePath="a.x", symbol="bad", newName="good", apply=True)
        assert told.errors[0].code == "shutting_down"


@pytest.mark.proves("T22", "T23")
def test_a_folder_that_is_open_to_others_is_not_trusted(shared: DaemonHome, tmp_path: Path) -> None:
    os.chmod(shared.place.folder, 0o755)
    try:
        with driven("pi", shared, tmp_path) as pi:
            assert edited(pi) is None
            assert "not private to this user" in status_after(pi)
    finally:
        os.chmod(shared.place.folder, 0o700)


@pytest.mark.parametrize(
    ("variables", "settings"),
    [
        pytest.param({"PILOTFISH_HOME": f"{{state}}/{'long' * 30}"}, {}, id="a PILOTFISH_HOME too long for a socket"),
        pytest.param({"XDG_STATE_HOME": "{state}", "PILOTFISH_HOME": ""}, {}, id="XDG_STATE_HOME"),
        pytest.param({"PILOTFISH_HOME": ""}, {}, id="HOME"),
        pytest.param({"PILOTFISH_HOME": "{state}"}, {"home": "{state}"}, id="the settings"),
    ],
)
def test_the_extension_looks_for_the_daemon_where_everybody_does(
    own: DaemonHome, tmp_path: Path, variables: dict[str, str], settings: dict[str, str]
) -> None:
    state = own.environment["PILOTFISH_HOME"]
    changed = {name: value.format(state=state) for name, value in variables.items()}
    there = DaemonHome(own.root, {**own.environment, **changed})
    plain = {name: value for name, value in there.environment.items() if name != "PILOTFISH_HOME"}
    looking = DaemonHome(own.root, plain) if settings else there
    placed = {name: value.format(state=state) for name, value in settings.items()}
    with there.control(start=True) as control:
        try:
            with driven("pi", looking, tmp_path, command=NOWHERE, **placed) as pi:
                assert "bad word" in edited(pi)["content"][1]["text"]
        finally:
            control.request("stop")
            assert ended(int(control.welcome["pid"]))


@pytest.mark.proves("REG-5")
def test_servers_are_those_of_the_host_and_not_of_whoever_started_the_daemon(own: DaemonHome, tmp_path: Path) -> None:
    another = another_user(own, tmp_path)
    with driven("pi", another, tmp_path, command=NOWHERE, waitMs=50_000) as pi:
        assert "bad word" in edited(pi)["content"][1]["text"]
    assert b"VIRTUAL_ENV=/project/.venv" in given(own)


@pytest.mark.proves("OPS-6")
def test_the_tool_says_in_the_envelope_that_there_is_no_daemon(own: DaemonHome, tmp_path: Path) -> None:
    with driven("pi", own, tmp_path, command=NOWHERE) as pi:
        answer = asked(pi, operation="hover", filePath="a.x", line=1, character=1)
    assert (answer.ok, answer.meta.state, answer.errors[0].code) == (False, "unavailable", "server_start_failed")
