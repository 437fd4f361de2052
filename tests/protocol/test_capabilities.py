"""What we claim, byte for byte; and what a server offers, in every shape that servers send."""

from typing import cast

import msgspec
import pytest
from lsprotocol import converters
from lsprotocol import types as lsp
from msgspec import Raw

from pilotfish.client.handshake import client_capabilities
from pilotfish.client.inbound import REQUESTS
from pilotfish.model import AbsPath
from pilotfish.protocol.capabilities import (
    MAX_REGISTRATIONS,
    MAX_WATCHERS,
    METHODS,
    RETRY_ON_CONTENT_MODIFIED,
    Capabilities,
)
from pilotfish.protocol.codec import Malformed, encode, fields
from pilotfish.protocol.documents import SyncKind, SyncOptions
from pilotfish.protocol.watching import Change, PathChange, batch
from support.oracles.glob_tables import TABLES

PYTHON = AbsPath("/home/me/project/a.py")
DART = AbsPath("/home/me/project/a.dart")

# --- Our claims ---------------------------------------------------------------------------------------------------


@pytest.mark.proves("C31")
def test_the_claims_are_these_bytes() -> None:
    expected = (TABLES / "client_capabilities.json").read_bytes()
    assert msgspec.json.format(encode(client_capabilities()), indent=2) + b"\n" == expected


@pytest.mark.proves("C31")
def test_the_claims_say_to_others_what_they_say_to_us() -> None:
    claims = client_capabilities()
    converter = converters.get_converter()
    read = converter.unstructure(converter.structure(claims, lsp.ClientCapabilities), lsp.ClientCapabilities)
    assert read == claims


@pytest.mark.proves("C31", "C62")
def test_what_a_server_may_ask_by_our_claims_is_answered() -> None:
    claims = client_capabilities()
    asked = {
        ("workspace", "applyEdit"): "workspace/applyEdit",
        ("workspace", "configuration"): "workspace/configuration",
        ("workspace", "workspaceFolders"): "workspace/workspaceFolders",
        ("workspace", "diagnostics"): "workspace/diagnostic/refresh",
        ("window", "workDoneProgress"): "window/workDoneProgress/create",
        ("window", "showMessage"): "window/showMessageRequest",
    }
    claimed = {key: method for key, method in asked.items() if _member(claims, *key)}
    assert claimed == asked
    assert set(asked.values()) <= REQUESTS.keys()


@pytest.mark.proves("C31", "C35")
def test_what_is_claimed_for_registration_has_a_row() -> None:
    claims = client_capabilities()
    registrable = {
        **{f"textDocument/{name}": value for name, value in _object(claims["textDocument"]).items()},
        **{f"workspace/{name}": value for name, value in _object(claims["workspace"]).items()},
    }
    dynamic = {name for name, value in registrable.items() if _member(value, "dynamicRegistration")}
    spelled_otherwise = {
        "textDocument/synchronization": "textDocument/didSave",
        "textDocument/callHierarchy": "textDocument/prepareCallHierarchy",
        "textDocument/typeHierarchy": "textDocument/prepareTypeHierarchy",
        "workspace/fileOperations": "workspace/willRenameFiles",
    }
    methods = {spelled_otherwise.get(name, name) for name in dynamic}
    assert methods - METHODS.keys() == {"textDocument/didSave"}
    assert {row.registered_as for row in METHODS.values() if row.registered_as} <= methods


@pytest.mark.proves("C31")
def test_what_is_asked_again_only_reads() -> None:
    assert {
        "textDocument/diagnostic",
        "textDocument/hover",
        "textDocument/rename",
        "workspace/symbol",
    } <= RETRY_ON_CONTENT_MODIFIED
    assert "workspace/executeCommand" not in RETRY_ON_CONTENT_MODIFIED
    assert not any(method.startswith("workspace/did") for method in RETRY_ON_CONTENT_MODIFIED)


def _object(value: object) -> dict[str, object]:
    assert isinstance(value, dict)
    return cast("dict[str, object]", value)


def _member(value: object, *names: str) -> object:
    for name in names:
        value = fields(value).get(name)
    return value


# --- Static offers ------------------------------------------------------------------------------------------------


