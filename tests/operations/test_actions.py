"""Code actions: what doing one takes, and which one is meant."""

import re
from typing import Any

import pytest

from pilotfish.api.answers import Action
from pilotfish.errors import Code, Refused
from pilotfish.operations.actions import (
    FoundAction,
    chosen,
    overlapping,
    read_action,
    step_of,
    with_ids,
)
from pilotfish.protocol.wire import WireDiagnostic
from support.values.questions import raw, wire

EDIT: dict[str, Any] = {"changes": {}}
COMMAND = {"title": "t", "command": "fix", "arguments": [{"x": 1}]}


def action(**members: object) -> FoundAction:
    found = read_action(raw({"title": "Fix", **members}))
    assert found is not None
    return found


@pytest.mark.proves("C109")
@pytest.mark.parametrize(
    ("members", "edit", "command"),
    [
        pytest.param({"edit": EDIT}, True, None, id="an edit"),
        pytest.param({"command": COMMAND}, False, "fix", id="a command"),
        pytest.param({"edit": EDIT, "command": COMMAND}, True, "fix", id="an edit, then a command"),
        pytest.param({"command": "fix", "arguments": [1]}, False, "fix", id="a bare command"),
    ],
)
def test_an_action_is_its_edit_and_then_its_command(members: dict[str, Any], edit: bool, command: str | None) -> None:
    step = step_of(action(**members), {"fix"})
    assert ((step.edit is not None), step.command and step.command.command, step.warning) == (edit, command, None)


@pytest.mark.proves("C109")
@pytest.mark.parametrize("members", [{"data": 7}, {"command": COMMAND, "data": 7}], ids=["nothing yet", "no edit yet"])
def test_an_action_without_an_edit_is_resolved_first_with_the_bytes_that_came(members: dict[str, Any]) -> None:
    found = action(**members)
    assert found.is_unresolved
    assert found.raw == raw({"title": "Fix", **members})


@pytest.mark.proves("C109")
@pytest.mark.parametrize("members", [{"edit": EDIT}, {"command": "fix"}], ids=["it has its edit", "a bare command"])
def test_what_cannot_gain_by_it_is_not_resolved(members: dict[str, Any]) -> None:
    assert not action(**members).is_unresolved


@pytest.mark.proves("C109")
@pytest.mark.parametrize(
    ("members", "said"),
    [
        pytest.param({"edit": EDIT, "disabled": {"reason": "not here"}}, "is disabled: not here", id="disabled"),
        pytest.param({"disabled": {}}, "is disabled: the server does not say why", id="disabled without a reason"),
        pytest.param({}, "has neither an edit nor a command", id="nothing to do"),
        pytest.param({"command": COMMAND}, "does not offer the command 'fix'", id="a command that is not offered"),
    ],
)
def test_what_cannot_be_done_is_refused(members: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused, match=re.escape(said)) as caught:
        step_of(action(**members), ())
    assert caught.value.code is Code.UNSUPPORTED


@pytest.mark.proves("C109")
def test_a_command_that_is_not_offered_does_not_cost_the_edit() -> None:
    step = step_of(action(edit=EDIT, command=COMMAND), ())
    assert (step.edit is not None, step.command) == (True, None)
    assert step.warning == "the server does not offer the command 'fix', so it was left out"


@pytest.mark.proves("C109")
def test_a_server_hears_of_the_diagnostics_that_touch_the_range() -> None:
    def at(line: int, start: int, end: int) -> WireDiagnostic:
        return WireDiagnostic(wire(line, start, end), f"{line}:{start}")

    items = [at(0, 0, 9), at(1, 0, 2), at(1, 2, 4), at(1, 5, 6), at(1, 7, 9), at(2, 0, 1)]
    assert overlapping(items, wire(1, 4, 6)) == (items[2], items[3])


LISTED = with_ids(
    [
        *(Action(number, title, "s") for number, title in enumerate(("Import os", "Rename", "Import os", "Remove"), 1)),
        Action(0, "Off", "s", disabled="not here"),
    ],
    "text",
)


@pytest.mark.proves("OPS-3")
@pytest.mark.parametrize(("wanted", "index"), [("1", 0), ("4", 3), ("Rename", 1), (LISTED[2].id, 2)])
def test_an_action_is_named_by_number_title_or_id(wanted: str, index: int) -> None:
    assert chosen(LISTED, wanted) == index


@pytest.mark.proves("OPS-3")
def test_an_id_is_of_one_text_and_a_disabled_action_has_no_number() -> None:
    other = with_ids(LISTED, "another text")
    assert not {action.id for action in LISTED} & {action.id for action in other}
    assert len({action.id for action in LISTED}) == len(LISTED)
    with pytest.raises(Refused) as caught:
        chosen(other, str(LISTED[0].id))
    assert caught.value.code is Code.STALE
    with pytest.raises(Refused):
        chosen(LISTED, "0")


@pytest.mark.parametrize(
    ("wanted", "said", "hint"),
    [
        ("Import os", "several actions have this title: 1 (a", "Give a number or an id."),
        ("Renam", "no action is called 'Renam' here", "Nearest: 2 'Rename'"),
        ("9", "no action is called '9' here", "There are 5 actions here"),
    ],
)
def test_an_action_that_is_not_clear_is_refused(wanted: str, said: str, hint: str) -> None:
    with pytest.raises(Refused) as caught:
        chosen(LISTED, wanted)
    assert said in caught.value.message
    assert hint in str(caught.value.hint)


def test_what_is_no_action_is_none() -> None:
    assert read_action(raw({"kind": "quickfix"})) is None
