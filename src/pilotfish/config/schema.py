"""The shape of `lsp.json`, with the default of every key: one struct per section.

The same structs are the settings in force: a section of the merged file converts to them, and an absent key takes its
default. Objects are closed (no unknown key) and nothing is coerced. `config.problems` says in words what is wrong
with a file; rules that need more than one file (a custom server needs a command) are in `config.load`.
`Meta(extra=…)` holds what the words need: `accepted` describes the values, `rule` returns what is accepted instead
when a value breaks a rule that the type cannot express.
"""

import os
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from pilotfish.config.trusted_roots import fault
from pilotfish.model import Severity
from pilotfish.protocol.wire import Json

USER_ONLY = ("security", "pool")
"""Read from the user's file only: a project may neither trust itself nor spend the memory that all projects share."""

# --- Single values ------------------------------------------------------------------------------------------------

MAX_MILLISECONDS = 86_400_000  # A day: a longer limit is a typing error, and a far longer one overflows timers
MAX_COUNT = 1_000_000  # A bound for counts, so that sums of them stay small numbers

ABSOLUTE = r"(/|~/|~\Z)" if os.name != "nt" else r"(/|~/|~\Z|[A-Za-z]:[/\\])"


ARGV = "a list of strings: the program, then its arguments, one string each"
SERVERS = "an object of servers by id, or false"


def broken_argv(words: Sequence[str]) -> str | None:
    """What is accepted as a command line, when `words` is not."""
    return None if words and words[0] and not any("\0" in word for word in words) else ARGV


def broken_root(entry: str) -> str | None:
    """What is accepted as an entry of `trustedProjectRoots`, when `entry` is not."""
    found = fault(entry)
    return found and f"a folder, or a glob that can be read ({found})"


def broken_servers(servers: object) -> str | None:
    """`true` is not accepted: servers are on by default."""
    return SERVERS if servers is True else None


def _text(pattern: str, accepted: str, **extra: object) -> Meta:
    """A string that matches all of `pattern`; `accepted` says it in words."""
    return Meta(pattern=rf"\A(?:{pattern})\Z", extra={"accepted": accepted, **extra})


def _about(description: str) -> Meta:
    return Meta(description=description)


Milliseconds = Annotated[int, Meta(ge=1, le=MAX_MILLISECONDS)]
Count = Annotated[int, Meta(ge=1, le=MAX_COUNT)]
CountOrZero = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
Argv = Annotated[tuple[str, ...], Meta(min_length=1, extra={"accepted": ARGV, "rule": broken_argv})]
ServerId = Annotated[str, _text(r"[A-Za-z0-9][A-Za-z0-9._+#-]{0,63}", "letters, digits and . _ + # - (at most 64)")]
Extension = Annotated[str, _text(r"\.[^/\\\0\s]+", 'an extension with its dot, like ".py"')]
Marker = Annotated[
    str, _text(r"(?!/)(?!(.*/)?\.\.(/|$))[^\0\\]+", "a file name or glob below the folder: not absolute, without ..")
]
LanguageId = Annotated[str, _text(r"[A-Za-z0-9][A-Za-z0-9._+#-]{0,63}", "an LSP language id")]
EnvName = Annotated[str, _text(r"[A-Za-z_][A-Za-z0-9_]*", "the name of an environment variable")]
EnvValue = Annotated[str, _text(r"[^\0]*", "a string without NUL")]
TrustEntry = Annotated[
    str, _text(ABSOLUTE + r"[^\0]*", "an absolute folder or glob; ~ stands for the home folder", rule=broken_root)
]
SeverityName = Literal["error", "warning", "info", "hint"]
TouchKind = Literal["edit", "write", "patch"]
PresetName = Literal["pi", "llxprt", "opencode"]

SEVERITIES: Mapping[SeverityName, Severity] = {
    "error": Severity.ERROR,
    "warning": Severity.WARNING,
    "info": Severity.INFORMATION,
    "hint": Severity.HINT,
}


class ProjectConfigPolicy(StrEnum):
    """Whether a project's own file may say what runs."""

    TRUSTED_ONLY = "trusted-only"
    ALWAYS = "always"
    NEVER = "never"


RestartPolicy = Literal["backoff", "never"]  # What follows a crash


# --- Sections -----------------------------------------------------------------------------------------------------


def _key(name: str) -> str:
    first, *others = name.split("_")
    return (first + "".join(other.capitalize() for other in others)).replace("Mib", "MiB")


class Section(Struct, frozen=True, forbid_unknown_fields=True, rename=_key):
    """A closed object: other keys are errors, and each key may be absent."""


class TimingSettings(Section, frozen=True):
    """Time limits in milliseconds."""

    initialize_timeout_ms: Annotated[Milliseconds, _about("Until a server has started.")] = 15_000
    request_timeout_ms: Annotated[
        Milliseconds, _about("Until a server has answered one request; a check waits 6 and later 3 times that.")
    ] = 10_000
    diagnostics_wait_timeout_ms: Annotated[Milliseconds, _about("How long an edit waits for fresh diagnostics.")] = (
        3_000
    )
    first_touch_timeout_ms: Annotated[Milliseconds, _about("The same, while the server is still starting.")] = 10_000


