"""The OpenAPI document, made from the types of `shapes` and `api` and from the rows of the operations."""

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import msgspec

from pilotfish.api.answers import Answer
from pilotfish.api.status import Restarted
from pilotfish.operations.schemas import Format, ToolSet, tool_schemas
from pilotfish.protocol.wire import JsonObject
from pilotfish.version import VERSION
from pilotfish_http.metrics import MEDIA_TYPE
from pilotfish_http.shapes import (
    ID,
    MAX_ID,
    AskedFrom,
    Everything,
    LoadedServers,
    Move,
    NamedServer,
    ServerLog,
    Trouble,
    Whereabouts,
)

SHAPES = (
    AskedFrom, Everything, LoadedServers, Move, NamedServer, Restarted, ServerLog, Trouble, Whereabouts, Answer[Any],
)  # fmt: skip
ANSWER = "Answer_Any_"
"""Its name in msgspec's schema."""

ALWAYS = {
    400: "The request cannot be read.",
    401: "The token is missing or wrong.",
    403: "The request comes from another origin.",
    404: "Not found.",
    405: "Method not allowed.",
    408: "The body took too long.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    421: "The Host header names another host.",
    503: "Unavailable.",
}
"""Responses to any request."""


@cache
def document() -> JsonObject:
    _, components = msgspec.json.schema_components(SHAPES, ref_template="#/components/schemas/{name}")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Pilotfish",
            "version": VERSION,
            "description": "Language servers for coding agents. MCP over streamable HTTP is at /mcp.",
        },
        "security": [{"token": []}],
        "paths": {
            "/conversations/{id}/cwd": {"parameters": [_ID], "get": _CWD, "put": _MOVE},
            "/conversations/{id}/lsp": {"parameters": [_ID], "get": _SERVERS, "post": _ask(components)},
            "/status": {"get": _get("status", "Everything at one moment.", _json("Everything"))},
            "/events": {"get": _get("events", "The same as it changes.", {"text/event-stream": {}})},
            "/servers/log": {"parameters": _named(components), "get": _LOG},
            "/servers/restart": {"post": _RESTART},
            "/metrics": {"get": _get("metrics", "Counters for Prometheus.", {MEDIA_TYPE: _TEXT})},
            "/openapi.json": {"get": _get("openapi", "This document.", {"application/json": _OBJECT})},
        },
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _json(name: str) -> JsonObject:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}


def _get(name: str, summary: str, content: JsonObject, **more: str) -> JsonObject:
    return _operation(name, summary, content, more)


def _operation(
    name: str, summary: str, content: JsonObject, also: Mapping[str, str], body: JsonObject | None = None
) -> JsonObject:
    troubles = {str(status): text for status, text in ALWAYS.items()} | dict(also)
    responses: JsonObject = {"200": {"description": "OK.", "content": content}}
    responses |= {
        status: {"description": text, "content": _json("Trouble")} for status, text in sorted(troubles.items())
    }
    request = {} if body is None else {"requestBody": {"required": True, "content": body}}
    return {"operationId": name, "summary": summary, **request, "responses": responses}


def _ask(components: Mapping[str, Any]) -> JsonObject:
    """The body has the fields of the one tool, and where the conversation works."""
    tool = cast("JsonObject", tool_schemas(Format.JSON, ToolSet.ONE)[0]["parameters"])
    folder = components["AskedFrom"]["properties"]["cwd"]
    schema = {**tool, "properties": {**tool["properties"], "cwd": folder}}
    also = {
        "409": "The conversation has no working directory, or it does not exist.",
        "422": "The fields are not a valid question.",
    }
    summary = "Run an operation where the conversation works."
    return _operation("ask", summary, _json(ANSWER), also, {"application/json": {"schema": schema}})


def _named(components: Mapping[str, Any]) -> list[JsonObject]:
    """The fields of a server as parameters of a query."""
    fields = components["NamedServer"]["properties"].items()
    return [{"name": name, "in": "query", "required": True, "schema": schema} for name, schema in fields]


_TEXT: JsonObject = {"schema": {"type": "string"}}
_OBJECT: JsonObject = {"schema": {"type": "object"}}
_ID: JsonObject = {
    "name": "id",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": ID, "maxLength": MAX_ID},
}
_CWD = _get("cwd", "Where a conversation works.", _json("Whereabouts"))
_SERVERS = _get("servers", "The servers of a conversation.", _json("LoadedServers"))
_NOBODY = {"409": "No client works in this folder."}
_LOG = _operation("log", "What a server wrote.", _json("ServerLog"), _NOBODY)
_RESTART = _operation(
    "restart",
    "Restart a server of a workspace.",
    {"application/json": {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/Restarted"}}}},
    _NOBODY,
    _json("NamedServer"),
)
_MOVE = _operation(
    "move",
    "Say where a conversation works.",
    _json("Whereabouts"),
    {"409": "The folder does not exist."},
    _json("Move"),
)
