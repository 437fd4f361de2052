"""Programs that speak MCP, as a model would use them: it edits with its host's tools, then asks what is wrong now.

Nobody tells such a program of an edit but the model. It reads a file before it edits it, and does then what the
program's own instructions want done with a file first; after the edit it asks for the errors.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parity import ours, peers
from parity.fixtures import GRAMMARS, Fixture
from parity.lines import Child, started
from parity.subjects import McpKind

from told.edits import Edit
from told.subjects.children import verb
from told.subjects.setting import HOST_SECONDS, Setting, Told

Call = tuple[str, Mapping[str, Any]]
"""A tool and its arguments."""

LANGUAGES = {grammar.server: language for language, grammar in GRAMMARS.items()}
CREATED, CHANGED, DELETED = 1, 2, 3


@dataclass(frozen=True)
class Habit:
    """What a model asks one program, and when."""

    name: str
    kind: McpKind
    asks: Callable[[Fixture, Edit], Sequence[Call]]
    """After an edit; all their answers together are what it is told."""
    first: Callable[[Fixture, str], Sequence[Call]] = lambda _fixture, _path: ()
    """Before it edits a file for the first time."""
    form: str = ""
    """How the answers are written: a key of `score.FORMS`."""
    has_daemon: bool = False


def _there(edit: Edit) -> list[str]:
    return [change.path for change in edit.changes if change.after is not None]


def _changes(fixture: Fixture, edit: Edit) -> dict[str, Any]:
    kinds = [CREATED if one.before is None else DELETED if one.after is None else CHANGED for one in edit.changes]
    uris = [(fixture.root / one.path).as_uri() for one in edit.changes]
    return {"changes": [{"uri": uri, "type": kind} for uri, kind in zip(uris, kinds, strict=True)]}


def _opening(fixture: Fixture, path: str) -> list[Call]:
    return [("open_document", {"file_path": str(fixture.root / path), "language_id": fixture.language})]


def _own(edit: Edit) -> list[Call]:
    return [("lsp_diagnostics", {"filePath": path}) for path in _there(edit)]


def _named(fixture: Fixture, edit: Edit) -> list[Call]:
    return [("get_diagnostics", {"file_path": str(fixture.root / path)}) for path in _there(edit)]


HABITS = (
    Habit(
        "mcp",
        ours.MCP,
        # Our instructions want the impact looked at before a change is called finished.
        lambda _fixture, edit: [*_own(edit), ("lsp_impact", {})],
        form="lines",
        has_daemon=True,
    ),
    Habit("mcp-project", ours.MCP, lambda _fixture, _edit: [("lsp_diagnostics", {})], form="lines", has_daemon=True),
    Habit(
        "serena",
        peers.SERENA,
        lambda _fixture, edit: [("get_diagnostics_for_file", {"relative_path": path}) for path in _there(edit)],
        form="serena",
    ),
    Habit(
        "agent-lsp",
        peers.AGENT_LSP,
        lambda fixture, edit: [("did_change_watched_files", _changes(fixture, edit)), *_named(fixture, edit)],
        _opening,
        form="agent-lsp",
    ),
)


class ToolUser:
    carries_out = False

    def __init__(self, setting: Setting, habit: Habit) -> None:
        self._setting, self._habit = setting, habit
        self._fixture = Fixture(LANGUAGES[setting.server], setting.root, ())
        self._runner = asyncio.Runner()
        self._child: Child | None = None
        self._seen: set[str] = set()

    def begin(self) -> None:
        if self._habit.name in peers.PINS:
            peers.install(self._habit.name)
        self._runner.run(self._start())

    def before(self, edit: Edit) -> None:
        for change in edit.changes:
            if change.before is not None and change.path not in self._seen:
                self._seen.add(change.path)
                self._asked(self._habit.first(self._fixture, change.path))

    def after(self, edit: Edit) -> Told:
        return self._asked(self._habit.asks(self._fixture, edit))

    def end(self) -> None:
        if self._child is not None:
            self._runner.run(self._child.close())
        if self._habit.has_daemon:
            verb(self._setting, "daemon", "stop")
        self._runner.close()

    async def _start(self) -> None:
        setting, kind = self._setting, self._habit.kind
        variables = setting.environment() | kind.environment(self._fixture, setting.scratch)
        log = setting.scratch / "stderr.txt"
        argv = kind.argv(self._fixture)
        child = self._child = await started(argv, cwd=setting.root, environment=variables, framed=False, log=log)
        roots = [{"uri": setting.root.as_uri(), "name": setting.root.name}]
        child.replies["roots/list"] = lambda _params: {"roots": roots}
        about = {"name": "told", "version": "1"}
        hello: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}, "clientInfo": about}
        await child.request("initialize", hello)
        child.notify("notifications/initialized", {})
        await child.request("tools/list", {})
        for name, arguments in kind.before:
            await self._call(name, arguments(self._fixture, ""))

    def _asked(self, calls: Sequence[Call]) -> Told:
        return self._runner.run(self._ask(calls))

    async def _ask(self, calls: Sequence[Call]) -> Told:
        clock = asyncio.get_running_loop().time
        began, texts, error = clock(), list[str](), ""
        for name, arguments in calls:
            try:
                said, failed = await asyncio.wait_for(self._call(name, arguments), HOST_SECONDS)
            except (TimeoutError, RuntimeError) as trouble:
                said, failed = "", f"{type(trouble).__name__} {trouble}".strip()
            error = error or failed
            # What a tool says that only tells of the change is no answer.
            texts += [] if name == "did_change_watched_files" else [said]
        return Told("\n".join(texts), (clock() - began) * 1000, error=error, form=self._habit.form)

    async def _call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, str]:
        assert self._child is not None
        result = await self._child.request("tools/call", {"name": name, "arguments": arguments})
        said = "\n".join(part.get("text", "") for part in result.get("content", []))
        no_verdict = self._habit.kind.no_verdict
        failed = result.get("isError") or (no_verdict and no_verdict in said)
        return ("", said) if failed else (said, "")
