"""JSON in and out: the only module that turns bytes into values and values into bytes.

In: `decode` gives the shape asked for or raises `Malformed`, and nothing else, whatever the bytes are.
msgspec reads what is well formed. Where it refuses, two things that real servers send are mended: half of a surrogate
pair in a string becomes U+FFFD, and a number such as `1.0` becomes the integer that the protocol means. NaN, Infinity,
numbers too large for a float, text that is not UTF-8, a byte-order mark and endless nesting stay refused.
Of duplicate keys the last one wins.

Out: `encode` is compact UTF-8 and accepts every `str`; NaN and Infinity leave as `null`, for JSON has neither.

A `Raw` is a window into the bytes that it came from and keeps all of them alive: decode it, or copy it to keep it.
"""

import json
import re
from codecs import utf_8_decode
from collections.abc import Sequence
from functools import cache
from types import GenericAlias
from typing import Any, Generic, NoReturn, TypeVar, cast

import msgspec
from msgspec import Raw, Struct
from msgspec.json import Decoder

T = TypeVar("T")

REPLACEMENT = "\ufffd"
"""What stands for half of a surrogate pair, which UTF-8 cannot carry."""

MAX_REASON = 200
"""Characters of a parser's own message that we pass on: it may quote the server's text."""

EXACT_FLOAT = 2.0**53
"""Beyond this a float no longer names one integer, so `1e300` stays a float and no integer field takes it."""

CHECKED_AT_ONCE = 1 << 16
"""Bytes of text checked in one step. Checking builds a string four times as large where there is an emoji."""


_RAWS = cast("type[tuple[Raw, ...] | None]", tuple[Raw, ...] | None)


class Malformed(ValueError):
    """The bytes are not JSON, or not of the shape asked for; the message says what was wrong, and where."""


class Items(Struct, Generic[T], frozen=True):
    """A list read item by item: those of the right shape, and how many were not."""

    items: tuple[T, ...]
    skipped: int = 0


def maybe_fields(value: object) -> dict[str, object] | None:
    """The members of a JSON object; None for anything else."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def fields(value: object) -> dict[str, object]:
    """The members of a JSON object; none of anything else."""
    return maybe_fields(value) or {}


def items(value: object) -> Sequence[object]:
    """The items of a JSON list; none of anything else."""
    return cast("list[object]", value) if isinstance(value, list) else ()


def member(value: object, *names: str) -> object:
    """What an object has below these names; None where there is nothing."""
    for name in names:
        value = fields(value).get(name)
    return value


def encode(value: object) -> bytes:
    """Return `value` as compact JSON: plain values and wire structs. Bytes that are JSON already come as `Raw`."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value, builtin_types=(Raw,), str_keys=True)
        return msgspec.json.encode(_without_surrogates(plain))


def decode(data: bytes | Raw, shape: type[T]) -> T:
    try:
        return _read(data, _decoder(shape))
    except msgspec.ValidationError:
        return _decode_integers(data, shape)
    except msgspec.DecodeError as error:
        mended = _ESCAPE.sub(lambda escape: rb"\ufffd" if escape[1] else escape[0], bytes(data))
        if mended == bytes(data):
            raise _malformed(shape, error) from None
        return decode(mended, shape)
    except (RecursionError, UnicodeDecodeError) as error:
        raise _malformed(shape, error) from None


def decode_items(data: bytes | Raw, shape: type[T]) -> Items[T]:
    """Read a list of `shape`, leaving out what is not one; `null` is an empty list, any other value is `Malformed`."""
    try:
        found: tuple[T, ...] | None = _read(data, _list_decoder(shape))
        return Items(found or ())
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raws = decode(data, _RAWS) or ()
    items: list[T] = []
    for raw in raws:
        try:
            items.append(decode(raw, shape))
        except Malformed:
            continue
    return Items(tuple(items), len(raws) - len(items))


def _read(data: bytes | Raw, decoder: Decoder[T]) -> T:
    # msgspec does not look into the text of what it skips. A `Raw` is a part of bytes that were looked into.
    if not isinstance(data, Raw) and not data.isascii():
        _check_utf8(data)
    return decoder.decode(data)


@cache  # As large as the code, which names every shape.
def _decoder(shape: type) -> Decoder[Any]:
    return Decoder(shape)


@cache
def _list_decoder(shape: type) -> Decoder[Any]:
    return Decoder(GenericAlias(tuple, (shape, ...)) | None)


def _malformed(shape: type, error: Exception) -> Malformed:
    reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:MAX_REASON]
    # From 3.14 on, unions have a name, too.
    name = "list" if shape is _RAWS else getattr(shape, "__name__", "list")
    return Malformed(f"{name}: {reason}")


# --- Mending ------------------------------------------------------------------------------------------------------

# Backslashes stand in strings only, so the escapes of a text are found from left to right: a pair, a half, any other.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def _decode_integers(data: bytes | Raw, shape: type[T]) -> T:
    """Read again with `1.0` as `1`. The standard library is slow, and the only one that lets us see the number."""
    try:
        value = cast("object", json.loads(bytes(data).decode(), parse_float=_number, parse_constant=_refuse))
        return _read(encode(value), _decoder(shape))
    except (RecursionError, ValueError) as error:  # `ValueError`: of both readers, and for too many digits
        raise _malformed(shape, error) from None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _number(text: str) -> float | int:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError("a number is too large")
    return int(value) if value.is_integer() and abs(value) <= EXACT_FLOAT else value


def _check_utf8(data: bytes) -> None:
    view = memoryview(data)
    start = 0
    while start < len(view):
        end = start + CHECKED_AT_ONCE
        try:
            start += utf_8_decode(view[start:end], "strict", end >= len(view))[1]
        except UnicodeDecodeError as error:
            raise UnicodeDecodeError("utf-8", data, start + error.start, start + error.end, error.reason) from None


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        return _SURROGATE.sub(REPLACEMENT, value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, object]", value).items()
        return {_without_surrogates(key): _without_surrogates(item) for key, item in members}
    return value
