"""Equal values are kept once, and what only looks equal stays apart."""

from pilotfish.config.merge import EqualValues
from pilotfish.protocol.wire import Json


def test_the_first_of_equal_values_stands_for_all() -> None:
    values: EqualValues[Json] = EqualValues(2)
    first: Json = {"lsp": {"ty": {"settings": {"a": 1}}}}
    assert values.one(first) is first
    assert values.one({"lsp": {"ty": {"settings": {"a": 1}}}}) is first


def test_a_number_is_not_a_truth_value() -> None:
    values: EqualValues[dict[str, Json]] = EqualValues(2)
    values.one({"a": 1})
    assert values.one({"a": True})["a"] is True


def test_the_one_that_was_asked_for_longest_ago_is_given_up() -> None:
    values: EqualValues[list[int]] = EqualValues(2)
    first, second = [1], [2]
    values.one(first)
    values.one(second)
    values.one([1])
    values.one([3])
    assert values.one([1]) is first
    assert values.one([2]) is not second


def test_a_value_with_a_path_that_is_no_text_is_its_own() -> None:
    values: EqualValues[list[str]] = EqualValues(2)
    first, second = ["/home/\udcff"], ["/home/\udcff"]
    assert values.one(first) is first
    assert values.one(second) is second
