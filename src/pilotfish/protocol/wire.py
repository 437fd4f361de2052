"""The LSP shapes that we read or send, and no more.

Lenient in: a struct names only the fields we use, unknown ones pass, absent ones have defaults; whatever a server may
spell in several ways is `Any` here and normalised by the module that reads it.
Exact out: defaults are omitted, so that an optional field we do not set never travels as `null` (several servers
refuse that).
`Any` fields hold plain JSON values; `Raw` fields hold the server's bytes, to be passed back unread.
"""

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType, field

JsonObject = dict[str, Any]
"""An object of any members, which are not checked."""

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class Wire(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Common settings of every shape here.

    The garbage collector does not track them: JSON has no cycles, and tracking makes a long list three times slower.
    """


# --- Envelopes ----------------------------------------------------------------------------------------------------


class Envelope(Wire, frozen=True):
    """Any JSON-RPC message as received. `jsonrpc` is not read: some servers leave it out.

    Some serialisers write `null` for the members that a message has not, hence `None` beside `UNSET`.
    """

    id: int | str | UnsetType | None = UNSET
    method: str | UnsetType | None = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class WireError(Wire, frozen=True):
    code: int
    message: str
    data: Raw | UnsetType = UNSET


class CancelParams(Wire, frozen=True):
    id: int | str


# --- Positions and text -------------------------------------------------------------------------------------------


class WirePosition(Wire, frozen=True):
    """In the session's encoding, as sent and received. Never omitted: 0 is a position."""

    line: int
    character: int


class WireRange(Wire, frozen=True):
    start: WirePosition
    end: WirePosition


class WireLocation(Wire, frozen=True):
    uri: str
    range: WireRange


class TextDocumentIdentifier(Wire, frozen=True):
    """Of a document that changes the version is sent, too; edits may come with one."""

    uri: str
    version: int | None = None


class TextDocumentItem(Wire, frozen=True):
    uri: str
    language_id: str
    version: int
    text: str


class DocumentParams(Wire, frozen=True):
    """Also the parameters of `didClose`."""

    text_document: TextDocumentIdentifier


class TextDocumentPositionParams(DocumentParams, frozen=True):
    position: WirePosition


# --- Document synchronisation -------------------------------------------------------------------------------------


class ContentChange(Wire, frozen=True):
    """Without `range` it replaces the whole text."""

    text: str
    range: WireRange | None = None


class DidOpenParams(Wire, frozen=True):
    text_document: TextDocumentItem


class DidChangeParams(DocumentParams, frozen=True):
    content_changes: list[ContentChange]


class DidSaveParams(DocumentParams, frozen=True):
    text: str | None = None


# --- Diagnostics --------------------------------------------------------------------------------------------------


class WireDiagnostic(Wire, frozen=True):
    """`code` may be a number, a string or an object, `message` a string or markup.

    What we do not read ourselves goes back to the server with a question about code actions.
    """

    range: WireRange
    message: Any
    severity: int | None = None
    code: Any = None
    code_description: Any = None
    source: str | None = None
    tags: Any = None
    related_information: Any = None
    data: Raw | UnsetType = UNSET


class PublishDiagnosticsParams(Wire, frozen=True):
    uri: str
    diagnostics: Raw
    version: int | None = None


class DocumentDiagnosticReport(Wire, frozen=True):
    """`full` has items, `unchanged` has none; `related_documents` maps URIs to reports of the same shape."""

    kind: str = "full"
    items: Raw | UnsetType = UNSET
    result_id: str | None = None
    related_documents: dict[str, Raw] | None = None


class WorkspaceDocumentDiagnosticReport(Wire, frozen=True):
    uri: str
    items: Raw | UnsetType = UNSET


class WorkspaceDiagnosticReport(Wire, frozen=True):
    items: list[Raw] = []


class PreviousResultId(Wire, frozen=True):
    uri: str
    value: str


class DocumentDiagnosticParams(Wire, frozen=True):
    text_document: TextDocumentIdentifier
    identifier: str | None = None
    previous_result_id: str | None = None


class WorkspaceDiagnosticParams(Wire, frozen=True):
    # Required by the specification even when empty, hence no default that could be omitted.
    previous_result_ids: list[PreviousResultId]
    identifier: str | None = None


# --- Edits --------------------------------------------------------------------------------------------------------


class WireTextEdit(Wire, frozen=True):
    """Plain, annotated and snippet edits in one: `new_text` is absent in a snippet edit."""

    range: WireRange
    new_text: str | None = None
    annotation_id: str | None = None
    snippet: Any = None


class WireWorkspaceEdit(Wire, frozen=True):
    """`document_changes` mixes text edits and resource operations, told apart by `kind`."""

    changes: dict[str, list[WireTextEdit]] | None = None
    document_changes: list[Raw] | None = None
    change_annotations: dict[str, Any] | None = None


class WireTextDocumentEdit(Wire, frozen=True):
    text_document: TextDocumentIdentifier
    edits: list[WireTextEdit]


class WireResourceOperation(Wire, frozen=True):
    """`create` and `delete` have `uri`, `rename` has `old_uri` and `new_uri`."""

    kind: str
    uri: str | None = None
    old_uri: str | None = None
    new_uri: str | None = None
    options: dict[str, Any] | None = None
    annotation_id: str | None = None


class ApplyEditParams(Wire, frozen=True):
    edit: Raw


class ApplyEditResult(Wire, frozen=True):
    applied: bool
    failure_reason: str | None = None


# --- Lifecycle and registration -----------------------------------------------------------------------------------


class WorkspaceFolder(Wire, frozen=True):
    uri: str
    name: str


class ServerInfo(Wire, frozen=True):
    name: str = ""
    version: str | None = None


class InitializeResult(Wire, frozen=True):
    capabilities: dict[str, Any] = {}
    server_info: ServerInfo | None = None


class Registration(Wire, frozen=True):
    id: str
    method: str
    register_options: Any = None


class RegistrationParams(Wire, frozen=True):
    registrations: list[Raw]


class Unregistration(Wire, frozen=True):
    id: str
    method: str = ""


class ConfigurationItem(Wire, frozen=True):
    section: str | None = None


class ConfigurationParams(Wire, frozen=True):
    items: list[ConfigurationItem] = []


class ProgressParams(Wire, frozen=True):
    """`value` is the begin/report/end object of work done, or a partial result."""

    token: int | str
    value: Raw


class WorkDoneProgress(Wire, frozen=True):
    kind: str = ""
    title: str | None = None


class MessageAction(Wire, frozen=True):
    title: str = ""


class MessageParams(Wire, frozen=True):
    """`window/logMessage`, `window/showMessage` and `window/showMessageRequest`."""

    message: str = ""
    actions: list[MessageAction] | None = None


# --- Watched files ------------------------------------------------------------------------------------------------


class FileEvent(Wire, frozen=True):
    uri: str
    type: int


class DidChangeWatchedFilesParams(Wire, frozen=True):
    changes: list[FileEvent]


# --- Answers to questions -----------------------------------------------------------------------------------------


class WirePlace(Wire, frozen=True):
    """`Location` and `LocationLink` in one. Since 3.17 the location of a workspace symbol may lack its range."""

    uri: str | None = None
    range: WireRange | None = None
    target_uri: str | None = None
    target_range: WireRange | None = None
    target_selection_range: WireRange | None = None


class WireHover(Wire, frozen=True):
    """`contents` is markup, a marked string, or a list of marked strings."""

    contents: Any = None
    range: WireRange | None = None


class WireSymbol(Wire, frozen=True):
    """`DocumentSymbol`, `SymbolInformation` and `WorkspaceSymbol` in one: the first has ranges, the others a place."""

    name: str
    kind: int = 0
    detail: str | None = None
    range: WireRange | None = None
    selection_range: WireRange | None = None
    children: Raw | UnsetType = UNSET
    location: WirePlace | None = None
    container_name: str | None = None
    tags: list[int] | None = None
    deprecated: bool | None = None


class WireParameter(Wire, frozen=True):
    """`label` is a string, or a pair of UTF-16 offsets into the label of the signature."""

    label: Any = ""


class WireSignature(Wire, frozen=True):
    label: str
    documentation: Any = None
    parameters: list[WireParameter] | None = None
    active_parameter: int | None = None


class WireSignatureHelp(Wire, frozen=True):
    signatures: Raw | UnsetType = UNSET
    active_signature: int | None = None
    active_parameter: int | None = None


class WireHierarchyItem(Wire, frozen=True):
    """An item of a call or type hierarchy, which goes back to the server as it came."""

    name: str
    uri: str
    range: WireRange
    selection_range: WireRange
    kind: int = 0
    detail: str | None = None
    tags: list[int] | None = None
    data: Any = UNSET


class WireCall(Wire, frozen=True):
    """An incoming call has `caller`, an outgoing one `callee`; `from_ranges` lie in the document of the caller."""

    caller: Raw | UnsetType = field(name="from", default=UNSET)
    callee: Raw | UnsetType = field(name="to", default=UNSET)
    from_ranges: Raw | UnsetType = UNSET


class WireDisabled(Wire, frozen=True):
    reason: str = ""


class WireCommand(Wire, frozen=True):
    command: str
    title: str = ""
    arguments: list[Any] | None = None


class WireAction(Wire, frozen=True):
    """`CodeAction` and `Command` in one: in the latter `command` is a string."""

    title: str
    kind: str | None = None
    is_preferred: bool | None = None
    disabled: WireDisabled | None = None
    edit: Raw | UnsetType = UNSET
    command: Raw | UnsetType = UNSET
    arguments: list[Any] | None = None


class FileRename(Wire, frozen=True):
    old_uri: str
    new_uri: str
