"""What a server says of its whole project: which files changed, and what of a file is new."""

from collections.abc import Sequence

import pytest

from pilotfish.feedback.delta import FileAccount, changed_files, said, said_of, since_said
from pilotfish.model import AbsPath, Diagnostic, Position, Range, Severity

A, B, C = AbsPath("/w/a"), AbsPath("/w/b"), AbsPath("/w/c")

pytestmark = pytest.mark.proves("DIAG-11")


def finding(message: str, line: int = 0, server: str = "one") -> Diagnostic:
    start = Position(line, 0)
    return Diagnostic(range=Range(start, start), severity=Severity.ERROR, message=message, server=server, code="x")


def counted(*messages: str) -> FileAccount:
    return said(("x", message) for message in messages)


def messages(found: Sequence[Diagnostic]) -> list[str]:
    return [one.message for one in found]


def test_files_that_got_something_come_before_those_that_lost_something() -> None:
    before = {A: counted("old"), B: counted("old", "gone")}
    now = {A: counted("old"), B: counted("old"), C: counted("new")}
    assert changed_files(before, now) == (C, B)


def test_a_file_that_says_the_same_once_more_has_changed() -> None:
    assert changed_files({A: counted("same")}, {A: counted("same", "same")}) == (A,)


def test_the_same_in_another_order_is_no_change() -> None:
    assert changed_files({A: counted("x", "y")}, {A: counted("y", "x")}) == ()


def test_only_what_was_not_said_before_is_new_wherever_it_stands() -> None:
    change = since_said(counted("old"), [finding("old", 7), finding("new", 3), finding("old", 9)], "one")
    assert (messages(change.introduced), messages(change.older)) == (["new", "old"], ["old"])


def test_what_another_server_says_is_not_known_to_be_new() -> None:
    change = since_said(counted(), [finding("lint", server="other"), finding("broken")], "one")
    assert (messages(change.introduced), messages(change.older)) == (["broken"], ["lint"])


def test_of_a_list_of_several_servers_only_ones_own_is_counted() -> None:
    assert said_of([finding("mine"), finding("lint", server="other")], "one") == counted("mine")


def test_what_explains_a_message_may_change() -> None:
    before, now = counted("bad override\ninfo: `a` is missing"), finding("bad override\ninfo: `b` is missing")
    assert changed_files({A: before}, {A: said_of([now], "one")}) == ()
    assert messages(since_said(before, [now], "one").introduced) == []
