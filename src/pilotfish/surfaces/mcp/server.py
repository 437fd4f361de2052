"""The MCP server: tools over the service, for one client, by the official SDK's low-level server.

One connection has one `Server`, its own client sessions and its own limits. Cancelling a call cancels the question down
to the language server; the end of the connection ends its sessions. This is the one place where an exception becomes an
answer of this protocol. Only modules of this folder import the SDK, and only `connection.serve` imports this one.

While a call waits, notifications say how many files were checked, which server is starting, which is indexing. They are
sent every second, not per event: a client that gave a token wants a sign of life, and many extend their own time limit
with each. The text is ours; a server's own titles are not repeated.

The workspaces of a client are the folders that it names as its roots, or the one that it was started in. A connection
is bound to these (T24): each is one client session, and a call goes to the one whose folder holds its file. A client
that has no roots, or does not answer, works in the folder that it was started in.
"""

import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from string import Template
from typing import Any, Literal, TypeVar, cast

import anyio
import mcp_types as types
import msgspec
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp_types import ListRootsRequest, ListRootsResult
from msgspec import Struct, toml
from pydantic import ValidationError

from pilotfish.api.answers import Answer, Feedback, of_severities, refused
from pilotfish.api.questions import Operation, Touch
from pilotfish.config.schema import SAME_SEVERITIES, TouchKind
from pilotfish.counting import counted
from pilotfish.errors import Bug, Code, Failure, Unavailable
from pilotfish.ipc.client_sessions import OpenSession
from pilotfish.model import AbsPath
from pilotfish.operations.tools import NAMED, Format, McpOptions, Schema, ToolSet, tool_schemas
from pilotfish.paths import is_inside
from pilotfish.pool.plan import Starting
from pilotfish.protocol.codec import encode, member
from pilotfish.protocol.uris import path_of
from pilotfish.sanitise import sanitised
from pilotfish.service.service import Service
from pilotfish.service.workspace import Workspace
from pilotfish.service.workspaces import ClientSession
from pilotfish.surfaces.mcp.streams import IncomingMessages, OutgoingMessages, message_streams, serve_eras
from pilotfish.surfaces.mcp.tools import (
    HOOK,
    INSTRUCTIONS,
    MAX_NAME,
    JsonObject,
    asked,
    operation_of,
    result,
    text_result,
)
from pilotfish.system.clock import current_time
from pilotfish.system.ports import ByteStream
from pilotfish.system.real_path import real_path
from pilotfish.system.tasks import owned_tasks
from pilotfish.version import VERSION

logger = logging.getLogger(__name__)


MAX_ROOTS = 16
"""Folders of one client; more than a person opens at once."""

ROOTS_SECONDS = 3.0
"""For the client to name its roots. One that announces roots and does not answer costs this once."""


class ClientRoots:
    def __init__(self, service: Service, open_session: OpenSession) -> None:
        self._service = service
        self._open = open_session
        self._sessions: dict[AbsPath | None, ClientSession] = {}
        self._known = False
        self._asking = anyio.Lock()

    async def of(self, context: ServerRequestContext[Any], path: str | None = None) -> ClientSession:
        """The client session that a call about `path` belongs to."""
        if not self._known:
            async with self._asking:
                if not self._known:
                    await self._load(context.session)
        return self._nearest(path)

    def forget_roots(self) -> None:
        """The client's roots have changed: ask for them again on the next call."""
        self._known = False

    def end(self) -> None:
        for session in self._sessions.values():
            self._service.end(session)
        self._sessions.clear()

    async def _load(self, session: ServerSession) -> None:
        roots: list[AbsPath | None] = [*await _roots(session)] or [None]
        before, self._sessions = self._sessions, {root: self._sessions.get(root) or self._open(root) for root in roots}
        for gone in before.keys() - self._sessions.keys():
            self._service.end(before[gone])
        self._known = True

    def _nearest(self, path: str | None) -> ClientSession:
        """The session of the deepest root that holds the file; the first one if none does."""
        sessions = list(self._sessions.values())
        named = (path or "").removeprefix("@")
        if not named or len(sessions) == 1:
            return sessions[0]
        if os.path.isabs(named):
            real = real_path(named)
            holding = [session for session in sessions if is_inside(real, real_path(session.root))]
            return max(holding, key=lambda session: len(session.root), default=sessions[0])
        here = (session for session in sessions if os.path.lexists(os.path.join(session.cwd, named)))
        return next(here, sessions[0])


