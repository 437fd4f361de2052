"""`LSP_BOOTSTRAP`: LLxprt's workspace and its settings for language servers, passed when it starts us. Pure.

The settings are read like its settings file. They come from the host, which ignores a workspace's own settings unless
the person trusts it; so they may name commands. Every file of the user takes precedence.
"""

from typing import cast

from msgspec import Struct

from pilotfish.config.foreign import translation
from pilotfish.config.places import CONFIG_DIALECTS
from pilotfish.config.problems import Problem
from pilotfish.config.schema import USER_ONLY
from pilotfish.config.sheets import Names
from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.protocol.codec import Malformed, decode
from pilotfish.protocol.wire import Json

HOST = "llxprt"
VARIABLE = "LSP_BOOTSTRAP"


class Bootstrap(Struct, frozen=True):
    """The host's settings. `config` is in our own format; `notes` say what of it is not used."""

    root: AbsPath
    config: dict[str, Json]
    notes: tuple[Problem, ...]


def bootstrap_of(text: str | None, canonical_id: Names) -> Bootstrap:
    """Read the variable; raises `Refused` with one line that names the error."""
    if not text:
        raise _refused("is not set; it must be {workspaceRoot, config}")
    try:
        value = decode(text.encode("utf-8", "surrogateescape"), dict[str, object])
    except Malformed:
        raise _refused("is not a JSON object") from None
    root = value.get("workspaceRoot")
    if not isinstance(root, str) or not root.startswith("/"):
        raise _refused("has no workspaceRoot that is an absolute path")
    config = cast("Json", value.get("config"))
    if not isinstance(config, dict) and config not in (None, True, False):
        raise _refused("has a config that is not an object")
    dialect = next(dialect for dialect in CONFIG_DIALECTS if dialect.host == HOST)
    translated = translation(dialect, {"lsp": config}, VARIABLE, canonical_id)
    said = {} if translated is None else {k: v for k, v in translated.value.items() if k not in USER_ONLY}
    return Bootstrap(AbsPath(root), said, () if translated is None else translated.notes)


def _refused(what: str) -> Refused:
    return Refused(Code.INVALID_CONFIG, f"{VARIABLE} {what}")
