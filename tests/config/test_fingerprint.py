"""Which changes of a server's entry need another process."""

import pytest

from pilotfish.protocol.wire import Json
from support.files.config_home import Home

pytestmark = pytest.mark.proves("REG-4", "CFG-10", "F80")


def fingerprints(home: Home, content: Json) -> dict[str, str]:
    home.user(content)
    return {server.id: server.fingerprint for server in home.load().config.servers.values()}


SAME: dict[str, Json] = {
    "nothing": {},
    "the same in other words": {"roots": ["pyproject.toml"]},
    "limits": {"timeouts": {"requestTimeoutMs": 1}},
    "restart rule": {"restart": "never"},
}

OTHER: dict[str, Json] = {
    "settings": {"settings": {"a": 1}},
    "command": {"command": ["other"]},
    "env": {"env": {"A": "1"}},
    "initialization": {"initialization": {"a": 1}},
    "watch": {"watch": ["w"]},
    "extensions": {"extensions": [".pyx"]},
    "roots": {"roots": ["x"]},
    "language id": {"languageId": {".py": "py"}},
    "turned off": {"disabled": True},
    "settings and limits": {"settings": {"a": 1}, "restart": "never"},
}


@pytest.mark.parametrize("entry", SAME.values(), ids=SAME)
def test_one_process_serves_entries_that_differ_in_our_own_limits_only(home: Home, entry: Json) -> None:
    assert fingerprints(home, {}) == fingerprints(home, {"lsp": {"pyright": entry}})


@pytest.mark.parametrize("entry", OTHER.values(), ids=OTHER)
def test_what_the_process_sees_needs_another_process_for_that_server_alone(home: Home, entry: Json) -> None:
    before, after = fingerprints(home, {}), fingerprints(home, {"lsp": {"pyright": entry}})
    assert {server for server in before if before[server] != after[server]} == {"pyright"}


def test_general_limits_and_feedback_concern_no_process(home: Home) -> None:
    general: Json = {"timing": {"initializeTimeoutMs": 20_000}, "feedback": {"maxPerFile": 3}}
    assert fingerprints(home, {}) == fingerprints(home, general)


@pytest.mark.proves("TRUST-4")
def test_trust_given_and_taken_needs_another_process_where_the_project_names_the_program(home: Home) -> None:
    trusting: Json = {"security": {"trustedProjectRoots": [str(home.workspace)]}}
    home.project({"lsp": {"pyright": {"command": ["./own"]}}})
    untrusted, trusted = fingerprints(home, {}), fingerprints(home, trusting)
    assert {server for server in untrusted if untrusted[server] != trusted[server]} == {"pyright"}
    assert fingerprints(home, {}) == untrusted
