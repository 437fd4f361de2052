"""The targets, and the inputs that are known to be interesting: `corpus/NAME.txt`, one Python bytes literal a line."""

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent

NAMES = tuple(sorted(file.stem for file in (HERE / "targets").glob("[!_]*.py")))


@dataclass(frozen=True)
class Target:
    """`run` raises when something is wrong; `words` are worth inserting."""

    name: str
    run: Callable[[bytes], None]
    seeds: Sequence[bytes]
    words: Sequence[bytes]
    share: int = 1
    """One of so many random inputs is tried in the gate."""

    @property
    def corpus_file(self) -> Path:
        return HERE / "corpus" / f"{self.name}.txt"

    def inputs(self) -> list[bytes]:
        """The seeds of the target, and what fuzzing has found."""
        return [*self.seeds, *self.corpus()]

    def corpus(self) -> list[bytes]:
        lines = self.corpus_file.read_text().splitlines() if self.corpus_file.exists() else []
        return [ast.literal_eval(line) for line in lines]


def target(name: str) -> Target:
    module = import_module(f"fuzz.targets.{name}")
    return Target(name, module.run, module.SEEDS, module.WORDS, getattr(module, "SHARE", 1))
