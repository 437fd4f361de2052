"""How layers become one, and who said what."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.config.merge import ConfigSource, Layer, Merged, ValueOrigin, merge, overlaid
from pilotfish.model import AbsPath
from pilotfish.protocol.wire import Json

CATALOGUE = ValueOrigin(ConfigSource.CATALOGUE)
GLOBAL = ValueOrigin(ConfigSource.GLOBAL, AbsPath("/home/lsp.json"))
PROJECT = ValueOrigin(ConfigSource.PROJECT, AbsPath("/code/lsp.json"))


def merged(catalogue: Json, user: Json, project: Json) -> Merged:
    layers = zip((CATALOGUE, GLOBAL, PROJECT), (catalogue, user, project), strict=True)
    return merge(Layer(origin, value) for origin, value in layers if isinstance(value, dict))


TABLE: dict[str, tuple[Json, Json, Json, Json]] = {
    "nothing": ({}, {}, {}, {}),
    "objects merge by key": (
        {"lsp": {"a": {"command": ["a"]}}},
        {"lsp": {"b": {"command": ["b"]}}},
        {"lsp": {"a": {"roots": ["x"]}}},
        {"lsp": {"a": {"command": ["a"], "roots": ["x"]}, "b": {"command": ["b"]}}},
    ),
    "objects merge at any depth": (
        {"lsp": {"a": {"settings": {"x": {"y": {"p": 1, "q": 1}}}}}},
        {"lsp": {"a": {"settings": {"x": {"y": {"q": 2}}}}}},
        {"lsp": {"a": {"settings": {"x": {"y": {"r": 3}}}}}},
        {"lsp": {"a": {"settings": {"x": {"y": {"p": 1, "q": 2, "r": 3}}}}}},
    ),
    "scalars replace": ({"timing": {"t": 1}}, {"timing": {"t": 2}}, {"timing": {"t": 3}}, {"timing": {"t": 3}}),
    "null replaces": ({}, {"pool": {"memoryMiB": 3}}, {"pool": {"memoryMiB": None}}, {"pool": {"memoryMiB": None}}),
    "arrays replace": (
        {"lsp": {"a": {"roots": ["1", "2"]}}},
        {"lsp": {"a": {"roots": ["3"]}}},
        {"lsp": {"a": {"roots": []}}},
        {"lsp": {"a": {"roots": []}}},
    ),
    "arrays of objects replace": (
        {"lsp": {"a": {"settings": {"x": [{"p": 1}]}}}},
        {},
        {"lsp": {"a": {"settings": {"x": [{"q": 1}]}}}},
        {"lsp": {"a": {"settings": {"x": [{"q": 1}]}}}},
    ),
    "an empty object changes nothing": (
        {"lsp": {"a": {"env": {"A": "1"}}}},
        {"lsp": {}},
        {"lsp": {"a": {"env": {}}}},
        {"lsp": {"a": {"env": {"A": "1"}}}},
    ),
    "a scalar replaces an object": ({}, {"x": {"y": 1}}, {"x": 2}, {"x": 2}),
    "an object replaces a scalar": ({}, {"x": 2}, {"x": {"y": 1}}, {"x": {"y": 1}}),
    "lsp false in the project": ({"lsp": {"a": {}}}, {"lsp": {"b": {}}}, {"lsp": False}, {"lsp": False}),
    "lsp false of the user stays": ({"lsp": {"a": {}}}, {"lsp": False}, {"lsp": {"b": {}}}, {"lsp": False}),
    "disabled by the user stays": (
        {"lsp": {"a": {"disabled": False}}},
        {"lsp": {"a": {"disabled": True}}},
        {"lsp": {"a": {"disabled": False}}},
        {"lsp": {"a": {"disabled": True}}},
    ),
    "disabled by the project": (
        {},
        {"lsp": {"a": {"disabled": False}}},
        {"lsp": {"a": {"disabled": True}}},
        {"lsp": {"a": {"disabled": True}}},
    ),
    "off in the catalogue is only a default": (
        {"lsp": {"a": {"disabled": True}}},
        {"lsp": {"a": {"disabled": False}}},
        {},
        {"lsp": {"a": {"disabled": False}}},
    ),
    "disabled elsewhere is an ordinary value": (
        {},
        {"lsp": {"a": {"settings": {"disabled": True}}}},
        {"lsp": {"a": {"settings": {"disabled": False}}}},
        {"lsp": {"a": {"settings": {"disabled": False}}}},
    ),
}


@pytest.mark.proves("CFG-2", "CFG-3", "CFG-4")
@pytest.mark.parametrize(("catalogue", "user", "project", "expected"), TABLE.values(), ids=TABLE)
def test_layers_merge_by_the_table(catalogue: Json, user: Json, project: Json, expected: Json) -> None:
    assert merged(catalogue, user, project).value == expected


@pytest.mark.proves("CFG-11")
def test_every_value_keeps_the_name_of_who_said_it() -> None:
    result = merged(
        {"lsp": {"a": {"command": ["a"], "roots": ["x"]}}},
        {"lsp": {"a": {"roots": ["y"], "disabled": True}}, "timing": {"t": 1}},
        {"lsp": {"a": {"disabled": False, "env": {"A": "1"}}}},
    )
    assert dict(result.origins) == {
        ("lsp", "a", "command"): CATALOGUE,
        ("lsp", "a", "roots"): GLOBAL,
        ("lsp", "a", "disabled"): GLOBAL,
        ("lsp", "a", "env", "A"): PROJECT,
        ("timing", "t"): GLOBAL,
    }


@pytest.mark.proves("CFG-6")
def test_a_preset_stands_below_its_own_layer_and_above_the_layers_before() -> None:
    result = merged(
        {}, {"feedback": {"maxPerFile": 7, "maxBytes": 9}}, {"feedback": {"preset": "pi", "maxBytes": 1000}}
    )
    feedback = result.value["feedback"]
    assert isinstance(feedback, dict)
    assert feedback["maxPerFile"] == 20, "the preset of the project replaces what the user set"
    assert feedback["maxBytes"] == 1000, "the project's own key stands above its preset"
    assert feedback["includeSeverities"] == ["error", "warning"]
    assert result.origins["feedback", "maxOtherFiles"] == ValueOrigin(ConfigSource.PROJECT, PROJECT.file, "pi")
    assert result.origins["feedback", "maxBytes"] == PROJECT


def test_overlaid_follows_the_same_rules_without_the_names_that_mean_something() -> None:
    assert overlaid({"lsp": False, "a": {"b": [1], "c": 2}}, {"lsp": {}, "a": {"b": [3]}}) == {
        "lsp": {},
        "a": {"b": [3], "c": 2},
    }


keys = st.sampled_from(["lsp", "a", "b", "disabled", "roots"])


def number() -> st.SearchStrategy[Json]:
    return st.integers(0, 3)


leaves = number() | st.booleans() | st.lists(number(), max_size=3)


def objects(leaf: st.SearchStrategy[Json]) -> st.SearchStrategy[dict[str, Json]]:
    inner: st.SearchStrategy[Json] = st.recursive(
        leaf, lambda below: st.dictionaries(keys, below, max_size=3), max_leaves=8
    )
    return st.dictionaries(keys, inner, max_size=4)


def naive(layers: list[dict[str, Json]]) -> dict[str, Json]:
    """The rules once more, path by path: the strongest layer that says something about a path wins."""
    if any(layer.get("lsp") is False for layer in layers):
        layers = [{key: item for key, item in layer.items() if key != "lsp"} for layer in layers] + [{"lsp": False}]
    return _naive_object(layers, ())


def _naive_object(layers: list[dict[str, Json]], path: tuple[str, ...]) -> dict[str, Json]:
    result: dict[str, Json] = {}
    for key in dict.fromkeys(key for layer in layers for key in layer):
        values = [layer[key] for layer in layers if key in layer]
        sticky = (*path, key)[0] == "lsp" and len(path) == 2 and key == "disabled"
        if sticky and True in [value for value in values if isinstance(value, bool)]:
            result[key] = True
            continue
        last = next((index for index in reversed(range(len(values))) if not isinstance(values[index], dict)), -1)
        after = [value for value in values[last + 1 :] if isinstance(value, dict)]
        result[key] = _naive_object(after, (*path, key)) if after else values[last]
    return result


def fold(layers: list[dict[str, Json]]) -> dict[str, Json]:
    return merge(Layer(GLOBAL, layer) for layer in layers).value


@pytest.mark.proves("CFG-2")
@given(st.lists(objects(leaves), max_size=4))
def test_merging_agrees_with_a_second_implementation(layers: list[dict[str, Json]]) -> None:
    assert fold(layers) == naive(layers)


shaped = st.fixed_dictionaries(
    {},
    optional={
        "lsp": st.just(False)
        | st.dictionaries(
            st.sampled_from("ab"),
            st.fixed_dictionaries(
                {}, optional={"disabled": st.booleans(), "roots": st.lists(st.integers(0, 3), max_size=3)}
            ),
            max_size=2,
        ),
        "timing": st.dictionaries(st.sampled_from("xy"), st.integers(0, 3)),
    },
)
"""Layers of one shape: a path is an object in all of them or in none."""


@pytest.mark.proves("CFG-2", "CFG-3", "CFG-4")
@given(shaped, shaped, shaped)
def test_merging_is_associative_for_layers_of_one_shape(
    a: dict[str, Json], b: dict[str, Json], c: dict[str, Json]
) -> None:
    assert fold([fold([a, b]), c]) == fold([a, fold([b, c])]) == fold([a, b, c])


@pytest.mark.proves("CFG-3", "CFG-4")
@given(st.lists(shaped, min_size=1, max_size=4), st.data())
def test_off_anywhere_is_off(layers: list[dict[str, Json]], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(layers)))
    assert fold([*layers[:at], {"lsp": False}, *layers[at:]])["lsp"] is False
    result = fold([*layers[:at], {"lsp": {"a": {"disabled": True}}}, *layers[at:]])["lsp"]
    assert result is False or (
        isinstance(result, dict) and isinstance(result["a"], dict) and result["a"]["disabled"] is True
    )


@pytest.mark.proves("CFG-2")
@given(st.lists(objects(leaves), max_size=4))
def test_every_array_of_the_result_is_one_layers_array(layers: list[dict[str, Json]]) -> None:
    said = [array for layer in layers for array in arrays(layer)]
    assert all(array in said for array in arrays(fold(layers)))


@pytest.mark.proves("CFG-11")
@given(st.lists(objects(leaves), max_size=4))
def test_every_leaf_has_exactly_one_origin_and_that_layer_said_it(layers: list[dict[str, Json]]) -> None:
    origins = [ValueOrigin(ConfigSource.PROJECT, AbsPath(f"/{index}")) for index in range(len(layers))]
    result = merge(Layer(origin, layer) for origin, layer in zip(origins, layers, strict=True))
    assert set(result.origins) == {path for path, _ in walked(result.value)}
    for path, value in walked(result.value):
        layer = layers[origins.index(result.origins[path])]
        assert dict(walked(layer))[path] == value


def walked(value: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Json]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from walked(item, (*path, key))
    else:
        yield path, value


def arrays(value: Json) -> list[Json]:
    return [leaf for _, leaf in walked(value) if isinstance(leaf, list)]
