"""Real time and real files: every test here is held to leave nothing behind."""

from support.left_behind import no_task_left_behind, nothing_left_behind

__all__ = ["no_task_left_behind", "nothing_left_behind"]