class ServerEntry(Section, frozen=True):
    """One language server. An id that the catalogue does not know is a custom server: `command` and `extensions`."""

    disabled: Annotated[bool, _about("true at any level turns the server off.")] = False
    command: Annotated[Argv, _about("The program and its arguments.")] = ()
    extensions: Annotated[tuple[Extension, ...], Meta(min_length=1, description="Which files it serves.")] = ()
    env: Annotated[dict[EnvName, EnvValue], _about("Added to the server's environment.")] = {}
    initialization: Annotated[dict[str, Any], _about("initializationOptions.")] = {}
    settings: Annotated[dict[str, Any], _about("Answers to workspace/configuration.")] = {}
    roots: Annotated[tuple[Marker, ...], _about("Files that mark a root: names or globs.")] = ()
    language_id: Annotated[dict[str, LanguageId], _about("Extension or file name to LSP language id.")] = {}
    watch: Annotated[Argv, _about("A program that runs beside the server, for example a generator.")] = ()
    restart: Annotated[RestartPolicy, _about("What follows a crash.")] | UnsetType = UNSET
    timeouts: Annotated[TimingSettings, _about("This server's own time limits.")] = TimingSettings()

    def __post_init__(self) -> None:
        for words in (self.command, self.watch):
            _check(broken_argv(words) if words else None)


class FeedbackSettings(Section, frozen=True):
    """What is shown after an edit. null lifts a limit."""

    preset: Annotated[PresetName, _about("Sets the limits and the order together.")] | UnsetType = UNSET
    include_severities: Annotated[
        tuple[SeverityName, ...], Meta(min_length=1, description="What counts; the rest is not shown.")
    ] = ("error",)
    max_per_file: Annotated[Count, _about("Diagnostics of one file; more are counted.")] = 20
    max_other_files: Annotated[CountOrZero, _about("Files beside the edited ones.")] = 5
    max_total_lines: Annotated[Count | None, _about("Diagnostics of all files together.")] = 50
    max_bytes: Annotated[Count | None, _about("The whole text, in UTF-8.")] = None
    order: Annotated[Literal["line", "severity"], _about("How the diagnostics of one file are ordered.")] = "line"
    other_files_order: Annotated[Literal["path", "severity"], _about("How other files are ordered.")] = "severity"
    other_files_after: Annotated[
        tuple[TouchKind, ...], _about("After which kinds of change other files are shown too.")
    ] = ("edit", "write", "patch")
    after: Annotated[
        Literal["edit", "batch", "stop", "ask"],
        _about(
            "When errors are told: after each edit; after all edits that the model made at once; "
            "before the agent ends its turn; or only when it asks."
        ),
    ] = "batch"
    wording: Annotated[
        Literal["worklist", "report"],
        _about("A list of what is open, with source lines; or a report of errors, in the words of the presets."),
    ] = "worklist"
    only_new: Annotated[bool, _about("Show only what the edit introduced.")] = True
    no_verdict: Annotated[
        Literal["say", "silent"], _about("Whether one line says that a file could not be checked, and why.")
    ] = "say"

    before_stop: Annotated[
        bool, _about("Before the agent ends its turn: tell it once which of its errors are left, where the host can.")
    ] = True

    @property
    def severities(self) -> frozenset[Severity]:
        """What counts, as the servers' diagnostics have it."""
        return frozenset(SEVERITIES[name] for name in self.include_severities)


class PoolSettings(Section, frozen=True):
    """How long and how large servers may live; global file only. null lifts a limit."""

    idle_minutes: Annotated[Count, _about("A server that nobody has asked for so long is stopped.")] = 10
    memory_mib_per_server: Annotated[Count | None, _about("A larger one is stopped; it comes back on use.")] = None
    memory_mib: Annotated[
        Count | Literal["half"] | None, _about("All servers together; half: of the machine's memory.")
    ] = "half"
    share_worktrees: Annotated[
        bool | Literal["auto"],
        _about("Worktrees of a repository take turns at one server: where it can; auto: where that costs little time."),
    ] = "auto"


class McpSettings(Section, frozen=True):
    """How the tools appear to an MCP client."""

    tools: Annotated[Literal["named", "lsp"], _about('One tool per operation, or the one tool "lsp".')] = "named"
    structured: Annotated[bool, _about("Add the whole answer to each text, as structured content.")] = False


class SecuritySettings(Section, frozen=True):
    """Who may say what runs; global file only."""

    project_config_policy: Annotated[ProjectConfigPolicy, _about("Whose project files may say what runs.")] = (
        ProjectConfigPolicy.TRUSTED_ONLY
    )
    trusted_project_roots: Annotated[tuple[TrustEntry, ...], _about("Absolute folders or globs; ~ is the home.")] = ()
    host_trust: Annotated[
        bool, _about("Let trust that was given in Claude Code, Gemini CLI or Pi count for programs of a project.")
    ] = True
    allow_external_paths: Annotated[bool, _about("Serve files outside of the workspace, too.")] = False
    remote_schemas: Annotated[bool, _about("Let servers fetch schemas that files name.")] = False

    def __post_init__(self) -> None:
        for entry in self.trusted_project_roots:
            _check(broken_root(entry))


