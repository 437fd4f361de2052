"""Random inputs from known ones, without coverage: for the gate, and where atheris cannot be had."""

import random
from collections.abc import Iterator, Sequence

MAX_SIZE = 4096
"""Bytes of an input: enough for every limit that a target makes small on purpose."""


def mutations(seeds: Sequence[bytes], words: Sequence[bytes], number: int) -> Iterator[bytes]:
    """Endless inputs; the same ones for the same `number`."""
    chance = random.Random(number)
    while True:
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 6)):
            _change(data, seeds, words, chance)
        yield bytes(data[:MAX_SIZE])


def _change(data: bytearray, seeds: Sequence[bytes], words: Sequence[bytes], chance: random.Random) -> None:
    at = chance.randint(0, len(data))
    match chance.randint(0, 7):
        case 0 if data:
            data[at % len(data)] = chance.randint(0, 255)
        case 1 if data:
            data[at % len(data)] ^= 1 << chance.randint(0, 7)
        case 2:
            del data[at : at + chance.randint(1, 16)]
        case 3:
            data[at:at] = data[at : at + chance.randint(1, 64)] * chance.randint(1, 4)
        case 4:
            other = chance.choice(seeds)
            data[at:] = other[chance.randint(0, len(other)) :]
        case 5:
            data[at:at] = chance.randbytes(chance.randint(1, 8))
        case _:
            data[at : at + chance.choice((0, 0, 4))] = chance.choice(words)
