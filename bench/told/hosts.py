"""Real hosts on a scripted model: without help, with their own LSP client, with Pilotfish as `setup` leaves it.

An edit is one call of the host's own tool. What is told is what the next question to the model has more than the one
before it, without the host's own words about the call. Before an edit the model reads the file, as models do, so what a
host delivers a turn later is heard then, and is in `Told.between`.
"""

import json
import queue
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from harness.setting import HOST_SECONDS, Setting, pilotfish, run, verb
from parity.fixtures import GRAMMARS, LANGUAGES

from support.daemon.homes import DaemonHome
from support.hosts.agents import claude_code, qwen
from support.hosts.model_script import DONE, Answer, Heard, Json, Script
from support.hosts.model_server import Call, ModelServer, Request, Say
from support.hosts.opencode import CHAT, started
from support.hosts.real import NETWORK, program
from told.conversation import Told, replaced_lines, shell
from told.edits import Edit

BEGIN_SECONDS = 120.0
"""For a host to ask its first question."""

OTHERS = ("deno", "eslint", "biome", "oxlint", "pyright", "ty")
"""OpenCode's own servers for the same files: everybody has the one that is measured, and no other."""

Arguments = dict[str, Any]


@dataclass(frozen=True)
class Tools:
    """What a host calls its tools, and their arguments."""

    read: tuple[str, str]
    """The tool and the name of its file."""
    edit: tuple[str, str, str, str]
    write: tuple[str, str, str]
    shell: tuple[str, Arguments]

    def reading(self, path: str) -> Call:
        tool, file = self.read
        return Call(tool, {file: path})

    def making(self, root: str, edit: Edit) -> Call:
        if edit.tool == "patch":
            tool, more = self.shell
            return Call(tool, {"command": shell(edit), "description": "Change files", **more})
        (change,) = edit.changes
        path, old, new = f"{root}/{change.path}", change.before or "", change.after or ""
        if edit.tool == "write":
            tool, file, content = self.write
            return Call(tool, {file: path, content: new})
        tool, file, before, after = self.edit
        was, becomes = replaced_lines(old, new)
        return Call(tool, {file: path, before: was, after: becomes})


Telling = Callable[[Sequence[str]], Iterator[str]]


@dataclass(frozen=True)
class Wiring:
    """One host with one source of diagnostics."""

    name: str
    command: Callable[[Setting, DaemonHome, str], list[str]]
    tools: Tools
    told: Telling
    """Of the new texts of a question, those parts that are about errors."""
    setup: str = ""
    """What `pilotfish setup` is told."""
    form: str = ""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


# --- The conversation -------------------------------------------------------------------------------------------------


class Live(Script):
    """A script that is written while it is played: the model thinks until the next turn is given."""

    def __init__(self) -> None:
        self._given: queue.Queue[Call | Say] = queue.Queue()
        self._answers: list[Answer] = []
        self.asked: queue.Queue[tuple[float, int]] = queue.Queue()
        """When a question came, and how many turns were behind it."""
        self.said_at = 0.0

    def give(self, turn: Call | Say) -> None:
        self._given.put(turn)

    def position(self, heard: Heard) -> int:
        return len(heard.results)

    def answer(self, heard: Heard) -> Answer:
        now, position = time.perf_counter(), self.position(heard)
        if not heard.tools:
            return DONE
        if position == len(self._answers):
            self.asked.put((now, position))
            turn = self._given.get()
            self._answers.append(turn if isinstance(turn, Say) else (turn,))
            self.said_at = time.perf_counter()
        return self._answers[min(position, len(self._answers) - 1)]


class Model(ModelServer):
    def __init__(self, script: Live) -> None:
        super().__init__([])
        self._script = script


