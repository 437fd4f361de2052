"""Where the user's own files are. Decided from the environment once, by the composition root."""

import os
from collections.abc import Mapping

from msgspec import Struct

from pilotfish.model import AbsPath


class Places(Struct, frozen=True):
    """Folders of one user."""

    home: AbsPath
    config: AbsPath
    """`XDG_CONFIG_HOME`: every program has its own folder below."""
    state: AbsPath
    """Our own state; `PILOTFISH_HOME` moves all of it."""

    @property
    def global_file(self) -> AbsPath:
        return AbsPath(os.path.join(self.config, "pilotfish", "lsp.json"))

    @property
    def pins(self) -> AbsPath:
        """The folder of trust records."""
        return AbsPath(os.path.join(self.state, "trust"))

    @property
    def journals(self) -> AbsPath:
        """The folder of what is being written right now."""
        return AbsPath(os.path.join(self.state, "journal"))

    @property
    def store(self) -> AbsPath:
        """What outlives the daemon."""
        return AbsPath(os.path.join(self.state, "store.sqlite"))


def user_places(environment: Mapping[str, str]) -> Places:
    """The folders that `environment` names; relative names are ignored, as the XDG specification asks."""
    home = _absolute(environment.get("HOME")) or os.path.expanduser("~")
    config = _absolute(environment.get("XDG_CONFIG_HOME")) or os.path.join(home, ".config")
    state = _absolute(environment.get("XDG_STATE_HOME")) or os.path.join(home, ".local", "state")
    own = environment.get("PILOTFISH_HOME")
    return Places(
        home=AbsPath(os.path.normpath(home)),
        config=AbsPath(os.path.normpath(config)),
        state=AbsPath(os.path.abspath(own) if own else os.path.join(state, "pilotfish")),
    )


def _absolute(path: str | None) -> str | None:
    return path if path and os.path.isabs(path) else None