@pytest.mark.proves("C35", "RPC-7")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(True, True, id="true"),
        pytest.param(False, False, id="false"),
        pytest.param(None, False, id="null"),
        pytest.param({}, True, id="empty object"),
        pytest.param({"workDoneProgress": True}, True, id="object"),
        pytest.param({"documentSelector": None}, True, id="selector null"),
    ],
)
def test_an_offer_is_anything_but_absent_null_or_false(value: object, expected: bool) -> None:
    capabilities = Capabilities({"hoverProvider": value})
    assert capabilities.supports("textDocument/hover") is expected
    assert capabilities.supports("textDocument/hover", PYTHON, "python") is expected


STATIC: list[tuple[str, dict[str, object]]] = [
    ("textDocument/hover", {"hoverProvider": {}}),
    ("textDocument/signatureHelp", {"signatureHelpProvider": {}}),
    ("textDocument/declaration", {"declarationProvider": True}),
    ("textDocument/definition", {"definitionProvider": True}),
    ("textDocument/typeDefinition", {"typeDefinitionProvider": True}),
    ("textDocument/implementation", {"implementationProvider": True}),
    ("textDocument/references", {"referencesProvider": True}),
    ("textDocument/documentSymbol", {"documentSymbolProvider": {}}),
    ("textDocument/codeAction", {"codeActionProvider": {}}),
    ("codeAction/resolve", {"codeActionProvider": {"resolveProvider": True}}),
    ("textDocument/rename", {"renameProvider": True}),
    ("textDocument/prepareRename", {"renameProvider": {"prepareProvider": True}}),
    ("textDocument/prepareCallHierarchy", {"callHierarchyProvider": {}}),
    ("callHierarchy/incomingCalls", {"callHierarchyProvider": True}),
    ("callHierarchy/outgoingCalls", {"callHierarchyProvider": True}),
    ("textDocument/prepareTypeHierarchy", {"typeHierarchyProvider": {}}),
    ("typeHierarchy/supertypes", {"typeHierarchyProvider": True}),
    ("typeHierarchy/subtypes", {"typeHierarchyProvider": True}),
    ("textDocument/diagnostic", {"diagnosticProvider": {}}),
    ("workspace/diagnostic", {"diagnosticProvider": {"workspaceDiagnostics": True}}),
    ("workspace/symbol", {"workspaceSymbolProvider": True}),
    ("workspace/executeCommand", {"executeCommandProvider": {"commands": []}}),
    ("workspace/willRenameFiles", {"workspace": {"fileOperations": {"willRename": {"filters": []}}}}),
    ("workspace/didRenameFiles", {"workspace": {"fileOperations": {"didRename": {"filters": []}}}}),
    ("workspace/didChangeWorkspaceFolders", {"workspace": {"workspaceFolders": {"changeNotifications": True}}}),
    ("textDocument/didOpen", {"textDocumentSync": {"openClose": True}}),
    ("textDocument/didClose", {"textDocumentSync": 1}),
    ("textDocument/didChange", {"textDocumentSync": {"change": 2}}),
    ("textDocument/didSave", {"textDocumentSync": {"save": {}}}),
]


@pytest.mark.proves("C35", "RPC-7")
@pytest.mark.parametrize(("method", "answer"), STATIC, ids=[method for method, _ in STATIC])
def test_a_method_is_asked_only_of_a_server_that_offers_it(method: str, answer: dict[str, object]) -> None:
    assert Capabilities(answer).supports(method)
    assert not Capabilities({}).supports(method)
    others = {name: value for _, other in STATIC for name, value in other.items() if name not in answer}
    assert not Capabilities(others).supports(method)


def test_every_row_but_the_registered_ones_is_tried() -> None:
    assert METHODS.keys() - {method for method, _ in STATIC} == {
        "workspace/didChangeWatchedFiles",
        "workspace/didChangeConfiguration",
    }


