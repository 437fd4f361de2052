"""What a server offers to us; what we claim to it is in `client/claims.toml`, and decides what it registers.

`Capabilities` is the only holder of what one server offers, statically in its answer to `initialize` and dynamically by
registration; nothing is asked of a server that is not offered here.

Rules:
- An offer is anything but absent, null or false: `{}` is one, and many servers send it.
- Registrations are kept by method and id, and the same pair again replaces; a static offer with an `id` can be taken
  back by it. Registrations may come before the answer to `initialize`.
- Only of watched files does the same pair again add to what was there, as VS Code and Neovim have it: pyrefly (seen:
  1.4) registers its libraries under the id of the workspace, and telling it too much does no harm.
- A registration that cannot be read is skipped, and the others of its batch stand. One for a method that we do not know
  is kept and does nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from msgspec import Raw, Struct

from pilotfish.model import AbsPath
from pilotfish.protocol.codec import Malformed, decode, decode_items, fields, items, member
from pilotfish.protocol.documents import SyncKind, SyncOptions, save_options, sync_kind, sync_options
from pilotfish.protocol.globs import BadGlob, file_glob, slashed
from pilotfish.protocol.watching import WatchRegistration, watch_registrations
from pilotfish.protocol.wire import Registration, RegistrationParams, Unregistration


class Row(Struct, frozen=True):
    provider: str
    """Where its answer to `initialize` says so, as a dotted path; empty for what is only ever registered."""
    registered_as: str = ""
    """The method under which it is registered, where that is another one."""
    option: str = ""
    """What the options must say yes to besides."""


METHODS: Mapping[str, Row] = {
    "textDocument/hover": Row("hoverProvider"),
    "textDocument/signatureHelp": Row("signatureHelpProvider"),
    "textDocument/declaration": Row("declarationProvider"),
    "textDocument/definition": Row("definitionProvider"),
    "textDocument/typeDefinition": Row("typeDefinitionProvider"),
    "textDocument/implementation": Row("implementationProvider"),
    "textDocument/references": Row("referencesProvider"),
    "textDocument/documentSymbol": Row("documentSymbolProvider"),
    "textDocument/codeAction": Row("codeActionProvider"),
    "codeAction/resolve": Row("codeActionProvider", "textDocument/codeAction", "resolveProvider"),
    "textDocument/rename": Row("renameProvider"),
    "textDocument/prepareRename": Row("renameProvider", "textDocument/rename", "prepareProvider"),
    "textDocument/prepareCallHierarchy": Row("callHierarchyProvider"),
    "callHierarchy/incomingCalls": Row("callHierarchyProvider", "textDocument/prepareCallHierarchy"),
    "callHierarchy/outgoingCalls": Row("callHierarchyProvider", "textDocument/prepareCallHierarchy"),
    "textDocument/prepareTypeHierarchy": Row("typeHierarchyProvider"),
    "typeHierarchy/supertypes": Row("typeHierarchyProvider", "textDocument/prepareTypeHierarchy"),
    "typeHierarchy/subtypes": Row("typeHierarchyProvider", "textDocument/prepareTypeHierarchy"),
    "textDocument/diagnostic": Row("diagnosticProvider"),
    "workspace/diagnostic": Row("diagnosticProvider", "textDocument/diagnostic", "workspaceDiagnostics"),
    "workspace/symbol": Row("workspaceSymbolProvider"),
    "workspace/executeCommand": Row("executeCommandProvider"),
    "workspace/willRenameFiles": Row("workspace.fileOperations.willRename"),
    "workspace/didRenameFiles": Row("workspace.fileOperations.didRename"),
    "workspace/didChangeWorkspaceFolders": Row("workspace.workspaceFolders", option="changeNotifications"),
    "workspace/didChangeWatchedFiles": Row(""),
    "workspace/didChangeConfiguration": Row(""),
}
_UNKNOWN = Row("")
"""One row per method. The four of document synchronisation are read by `sync`, for they have a shape of their own."""

WATCHED_FILES = "workspace/didChangeWatchedFiles"

SPELLINGS: Mapping[str, str] = {"workspace.didChangeWatchedFiles": WATCHED_FILES}
"""Methods as some servers misspell them when they register (seen: qmlls 6.4 to 6.11)."""

MAX_REGISTRATIONS = 1_000
"""Registrations that are kept. Servers have a hundred at most; one that never unregisters must not fill our memory."""

MAX_WATCHERS = 1_000
"""Watchers of one server that are honoured. Servers have some twenty; each costs time at every change on disk."""

RETRY_ON_CONTENT_MODIFIED = frozenset(METHODS) - {
    "workspace/executeCommand",
    "workspace/didRenameFiles",
    "workspace/didChangeWorkspaceFolders",
    "workspace/didChangeWatchedFiles",
    "workspace/didChangeConfiguration",
}
"""What we ask again when a document changed meanwhile: all that only reads."""


class _Offer(Struct, frozen=True):
    method: str
    id: str | None
    options: dict[str, object]


class Capabilities:
    def __init__(self, offered: dict[str, Any] | None = None) -> None:
        self.answer: dict[str, Any] = {}
        """The answer to `initialize`, as it was taken in."""
        self._static: tuple[_Offer, ...] = ()
        self._dynamic: dict[tuple[str, str | None], _Offer] = {}
        self.moves = 0
        """How often an offer came or went: as long as it stays the same, so does all that is offered."""
        self._by_method: dict[str, tuple[_Offer, ...]] = {}
        """Every question asks for them, and they hardly ever change."""
        self._watchers: tuple[WatchRegistration, ...] | None = None
        self.offer(offered or {})

    def offer(self, offered: dict[str, Any]) -> None:
        self.answer = offered
        self._static = tuple(_static_offers(offered))
        self._move()

    def register(self, params: Raw) -> None:
        """Take in `client/registerCapability`; raises `Malformed` only when it is not a list of registrations."""
        for raw in decode(params, RegistrationParams).registrations:
            with suppress(Malformed):
                self._keep(_dynamic_offer(decode(raw, Registration)))

    def unregister(self, params: Raw) -> None:
        lists = decode(params, dict[str, Raw])
        # The first is the spelling of the specification, a slip that cannot be corrected any more.
        for name in ("unregisterations", "unregistrations"):
            for item in decode_items(lists.get(name, b"null"), Unregistration).items:
                self._take_back(item)

    def supports(self, method: str, path: AbsPath | None = None, language_id: str | None = None) -> bool:
        """Whether the server offers `method`: for this document, or for any when none is given.

        Raises `Malformed` as `sync` does, for the methods of document synchronisation.
        """
        if method in _SYNC_METHODS:
            return _SYNC_METHODS[method](self.sync(path, language_id))
        return bool(self.options(method, path, language_id))

    def options(
        self, method: str, path: AbsPath | None = None, language_id: str | None = None
    ) -> tuple[dict[str, object], ...]:
        """The options of every offer of `method` that applies to the document, static ones first; `{}` is one too."""
        row = METHODS.get(method, _UNKNOWN)
        found = self._offers(row.registered_as or method, path, language_id)
        return tuple(offer.options for offer in found if not row.option or _is_offer(offer.options.get(row.option)))

    def sync(self, path: AbsPath | None = None, language_id: str | None = None) -> SyncOptions:
        """How documents are to be sent. What is registered stands over the static offer, the latest first.

        Raises `Malformed` when the static offer cannot be read.
        """
        static = sync_options(self.answer.get("textDocumentSync"))
        opens, changes, saves = (
            [*self._offers(f"textDocument/{name}", path, language_id)] for name in ("didOpen", "didChange", "didSave")
        )
        return SyncOptions(
            open_close=static.open_close or bool(opens),
            change=sync_kind(changes[-1].options.get("syncKind")) if changes else static.change,
            save=save_options(saves[-1].options) if saves else static.save,
        )

    def pull_identifiers(self, path: AbsPath | None = None, language_id: str | None = None) -> tuple[str | None, ...]:
        """The names under which diagnostics of the document are to be pulled, one pull each; None is a name too."""
        found = (options.get("identifier") for options in self.options("textDocument/diagnostic", path, language_id))
        return tuple(dict.fromkeys(name if isinstance(name, str) else None for name in found))

    def watchers(self) -> tuple[WatchRegistration, ...]:
        if self._watchers is None:
            found = self.options("workspace/didChangeWatchedFiles")
            watchers = (watcher for options in found for watcher in watch_registrations(options))
            self._watchers = tuple(islice(watchers, MAX_WATCHERS))
        return self._watchers

    def _offers(self, method: str, path: AbsPath | None, language_id: str | None) -> Iterator[_Offer]:
        """Static ones first."""
        if method not in self._by_method:
            offers = (*self._static, *self._dynamic.values())
            self._by_method[method] = tuple(offer for offer in offers if offer.method == method)
        for offer in self._by_method[method]:
            if path is None or selects(offer.options.get("documentSelector"), path, language_id):
                yield offer

    def _move(self) -> None:
        """An offer came or went: what was found of the others may not hold any more."""
        self.moves += 1
        self._by_method.clear()
        self._watchers = None

    def _keep(self, offer: _Offer) -> None:
        key = offer.method, offer.id
        if key not in self._dynamic and len(self._dynamic) >= MAX_REGISTRATIONS:
            raise Malformed(f"{offer.method}: more than {MAX_REGISTRATIONS} registrations")
        if key in self._dynamic and offer.method == WATCHED_FILES:
            offer = _added(self._dynamic[key], offer)
        # Taken out first, so that what is registered again counts as the latest.
        self._dynamic.pop(key, None)
        self._dynamic[key] = offer
        self._move()

    def _take_back(self, item: Unregistration) -> None:
        """By method and id; by id alone where nothing has both."""
        method = SPELLINGS.get(item.method, item.method)
        named = [offer for offer in (*self._static, *self._dynamic.values()) if offer.id == item.id]
        gone = [offer for offer in named if offer.method == method] or named
        self._static = tuple(offer for offer in self._static if offer not in gone)
        for offer in gone:
            self._dynamic.pop((offer.method, offer.id), None)
        self._move()


_SYNC_METHODS: Mapping[str, Callable[[SyncOptions], bool]] = {
    "textDocument/didOpen": lambda sync: sync.open_close,
    "textDocument/didClose": lambda sync: sync.open_close,
    "textDocument/didChange": lambda sync: sync.change is not SyncKind.NONE,
    "textDocument/didSave": lambda sync: sync.save is not None,
}


def _is_offer(value: object) -> bool:
    return value is not None and value is not False


def _static_offers(answer: dict[str, object]) -> Iterator[_Offer]:
    for method, row in METHODS.items():
        is_static = row.provider and not row.registered_as
        value = member(answer, *row.provider.split(".")) if is_static else None
        if _is_offer(value):
            options = fields(value)
            # Of the workspace folders the id stands where others say yes or no.
            ids = (options.get("id"), options.get(row.option))
            yield _Offer(method, next((found for found in ids if isinstance(found, str)), None), options)


def _dynamic_offer(registration: Registration) -> _Offer:
    method = SPELLINGS.get(registration.method, registration.method)
    options = fields(registration.register_options)
    if method == "textDocument/didChange":
        # Read now, so that an unknown kind is skipped here and cannot spoil `sync` later.
        sync_kind(options.get("syncKind"))
    return _Offer(method, registration.id, options)


def _added(before: _Offer, offer: _Offer) -> _Offer:
    """The watchers of both, each once, the new ones first: there may be more than are ever looked at."""
    watchers = [*items(offer.options.get("watchers")), *items(before.options.get("watchers"))]
    unique = list({repr(watcher): watcher for watcher in watchers}.values())
    return _Offer(offer.method, offer.id, {**offer.options, "watchers": unique[:MAX_WATCHERS]})


# --- Which files an offer is about: document selectors and the filters of file operations -----------------------------

# Lenient: a filter that is malformed or has a bad glob selects nothing, and the others beside it still count.
# Every document here is a file, so a filter for another scheme, or for the cells of a notebook, selects nothing.

SCHEMES = (None, "*", "file")


def selects(selector: object, path: AbsPath, language_id: str | None) -> bool:
    """Whether a `documentSelector` takes in this document. Null leaves it to us, and we ask about all that we route."""
    if selector is None:
        return True
    return any(_filter_selects(item, path, language_id) for item in items(selector))


def wants_file_operation(options: object, path: AbsPath, *, is_folder: bool) -> bool:
    """Whether `FileOperationRegistrationOptions` take in this file or folder."""
    kinds = (None, "folder" if is_folder else "file")
    for item in map(fields, items(member(options, "filters"))):
        pattern = fields(item.get("pattern"))
        ignore_case = member(pattern, "options", "ignoreCase") is True
        is_meant = item.get("scheme") in SCHEMES and pattern.get("matches") in kinds
        if is_meant and _matches(pattern.get("glob"), path, ignore_case=ignore_case):
            return True
    return False


def _filter_selects(item: object, path: AbsPath, language_id: str | None) -> bool:
    if isinstance(item, str):
        # Before 3.0 a filter could be just the language.
        item = {"language": item}
    found = fields(item)
    language, pattern = found.get("language"), found.get("pattern")
    if "notebook" in found or not found.keys() & {"language", "scheme", "pattern"}:
        return False
    # A document that is not open has no language yet; we would not ask this server about one that it does not know.
    spoken = language_id is None or language in (None, "*", language_id)
    if found.get("scheme") not in SCHEMES or not spoken:
        return False
    return pattern is None or pattern == slashed(path) or _matches(pattern, path)


def _matches(pattern: object, path: AbsPath, *, ignore_case: bool = False) -> bool:
    try:
        return file_glob(pattern, ignore_case=ignore_case).matches(path)
    except BadGlob:
        return False