class ConfigFile(Section, frozen=True):
    """The file `lsp.json`, of the user or of a project."""

    schema: Annotated[str, _about("For editors; not read.")] | UnsetType = field(default=UNSET, name="$schema")
    lsp: (
        Annotated[
            bool | dict[ServerId, ServerEntry],
            Meta(
                description="Servers by id; false turns everything off.",
                extra={"accepted": SERVERS, "rule": broken_servers},
            ),
        ]
        | UnsetType
    ) = UNSET
    timing: TimingSettings = TimingSettings()
    feedback: FeedbackSettings = FeedbackSettings()
    start_ahead: Annotated[bool, _about("Start servers when a conversation begins, before it needs them.")] = True
    navigation_tools: Annotated[bool, _about("false hides the navigation tools and keeps the feedback.")] = True
    mcp: McpSettings = McpSettings()
    pool: PoolSettings = PoolSettings()
    security: SecuritySettings = SecuritySettings()

    def __post_init__(self) -> None:
        _check(broken_servers(self.lsp))


def _check(accepted: str | None) -> None:
    if accepted is not None:
        raise ValueError(accepted)


# --- JSON Schema --------------------------------------------------------------------------------------------------


def json_schema() -> dict[str, Any]:
    (_, shapes) = msgspec.json.schema_components([ConfigFile], ref_template="#/$defs/{name}")
    choices = {f"#/$defs/{name}": shape["enum"] for name, shape in shapes.items() if "enum" in shape}
    objects = {name: _tidy(shape, choices) for name, shape in shapes.items() if "enum" not in shape}
    file = objects.pop(ConfigFile.__name__)
    file["properties"]["lsp"]["anyOf"][0] = {"const": False}
    for section in file["properties"].values():
        if "$ref" in section:
            del section["default"]
    for key in objects[ServerEntry.__name__]["properties"].values():
        key.pop("default", None)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Pilotfish configuration"}
    return {**head, **file, "$defs": objects}


def _tidy(part: Json, choices: Mapping[str, list[str]]) -> Any:
    """Without titles that only repeat names, with choices in place, and with patterns as JSON Schema writes them."""
    if isinstance(part, list | tuple):
        return [_tidy(item, choices) for item in part]
    if not isinstance(part, dict):
        return part
    tidied: dict[str, Any] = {
        key: _tidy(item, choices) for key, item in part.items() if key not in {"title", "required"}
    }
    if tidied.get("$ref") in choices:
        tidied["enum"] = choices[tidied.pop("$ref")]
    if isinstance(pattern := tidied.get("pattern"), str):
        tidied["pattern"] = pattern.replace(r"\A", "^").replace(r"\Z", "$")
    return tidied


# --- Defaults of every key, under a host, and by the name of a preset ------------------------------------------------


DEFAULTS: Final[Mapping[str, Json]] = msgspec.json.decode(msgspec.json.encode(ConfigFile()))
"""The default of every key, as a file would write it."""

LLXPRT_FEEDBACK: Mapping[str, Json] = {
    "wording": "report",
    "includeSeverities": ["error"],
    "maxPerFile": 20,
    "maxOtherFiles": 5,
    "maxTotalLines": 50,
    "maxBytes": None,
    "order": "line",
    "otherFilesOrder": "path",
    "otherFilesAfter": ["edit", "write", "patch"],
}

PRESETS: Mapping[str, Mapping[str, Json]] = {
    "llxprt": LLXPRT_FEEDBACK,
    # OpenCode bounds files and lines per file, and nothing else.
    "opencode": {**LLXPRT_FEEDBACK, "maxTotalLines": None},
    "pi": {
        **LLXPRT_FEEDBACK,
        "includeSeverities": ["error", "warning"],
        "maxOtherFiles": 3,
        "maxBytes": 2048,
        "order": "severity",
        "otherFilesOrder": "severity",
    },
}
"""The named sets of limits and order. Each sets the same keys, so that choosing one in a project undoes whatever
another one set below it; what is told and when (`onlyNew`, `noVerdict`, `after`) is not part of a preset."""

HOST_DEFAULTS: Mapping[str | None, Mapping[str, Json]] = {
    # Whatever its linter says Aider takes for errors, and has its model mend them.
    "aider": {"feedback": {"noVerdict": "silent"}},
    # LLxprt promises silence where there is no verdict.
    "llxprt": {"feedback": {"preset": "llxprt", "noVerdict": "silent"}},
    "opencode": {"feedback": {"preset": "opencode"}},
    "pi": {"feedback": {"preset": "pi"}},
}
"""Defaults under a host: its users were promised these numbers."""

HOST_RESTART: Mapping[str | None, RestartPolicy] = {"llxprt": "never"}
"""What follows a crash under a host, where it is not `backoff`: LLxprt promises no restarts."""

SAME_SEVERITIES = frozenset({"llxprt"})
"""Hosts whose users were promised that `includeSeverities` holds for the diagnostics that a model asks for, too."""
