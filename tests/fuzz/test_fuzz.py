"""Every fuzz target holds for all that fuzzing has found, and for some thousands of random inputs."""

from itertools import islice

import pytest

from fuzz.known import NAMES, target
from fuzz.mutate import mutations

RANDOM_INPUTS = 2_000
"""Of each target: a second or so. `./fuzz` runs millions, guided by coverage."""


@pytest.mark.proves("P9", "F31", "F32", "T36")
@pytest.mark.parametrize("name", NAMES)
def test_a_target_holds_for_known_and_random_inputs(name: str) -> None:
    fuzzed = target(name)
    known = fuzzed.inputs()
    random = islice(mutations(known, fuzzed.words, number=1), RANDOM_INPUTS // fuzzed.share)
    for data in [b"", *known, *random]:
        try:
            fuzzed.run(data)
        except Exception as error:
            raise AssertionError(f"{name} fails for {data!r}") from error
