"""The shape of `lsp.json`: what is accepted.

A typed dictionary per object, strict (no coercion) and closed (no unknown key): a validated file stays plain JSON,
an absent key stays absent, and the JSON Schema comes for free. `config.validation` says what is wrong in words; rules
that need more than one file (a custom server needs a command) are in `config.effective`.
Imports pydantic (about 90 ms), so only a file that is not plainly right (`config.quick`) may make anybody import this.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, JsonValue, Tag, TypeAdapter
from pydantic import with_config as configured
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict, override

from pilotfish.config import rules
from pilotfish.config.defaults import DEFAULTS
from pilotfish.config.trusted_roots import fault

STRICT = ConfigDict(strict=True, extra="forbid")


def _rule(pattern: str, accepted: str) -> AfterValidator:
    """A string must match all of `pattern`; `accepted` says it in words."""
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if not compiled.fullmatch(text):
            raise PydanticCustomError("rule", "is not accepted", {"accepted": accepted})
        return text

    return AfterValidator(check)


def _argv(words: list[str]) -> list[str]:
    if not rules.is_argv(words):
        accepted = "a list of strings: the program, then its arguments, one string each"
        raise PydanticCustomError("rule", "is not accepted", {"accepted": accepted})
    return words


def _pattern(entry: str) -> str:
    if found := fault(entry):
        raise PydanticCustomError("rule", "is not accepted", {"accepted": f"a folder, or a glob that is one ({found})"})
    return entry


Milliseconds = Annotated[int, Field(ge=1, le=rules.MAX_MILLISECONDS)]
Count = Annotated[int, Field(ge=1, le=rules.MAX_COUNT)]
CountOrZero = Annotated[int, Field(ge=0, le=rules.MAX_COUNT)]
Argv = Annotated[list[str], AfterValidator(_argv), Field(json_schema_extra={"minItems": 1})]
ServerId = Annotated[str, _rule(rules.SERVER_ID, "letters, digits and . _ + # - (at most 64)")]
Extension = Annotated[str, _rule(rules.EXTENSION, 'an extension with its dot, like ".py"')]
Marker = Annotated[
    str,
    _rule(rules.MARKER, "a file name or glob below the folder: not absolute, without .."),
]
LanguageId = Annotated[str, _rule(rules.LANGUAGE_ID, "an LSP language id")]
EnvName = Annotated[str, _rule(rules.ENV_NAME, "the name of an environment variable")]
EnvValue = Annotated[str, _rule(rules.ENV_VALUE, "a string without NUL")]
TrustEntry = Annotated[
    str,
    _rule(rules.TRUST_ENTRY, "an absolute folder or glob; ~ stands for the home folder"),
    AfterValidator(_pattern),
]
Severities = Annotated[list[Literal["error", "warning", "info", "hint"]], Field(min_length=1)]


def _branch(value: object) -> str:
    return "off" if value is False else "servers"


@configured(STRICT)
class Timing(TypedDict, total=False):
    """Time limits in milliseconds."""

    initializeTimeoutMs: Annotated[Milliseconds, Field(description="Until a server has started.")]
    requestTimeoutMs: Annotated[Milliseconds, Field(description="Until a server has answered one request.")]
    diagnosticsWaitTimeoutMs: Annotated[
        Milliseconds, Field(description="How long an edit waits for fresh diagnostics.")
    ]
    firstTouchTimeoutMs: Annotated[Milliseconds, Field(description="The same, while the server is still starting.")]


@configured(STRICT)
class Server(TypedDict, total=False):
    """One language server. An id that the catalogue does not know is a custom server: `command` and `extensions`."""

    disabled: Annotated[bool, Field(description="true at any level turns the server off.")]
    command: Annotated[Argv, Field(description="The program and its arguments.")]
    extensions: Annotated[list[Extension], Field(description="Which files it serves.", min_length=1)]
    env: Annotated[dict[EnvName, EnvValue], Field(description="Added to the server's environment.")]
    initialization: Annotated[dict[str, JsonValue], Field(description="initializationOptions.")]
    settings: Annotated[dict[str, JsonValue], Field(description="Answers to workspace/configuration.")]
    roots: Annotated[list[Marker], Field(description="Files that mark a root: names or globs.")]
    languageId: Annotated[dict[str, LanguageId], Field(description="Extension or file name to LSP language id.")]
    watch: Annotated[Argv, Field(description="A program that runs beside the server, for example a generator.")]
    restart: Annotated[Literal["backoff", "never"], Field(description="What follows a crash.")]
    timeouts: Annotated[Timing, Field(description="This server's own time limits.")]


@configured(STRICT)
class Feedback(TypedDict, total=False):
    """What is shown after an edit. null lifts a limit."""

    preset: Annotated[Literal["pi", "llxprt", "opencode"], Field(description="Sets the keys below together.")]
    includeSeverities: Annotated[Severities, Field(description="What counts; the rest is not shown.")]
    maxPerFile: Annotated[Count, Field(description="Diagnostics of one file; more are counted.")]
    maxOtherFiles: Annotated[CountOrZero, Field(description="Files beside the edited ones.")]
    maxTotalLines: Annotated[Count | None, Field(description="Diagnostics of all files together.")]
    maxBytes: Annotated[Count | None, Field(description="The whole text, in UTF-8.")]
    otherFilesOrder: Annotated[Literal["path", "severity"], Field(description="How other files are ordered.")]
    otherFilesAfter: Annotated[
        list[Literal["edit", "write", "patch"]],
        Field(description="After which kinds of change other files are shown too."),
    ]
    onlyNew: Annotated[bool, Field(description="Show only what the edit introduced.")]


@configured(STRICT)
class Pool(TypedDict, total=False):
    """How long and how large servers may live; global file only. null lifts a limit."""

    idleMinutes: Annotated[Count, Field(description="A server that nobody has asked for so long is stopped.")]
    memoryMiBPerServer: Annotated[Count | None, Field(description="A larger one is stopped; it comes back on use.")]
    memoryMiB: Annotated[Count | None, Field(description="All servers together.")]


@configured(STRICT)
class Mcp(TypedDict, total=False):
    """How the tools appear to an MCP client."""

    tools: Annotated[Literal["named", "lsp"], Field(description='One tool per operation, or the one tool "lsp".')]


@configured(STRICT)
class Security(TypedDict, total=False):
    """Who may say what runs; global file only."""

    projectConfigPolicy: Annotated[
        Literal["trusted-only", "always", "never"], Field(description="Whose project files may say what runs.")
    ]
    trustedProjectRoots: Annotated[list[TrustEntry], Field(description="Absolute folders or globs; ~ is the home.")]
    allowExternalPaths: Annotated[bool, Field(description="Serve files outside of the workspace, too.")]


@configured(ConfigDict(strict=True, extra="forbid", title="Pilotfish configuration"))
class ConfigFile(TypedDict, total=False):
    """The file `lsp.json`, of the user or of a project."""

    schema: Annotated[str, Field(alias="$schema", description="For editors; not read.")]
    lsp: Annotated[
        Annotated[Literal[False], Tag("off")] | Annotated[dict[ServerId, Server], Tag("servers")],
        Discriminator(_branch),
        Field(description="Servers by id; false turns everything off."),
    ]
    timing: Timing
    feedback: Feedback
    navigationTools: Annotated[bool, Field(description="false hides the navigation tools and keeps the feedback.")]
    mcp: Mcp
    pool: Pool
    security: Security


OBJECTS: Mapping[tuple[str, ...], Any] = {
    (): ConfigFile,
    ("lsp", "*"): Server,
    ("lsp", "*", "timeouts"): Timing,
    ("timing",): Timing,
    ("feedback",): Feedback,
    ("pool",): Pool,
    ("mcp",): Mcp,
    ("security",): Security,
}
"""The closed objects by where they stand; `*` is any server id."""


@cache
def adapter() -> TypeAdapter[ConfigFile]:
    return TypeAdapter(ConfigFile)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of `lsp.json`, defaults included."""
    schema: dict[str, Any] = adapter().json_schema(by_alias=True, schema_generator=_Untitled)
    for name, section in DEFAULTS.items():
        if isinstance(section, Mapping):
            properties = schema["$defs"][name.capitalize()]["properties"]
            for key, value in section.items():
                properties[key]["default"] = value
    schema["properties"]["navigationTools"]["default"] = DEFAULTS["navigationTools"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


class _Untitled(GenerateJsonSchema):
    """Leaves out the titles that would only repeat the keys."""

    @override
    def field_title_should_be_set(self, schema: object) -> bool:
        return False
