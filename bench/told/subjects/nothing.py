"""No help at all: the floor."""

from told.edits import Edit
from told.subjects.setting import Setting, Told


class Nothing:
    name = "nothing"
    carries_out = False

    def __init__(self, setting: Setting) -> None:
        del setting

    def begin(self) -> None:
        """Nobody is there."""

    def before(self, edit: Edit) -> None:
        """Nobody is there."""

    def after(self, edit: Edit) -> Told:
        del edit
        return Told("", 0.0)

    def end(self) -> None:
        """Nobody is there."""
