"""The routes: each URL and its handler.

`guard` has admitted every request that comes here, and turns a `Failure` into a response. GET changes nothing (T19).

The OpenAPI document is made from the types of `shapes` and `api` and from the rows of the operations.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from pilotfish.api.answers import Answer
from pilotfish.api.status import Restarted
from pilotfish.errors import Code, Refused, Unavailable
from pilotfish.operations.cleaning import structured
from pilotfish.operations.tools import ONE_TOOL, Format, ToolSet, tool_schemas
from pilotfish.protocol.codec import Malformed, decode, encode
from pilotfish.protocol.wire import JsonObject
from pilotfish.surfaces.mcp.tools import asked
from pilotfish.system.clock import current_time
from pilotfish.system.tasks import owned_tasks
from pilotfish.version import VERSION
from pilotfish_http.admission import EXCHANGE, LOG, RESTART, SIGN_IN, AccessKeys
from pilotfish_http.conversations import HttpConversations
from pilotfish_http.guard import AsgiApplication, AsgiReceive, AsgiScope, AsgiSend, body_of, status_of
from pilotfish_http.metrics import MEDIA_TYPE
from pilotfish_http.overview import Observatory
from pilotfish_http.shapes import (
    ABSOLUTE,
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

T = TypeVar("T")

NOT_FOUND = 404
NOT_UNDERSTOOD = 422
"""Well-formed JSON that is not a valid question."""


def application(routes: "Routes", mcp: AsgiApplication) -> AsgiApplication:
    documented = [Route(one.path, getattr(routes, one.name), methods=[one.method]) for one in ENDPOINTS]
    router = Router(
        [
            Route(SIGN_IN, routes.sign_in, methods=["GET"]),
            Route(EXCHANGE, routes.exchange, methods=["POST"]),
            Route("/mcp", mcp, methods=["GET", "POST", "DELETE"]),
            *documented,
        ],
        redirect_slashes=False,
    )

    async def routed(scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        # With an application in the scope, Starlette raises errors instead of answering them in plain text.
        scope["app"] = router
        try:
            await router(scope, receive, send)
        except HTTPException as refused:
            code = Code.NOT_FOUND if refused.status_code == NOT_FOUND else Code.UNSUPPORTED
            body = {"error": str(refused.detail), "code": str(code)}
            await _json(body, refused.status_code, dict(refused.headers or {}))(scope, receive, send)

    return routed


class Routes(Struct, frozen=True):
    conversations: HttpConversations
    observatory: Observatory
    keys: AccessKeys
    counters: Callable[[], str]

    async def sign_in(self, _request: Request) -> Response:
        document, policy = page()
        headers = {"content-security-policy": policy, "www-authenticate": "Bearer"}
        return Response(document, 401, headers, "text/html")

    async def exchange(self, request: Request) -> Response:
        ticket = _read(await request.body(), dict[str, str]).get("ticket", "")
        key = self.keys.redeem(ticket, current_time())
        if key is None:
            hint = "Get a new one: pilotfish serve --open"
            return _json(
                {"error": "this link was already used, or has expired", "code": str(Code.UNTRUSTED), "hint": hint}, 401
            )
        return _json({"key": key})

    @property
    def events(self) -> "Events":
        return Events(self.observatory)

    async def cwd(self, request: Request) -> Response:
        return _json(self.conversations.whereabouts(_id(request)))

    async def move(self, request: Request) -> Response:
        return _json(self.conversations.move(_id(request), _read(await request.body(), Move).cwd))

    async def servers(self, request: Request) -> Response:
        return _json(await self.conversations.servers(_id(request)))

    async def ask(self, request: Request) -> Response:
        body = await request.body()
        arguments, where = _read(body, dict[str, object]), _read(body, AskedFrom)
        arguments.pop("cwd", None)
        try:
            question = asked(ONE_TOOL, arguments)
        except Refused as refusal:
            status = NOT_UNDERSTOOD if refusal.code is Code.INVALID_INPUT else status_of(refusal)
            return _json(body_of(refusal), status)
        if where.cwd is not None:
            self.conversations.move(_id(request), where.cwd)
        async with owned_tasks() as tasks:
            # When the client disconnects, the question is cancelled, and its requests to servers.
            tasks.start_soon(_until_gone, request.receive, tasks.cancel_scope)
            answer = await self.conversations.answer(_id(request), question)
            tasks.cancel_scope.cancel()
            return _json(structured(answer))
        raise Unavailable(Code.CANCELLED, "the client disconnected")

    async def status(self, _request: Request) -> Response:
        return _json(structured(await self.observatory.look()))

    async def restart(self, request: Request) -> Response:
        restarted = await self.observatory.restart(_read(await request.body(), NamedServer))
        return _json([structured(one) for one in restarted])

    async def log(self, request: Request) -> Response:
        return _json(structured(self.observatory.log(_read(encode(dict(request.query_params)), NamedServer))))

    async def metrics(self, _request: Request) -> Response:
        return Response(self.counters(), headers={"content-type": MEDIA_TYPE})

    async def openapi(self, _request: Request) -> Response:
        return _json(document())


def _id(request: Request) -> str:
    return str(request.path_params["id"])


def _read(body: bytes, shape: type[T]) -> T:
    try:
        return decode(body, shape)
    except Malformed as malformed:
        if repr(ABSOLUTE) in str(malformed):
            hint = "Name the whole path, such as /home/me/project."
            raise Refused(Code.INVALID_INPUT, "cwd in the body must be an absolute path", hint=hint) from None
        raise Refused(Code.INVALID_INPUT, f"the body cannot be read: {malformed}") from None


def _json(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(encode(value), status, headers, "application/json")


FOLDER = Path(__file__).with_name("web")


@cache
def page() -> tuple[bytes, str]:
    """The document, and the value of `Content-Security-Policy`. Read once."""
    style, script = (FOLDER / "page.css").read_text("utf-8"), (FOLDER / "page.js").read_text("utf-8")
    document = (FOLDER / "page.html").read_text("utf-8").replace("{style}", style).replace("{script}", script)
    policy = (
        "default-src 'none'; connect-src 'self'; img-src data:; "
        f"script-src {_digest(script)}; style-src {_digest(style)}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return document.encode(), policy


def _digest(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


STALL_SECONDS = 30.0
"""For one event to be taken; after that the client is stuck or suspended, and reconnects by itself."""

HEAD = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"text/event-stream; charset=utf-8")],
}


class Events(Struct, frozen=True):
    observatory: Observatory

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        await send(HEAD)
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        async with owned_tasks() as tasks:
            tasks.start_soon(_until_gone, receive, tasks.cancel_scope)
            with anyio.CancelScope() as patience:
                await self._tell(send, patience)
            if patience.cancelled_caught:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            tasks.cancel_scope.cancel()

    async def _tell(self, send: AsgiSend, patience: anyio.CancelScope) -> None:
        async with self.observatory.watching() as watch:
            while True:
                watch.looked()
                picture = encode(structured(await self.observatory.look()))
                patience.deadline = current_time() + STALL_SECONDS
                await send({"type": "http.response.body", "body": _event(picture), "more_body": True})
                patience.deadline = float("inf")
                await watch.news()


def _event(data: bytes) -> bytes:
    """JSON has no line breaks of its own, so one line holds it."""
    return b"event: everything\ndata: " + data + b"\n\n"


async def _until_gone(receive: AsgiReceive, everything: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    everything.cancel()


# --- The table, and the OpenAPI document ------------------------------------------------------------------------------


class HttpEndpoint(Struct, frozen=True):
    """What is answered under a URL by the method of `Routes` with this name, as the document says it."""

    method: str
    path: str
    name: str
    summary: str
    answer: str | JsonObject
    """A shape, or the content."""
    body: str | None = None
    """The shape of the body; of the query where there is no body."""
    also: Mapping[int, str] = {}
    """Responses besides those to any request."""


CWD, LSP = "/conversations/{id}/cwd", "/conversations/{id}/lsp"
NO_CLIENT = {409: "No client works in this folder."}
WRONG_QUESTION = {
    409: "The conversation has no working directory, or it does not exist.",
    422: "The fields are not a valid question.",
}
TEXT: JsonObject = {MEDIA_TYPE: {"schema": {"type": "string"}}}
JSON = "application/json"
RESTARTED: JsonObject = {JSON: {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/Restarted"}}}}

ENDPOINTS = (
    HttpEndpoint("GET", CWD, "cwd", "Where a conversation works.", "Whereabouts"),
    HttpEndpoint(
        "PUT",
        CWD,
        "move",
        "Say where a conversation works.",
        "Whereabouts",
        "Move",
        {409: "The folder does not exist."},
    ),
    HttpEndpoint("GET", LSP, "servers", "The servers of a conversation.", "LoadedServers"),
    # The name of `Answer` in msgspec's schema.
    HttpEndpoint(
        "POST", LSP, "ask", "Run an operation where the conversation works.", "Answer_Any_", "Ask", WRONG_QUESTION
    ),
    HttpEndpoint("GET", "/status", "status", "Everything at one moment.", "Everything"),
    HttpEndpoint("GET", "/events", "events", "The same as it changes.", {"text/event-stream": {}}),
    HttpEndpoint("GET", LOG, "log", "What a server wrote.", "ServerLog", "NamedServer", NO_CLIENT),
    HttpEndpoint("POST", RESTART, "restart", "Restart a server of a workspace.", RESTARTED, "NamedServer", NO_CLIENT),
    HttpEndpoint("GET", "/metrics", "metrics", "Counters for Prometheus.", TEXT),
    HttpEndpoint("GET", "/openapi.json", "openapi", "This document.", {JSON: {"schema": {"type": "object"}}}),
)

SHAPES = (
    AskedFrom, Everything, LoadedServers, Move, NamedServer, Restarted, ServerLog, Trouble, Whereabouts, Answer[Any],
)  # fmt: skip

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
    # The fields of the one tool, and where the conversation works.
    tool = cast("JsonObject", tool_schemas(Format.JSON, ToolSet.ONE)[0]["parameters"])
    folder = components["AskedFrom"]["properties"]["cwd"]
    components["Ask"] = {**tool, "properties": {**tool["properties"], "cwd": folder}}
    paths: dict[str, JsonObject] = {}
    for one in ENDPOINTS:
        item = paths.setdefault(one.path, {"parameters": [_ID]} if "{id}" in one.path else {})
        item[one.method.lower()] = _operation(one, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Pilotfish",
            "version": VERSION,
            "description": "Language servers for coding agents. MCP over streamable HTTP is at /mcp.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


_ID: JsonObject = {
    "name": "id",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": ID, "maxLength": MAX_ID},
}


def _operation(one: HttpEndpoint, components: Mapping[str, Any]) -> JsonObject:
    troubles = sorted({**ALWAYS, **one.also}.items())
    responses: JsonObject = {"200": {"description": "OK.", "content": _content(one.answer)}}
    responses |= {str(status): {"description": text, "content": _content("Trouble")} for status, text in troubles}
    made: JsonObject = {"operationId": one.name, "summary": one.summary, "responses": responses}
    if one.body is not None and one.method == "GET":
        fields = components[one.body]["properties"].items()
        made["parameters"] = [
            {"name": name, "in": "query", "required": True, "schema": known} for name, known in fields
        ]
    elif one.body is not None:
        made["requestBody"] = {"required": True, "content": _content(one.body)}
    return made


def _content(shape: str | JsonObject) -> JsonObject:
    return {JSON: {"schema": {"$ref": f"#/components/schemas/{shape}"}}} if isinstance(shape, str) else shape
