"""The Opta tool set: six functions that a model calls by name with a JSON string, and gets text back.

>>> import pilotfish
>>> with pilotfish.open_blocking("project") as workspace:
...     tools = pilotfish.BlockingToolRegistry(workspace)
...     print(tools.execute("lsp_definition", '{"path": "main.py", "line": 3, "character": 6}'))
greeting.py:1:4

Characters count from 0 here, lines from 1. A registry can be put around the host's own executor (`run`): calls that
are not ours go there, and what its edits broke is appended to its answer. Nothing that goes wrong on our side is
raised, and nothing of it ever changes what an edit says about itself.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, cast

import msgspec

from pilotfish.api.answers import Answer, Location, State, Symbol, error_of
from pilotfish.api.questions import Question
from pilotfish.errors import Code, Refused
from pilotfish.feedback.text import appended
from pilotfish.library.blocking import BlockingWorkspace
from pilotfish.library.workspace import TouchKind, Workspace
from pilotfish.operations.cleaning import MAX_MESSAGE, MAX_NAME, MAX_PATH
from pilotfish.operations.fallback import Expected, no_server, search_files
from pilotfish.operations.render import state_line, text_of
from pilotfish.operations.tools import OPTA, Format, Schema, ToolSet, tool_schemas
from pilotfish.operations.validate import question
from pilotfish.protocol.codec import fields, items
from pilotfish.sanitise import sanitised

EDITS: Mapping[str, TouchKind] = {"edit_file": "edit", "write_file": "write", "multi_edit": "patch"}
"""The host's own tools that change files."""

NOT_THERE = frozenset({Code.SERVER_MISSING, Code.UNTRUSTED})

Permission = Literal["allow", "ask"]


class ToolRegistry:
    def __init__(self, workspace: Workspace, run: Callable[[str, str], Awaitable[str]] | None = None) -> None:
        self._workspace = workspace
        self._run = run

    def schemas(self) -> list[Schema]:
        """The functions in the form of OpenAI; none where the configuration turns them off."""
        return tool_schemas(Format.OPENAI, ToolSet.OPTA) if self._workspace.offers_tools else []

    def permissions(self) -> dict[str, Permission]:
        """What a host should do by default when a model calls each."""
        return {name: tool.row.permission for name, tool in OPTA.items()} if self._workspace.offers_tools else {}

    async def execute(self, name: str, arguments: str) -> str:
        """The text to give the model. What `run` raises is the host's own and passes through."""
        if name in OPTA:
            return await self._ask(name, arguments)
        if self._run is None:
            return f"Unknown tool: {name}"
        return appended(await self._run(name, arguments), await self.edited(name, arguments))

    async def edited(self, name: str, arguments: str) -> str:
        """For a host that runs its tools itself: the feedback after one that changes files, empty after any other."""
        paths = _paths(arguments) if name in EDITS else ()
        return (await self._workspace.after_edit(*paths, kind=EDITS[name])).text if paths else ""

    async def _ask(self, name: str, arguments: str) -> str:
        try:
            asked = question(OPTA[name], _object(arguments))
        except Refused as refusal:
            return error_of(refusal).message
        answer = await self._workspace.answer(asked)
        return await self._instead(asked, answer) or opta_text(answer)

    async def _instead(self, asked: Question, answer: Answer[object]) -> str | None:
        """Where the server is missing or may not run: which one, how to get it, and a search that the host can run."""
        if asked.file_path is None or answer.ok or all(error.code not in NOT_THERE for error in answer.errors):
            return None
        missing = self._workspace.missing(asked.file_path)
        if missing is None:
            return None
        word = await self._workspace.word(asked)
        search = no_server(asked, Expected(missing.scene.server or "", None), word, search_files).hint
        return "\n".join(filter(None, (missing.message, missing.hint, search)))


class BlockingToolRegistry:
    """The same for code without an event loop."""

    def __init__(self, workspace: BlockingWorkspace, run: Callable[[str, str], str] | None = None) -> None:
        self._registry = ToolRegistry(workspace.workspace)
        self._portal = workspace.portal
        self._run = run

    def schemas(self) -> list[Schema]:
        return self._registry.schemas()

    def permissions(self) -> dict[str, Permission]:
        return self._registry.permissions()

    def execute(self, name: str, arguments: str) -> str:
        if name in OPTA or self._run is None:
            return self._portal.call(self._registry.execute, name, arguments)
        return appended(self._run(name, arguments), self.edited(name, arguments))

    def edited(self, name: str, arguments: str) -> str:
        return self._portal.call(self._registry.edited, name, arguments)


def _object(arguments: str) -> dict[str, object]:
    """A call's arguments; a model that needs none may send nothing at all."""
    try:
        return msgspec.json.decode(arguments or "{}", type=dict[str, object])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise Refused(Code.INVALID_INPUT, f"The arguments must be a JSON object: {error}.") from None


def _paths(arguments: str) -> tuple[str, ...]:
    """The files that an edit names: its own path, and those of its parts."""
    try:
        given = _object(arguments)
    except Refused:
        return ()
    parts = [given, *(part for value in given.values() for part in map(fields, items(value)))]
    named = (part.get("path") for part in parts)
    return tuple(dict.fromkeys(path for path in named if isinstance(path, str) and path))


def opta_text(answer: Answer[Any]) -> str:
    """The text of an answer: one `path:line:col` per line, the column counted from 0; all else as `text_of` has it."""
    items = cast("tuple[object, ...]", answer.data) if isinstance(answer.data, tuple) else ()
    lines: list[str] = []
    for item in items:
        if isinstance(item, Location):
            name = f" {item.kind} {sanitised(item.name, MAX_NAME)}" if isinstance(item, Symbol) else ""
            lines.append(f"{sanitised(item.path, MAX_PATH)}:{item.line}:{item.character - 1}{name}")
    if not lines or len(lines) < len(items):
        return text_of(answer)
    head = [] if answer.meta.state is State.FRESH else [state_line(answer.meta)]
    warnings = [f"note: {sanitised(warning, MAX_MESSAGE)}" for warning in answer.meta.warnings]
    total, shown = answer.meta.total or 0, len(lines)
    cut = [f"note: showing {shown} of {total} results"] if shown < total else []
    return "\n".join([*head, *dict.fromkeys(lines), *cut, *warnings])