@pytest.mark.proves("C35")
@pytest.mark.parametrize(
    ("method", "answer"),
    [
        pytest.param("textDocument/prepareRename", {"renameProvider": True}, id="rename without prepare"),
        pytest.param("textDocument/prepareRename", {"renameProvider": {"prepareProvider": False}}, id="prepare false"),
        pytest.param("codeAction/resolve", {"codeActionProvider": True}, id="actions without resolve"),
        pytest.param(
            "workspace/diagnostic", {"diagnosticProvider": {"workspaceDiagnostics": False}}, id="no workspace"
        ),
        pytest.param("workspace/didChangeWorkspaceFolders", {"workspace": {"workspaceFolders": {}}}, id="no notes"),
        pytest.param("workspace/willRenameFiles", {"workspace": None}, id="null on the way"),
        pytest.param("workspace/willRenameFiles", {"workspace": {"fileOperations": True}}, id="true on the way"),
        pytest.param("window/anything", {"hoverProvider": True}, id="a method of nobody"),
    ],
)
def test_a_part_of_an_offer_is_not_the_whole(method: str, answer: dict[str, object]) -> None:
    assert not Capabilities(answer).supports(method)


def test_a_later_answer_replaces_an_earlier_one_and_keeps_what_is_registered() -> None:
    capabilities = Capabilities()
    capabilities.register(registration("1", "textDocument/rename"))
    capabilities.offer({"hoverProvider": True, "positionEncoding": "utf-8"})
    assert capabilities.supports("textDocument/hover")
    assert capabilities.supports("textDocument/rename")
    assert capabilities.answer.get("positionEncoding") == "utf-8"
    assert capabilities.answer["positionEncoding"] == "utf-8"
    assert Capabilities().answer.get("positionEncoding") is None


# --- Registration -------------------------------------------------------------------------------------------------


def registration(name: object, method: object, options: object = None) -> Raw:
    return batch_of({"id": name, "method": method, "registerOptions": options})


def batch_of(*registrations: object) -> Raw:
    return Raw(encode({"registrations": list(registrations)}))


def unregistration(name: str, method: str = "", *, spelling: str = "unregisterations") -> Raw:
    return Raw(encode({spelling: [{"id": name, "method": method}]}))


@pytest.mark.proves("RPC-7", "C35")
@pytest.mark.parametrize(
    ("registered", "options", "method"),
    [
        pytest.param("textDocument/hover", None, "textDocument/hover", id="itself"),
        pytest.param("textDocument/prepareCallHierarchy", {}, "callHierarchy/incomingCalls", id="a follower"),
        pytest.param("textDocument/codeAction", {"resolveProvider": True}, "codeAction/resolve", id="an option"),
        pytest.param("textDocument/diagnostic", {"workspaceDiagnostics": True}, "workspace/diagnostic", id="workspace"),
        pytest.param("workspace/willRenameFiles", {"filters": []}, "workspace/willRenameFiles", id="file operation"),
        pytest.param("workspace/didChangeConfiguration", None, "workspace/didChangeConfiguration", id="no static form"),
    ],
)
def test_what_is_registered_is_offered_until_it_is_unregistered(registered: str, options: object, method: str) -> None:
    capabilities = Capabilities({})
    capabilities.register(registration("1", registered, options))
    assert capabilities.supports(method)
    capabilities.unregister(unregistration("1", registered))
    assert not capabilities.supports(method)


@pytest.mark.proves("C48")
def test_a_method_that_nobody_knows_is_kept_and_harms_nothing() -> None:
    capabilities = Capabilities({"hoverProvider": True})
    capabilities.register(registration("1", "foo/bar", [1]))
    assert capabilities.supports("foo/bar")
    assert capabilities.supports("textDocument/hover")
    assert not capabilities.supports("textDocument/rename")
    capabilities.unregister(unregistration("1", "foo/bar"))
    assert not capabilities.supports("foo/bar")


@pytest.mark.proves("C49")
@pytest.mark.parametrize("spelling", ["unregisterations", "unregistrations"])
def test_both_spellings_unregister(spelling: str) -> None:
    capabilities = Capabilities({})
    capabilities.register(registration("1", "textDocument/hover"))
    capabilities.unregister(unregistration("1", "textDocument/hover", spelling=spelling))
    assert not capabilities.supports("textDocument/hover")


