"""What lies between two configurations."""

import pytest

from pilotfish.config.changes import Changes, Effect, changes, fingerprint
from pilotfish.config.values import Config
from pilotfish.protocol.wire import Json
from support.files.config_home import Home

pytestmark = pytest.mark.proves("CFG-10", "F80")

NOTHING = Changes({}, trust=False, general=False)


def between(home: Home, before: Json, after: Json) -> tuple[Config, Config, Changes]:
    home.user(before)
    old = home.load().config
    home.user(after)
    new = home.load().config
    return old, new, changes(old, new)


def entry(fields: Json, server: str = "pyright") -> Json:
    return {"lsp": {server: fields}}


ROWS: dict[str, tuple[Json, Json, dict[str, Effect]]] = {
    "nothing": ({}, {}, {}),
    "the same in other words": ({}, entry({"roots": ["pyproject.toml"]}), {}),
    "settings": ({}, entry({"settings": {"a": 1}}), {"pyright": Effect.NOTIFY}),
    "command": ({}, entry({"command": ["other"]}), {"pyright": Effect.RESTART}),
    "env": ({}, entry({"env": {"A": "1"}}), {"pyright": Effect.RESTART}),
    "initialization": ({}, entry({"initialization": {"a": 1}}), {"pyright": Effect.RESTART}),
    "watch": ({}, entry({"watch": ["w"]}), {"pyright": Effect.RESTART}),
    "extensions": ({}, entry({"extensions": [".pyx"]}), {"pyright": Effect.RESTART}),
    "roots": ({}, entry({"roots": ["x"]}), {"pyright": Effect.RESTART}),
    "language id": ({}, entry({"languageId": {".py": "py"}}), {"pyright": Effect.RESTART}),
    "limits": ({}, entry({"timeouts": {"requestTimeoutMs": 1}}), {"pyright": Effect.ADJUST}),
    "restart rule": ({}, entry({"restart": "never"}), {"pyright": Effect.ADJUST}),
    "settings and limits": (
        {},
        entry({"settings": {"a": 1}, "restart": "never"}),
        {"pyright": Effect.NOTIFY},
    ),
    "settings and command": ({}, entry({"settings": {"a": 1}, "command": ["b"]}), {"pyright": Effect.RESTART}),
    "turned off": ({}, entry({"disabled": True}), {"pyright": Effect.STOP}),
    "turned on": (entry({"disabled": True}), {}, {"pyright": Effect.ADD}),
    "changed while off": (entry({"disabled": True}), entry({"disabled": True, "command": ["x"]}), {}),
    "a new one": ({}, entry({"command": ["m"], "extensions": [".m"]}, "mine"), {"mine": Effect.ADD}),
    "one that is gone": (entry({"command": ["m"], "extensions": [".m"]}, "mine"), {}, {"mine": Effect.STOP}),
    "two at once": (
        entry({"settings": {"a": 1}}),
        entry({"disabled": True}, "eslint"),
        {"eslint": Effect.STOP, "pyright": Effect.NOTIFY},
    ),
}


@pytest.mark.parametrize(("before", "after", "expected"), ROWS.values(), ids=ROWS)
def test_a_change_has_the_effect_of_its_row_on_that_server_alone(
    home: Home, before: Json, after: Json, expected: dict[str, Effect]
) -> None:
    _, _, found = between(home, before, after)
    assert found == Changes(expected, trust=False, general=False)


def test_general_limits_reach_the_servers_that_follow_them(home: Home) -> None:
    _, _, found = between(home, {}, {"timing": {"initializeTimeoutMs": 20_000}})
    assert found.general
    assert found.servers["pyright"] is Effect.ADJUST
    assert "rust-analyzer" not in found.servers, "the catalogue's own limit is higher"


def test_everything_off_stops_everything(home: Home) -> None:
    old, _, found = between(home, {}, {"lsp": False})
    assert found.general
    assert set(found.servers) == {server.id for server in old.servers.values() if not server.disabled}
    assert set(found.servers.values()) == {Effect.STOP}


def test_feedback_concerns_no_server(home: Home) -> None:
    assert between(home, {}, {"feedback": {"maxPerFile": 3}})[2] == Changes({}, trust=False, general=True)


@pytest.mark.proves("TRUST-4")
def test_trust_given_and_taken_is_a_change_of_its_own(home: Home) -> None:
    trusting: Json = {"security": {"trustedProjectRoots": [str(home.workspace)]}}
    home.project({"lsp": {"pyright": {"command": ["./own"]}}})
    given = between(home, {}, trusting)[2]
    assert given.trust
    assert given.servers == {"pyright": Effect.RESTART}
    taken = between(home, trusting, {})[2]
    assert taken.trust
    assert taken.servers == {"pyright": Effect.RESTART}


@pytest.mark.proves("REG-4")
def test_one_process_may_serve_two_entries_exactly_when_their_fingerprints_agree(home: Home) -> None:
    for before, after, expected in ROWS.values():
        old, new, _ = between(home, before, after)
        if "pyright" in old.servers and "pyright" in new.servers:
            same = expected.get("pyright") in {None, Effect.ADJUST}
            agree = fingerprint(old.servers["pyright"]) == fingerprint(new.servers["pyright"])
            assert agree is same or "disabled" in str((before, after))
    assert changes(home.load().config, home.load().config) == NOTHING
