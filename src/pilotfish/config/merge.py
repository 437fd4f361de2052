"""Merging the layers of the configuration: deterministic, pure; every value keeps its origin (CFG-2, CFG-3, CFG-4).

Rules, for a layer laid over those below it:
- objects merge by key, at any depth; every other value, arrays included, replaces what was there;
- `lsp: false` in any layer stays, whatever the layers above say;
- `lsp.<id>.disabled: true` in any file stays. The catalogue's is only a default: a file may turn such a server on;
- `feedback.preset` is replaced, in its own layer, by the keys it stands for, below the keys that the layer sets itself.

Laying over is associative as long as no layer replaces an object by a scalar or the other way round (only free-form
settings can); the layers are therefore folded in one direction, from the weakest.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from hashlib import sha256
from threading import Lock
from typing import Generic, TypeVar

from msgspec import Struct, msgpack

from pilotfish.config.schema import PRESETS
from pilotfish.model import AbsPath
from pilotfish.protocol.wire import Json

KeyPath = tuple[str, ...]
"""The path of a value through objects only: arrays are values."""


class ConfigSource(StrEnum):
    """Where values come from, weakest first."""

    DEFAULT = "default"
    HOST = "host"
    CATALOGUE = "catalogue"
    GLOBAL = "global"
    PROJECT = "project"


class ValueOrigin(Struct, frozen=True):
    """Where one value comes from. `preset` names the preset that set it."""

    source: ConfigSource
    file: AbsPath | None = None
    preset: str | None = None

    def __str__(self) -> str:
        file = f" {self.file}" if self.file else ""
        preset = f" (preset {self.preset})" if self.preset else ""
        return f"{self.source}{file}{preset}"


class Layer(Struct, frozen=True):
    """The values of one source."""

    origin: ValueOrigin
    value: Mapping[str, Json]


class Leaf(Struct, frozen=True):
    """A value that is not merged with another."""

    value: Json
    origin: ValueOrigin


MergeTree = Leaf | dict[str, "MergeTree"]


class Merged(Struct, frozen=True):
    """The result: plain JSON, and the origin of each of its leaves."""

    value: dict[str, Json]
    origins: Mapping[KeyPath, ValueOrigin]


def merge(layers: Iterable[Layer]) -> Merged:
    """Lay each layer over those before it."""
    tree: dict[str, MergeTree] = {}
    for layer in layers:
        tree = _laid(tree, _grown_layer(layer), ())
    value = {key: _plain(below) for key, below in tree.items()}
    return Merged(value, dict(_origins(tree, ())))


def overlaid(below: Mapping[str, Json], above: Mapping[str, Json]) -> dict[str, Json]:
    """`above` laid over `below` by the same rules, for plain values whose origin does not matter."""
    origin = ValueOrigin(ConfigSource.DEFAULT)
    layers = (Layer(origin, {"_": dict(below)}), Layer(origin, {"_": dict(above)}))
    merged = merge(layers).value["_"]
    return merged if isinstance(merged, dict) else {}


def _grown_layer(layer: Layer) -> dict[str, MergeTree]:
    tree = _grown_object(layer.value, layer.origin)
    feedback = layer.value.get("feedback")
    preset = feedback.get("preset") if isinstance(feedback, dict) else None
    if isinstance(preset, str):
        origin = ValueOrigin(layer.origin.source, layer.origin.file, preset)
        expanded = {"feedback": _grown_object(PRESETS[preset], origin)}
        return _laid({**expanded}, tree, ())
    return tree


def _grown_object(value: Mapping[str, Json], origin: ValueOrigin) -> dict[str, MergeTree]:
    return {
        key: _grown_object(item, origin) if isinstance(item, dict) else Leaf(item, origin)
        for key, item in value.items()
    }


def _laid(below: dict[str, MergeTree], above: dict[str, MergeTree], path: KeyPath) -> dict[str, MergeTree]:
    merged = dict(below)
    for key, tree in above.items():
        here = (*path, key)
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(tree, dict):
            merged[key] = _laid(old, tree, here)
        elif not (isinstance(old, Leaf) and _stays(old, here)):
            merged[key] = tree
    return merged


def _stays(leaf: Leaf, path: KeyPath) -> bool:
    match path:
        case ("lsp",):
            return leaf.value is False
        case ("lsp", _, "disabled"):
            return leaf.value is True and leaf.origin.source is not ConfigSource.CATALOGUE
        case _:
            return False


def _plain(tree: MergeTree) -> Json:
    return tree.value if isinstance(tree, Leaf) else {key: _plain(below) for key, below in tree.items()}


def _origins(tree: MergeTree, path: KeyPath) -> Iterable[tuple[KeyPath, ValueOrigin]]:
    if isinstance(tree, Leaf):
        yield path, tree.origin
        return
    for key, below in tree.items():
        yield from _origins(below, (*path, key))


T = TypeVar("T")


class EqualValues(Generic[T]):
    """Interns immutable values by their msgpack encoding, the last `most` used.

    Most workspaces have no configuration of their own, and the daemon has many workspaces.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[bytes, T] = {}
        self._lock = Lock()

    def one(self, value: T) -> T:
        """The value that is kept for all that equal it."""
        try:
            key = sha256(msgpack.encode(value)).digest()
        except UnicodeEncodeError:
            # It names a path that is no text; such a one is its own.
            return value
        with self._lock:
            known = self._known.pop(key, value)
            self._known[key] = known
            if len(self._known) > self._most:
                del self._known[next(iter(self._known))]
        return known