@pytest.mark.proves("C49")
@pytest.mark.parametrize(
    "params",
    [
        pytest.param(b'{"unregisterations":[{"id":"7","method":"textDocument/hover"}]}', id="unknown id"),
        pytest.param(b'{"unregisterations":[3,{"method":"textDocument/hover"}]}', id="no ids"),
        pytest.param(b'{"unregisterations":null}', id="null"),
        pytest.param(b"{}", id="nothing"),
    ],
)
def test_unregistering_what_is_not_there_is_harmless(params: bytes) -> None:
    capabilities = Capabilities({"definitionProvider": True})
    capabilities.register(registration("1", "textDocument/hover"))
    capabilities.unregister(Raw(params))
    assert capabilities.supports("textDocument/hover")
    assert capabilities.supports("textDocument/definition")


@pytest.mark.proves("C49")
def test_unregistering_goes_by_the_id_where_the_method_fits_nothing() -> None:
    capabilities = Capabilities({})
    capabilities.register(
        batch_of({"id": "1", "method": "textDocument/hover"}, {"id": "1", "method": "textDocument/rename"})
    )
    capabilities.unregister(unregistration("1", "textDocument/rename"))
    assert not capabilities.supports("textDocument/rename")
    assert capabilities.supports("textDocument/hover")
    capabilities.unregister(unregistration("1"))
    assert not capabilities.supports("textDocument/hover")


@pytest.mark.proves("C50")
def test_the_same_id_replaces() -> None:
    capabilities = Capabilities({})
    capabilities.register(registration("1", "textDocument/diagnostic", {"identifier": "old"}))
    capabilities.register(registration("1", "textDocument/diagnostic", {"identifier": "new"}))
    assert capabilities.pull_identifiers(PYTHON, "python") == ("new",)
    capabilities.unregister(unregistration("1", "textDocument/diagnostic"))
    assert not capabilities.supports("textDocument/diagnostic")


@pytest.mark.proves("C50", "C110", "WATCH-1")
def test_of_watched_files_the_same_id_adds_and_one_word_takes_all_back() -> None:
    method = "workspace/didChangeWatchedFiles"
    capabilities = Capabilities({})
    capabilities.register(registration("1", method, {"watchers": [{"globPattern": "a"}, {"globPattern": "b"}]}))
    capabilities.register(registration("1", method, {"watchers": [{"globPattern": "b"}, {"globPattern": "c"}]}))
    assert [watcher.glob.glob.pattern for watcher in capabilities.watchers()] == ["b", "c", "a"]
    capabilities.unregister(unregistration("1", method))
    assert capabilities.watchers() == ()


@pytest.mark.proves("C52")
@pytest.mark.parametrize(
    ("answer", "method"),
    [
        pytest.param({"hoverProvider": {"id": "s"}}, "textDocument/hover", id="options with an id"),
        pytest.param(
            {"workspace": {"workspaceFolders": {"changeNotifications": "s"}}},
            "workspace/didChangeWorkspaceFolders",
            id="the id of workspace folders",
        ),
    ],
)
def test_a_static_offer_with_an_id_can_be_taken_back(answer: dict[str, object], method: str) -> None:
    capabilities = Capabilities({"definitionProvider": True, **answer})
    assert capabilities.supports(method)
    capabilities.unregister(unregistration("s", method))
    assert not capabilities.supports(method)
    assert capabilities.supports("textDocument/definition")


@pytest.mark.proves("C53")
@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(3, id="no object"),
        pytest.param({"method": "textDocument/rename"}, id="no id"),
        pytest.param({"id": "2"}, id="no method"),
        pytest.param({"id": "2", "method": 7}, id="method is a number"),
        pytest.param(
            {"id": "2", "method": "textDocument/didChange", "registerOptions": {"syncKind": 9}}, id="unknown sync kind"
        ),
    ],
)
def test_a_bad_registration_is_skipped_and_the_others_stand(bad: object) -> None:
    capabilities = Capabilities({})
    first, last = {"id": "1", "method": "textDocument/hover"}, {"id": "3", "method": "textDocument/definition"}
    capabilities.register(batch_of(first, bad, last))
    assert capabilities.supports("textDocument/hover")
    assert capabilities.supports("textDocument/definition")
    assert capabilities.sync() == SyncOptions()


