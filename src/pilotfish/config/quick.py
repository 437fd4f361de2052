"""Is this certainly a valid config file? A quick yes, or no opinion.

Nearly every file is right, and saying so takes a millisecond here. `config.schema` needs pydantic, whose import alone
takes longer than `pilotfish servers` may; whatever is not plainly right is left to it, for it has the words.
A test holds the two together: what is certain here, the schema accepts.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from pilotfish.config import rules
from pilotfish.config.trusted_roots import fault
from pilotfish.protocol.wire import Json


def is_certainly_valid(value: Json) -> bool:
    try:
        file = msgspec.convert(value, _File)
    except (msgspec.ValidationError, RecursionError, UnicodeEncodeError):
        return False
    if file.lsp is True:
        return False
    servers = file.lsp.values() if isinstance(file.lsp, dict) else ()
    commands = (words for server in servers for words in (server.command, server.watch) if words is not UNSET)
    roots = file.security.trusted_project_roots if file.security is not UNSET else ()
    return all(map(rules.is_argv, commands)) and not any(map(fault, () if roots is UNSET else roots))


def _whole(pattern: str) -> Meta:
    return Meta(pattern=rf"\A(?:{pattern})\Z")


_Milliseconds = Annotated[int, Meta(ge=1, le=rules.MAX_MILLISECONDS)]
_Count = Annotated[int, Meta(ge=1, le=rules.MAX_COUNT)]
_CountOrZero = Annotated[int, Meta(ge=0, le=rules.MAX_COUNT)]
_ServerId = Annotated[str, _whole(rules.SERVER_ID)]
_Extension = Annotated[str, _whole(rules.EXTENSION)]
_Marker = Annotated[str, _whole(rules.MARKER)]
_LanguageId = Annotated[str, _whole(rules.LANGUAGE_ID)]
_EnvName = Annotated[str, _whole(rules.ENV_NAME)]
_EnvValue = Annotated[str, _whole(rules.ENV_VALUE)]
_TrustEntry = Annotated[str, _whole(rules.TRUST_ENTRY)]
_Severities = Annotated[list[Literal["error", "warning", "info", "hint"]], Meta(min_length=1)]


def _key(name: str) -> str:
    """What a field is called in the file."""
    first, *others = name.split("_")
    spelled = first + "".join(other.capitalize() for other in others)
    return "$schema" if name == "schema" else spelled.replace("Mib", "MiB")


class _Closed(Struct, rename=_key, forbid_unknown_fields=True):
    """An object without other keys than these, of which each may be absent."""


class _Timing(_Closed):
    initialize_timeout_ms: _Milliseconds | UnsetType = UNSET
    request_timeout_ms: _Milliseconds | UnsetType = UNSET
    diagnostics_wait_timeout_ms: _Milliseconds | UnsetType = UNSET
    first_touch_timeout_ms: _Milliseconds | UnsetType = UNSET


class _Server(_Closed):
    disabled: bool | UnsetType = UNSET
    command: list[str] | UnsetType = UNSET
    extensions: Annotated[list[_Extension], Meta(min_length=1)] | UnsetType = UNSET
    env: dict[_EnvName, _EnvValue] | UnsetType = UNSET
    initialization: dict[str, Any] | UnsetType = UNSET
    settings: dict[str, Any] | UnsetType = UNSET
    roots: list[_Marker] | UnsetType = UNSET
    language_id: dict[str, _LanguageId] | UnsetType = UNSET
    watch: list[str] | UnsetType = UNSET
    restart: Literal["backoff", "never"] | UnsetType = UNSET
    timeouts: _Timing | UnsetType = UNSET


class _Feedback(_Closed):
    preset: Literal["pi", "llxprt", "opencode"] | UnsetType = UNSET
    include_severities: _Severities | UnsetType = UNSET
    max_per_file: _Count | UnsetType = UNSET
    max_other_files: _CountOrZero | UnsetType = UNSET
    max_total_lines: _Count | UnsetType | None = UNSET
    max_bytes: _Count | UnsetType | None = UNSET
    other_files_order: Literal["path", "severity"] | UnsetType = UNSET
    other_files_after: list[Literal["edit", "write", "patch"]] | UnsetType = UNSET
    only_new: bool | UnsetType = UNSET


class _Pool(_Closed):
    idle_minutes: _Count | UnsetType = UNSET
    memory_mib_per_server: _Count | UnsetType | None = UNSET
    memory_mib: _Count | UnsetType | None = UNSET


class _Mcp(_Closed):
    tools: Literal["named", "lsp"] | UnsetType = UNSET


class _Security(_Closed):
    project_config_policy: Literal["trusted-only", "always", "never"] | UnsetType = UNSET
    trusted_project_roots: list[_TrustEntry] | UnsetType = UNSET
    allow_external_paths: bool | UnsetType = UNSET


class _File(_Closed):
    schema: str | UnsetType = UNSET
    lsp: bool | dict[_ServerId, _Server] | UnsetType = UNSET
    timing: _Timing | UnsetType = UNSET
    feedback: _Feedback | UnsetType = UNSET
    navigation_tools: bool | UnsetType = UNSET
    mcp: _Mcp | UnsetType = UNSET
    pool: _Pool | UnsetType = UNSET
    security: _Security | UnsetType = UNSET
