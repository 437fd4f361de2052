"""What a client asks: the operations, a question, and the report of an edit."""

from enum import StrEnum
from typing import Literal

from pilotfish.api.answers import Api, ItemReference


class Operation(StrEnum):
    """What can be asked. `operations.rows` says how."""

    DEFINITION = "goToDefinition"
    DECLARATION = "goToDeclaration"
    TYPE_DEFINITION = "goToTypeDefinition"
    IMPLEMENTATION = "goToImplementation"
    REFERENCES = "findReferences"
    HOVER = "hover"
    SIGNATURE = "signature"
    DOCUMENT_SYMBOL = "documentSymbol"
    WORKSPACE_SYMBOL = "workspaceSymbol"
    PREPARE_CALLS = "prepareCallHierarchy"
    INCOMING_CALLS = "incomingCalls"
    OUTGOING_CALLS = "outgoingCalls"
    SUPERTYPES = "supertypes"
    SUBTYPES = "subtypes"
    DIAGNOSTICS = "diagnostics"
    RENAME = "rename"
    RENAME_FILE = "renameFile"
    CODE_ACTIONS = "codeActions"
    SOURCE = "source"
    EXPLORE = "explore"
    IMPACT = "impact"
    EDIT_SYMBOL = "editSymbol"


class Question(Api, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One question. Which fields belong to which operation: `operations.rows`; `operations.validate` checks it."""

    operation: Operation
    file_path: str | None = None
    line: int | None = None
    character: int | None = None
    symbol: str | None = None
    query: str | None = None
    include_declaration: bool = True
    call_hierarchy_item: ItemReference | None = None
    type_hierarchy_item: ItemReference | None = None
    new_name: str | None = None
    new_path: str | None = None
    action: str | None = None
    kind: str | None = None
    apply: bool = False
    text: str | None = None
    """A proposed text of the file, which is not on disk; of `editSymbol`, the new text of the symbol."""
    edit: str | None = None
    """Of `editSymbol`: `replace`, `before`, `after` or `delete`."""
    digest: str | None = None
    """Of `editSymbol`: that of the text which the caller has seen."""
    limit: int | None = None
    """How many results at most; None: as many as the operation gives."""
    offset: int | None = None
    """How many results to leave out first."""
    depth: int | None = None
    """Of an outline: how many levels."""
    severity: str | None = None
    """Of diagnostics: the least that is told; None: all."""
    kinds: str | None = None
    """Of symbols: which, such as `class,method`; `all` has those that are local to a function too."""


class Touch(Api, frozen=True, forbid_unknown_fields=True):
    """Files that a tool of the host has just changed (or read: then they are made ready, and nothing is waited for)."""

    paths: tuple[str, ...]
    kind: Literal["edit", "write", "patch", "read"]
    texts: dict[str, str] | None = None
    """By path as in `paths`: authoritative where given, and the disk is not read."""
    only_new: bool = False
    plain: bool = False
    """The text without angle brackets, for hosts that escape them on the way to the model."""
    max_bytes: int | None = None
    """What the host takes at most; the configuration may say less."""
    before: dict[str, str] | None = None
    """By path as in `paths`: the text before the edit, where the host says it; empty for a file that is new."""
    counts: bool = True
    """As in `Moment`."""
    stops: bool = False
    """Whether the host reports when the agent is about to stop: then it is told what is left."""
    batch: Literal["part", "end"] | None = None
    """`part`: the model may read the result of this edit together with those of others, and it may be told with them.
    `end`: all edits that the model made at once, after the last of them. Each was reported as a part before."""


class Moment(Api, frozen=True, forbid_unknown_fields=True):
    """A point of a conversation at which its model can be told something."""

    kind: Literal["call", "prompt", "stop"]
    plain: bool = False
    max_bytes: int | None = None
    """Both as in `Touch`."""
    agent: str = ""
    """Before a stop: which agent of the conversation stops; empty for the main one."""
    again: bool = False
    """Before a stop: the host says that it goes on only because it was told before."""
    counts: bool = True
    """Whether the host's report of its calls ends with this; False where an event for all of them follows."""
    tentative: bool = False
    """Before what may be a stop: the answer is what would be told, and nothing counts as told."""
    waits: bool = True
    """Whether servers may be asked for it. False where the call needs no answer: only what is known by then is told."""