@pytest.mark.parametrize("params", [b"3", b"{}", b'{"registrations":{}}', b"null"])
def test_what_is_no_list_of_registrations_is_malformed(params: bytes) -> None:
    with pytest.raises(Malformed):
        Capabilities({}).register(Raw(params))


@pytest.mark.proves("T36")
def test_a_server_that_registers_without_end_does_not_fill_our_memory() -> None:
    capabilities = Capabilities({})
    many = [{"id": str(index), "method": "foo/bar"} for index in range(MAX_REGISTRATIONS + 5)]
    capabilities.register(batch_of(*many))
    capabilities.register(batch_of({**many[0], "registerOptions": {"again": True}}))
    kept = capabilities.options("foo/bar")
    assert (len(kept), kept[-1]) == (MAX_REGISTRATIONS, {"again": True})


# --- For which document -------------------------------------------------------------------------------------------


@pytest.mark.proves("C51", "RPC-7")
def test_an_offer_applies_to_the_documents_of_its_selector() -> None:
    capabilities = Capabilities({"definitionProvider": {"documentSelector": [{"language": "dart"}]}})
    capabilities.register(registration("1", "textDocument/hover", {"documentSelector": [{"pattern": "**/*.py"}]}))
    assert capabilities.supports("textDocument/hover", PYTHON, "python")
    assert not capabilities.supports("textDocument/hover", DART, "dart")
    assert capabilities.supports("textDocument/definition", DART, "dart")
    assert not capabilities.supports("textDocument/definition", PYTHON, "python")
    assert capabilities.supports("textDocument/definition")


@pytest.mark.proves("C51")
def test_a_bad_glob_in_a_selector_spoils_nothing_else() -> None:
    selector = [{"pattern": "{a"}, {"language": "python"}]
    capabilities = Capabilities({})
    capabilities.register(registration("1", "textDocument/hover", {"documentSelector": selector}))
    assert capabilities.supports("textDocument/hover", PYTHON, "python")
    assert not capabilities.supports("textDocument/hover", DART, "dart")


def test_options_are_those_of_every_offer_that_applies_static_first() -> None:
    capabilities = Capabilities({"executeCommandProvider": {"commands": ["a"]}})
    capabilities.register(registration("1", "workspace/executeCommand", {"commands": ["b"]}))
    assert capabilities.options("workspace/executeCommand") == ({"commands": ["a"]}, {"commands": ["b"]})
    assert capabilities.options("textDocument/hover") == ()
    assert Capabilities({"hoverProvider": True}).options("textDocument/hover") == ({},)


@pytest.mark.proves("RPC-7")
@pytest.mark.parametrize(
    ("static", "registered", "expected"),
    [
        pytest.param(None, [], (), id="no pull"),
        pytest.param({"identifier": "Pyright"}, [], ("Pyright",), id="static"),
        pytest.param({}, [], (None,), id="without a name"),
        pytest.param(None, [{"identifier": "a"}, {"identifier": "b"}], ("a", "b"), id="two registered"),
        pytest.param({"identifier": "a"}, [{"identifier": "a"}], ("a",), id="the same twice is one pull"),
        pytest.param({"identifier": 3}, [], (None,), id="a name that is none"),
        pytest.param(None, [{"identifier": "a", "documentSelector": [{"language": "dart"}]}], (), id="other documents"),
    ],
)
def test_diagnostics_are_pulled_once_per_identifier(
    static: object, registered: list[object], expected: tuple[str | None, ...]
) -> None:
    capabilities = Capabilities({"diagnosticProvider": static})
    for index, options in enumerate(registered):
        capabilities.register(registration(str(index), "textDocument/diagnostic", options))
    assert capabilities.pull_identifiers(PYTHON, "python") == expected


# --- Synchronisation ----------------------------------------------------------------------------------------------


@pytest.mark.proves("C36")
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param({}, SyncOptions(), id="absent"),
        pytest.param({"textDocumentSync": None}, SyncOptions(), id="null"),
        pytest.param({"textDocumentSync": 2}, SyncOptions(True, SyncKind.INCREMENTAL, False), id="number"),
        pytest.param(
            {"textDocumentSync": {"openClose": True, "change": 1, "save": {"includeText": True}}},
            SyncOptions(True, SyncKind.FULL, True),
            id="object",
        ),
    ],
)
def test_static_synchronisation_is_read_in_every_shape(answer: dict[str, object], expected: SyncOptions) -> None:
    assert Capabilities(answer).sync() == expected