async def _roots(session: ServerSession) -> list[AbsPath]:
    """The existing folders among those that the client names."""
    capabilities = session.client_capabilities
    if capabilities is None or capabilities.roots is None or not session.can_send_request:
        return []
    try:
        named = await session.send_request(ListRootsRequest(), ListRootsResult, ROOTS_SECONDS)
    except (MCPError, ValidationError) as error:
        logger.warning("the client did not name its roots: %s", error)
        return []
    paths = [path_of(str(root.uri)) for root in named.roots[:MAX_ROOTS]]
    return list(dict.fromkeys(filter(os.path.isdir, filter(None, paths))))


PERIOD_SECONDS = 1.0
"""Between two notifications. A call that is answered sooner needs none."""


class CallProgress:
    """How far a call has come, where it is about many files."""

    def __init__(self) -> None:
        self.text = ""

    def checked(self, done: int, total: int) -> None:
        self.text = f"checked {done} of {counted(total, 'file')}"


@asynccontextmanager
async def reporting(
    context: ServerRequestContext[Any], service: Service, client: ClientSession
) -> AsyncGenerator[CallProgress]:
    """Send progress for as long as the block lasts, if the client asked for it."""
    progress = CallProgress()
    if not context.meta or context.meta.get("progress_token") is None:
        yield progress
        return
    started = current_time()

    async def report() -> None:
        while True:
            await anyio.sleep(PERIOD_SECONDS)  # noqa: TID251 -- a sign of life has a period; no answer waits for it
            waiting = waiting_for(service, client)
            message = f"{progress.text}; {waiting}" if progress.text else waiting
            await context.session.report_progress(round(current_time() - started, 3), message=message)

    async with owned_tasks() as tasks:
        tasks.start_soon(report)
        yield progress
        tasks.cancel_scope.cancel()


def waiting_for(service: Service, client: ClientSession) -> str:
    workspace = service.workspaces.of(client)
    ours = {key.server: entry for key, entry in service.pool.entries().items() if workspace.holds(key.root)}
    starting = [f"{server} is starting" for server, entry in ours.items() if isinstance(entry.slot, Starting)]
    working = [
        f"{server} is indexing" for server, entry in ours.items() if entry.session and entry.session.readiness.busy
    ]
    return "; ".join(sorted([*starting, *working])) or "waiting for the language servers"


MAX_AT_ONCE = 16
"""Calls of one client that run at once; the others wait, so that one client cannot occupy all servers."""

MAX_WAITING = 256
"""Calls that wait or run. Beyond it the answer is `overloaded` at once, which a client can act upon."""

T = TypeVar("T")

Context = ServerRequestContext[Any]

OfferedTools = ToolSet | Literal["nothing"]

WorkspaceOf = Callable[[ClientSession], Workspace]


async def serve(stream: ByteStream, service: Service, open_session: OpenSession, options: McpOptions) -> None:
    connection = McpClient(service, open_session, options)
    server = sdk_server(lambda _context: connection)

    async def run(incoming: IncomingMessages, outgoing: OutgoingMessages) -> None:
        await server.run(incoming, outgoing, server.create_initialization_options())

    try:
        async with message_streams(stream) as (incoming, outgoing):
            await serve_eras(incoming, outgoing, run)
    finally:
        connection.end()


def sdk_server(of: Callable[[Context], "McpClient"]) -> Server[Any]:
    """The SDK's server with our handlers; `of` finds the client of a call."""
    server = _Server("pilotfish", version=VERSION, instructions=INSTRUCTIONS)
    # The SDK reports spans to whatever collector the environment names; nothing leaves the machine from here.
    server.middleware[:] = [_whole_arguments]
    server.add_request_handler(
        "tools/list", types.PaginatedRequestParams, lambda context, _: of(context).list_tools(context)
    )
    server.add_request_handler(
        "tools/call", types.CallToolRequestParams, lambda context, params: of(context).call_tool(context, params)
    )
    server.add_request_handler("prompts/list", types.PaginatedRequestParams, listed_prompts)
    server.add_request_handler("prompts/get", types.GetPromptRequestParams, prompt_of)
    server.add_notification_handler(
        "notifications/roots/list_changed",
        types.NotificationParams,
        lambda context, _: of(context).roots_changed(context),
    )
    return server


