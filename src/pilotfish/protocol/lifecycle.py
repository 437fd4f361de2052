"""The life of one language server connection, as a table.

States × steps: a pair that is not listed is a `Bug`, and no other code keeps a flag about it.
Before and after `running` nothing may leave but what moves on, and answers to the server's own requests.
"""

from enum import StrEnum

from pilotfish.errors import Bug


class Phase(StrEnum):
    SPAWNED = "spawned"
    INITIALIZING = "initializing"
    RUNNING = "running"
    STOPPING = "stopping"
    EXITING = "exiting"
    ENDED = "ended"


class Step(StrEnum):
    INITIALIZE = "initialize sent"
    INITIALIZED = "initialized sent"
    SHUTDOWN = "shutdown sent"
    EXIT = "exit sent"
    END = "process or stream ended"


TRANSITIONS: dict[Phase, dict[Step, Phase]] = {
    Phase.SPAWNED: {Step.INITIALIZE: Phase.INITIALIZING, Step.EXIT: Phase.EXITING, Step.END: Phase.ENDED},
    # A server that never answers `initialize` gets no `shutdown`: the specification allows only `exit` here.
    Phase.INITIALIZING: {Step.INITIALIZED: Phase.RUNNING, Step.EXIT: Phase.EXITING, Step.END: Phase.ENDED},
    Phase.RUNNING: {Step.SHUTDOWN: Phase.STOPPING, Step.END: Phase.ENDED},
    Phase.STOPPING: {Step.EXIT: Phase.EXITING, Step.END: Phase.ENDED},
    Phase.EXITING: {Step.END: Phase.ENDED},
    # The end is reported by the task that sees it first: the reader, the writer, the process.
    Phase.ENDED: {Step.END: Phase.ENDED},
}

STEPS = {
    "initialize": Step.INITIALIZE,
    "initialized": Step.INITIALIZED,
    "shutdown": Step.SHUTDOWN,
    "exit": Step.EXIT,
}
"""The messages that move a connection on when they leave."""


class Lifecycle:
    def __init__(self) -> None:
        self.phase = Phase.SPAWNED

    def advance(self, step: Step) -> None:
        """Move on, or raise `Bug` when the table has no such move."""
        following = TRANSITIONS[self.phase].get(step)
        if following is None:
            raise Bug(f"{step.value} while the connection is {self.phase.value}")
        self.phase = following

    def may_send(self, method: str) -> bool:
        """Strict servers exit with an error on anything but `exit` after `shutdown`."""
        is_cancel = self.phase is Phase.INITIALIZING and method == "$/cancelRequest"
        return self.phase is Phase.RUNNING or is_cancel or STEPS.get(method) in TRANSITIONS[self.phase]

    def send(self, method: str) -> bool:
        """Whether `method` may leave now; if so, the connection moves on as it leaves."""
        if not self.may_send(method):
            return False
        if method in STEPS:
            self.advance(STEPS[method])
        return True
