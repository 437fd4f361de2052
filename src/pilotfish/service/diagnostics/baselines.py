"""The last fresh state of each file, to compare the next one with."""

from collections.abc import Callable, Collection

from pilotfish.feedback.delta import CheckedText, Comparison, delta
from pilotfish.model import AbsPath, Diagnostic
from pilotfish.service.diagnostics.runner import FileVerdict
from pilotfish.service.recent import Recent
from pilotfish.service.workspaces import ClientSession

MAX_BASELINES = 500
"""Files whose last fresh state is kept with its text. Of a file beyond it, no diagnostic is called new."""

NO_FILE = CheckedText("", ())
"""The state of a file that does not exist yet."""


class Baselines:
    """Those of all clients; or, with `real`, those of one check, which nobody else knows until `keep`."""

    def __init__(self, real: "Baselines | None" = None) -> None:
        self._real = real
        self._kept: Recent[tuple[AbsPath, str | None], CheckedText] = (
            Recent(MAX_BASELINES) if real is None else real._kept.copy()  # noqa: SLF001 -- of our own kind
        )
        self._last: Recent[AbsPath, CheckedText] = Recent(MAX_BASELINES)
        """The newest state of each file, whoever had it checked."""
        self._new: dict[tuple[AbsPath, str | None], CheckedText] = {}
        self._gone: set[AbsPath] = set()
        """Both since the copy was made."""

    def fork(self) -> "Baselines":
        """A copy for one check: what that finds is a state to compare with only once it was told."""
        return Baselines(self)

    def keep(self, without: Collection[AbsPath] = ()) -> None:
        """What this check has found was told; nothing was told of the files `without`."""
        if self._real is None:
            return
        for path in self._gone:
            self._real.deleted(path)
        for (path, host), state in self._new.items():
            if path not in without:
                self._real.put(host, path, state)

    def put(self, host: str | None, path: AbsPath, state: CheckedText) -> None:
        """Compare the next state of this file with that one."""
        self._kept.put((path, host), state)
        if self._real is None:
            self._last.put(path, state)
        else:
            self._new[path, host] = state

    def compare(self, client: ClientSession, verdict: FileVerdict) -> Comparison:
        """The change since the last fresh state of this file; a fresh verdict becomes the next one."""
        before, now = self._kept.get((verdict.path, client.host)), _snapshot(verdict)
        if verdict.is_fresh:
            self.put(client.host, verdict.path, now)
        return delta(before, now)

    def deleted(self, path: AbsPath) -> None:
        """The file is gone: what it had is no state of a file that comes back."""
        self._kept.drop(lambda key: key[0] == path)
        self._last.drop(lambda key: key == path)
        if self._real is not None:
            self._new = {key: state for key, state in self._new.items() if key[0] != path}
            self._gone.add(path)

    def forget(self, client: ClientSession, path: AbsPath) -> None:
        """The last fresh state is nothing to compare with any more."""
        self._kept.drop(lambda key: key == (path, client.host))

    def drop(self, is_meant: Callable[[AbsPath], bool]) -> None:
        """Forget the state of these files: nobody compares it with a new one."""
        self._kept.drop(lambda key: is_meant(key[0]))
        self._last.drop(is_meant)

    def text(self, client: ClientSession, path: AbsPath) -> str | None:
        """The text of the last fresh state; None without one."""
        known = self._kept.get((path, client.host))
        return None if known is None else known.text

    def outdate(self, changed: Collection[AbsPath]) -> None:
        """These files were changed on disk: what they had when they were last checked is not what they have now."""
        self._last.drop(changed.__contains__)

    def last(self) -> dict[AbsPath, tuple[Diagnostic, ...]]:
        """What each file had when it was last checked, whoever asked."""
        return {path: state.diagnostics for path in self._last if (state := self._last.get(path)) is not None}

    def since(self, client: ClientSession, verdict: FileVerdict, *, created: bool = False) -> Comparison:
        """The same for a text that is not on disk: nothing is kept."""
        before = NO_FILE if created else self._kept.get((verdict.path, client.host))
        return delta(before, _snapshot(verdict))


def _snapshot(verdict: FileVerdict) -> CheckedText:
    return CheckedText(verdict.text, verdict.diagnostics)