class _Server(Server[Any]):
    """The SDK's server, announcing that its list of tools may change: over HTTP it uses its own options only."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        changing = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(changing, experimental_capabilities, extensions)


class McpClient:
    """One client: its workspaces, the tools it was shown, its limits."""

    def __init__(self, service: Service, open_session: OpenSession, options: McpOptions) -> None:
        self._service = service
        self._options = options
        self._roots = ClientRoots(service, open_session)
        self._turns = anyio.CapacityLimiter(MAX_AT_ONCE)
        self._calls = 0
        self._structured = bool(options.structured)
        """Whether results have the envelope beside the text; where the options leave it open, as last configured."""
        self._listed: OfferedTools | None = None
        """The tools that the client was shown last, if it asked."""

    def end(self) -> None:
        self._roots.end()

    async def list_tools(self, context: Context) -> types.ListToolsResult:
        self._listed = offered = await self._offered_now(context, self._service.workspaces.of)
        tools = list[Schema]()
        if offered != "nothing":
            # Those that some server of the client's workspace may answer.
            rows = await self._service.offered(await self._roots.of(context))
            tools = tool_schemas(Format.MCP, offered, rows)
        return types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in tools])

    async def roots_changed(self, context: Context) -> None:
        self._roots.forget_roots()
        await self._announce_changed_tools(context, self._service.workspaces.of)

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> JsonObject:
        name, arguments = params.name, params.arguments or {}
        if name == HOOK:
            return await self._after_edit(context, arguments)
        operation = operation_of(name, arguments)
        if operation is None:
            # By what differs: all begin alike, so any short name would be near to some.
            tools = {tool.removeprefix("lsp_"): tool for tool in NAMED}
            near = get_close_matches(name[:MAX_NAME].removeprefix("lsp_"), tools, 1)
            tip = f". Did you mean {tools[near[0]]}?" if near else ""
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {sanitised(name, MAX_NAME)}{tip}")
        try:
            answer = await self._in_turn(partial(self._answer, context, name, arguments))
        except Failure as failure:
            answer = refused(operation[:MAX_NAME], failure)
        except Exception as error:
            logger.exception("a call failed tool=%s", name)
            answer = refused(operation[:MAX_NAME], Bug(f"{type(error).__name__}: {error}"))
        return result(answer, with_envelope=self._structured)

    async def _in_turn(self, work: Callable[[], Awaitable[T]]) -> T:
        if self._calls >= MAX_WAITING:
            raise Unavailable(Code.OVERLOADED, f"{MAX_WAITING} calls of this client are waiting.")
        self._calls += 1
        try:
            async with self._turns:
                return await work()
        finally:
            self._calls -= 1

    async def _answer(self, context: Context, name: str, arguments: Mapping[str, object]) -> Answer[Any]:
        workspace_of = cache(self._service.workspaces.of)  # one look at the configuration for the whole call
        await self._announce_changed_tools(context, workspace_of)
        client = await self._roots.of(context, _path(arguments))
        workspace = workspace_of(client)
        if self._options.structured is None:
            self._structured = workspace.config.mcp.structured
        workspace.require_enabled()
        if not workspace.config.navigation_tools:
            raise Unavailable(Code.UNSUPPORTED, "The tools are turned off by configuration (navigationTools).")
        question = asked(name, arguments)
        async with reporting(context, self._service, client) as progress:
            answer = await self._service.ask(question, client, workspace, progress.checked)
        if answer.operation == Operation.DIAGNOSTICS and client.host in SAME_SEVERITIES:
            return of_severities(answer, workspace.config.feedback.severities)
        return answer

    async def _after_edit(self, context: Context, arguments: Mapping[str, object]) -> JsonObject:
        touch, text = touch_of(arguments), ""

        async def feedback() -> Feedback:
            client = await self._roots.of(context, next(iter(touch.paths), None))
            return await self._service.touched(touch, client)

        try:
            text = (await self._in_turn(feedback)).text
        except Failure as failure:
            logger.info("no feedback: %s", failure.message)
        except Exception:
            # Nothing may make an edit look as if it had failed.
            logger.exception("feedback failed paths=%s", touch.paths)
        return hook_result(arguments, text)

    async def _announce_changed_tools(self, context: Context, workspace_of: WorkspaceOf) -> None:
        """Tell the client when its list of tools has changed with the configuration or its roots."""
        if self._listed is None or not context.session.can_send_request:
            return
        offered = await self._offered_now(context, workspace_of)
        if offered != self._listed:
            self._listed = offered
            await context.session.send_tool_list_changed()

    async def _offered_now(self, context: Context, workspace_of: WorkspaceOf) -> OfferedTools:
        """The tools in the client's workspace; none where it has none."""
        try:
            config = workspace_of(await self._roots.of(context)).config
        except Failure as gone:
            logger.warning("no tools: %s", gone.message)
            return "nothing"
        if not (config.enabled and config.navigation_tools):
            return "nothing"
        return self._options.tools or ToolSet(config.mcp.tools)


