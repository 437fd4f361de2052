"""Requests that leave before anybody knows whether they are the right ones."""

from typing import Any

import anyio
import pytest

from pilotfish.client.early import Early
from pilotfish.client.session import Session
from support.servers.script import SILENCE, Script
from support.servers.sessions import FILE, session_on

pytestmark = pytest.mark.anyio

HOVER = "textDocument/hover"
PARAMS: dict[str, Any] = {"position": {"line": 1, "character": 2}}


def hovering(script: Script) -> None:
    script.capabilities = {"hoverProvider": True, "textDocumentSync": 1}
    script.ignore("textDocument/didOpen", "textDocument/didChange")
    script.on(HOVER, lambda params: {"contents": "x"})


def asked(session: Session) -> Early:
    early = session.ask_early(HOVER, PARAMS, FILE)
    assert early is not None
    return early


async def test_whoever_asks_the_same_takes_it_over() -> None:
    async with session_on(hovering) as (session, server):
        answer = await session.request(HOVER, dict(PARAMS), about=FILE, early=asked(session))
        assert bytes(answer) == b'{"contents":"x"}'
        assert len([one for one in server.received if one.method == HOVER]) == 1


async def test_whoever_asks_something_else_asks_for_himself() -> None:
    async with session_on(hovering) as (session, server):
        early = asked(session)
        await session.request(HOVER, {}, about=FILE, early=early)
        assert [one.params for one in server.received if one.method == HOVER] == [PARAMS, {}]


async def test_what_was_told_to_the_server_meanwhile_voids_it() -> None:
    async with session_on(hovering) as (session, server):
        early = asked(session)
        session.sync(FILE, "python", "x = 1\n")
        await session.request(HOVER, PARAMS, about=FILE, early=early)
        methods = [one.method for one in server.received if one.method in {HOVER, "textDocument/didOpen"}]
        assert methods == [HOVER, "textDocument/didOpen", HOVER]


async def test_given_up_it_is_cancelled_once_and_leaves_nothing() -> None:
    def scenario(script: Script) -> None:
        hovering(script)
        script.on(HOVER, lambda params: SILENCE)

    async with session_on(scenario) as (session, server):
        early = asked(session)
        await server.until(HOVER)
        early.drop()
        early.drop()
        await anyio.wait_all_tasks_blocked()
        assert session.waiting == 0
        assert len(server.cancelled) == 1


async def test_what_is_not_offered_is_not_asked() -> None:
    async with session_on(lambda script: None) as (session, server):
        assert session.ask_early(HOVER, PARAMS, FILE) is None
        assert not [one for one in server.received if one.method == HOVER]