@pytest.mark.proves("C36", "RPC-7")
def test_synchronisation_that_is_only_registered_is_synchronisation() -> None:
    selector = {"documentSelector": [{"language": "dart", "scheme": "file"}]}
    capabilities = Capabilities({})
    capabilities.register(
        batch_of(
            {"id": "1", "method": "textDocument/didOpen", "registerOptions": selector},
            {"id": "2", "method": "textDocument/didClose", "registerOptions": selector},
            {"id": "3", "method": "textDocument/didChange", "registerOptions": {"syncKind": 2, **selector}},
        )
    )
    assert capabilities.sync() == SyncOptions(open_close=True, change=SyncKind.INCREMENTAL, save=None)
    assert capabilities.sync(DART, "dart") == capabilities.sync()
    assert capabilities.sync(PYTHON, "python") == SyncOptions()
    assert capabilities.supports("textDocument/didOpen", DART, "dart")
    assert capabilities.supports("textDocument/didChange", DART, "dart")
    assert not capabilities.supports("textDocument/didSave", DART, "dart")
    assert not capabilities.supports("textDocument/didOpen", PYTHON, "python")


@pytest.mark.proves("C36")
def test_what_is_registered_stands_over_the_static_synchronisation() -> None:
    capabilities = Capabilities({"textDocumentSync": {"openClose": True, "change": 2}})
    capabilities.register(registration("1", "textDocument/didSave", {"includeText": True}))
    assert capabilities.sync() == SyncOptions(True, SyncKind.INCREMENTAL, True)
    capabilities.register(registration("2", "textDocument/didChange", {"syncKind": 1}))
    capabilities.unregister(unregistration("1", "textDocument/didSave"))
    assert capabilities.sync() == SyncOptions(True, SyncKind.FULL, None)


@pytest.mark.proves("C50")
def test_of_two_registrations_the_latest_says_how_changes_are_sent() -> None:
    capabilities = Capabilities({})
    for name, kind in (("1", 1), ("2", 2), ("1", 1)):
        capabilities.register(registration(name, "textDocument/didChange", {"syncKind": kind}))
    assert capabilities.sync().change is SyncKind.FULL


def test_synchronisation_that_cannot_be_read_is_malformed() -> None:
    with pytest.raises(Malformed):
        Capabilities({"textDocumentSync": "full"}).sync()


# --- Watched files ------------------------------------------------------------------------------------------------


@pytest.mark.proves("WATCH-1", "C110")
@pytest.mark.parametrize("method", ["workspace/didChangeWatchedFiles", "workspace.didChangeWatchedFiles"])
def test_watchers_come_and_go_with_their_registration(method: str) -> None:
    capabilities = Capabilities({})
    watchers = [{"globPattern": "**/*.py"}, {"globPattern": "{a"}, {"globPattern": "**/*.toml", "kind": 4}]
    capabilities.register(registration("1", method, {"watchers": watchers}))
    assert capabilities.supports("workspace/didChangeWatchedFiles")
    assert [(watcher.glob.glob.pattern, watcher.kinds) for watcher in capabilities.watchers()] == [
        ("**/*.py", 7),
        ("**/*.toml", 4),
    ]
    assert batch([PathChange(PYTHON, Change.CHANGED)], capabilities.watchers(), ()) is not None
    capabilities.unregister(unregistration("1", method))
    assert capabilities.watchers() == ()


@pytest.mark.proves("T36", "A17.16")
def test_a_server_with_endless_watchers_gets_the_first_ones() -> None:
    capabilities = Capabilities({})
    watchers = [{"globPattern": f"**/{index}"} for index in range(MAX_WATCHERS + 5)]
    capabilities.register(registration("1", "workspace/didChangeWatchedFiles", {"watchers": watchers}))
    assert [watcher.glob.glob.pattern for watcher in capabilities.watchers()] == [
        watcher["globPattern"] for watcher in watchers[:MAX_WATCHERS]
    ]
