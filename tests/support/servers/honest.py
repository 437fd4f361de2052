"""Language servers that never lie, in every way of telling that we know, and at their own pace.

An honest server computes diagnostics as a function of the texts that it has (`truth`), and tells the results late,
twice, in parts or out of order, as far as its kind allows. What a kind promises is written beside it: an answer of ours
can only be as sure as that.
`Whims` say how long each thing takes and what goes wrong; the same whims give the same server.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pilotfish.model import AbsPath
from pilotfish.protocol.rpc import RequestId, ResponseError
from pilotfish.protocol.uris import path_of, uri_of
from pilotfish.servers.spec import Freshness
from support.servers.script import SILENCE
from support.servers.scripted import ScriptedServer

DELAYS = (0.0, 0.001, 0.02, 0.06, 0.12, 0.2, 0.4, 0.8, 1.5, 2.4, 3.5, 6.0)
"""Around every limit that the code knows: the settling pauses, the echo, the time limits of a check."""

TICK = 1e-6
"""Less than any delay, and more than adding delays up can be off."""

IGNORED = "generated/g"
"""A file in a folder that the repository ignores. Nobody opens it."""

DEPENDENCIES = {"b": ("a", IGNORED), "c": ("a", "b")}
"""File → the files that it imports."""

CONFIGURATION, PACKAGE = "config", "packages/package"
"""What every server reads at its start and never again, and what counts for all files: a configuration file, and an
installed package."""


def truth(texts: Mapping[AbsPath, str], path: AbsPath) -> tuple[str, ...]:
    """What is wrong with a file: its own bad lines, and those of the files that it imports."""
    name, own = stem(path), _bad(texts.get(path, ""))
    found = [f"{name}: {line}" for line in own]
    for other in (*DEPENDENCIES.get(name, ()), CONFIGURATION, PACKAGE):
        lines = _bad(texts.get(AbsPath(path.replace(f"{name}.x", f"{other}.x")), ""))
        found += [f"{name} imports {other}: {line}" for line in lines]
    return tuple(sorted(found))


def imports(path: AbsPath, other: AbsPath) -> bool:
    return any(stem(AbsPath(name)) == stem(other) for name in DEPENDENCIES.get(stem(path), ()))


def stem(path: AbsPath) -> str:
    return path.rpartition("/")[2].partition(".")[0]


def _bad(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("bad")]


class Whims:
    """A tape of small numbers, read round and round."""

    def __init__(self, tape: Iterable[int]) -> None:
        self._tape = tuple(tape) or (0,)
        self._next = 0

    def pick(self, choices: int) -> int:
        value = self._tape[self._next % len(self._tape)]
        self._next += 1
        return value % choices

    def delay(self, most: float) -> float:
        """One of `DELAYS`, cut to `most`."""
        return min(most, DELAYS[self.pick(len(DELAYS))])


@dataclass(frozen=True)
class Kind:
    """A way of telling: what the catalogue says about it, what it offers, and the server that does it."""

    name: str
    freshness: Freshness
    make: Callable[["Surroundings", ScriptedServer], "Honest"]
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    asked: bool = False
    """It answers a question of ours, so all that was sent before the question is in the answer."""


class Surroundings(Protocol):
    """What a server needs of the world around it."""

    kind: Kind
    whims: Whims
    disk: dict[AbsPath, str]
    inputs: frozenset[AbsPath]
    """The configuration and the package."""

    def later(self, seconds: float, action: Callable[[], None]) -> None: ...

    def changed(self) -> None:
        """What the server sees is not what it was."""


class Honest:
    """What all kinds share: the documents."""

    def __init__(self, world: Surroundings, script: ScriptedServer) -> None:
        self.world = world
        self.script = script
        self.whims = world.whims
        self.open: dict[AbsPath, str] = {}
        self.versions: dict[AbsPath, int] = {}
        self.read = dict(world.disk)
        """What it has read: all of it at its start."""
        self.reads_again = self.whims.pick(2) == 1
        """It reads sources whenever it needs them, or only those that it is told of."""
        sync = {"openClose": True, "change": 1, "save": True}
        script.capabilities = {"textDocumentSync": sync, **world.kind.capabilities}
        script.on("initialize", self._initialize)
        script.on("initialized", lambda params: self.initialized())
        script.on("textDocument/didOpen", lambda params: self._take(params["textDocument"], params["textDocument"]))
        script.on(
            "textDocument/didChange", lambda params: self._take(params["textDocument"], params["contentChanges"][0])
        )
        script.on("textDocument/didClose", lambda params: self._close(params["textDocument"]))
        script.on("textDocument/didSave", lambda params: self.saved())
        script.on("workspace/didChangeWatchedFiles", lambda params: self._watched(params["changes"]))

    @property
    def texts(self) -> dict[AbsPath, str]:
        """All that it can see: open documents, sources, and its inputs as they were at its start."""
        if not self.reads_again:
            return {**self.read, **self.open}
        inputs = {path: self.read.get(path, "") for path in self.world.inputs}
        return {**self.world.disk, **self.open, **inputs}

    def truth(self, path: AbsPath) -> tuple[str, ...]:
        return truth(self.texts, path)

    def initialized(self) -> None:
        """Called when the client is ready."""

    def changed(self, path: AbsPath) -> None:
        """Called after each new text."""

    def saved(self) -> None:
        """Called after each save."""

    def dependents(self, path: AbsPath) -> list[AbsPath]:
        return [other for other in self.open if imports(other, path)]

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        self.world.later(seconds, action)

    def asked(self) -> RequestId:
        """The id of the request being handled."""
        identifier = self.script.received[-1].id
        assert identifier is not None
        return identifier

    def refuse(self, identifier: RequestId, code: int) -> None:
        self.script.send(self.script.peer.fail(identifier, ResponseError(code, "not now")))

    def publish(self, path: AbsPath, messages: Iterable[str], version: int | None = None) -> None:
        self.script.publish(uri_of(path), list(messages), version)

    def progress(self, token: str, kind: str) -> None:
        self.script.notify("$/progress", {"token": token, "value": {"kind": kind, "title": "working"}})

    def _initialize(self, params: Any) -> object:
        result = {"capabilities": self.script.capabilities}
        if self.whims.pick(3) != 2:
            return result
        # Whoever asks meanwhile waits for the same start, and goes on at the same moment.
        identifier = self.asked()
        self.later(self.whims.delay(1.5), lambda: self.script.reply(identifier, result))
        return SILENCE

    def _take(self, document: Any, content: Any) -> None:
        path = path_of(document["uri"])
        assert path is not None
        self.open[path] = content["text"]
        self.versions[path] = document["version"]
        self.world.changed()
        self.changed(path)

    def _watched(self, changes: Any) -> None:
        paths = [path for path in (path_of(change["uri"]) for change in changes) if path is not None]
        for path in paths:
            self._read(path)
        self.world.changed()
        for path in paths:
            if path not in self.open:
                self.changed(path)

    def _close(self, document: Any) -> None:
        path = path_of(document["uri"])
        assert path is not None
        del self.open[path]
        self._read(path)
        self.world.changed()

    def _read(self, path: AbsPath) -> None:
        if path not in self.world.inputs:
            self.read[path] = self.world.disk.get(path, "")