async def _whole_arguments(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Pass arguments that are not an object to the tool, whose refusal a model can read; some send a JSON string."""
    params = ctx.params
    if ctx.method != "tools/call" or not params or isinstance(params.get("arguments"), Mapping | None):
        return await call_next(ctx)
    return await call_next(replace(ctx, params={**params, "arguments": _object(params["arguments"])}))


def _object(arguments: object) -> dict[str, object]:
    if isinstance(arguments, str):
        try:
            return msgspec.json.decode(arguments, type=dict[str, object])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            pass
    return {"arguments": arguments}


def _path(arguments: Mapping[str, object]) -> str | None:
    named = arguments.get("filePath", arguments.get("file_path"))
    if isinstance(named, str):
        return named
    for item in (arguments.get("callHierarchyItem"), arguments.get("typeHierarchyItem")):
        uri = member(item, "uri")
        if isinstance(uri, str):
            return path_of(uri)
    return None


MAX_FILES = 100
"""Of one edit; of a larger patch the first ones are checked."""

KINDS: Mapping[object, TouchKind] = {"edit": "edit", "write": "write", "patch": "patch"}

NAMES = ("filePath", "file_path", "path", "files", "paths")
"""Names under which hosts send the changed files."""


def touch_of(arguments: Mapping[str, object]) -> Touch:
    """The edit that a hook reports; without files where it names none."""
    paths: list[str] = []
    for name in NAMES:
        value = arguments.get(name)
        several = cast("list[object]", value) if isinstance(value, list) else [value]
        paths += [path for path in several if isinstance(path, str) and path]
    usual: TouchKind = "patch" if len(paths) > 1 else "edit"
    return Touch(tuple(dict.fromkeys(paths[:MAX_FILES])), KINDS.get(arguments.get("kind"), usual))


def hook_result(arguments: Mapping[str, object], text: str) -> JsonObject:
    """The result of the call: the feedback, or nothing at all."""
    if arguments.get("format") == "hook":
        wrapped = {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": text}} if text else {}
        text = encode(wrapped).decode()
    return text_result(text)


# --- Prompts ----------------------------------------------------------------------------------------------------------

MAX_ARGUMENT = 200
"""Characters of what a person fills in: a name or a path."""


class WrittenPrompt(Struct, frozen=True):
    """What a person can ask for by name in a host that shows MCP prompts.

    It costs a model nothing until it is chosen: hosts show the list to the person, not to the model.
    """

    title: str
    description: str
    arguments: Mapping[str, str]
    """Name → what it is."""
    text: str


PROMPTS = toml.decode(Path(__file__).with_name("prompts.toml").read_bytes(), type=dict[str, WrittenPrompt])


async def listed_prompts(_: Context, _params: types.PaginatedRequestParams) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name,
                title=one.title,
                description=one.description,
                arguments=[
                    types.PromptArgument(name=argument, description=what, required=True)
                    for argument, what in one.arguments.items()
                ],
            )
            for name, one in PROMPTS.items()
        ]
    )


async def prompt_of(_: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    """The text of a prompt; raises `MCPError` for an unknown one, or without one of its arguments."""
    prompt = PROMPTS.get(params.name)
    if prompt is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {sanitised(params.name, MAX_ARGUMENT)}")
    given = params.arguments or {}
    missing = [name for name in prompt.arguments if not given.get(name)]
    if missing:
        raise MCPError(types.INVALID_PARAMS, f"This prompt needs: {', '.join(missing)}")
    text = Template(prompt.text).substitute({name: sanitised(given[name], MAX_ARGUMENT) for name in prompt.arguments})
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.GetPromptResult(description=prompt.description, messages=[message])