def texts_of(body: Json) -> list[str]:
    """Every text of a conversation by itself; what the model said is its own, and is left out."""
    found = list[str]()
    for message in body.get("messages", []):
        if message.get("role") != "assistant":
            found += _texts(message.get("content"))
    return found


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        inner = cast("Json", value)
        yield from _texts(inner.get("text", inner.get("content")))
    elif isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _texts(each)


class Host:
    carries_out = True

    def __init__(self, setting: Setting, wiring: Wiring) -> None:
        self._setting, self._wiring = setting, wiring
        self._script = Live()
        self._model = Model(self._script)
        self._process: subprocess.Popen[bytes] | None = None
        self._known: Counter[str] = Counter()
        self._between = ""

    def begin(self) -> None:
        home = home_of(self._setting)
        home.environment.update(self._wiring.environment)
        if self._wiring.setup:
            argv = [*pilotfish(), "setup", *self._wiring.setup.split()]
            _, _, error = run(argv, self._setting, None)
            if error:
                print(error, flush=True)
        self._model.__enter__()
        argv = self._wiring.command(self._setting, home, self._model.url)
        proxies = dict.fromkeys(NETWORK, self._model.url) | dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1")
        with open(self._setting.scratch / "host.log", "wb") as log:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._setting.root,
                env=home.environment | proxies,
            )
        self._next(BEGIN_SECONDS)

    def before(self, edit: Edit) -> None:
        for change in edit.changes:
            if change.before is not None:
                _, text, _ = self.called(self._wiring.tools.reading(f"{self._setting.root}/{change.path}"))
                self._between += text

    def after(self, edit: Edit) -> Told:
        between, self._between = self._between, ""
        milliseconds, text, error = self.called(self._wiring.tools.making(str(self._setting.root), edit))
        if not _is_done(self._setting, edit):
            error = error or "the host did not make the edit"
        return Told(text, milliseconds, error=error, between=between, form=self._wiring.form)

    def end(self) -> None:
        self._script.give(Say("Done."))
        if self._process is not None:
            try:
                self._process.wait(HOST_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._model.__exit__(None, None, None)
        if self._wiring.setup:
            verb(self._setting, "daemon", "stop")

    def called(self, call: Call) -> tuple[float, str, str]:
        """How long until the model was asked again, what it was told, and what went wrong."""
        self._script.give(call)
        try:
            asked, texts = self._next(HOST_SECONDS)
        except queue.Empty:
            log = (self._setting.scratch / "host.log").read_text(errors="replace")
            return 0.0, "", f"the host did not ask again: {log[-300:]}"
        return (asked - self._script.said_at) * 1000, "\n".join(self._wiring.told(texts)), ""

    def _next(self, seconds: float) -> tuple[float, list[str]]:
        """When the next question came, and its new texts."""
        asked, position = self._script.asked.get(timeout=seconds)
        request = _last(self._model.requests, position)
        known = Counter(texts_of(request.body))
        fresh, self._known = known - self._known, known
        return asked, [text for text in fresh for _ in range(fresh[text])]


def _last(requests: Sequence[Request], position: int) -> Request:
    return next(one for one in reversed(requests) if one.position == position and one.heard.tools)


def home_of(setting: Setting) -> DaemonHome:
    """Of the host: it has Node, and colours nothing."""
    variables = setting.environment()
    node = program("node").rpartition("/")[0]
    path = f"{variables['PATH'].partition(':')[0]}:{node}:{variables['PATH']}"
    return DaemonHome(setting.root, variables | {"PATH": path, "NO_COLOR": "1"})


def _is_done(setting: Setting, edit: Edit) -> bool:
    for change in edit.changes:
        path = setting.root / change.path
        if (path.read_bytes().decode() if path.exists() else None) != change.after:
            return False
    return True


# --- The hosts --------------------------------------------------------------------------------------------------------


def _server(setting: Setting) -> tuple[str, list[str], Mapping[str, str]]:
    """Its name, its command, and the files that it is for."""
    grammar = GRAMMARS[LANGUAGES[setting.server]]
    return grammar.server, list(grammar.command), {grammar.suffix: LANGUAGES[setting.server]}


def _claude_code(own: bool, setting: Setting, home: DaemonHome, url: str) -> list[str]:
    argv, *usual = claude_code(home, url)
    if not own:
        return [argv, *usual]
    plugin = setting.scratch / "plugin"
    (plugin / ".claude-plugin").mkdir(parents=True)
    (plugin / ".claude-plugin" / "plugin.json").write_text(json.dumps({"name": "own", "version": "1.0.0"}))
    (plugin / ".lsp.json").write_text(json.dumps(_lsp(setting)))
    return [argv, "--plugin-dir", str(plugin), *usual]


def _opencode(own: bool, setting: Setting, home: DaemonHome, url: str) -> list[str]:
    name, server, files = _server(setting)
    entry: dict[str, Any] = {name: {"command": server, "extensions": list(files)}}
    lsp = {**entry, **{one: {"disabled": True} for one in OTHERS if one != name}} if own else False
    return started(home, url, "scripted", CHAT, {"lsp": lsp})


def _qwen(own: bool, setting: Setting, home: DaemonHome, url: str) -> list[str]:
    argv, *usual = qwen(home, url)
    if not own:
        return [argv, *usual]
    (setting.root / ".lsp.json").write_text(json.dumps(_lsp(setting)))
    return [argv, "--experimental-lsp", *usual]


def _lsp(setting: Setting) -> dict[str, Any]:
    """The file that Claude Code and Qwen Code read."""
    name, server, files = _server(setting)
    return {name: {"command": server[0], "args": server[1:], "extensionToLanguage": files}}


_CLAUDE = re.compile(
    r"<new-diagnostics>(.*?)</new-diagnostics>|hook additional context: (.*?)(?=</system-reminder>|\Z)", re.DOTALL
)
_APPENDED = re.compile(
    r"\n\n((?:LSP errors detected|<diagnostics file=|\d+ of \d+ possibly affected|[\w-]+ runs restricted).*)", re.DOTALL
)
"""What OpenCode says of its own servers' errors, and what we say, behind the host's own words."""


def _claude_told(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        for found in _CLAUDE.finditer(text):
            yield found[1] or found[2]


def _after_own_words(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        if found := _APPENDED.search(text):
            yield found[1]


CLAUDE_TOOLS = Tools(
    read=("Read", "file_path"),
    edit=("Edit", "file_path", "old_string", "new_string"),
    write=("Write", "file_path", "content"),
    shell=("Bash", {}),
)
OPENCODE_TOOLS = Tools(
    read=("read", "filePath"),
    edit=("edit", "filePath", "oldString", "newString"),
    write=("write", "filePath", "content"),
    shell=("bash", {}),
)
QWEN_TOOLS = Tools(
    read=("read_file", "file_path"),
    edit=("edit", "file_path", "old_string", "new_string"),
    write=("write_file", "file_path", "content"),
    shell=("run_shell_command", {"is_background": False}),
)


Command = Callable[[bool, Setting, DaemonHome, str], list[str]]


def _wirings(host: str, command: Command, tools: Tools, told: Telling, form: str = "") -> list[Wiring]:
    without, own = partial(command, False), partial(command, True)
    return [
        Wiring(f"{host}/nothing", without, tools, told),
        Wiring(f"{host}/own", own, tools, told, form=form),
        Wiring(f"{host}/pilotfish", without, tools, told, setup=f"{host} --global"),
    ]


WIRINGS = {
    wiring.name: wiring
    for wiring in (
        *_wirings("claude-code", _claude_code, CLAUDE_TOOLS, _claude_told, form="claude-code"),
        *_wirings("opencode", _opencode, OPENCODE_TOOLS, _after_own_words),
        *_wirings("qwen", _qwen, QWEN_TOOLS, _after_own_words),
    )
}
