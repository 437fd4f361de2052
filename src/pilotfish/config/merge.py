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

KeyPath = tuple[str, ...]  # The path of a value through objects only: arrays are values


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
    origin: ValueOrigin
    value: Mapping[str, Json]


class Merged(Struct, frozen=True):
    value: dict[str, Json]
    origins: Mapping[KeyPath, ValueOrigin]


def merge(layers: Iterable[Layer]) -> Merged:
    value: dict[str, Json] = {}
    origins: dict[KeyPath, ValueOrigin] = {}
    for layer in layers:
        feedback = layer.value.get("feedback")
        preset = feedback.get("preset") if isinstance(feedback, dict) else None
        if isinstance(preset, str):
            by_preset = ValueOrigin(layer.origin.source, layer.origin.file, preset)
            _lay(value, {"feedback": dict(PRESETS[preset])}, by_preset, (), origins)
        _lay(value, layer.value, layer.origin, (), origins)
    return Merged(value, {path: origins[path] for path in _leaves(value, ())})


def overlaid(below: Mapping[str, Json], above: Mapping[str, Json]) -> dict[str, Json]:
    """`above` laid over `below` by the same rules, for plain values whose origin does not matter."""
    value: dict[str, Json] = {}
    for one in (below, above):
        _lay(value, one, ValueOrigin(ConfigSource.DEFAULT), ("",), {})
    return value


def _lay(
    below: dict[str, Json],
    above: Mapping[str, Json],
    origin: ValueOrigin,
    path: KeyPath,
    origins: dict[KeyPath, ValueOrigin],
) -> None:
    """Change `below`, whose values have their origins in `origins`; those of a replaced object are left over there."""
    for key, item in above.items():
        here, old = (*path, key), below.get(key)
        if not isinstance(old, dict) and here in origins and _stays(old, here, origins[here]):
            continue
        if isinstance(item, dict):
            inner = below[key] = old if isinstance(old, dict) else {}
            _lay(inner, item, origin, here, origins)
        else:
            below[key] = item
            origins[here] = origin


def _stays(value: Json, path: KeyPath, origin: ValueOrigin) -> bool:
    match path:
        case ("lsp",):
            return value is False
        case ("lsp", _, "disabled"):
            return value is True and origin.source is not ConfigSource.CATALOGUE
        case _:
            return False


def _leaves(value: Mapping[str, Json], path: KeyPath) -> Iterable[KeyPath]:
    for key, item in value.items():
        if isinstance(item, dict):
            yield from _leaves(item, (*path, key))
        else:
            yield (*path, key)


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
