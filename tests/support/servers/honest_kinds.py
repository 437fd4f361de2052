"""The kinds of honest servers: every way of telling that we know, and what each promises."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
from msgspec.structs import replace

from pilotfish.model import AbsPath
from pilotfish.protocol.rpc import ErrorCode
from pilotfish.protocol.uris import path_of, uri_of
from pilotfish.servers.spec import Freshness, OnDemand, Phases, PullSupport
from support.servers.honest import TICK, Honest, Kind, Surroundings, stem, truth
from support.servers.script import SILENCE
from support.servers.scripted import ScriptedServer


def items(messages: Iterable[str]) -> list[dict[str, Any]]:
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
    return [{"range": place, "severity": 1, "message": message} for message in messages]


class Pulled(Honest):
    """Answers `textDocument/diagnostic` with what is true at some moment between the question and the answer.

    While it loads it answers at once and with nothing, and says that it loads before. An answer that may be old comes
    after `workspace/diagnostic/refresh`.
    """

    loading = False
    parts: tuple[str | None, ...] = (None,)
    """The identifiers of its providers; two share the errors between them."""

    def __init__(self, world: Surroundings, script: ScriptedServer) -> None:
        super().__init__(world, script)
        self.before: dict[AbsPath, str] = {}
        script.on("textDocument/diagnostic", self.pull)

    def initialized(self) -> None:
        if self.whims.pick(3) == 2:
            self.loading = True
            self.progress("loading", "begin")
            self.later(self.whims.delay(2.4), self.loaded)

    def loaded(self) -> None:
        self.loading = False
        self.progress("loading", "end")

    def _take(self, document: Any, content: Any) -> None:
        self.before = self.texts
        super()._take(document, content)

    def pull(self, params: Any) -> object:
        identifier, path = self.asked(), path_of(params["textDocument"]["uri"])
        assert path is not None
        previous, part = params.get("previousResultId"), params.get("identifier")
        if self.loading:
            return {"kind": "full", "items": []}
        texts, version = self.texts, self.versions.get(path)
        manner = self.whims.pick(8)

        def answer() -> None:
            if self.loading:
                self.script.reply(identifier, {"kind": "full", "items": []})
            elif manner == 1 and self.versions.get(path) != version:
                self.refuse(identifier, ErrorCode.CONTENT_MODIFIED)
            elif manner == 2:
                self.refuse(identifier, ErrorCode.SERVER_CANCELLED)
            elif manner == 3 and self.before:
                # Computed before the latest change, and known to be old.
                self.script.ask("workspace/diagnostic/refresh")
                self.script.reply(identifier, self.report(self.before, path, part, previous))
            else:
                now = texts if manner == 4 else self.texts
                self.script.reply(identifier, self.report(now, path, part, previous, related=manner == 5))

        self.later(self.whims.delay(6.0), answer)
        return SILENCE

    def report(
        self,
        texts: Mapping[AbsPath, str],
        path: AbsPath,
        part: str | None,
        previous: str | None,
        *,
        related: bool = False,
    ) -> dict[str, Any]:
        found = self.share(truth(texts, path), part)
        result_id = f"{stem(path)} {part} {found}"
        if previous == result_id:
            return {"kind": "unchanged", "resultId": result_id}
        report: dict[str, Any] = {"kind": "full", "resultId": result_id, "items": items(found)}
        if related:
            others = {other: self.share(truth(texts, other), part) for other in self.dependents(path)}
            report["relatedDocuments"] = {
                uri_of(other): {"kind": "full", "resultId": f"{stem(other)} {part} {said}", "items": items(said)}
                for other, said in others.items()
            }
        return report

    def share(self, messages: Iterable[str], part: str | None) -> tuple[str, ...]:
        return tuple(message for message in messages if part is None or (part == "own") == ("imports" not in message))


class Ailing(Pulled):
    """Says when it cannot work, and while it cannot it answers with nothing.

    It promises: its words come before the answers that they are about.
    """

    def changed(self, path: AbsPath) -> None:
        if self.whims.pick(4) == 3:
            self.loading = True
            self.status("error")
            self.later(0.001 + self.whims.delay(2.4), self.well)

    def initialized(self) -> None:
        self.status("ok")

    def well(self) -> None:
        self.loading = False
        self.status("ok")

    def status(self, health: str) -> None:
        status = {"health": health, "quiescent": True, "message": "the manifest is broken"}
        self.script.notify("experimental/serverStatus", status)


class Compiling(Pulled):
    """Finds half of the errors itself, when it is asked, and publishes the others after each save, when it compiles.

    A save while it compiles makes it begin anew. It promises: what it compiles with is what it has at the save or
    later, saves that come together make it begin once, and all is published before the question that follows the end
    is answered.
    """

    works = 0

    def initialized(self) -> None:
        self.saved()

    def saved(self) -> None:
        if self.works:
            self.progress("compile", "end")
        self.works += 1
        work = self.works
        self.later(0.001 + self.whims.delay(0.8), lambda: self.begin(work))

    def begin(self, work: int) -> None:
        if work == self.works:
            self.progress("compile", "begin")
            self.later(TICK + self.whims.delay(1.5), lambda: self.finish(work))

    def finish(self, work: int) -> None:
        if work == self.works:
            self.works = 0
            self.progress("compile", "end")
            for path in self.open:
                self.publish(path, self.share(self.truth(path), "own"), self.versions[path])

    def share(self, messages: Iterable[str], part: str | None) -> tuple[str, ...]:
        return super().share(messages, part or "imports")


class Registering(Pulled):
    """Offers the pull some time after its start, by two providers at once."""

    def initialized(self) -> None:
        super().initialized()
        self.later(self.whims.delay(2.4), self.register)

    def register(self) -> None:
        registrations = [
            {"id": part, "method": "textDocument/diagnostic", "registerOptions": {"identifier": part}}
            for part in ("own", "imports")
        ]
        self.script.ask("client/registerCapability", {"registrations": registrations})


class Quiescing(Pulled):
    """Says when it is quiescent; before that, and whenever it is not, its answers are empty and mean nothing."""

    def initialized(self) -> None:
        self.busy()

    def changed(self, path: AbsPath) -> None:
        if not self.loading and self.whims.pick(4) == 3:
            self.later(self.whims.delay(0.4), self.busy)

    def busy(self) -> None:
        self.loading = True
        self.script.notify("experimental/serverStatus", {"health": "ok", "quiescent": False})
        self.later(0.001 + self.whims.delay(1.5), self.quiet)

    def quiet(self) -> None:
        self.loading = False
        self.script.notify("experimental/serverStatus", {"health": "ok", "quiescent": True})


@dataclass(frozen=True)
class _Told:
    """A publish on its way or gone."""

    at: float
    version: int
    computed: int


class Versioned(Honest):
    """Publishes for every change with the version that it computed from, as late as it likes; old ones even after new.

    It promises: of one version the last publish is the last computed; what a change makes it say again (of the files
    that depend on it, or the same twice) is said within `ECHO`.
    """

    ECHO = 2.4

    def __init__(self, world: Surroundings, script: ScriptedServer) -> None:
        super().__init__(world, script)
        self.told: dict[tuple[AbsPath, int], _Told] = {}
        self.said: dict[AbsPath, tuple[tuple[str, ...], int]] = {}
        self.computed = 0

    def changed(self, path: AbsPath) -> None:
        self.later(self.whims.delay(1.5), lambda: self.tell(path, 6.0))
        for other in self.dependents(path):
            wait = self.whims.delay(self.ECHO / 2)
            self.later(wait, lambda other=other: self.tell(other, self.ECHO / 2))

    def tell(self, path: AbsPath, most: float) -> None:
        """Compute now, publish later."""
        if path not in self.open:
            return
        messages, version = self.truth(path), self.versions[path]
        self.computed += 1
        before = self.told.get((path, version))
        at = max(anyio.current_time() + self.whims.delay(most), before.at if before else 0.0)
        told = self.told[path, version] = _Told(at, version, self.computed)
        self.later(at - anyio.current_time(), lambda: self.say(path, messages, told))
        if self.whims.pick(4) == 3:
            again = at + self.whims.delay(self.ECHO / 2) - anyio.current_time()
            self.later(again, lambda: self.say(path, messages, told))

    def say(self, path: AbsPath, messages: tuple[str, ...], told: _Told) -> None:
        last = self.told[path, told.version]
        if last is told or last.at > anyio.current_time() + TICK:
            self.publish(path, messages, told.version)
            before, self.said[path] = self.said.get(path), (messages, told.version)
            if before is not None and before[1] < told.version and self.whims.pick(4) == 3:
                # An older one was under way, too, and was overtaken.
                self.publish(path, *before)


class Twice(Honest):
    """Publishes with versions: what it finds at once, and then all of it for the same version.

    It promises, and nothing could be known if it did not: all of it comes within `GAP` of the first.
    """

    GAP = 0.12

    def changed(self, path: AbsPath) -> None:
        first = self.whims.delay(0.8)
        self.later(first, lambda: self.tell(path, self.versions.get(path)))
        for other in self.dependents(path):
            self.later(first, lambda other=other: self.tell(other, self.versions.get(other)))

    def tell(self, path: AbsPath, version: int | None) -> None:
        if path in self.open:
            self.publish(path, self.truth(path)[1:], version)
            self.later(self.whims.delay(self.GAP), lambda: self.tell_all(path, version))

    def tell_all(self, path: AbsPath, version: int | None) -> None:
        if path in self.open and self.versions[path] == version:
            self.publish(path, self.truth(path), version)


class Phased(Honest):
    """Publishes with versions, in phases: the first may lack anything, the last is whole.

    It promises: work begins, and is said to begin, before anything is published for a change, and ends after.
    """

    works = 0

    def changed(self, path: AbsPath) -> None:
        self.works += 1
        token = f"work {self.works}"
        self.progress(token, "begin")
        first = self.whims.delay(0.8)
        whole = first + TICK + self.whims.delay(0.8)
        self.later(first, lambda: self.tell(path, whole=False))
        self.later(whole, lambda: self.finish(path))
        self.later(whole + TICK + self.whims.delay(0.4), lambda: self.progress(token, "end"))

    def finish(self, path: AbsPath) -> None:
        for other in (path, *self.dependents(path)):
            self.tell(other, whole=True)

    def tell(self, path: AbsPath, *, whole: bool) -> None:
        if path in self.open:
            self.publish(path, self.truth(path) if whole else self.truth(path)[1:], self.versions[path])


class Unversioned(Honest):
    """Publishes without versions after its own pause.

    It promises, and nothing could be known if it did not: what it says, it says within `SLOWEST` of its pause's end.
    """

    PAUSE = 0.0
    SLOWEST = 0.12

    def __init__(self, world: Surroundings, script: ScriptedServer) -> None:
        super().__init__(world, script)
        self.timers: dict[AbsPath, int] = {}
        self.free_at = 0.0

    def changed(self, path: AbsPath) -> None:
        self.timers[path] = timer = self.timers.get(path, 0) + 1
        self.later(self.PAUSE, lambda: self.check(path) if self.timers[path] == timer else None)

    def check(self, path: AbsPath) -> None:
        for other in (path, *self.dependents(path)):
            if other in self.open:
                self.tell(other)

    def tell(self, path: AbsPath) -> None:
        messages, now = self.truth(path), anyio.current_time()
        self.free_at = max(self.free_at, now) + TICK
        self.free_at = max(self.free_at, now + self.whims.delay(self.SLOWEST))
        self.later(self.free_at - now, lambda: self.publish(path, messages))
        if self.whims.pick(4) == 3:
            self.later(self.free_at - now, lambda: self.publish(path, messages))


class Debounced(Unversioned):
    PAUSE = 0.2
    SLOWEST = 0.06


class Indexing(Debounced):
    """Indexes at its start and when it is told of a file that is not open, and publishes empty lists meanwhile.

    It promises: each time it tells of that as work, before anything that it publishes because of the same file, and
    when that has ended it publishes for every open file. Of a file that is opened at another time it speaks without its
    pause. A file that is closed it clears.
    """

    works = 0
    indexing = True
    opening: AbsPath | None = None

    def initialized(self) -> None:
        self.later(self.whims.delay(0.4), self.index)

    def index(self) -> None:
        self.works += 1
        token, self.indexing = f"index {self.works}", True
        self.progress(token, "begin")
        self.later(TICK + self.whims.delay(2.4), lambda: self.end(token))

    def end(self, token: str) -> None:
        self.indexing = token != f"index {self.works}"
        self.progress(token, "end")
        if not self.indexing:
            for path in self.open:
                self.later(TICK, lambda path=path: self.tell(path))

    def tell(self, path: AbsPath) -> None:
        if self.indexing:
            self.publish(path, ())
        elif path in self.open:
            super().tell(path)

    def changed(self, path: AbsPath) -> None:
        if self.opening == path:
            self.tell(path)
        elif path in self.open:
            super().changed(path)
        elif not self.indexing:
            self.index()

    def _take(self, document: Any, content: Any) -> None:
        path = path_of(document["uri"])
        self.opening = None if path in self.open else path
        super()._take(document, content)

    def _close(self, document: Any) -> None:
        super()._close(document)
        self.script.publish(document["uri"], [])


class Looping(Honest):
    """Looks now and then at all that has changed, and tells of each round as work: as RobotCode does.

    It promises: in a round it publishes of each such file what it has found by then, the last time all of it. A change
    ends the round, and what was not looked at to its end is looked at in the next one. The list of a file that is
    opened it clears at once, under the number of its text.
    """

    rounds = 0
    begun = False

    def __init__(self, world: Surroundings, script: ScriptedServer) -> None:
        super().__init__(world, script)
        self.due = set[AbsPath]()

    def changed(self, path: AbsPath) -> None:
        self.end(self.rounds)
        self.rounds += 1
        self.due |= {path, *self.dependents(path)}
        number = self.rounds
        self.later(TICK + self.whims.delay(0.8), lambda: self.begin(number))

    def begin(self, number: int) -> None:
        if number == self.rounds:
            self.begun = True
            self.progress(f"round {number}", "begin")
            self.later(TICK + self.whims.delay(0.8), lambda: self.look(number, whole=False))

    def look(self, number: int, *, whole: bool) -> None:
        if number != self.rounds:
            return
        for path in self.due.intersection(self.open):
            self.publish(path, self.truth(path) if whole else self.truth(path)[1:], self.versions[path])
        if whole:
            self.due.clear()
            self.later(TICK + self.whims.delay(0.4), lambda: self.end(number))
        else:
            self.later(TICK + self.whims.delay(0.8), lambda: self.look(number, whole=True))

    def end(self, number: int) -> None:
        if self.begun and number == self.rounds:
            self.begun = False
            self.progress(f"round {self.rounds}", "end")

    def _take(self, document: Any, content: Any) -> None:
        path = path_of(document["uri"])
        assert path is not None
        is_new = path not in self.open
        super()._take(document, content)
        if is_new:
            self.publish(path, (), self.versions[path])


class Silent(Honest):
    """Publishes only what differs from what it published last, in order, and answers its barrier in that order.

    What a change does to other files it finds out later, and the barrier does not wait for it.
    """

    versioned = False

    def __init__(self, world: Surroundings, script: ScriptedServer) -> None:
        super().__init__(world, script)
        self.said: dict[AbsPath, tuple[str, ...]] = {}
        self.free_at = 0.0
        script.on("textDocument/documentSymbol", self.barrier)

    def changed(self, path: AbsPath) -> None:
        self.queue(lambda: self.tell(path))
        for other in self.dependents(path):
            self.later(self.whims.delay(2.4), lambda other=other: self.tell(other))

    def barrier(self, params: Any) -> object:
        identifier = self.asked()
        self.queue(lambda: self.script.reply(identifier, []))
        return SILENCE

    def queue(self, action: Callable[[], None]) -> None:
        now = anyio.current_time()
        self.free_at = max(now, self.free_at) + TICK + self.whims.delay(1.5)
        self.later(self.free_at - now, action)

    def tell(self, path: AbsPath) -> None:
        if path in self.open and self.truth(path) != self.said.get(path, ()):
            self.said[path] = self.truth(path)
            self.publish(path, self.truth(path), self.versions[path] if self.versioned else None)


class SilentVersioned(Silent):
    versioned = True


class Commanded(Honest):
    """Answers commands, one for each half of the errors, with what is true between the question and the answer.

    What it publishes is late, without versions, and in parts.
    """

    def __init__(self, world: Surroundings, script: ScriptedServer) -> None:
        super().__init__(world, script)
        script.on("workspace/executeCommand", self.command)

    def changed(self, path: AbsPath) -> None:
        part, wait = self.truth(path)[:1], self.whims.delay(2.4)
        self.later(wait, lambda: self.publish(path, part))

    def command(self, params: Any) -> object:
        identifier = self.asked()
        request, arguments = params["arguments"]
        path = AbsPath(arguments["file"])
        early = self.truth(path) if self.whims.pick(2) else None

        def answer() -> None:
            messages = self.truth(path) if early is None else early
            found = [message for message in messages if (request == "syntactic") == ("one" in message)]
            place = {"line": 1, "offset": 1}
            body = [{"start": place, "end": {"line": 1, "offset": 2}, "text": message} for message in found]
            self.script.reply(identifier, {"success": True, "body": body})

        self.later(self.whims.delay(6.0), answer)
        return SILENCE


class Rereading(Commanded):
    """Does not heed what it is told of changes on disk: it reads again what a command names, and else much later."""

    def __init__(self, world: Surroundings, script: ScriptedServer) -> None:
        super().__init__(world, script)
        self.reads_again = False

    def command(self, params: Any) -> object:
        request, arguments = params["arguments"]
        if request == "all":
            self.reread({*self.world.disk, *self.read})
        elif request == "one":
            self.reread({AbsPath(arguments["file"])})
        else:
            return super().command(params)
        identifier = self.asked()
        self.later(self.whims.delay(6.0), lambda: self.script.reply(identifier, {"success": True}))
        return SILENCE

    def reread(self, paths: Iterable[AbsPath]) -> None:
        for path in paths:
            self._read(path)
        self.world.changed()

    def _watched(self, changes: Any) -> None:
        paths = {path for path in (path_of(change["uri"]) for change in changes) if path is not None}
        self.later(0.001 + self.whims.delay(2.4), lambda: self.reread(paths))


ON_DEMAND = OnDemand("check", ("syntactic", "semantic"), "tsserver")
REREADING = replace(ON_DEMAND, reread="one", reread_all="all")
BARRIER = "textDocument/documentSymbol"


class Parsing(Pulled):
    """Answers with what it has parsed last, and parses when it is asked for symbols."""

    def __init__(self, world: Surroundings, script: ScriptedServer) -> None:
        super().__init__(world, script)
        self.parsed: Mapping[AbsPath, str] = {}
        script.on(BARRIER, self.parse)

    def parse(self, _params: Any) -> object:
        self.parsed = dict(self.texts)
        return []

    def pull(self, params: Any) -> object:
        identifier, path = self.asked(), path_of(params["textDocument"]["uri"])
        assert path is not None
        parsed, part = self.parsed, params.get("identifier")

        def answer() -> None:
            self.script.reply(identifier, self.report(parsed, path, part, None))

        self.later(self.whims.delay(6.0), answer)
        return SILENCE


KINDS = (
    Kind("pull", Freshness(pull=PullSupport.STATIC), Pulled, {"diagnosticProvider": {}}, asked=True),
    Kind("pull registered late", Freshness(pull=PullSupport.DYNAMIC), Registering, asked=True),
    Kind("pull, quiescent", Freshness(pull=PullSupport.STATIC, phases=Phases.UNTIL_QUIESCENT), Quiescing,
         {"diagnosticProvider": {}}, asked=True),
    Kind("pull, parsing when asked", Freshness(pull=PullSupport.STATIC, ask_first=BARRIER), Parsing,
         {"diagnosticProvider": {}, "documentSymbolProvider": True}, asked=True),
    Kind("pull, ailing", Freshness(pull=PullSupport.STATIC), Ailing, {"diagnosticProvider": {}}, asked=True),
    Kind("pull, compiling after a save", Freshness(pull=PullSupport.STATIC, save_progress="compile"), Compiling,
         {"diagnosticProvider": {}}, asked=True),
    Kind("versioned", Freshness(pull=PullSupport.NONE, phases=Phases.ONE), Versioned),
    Kind("versioned, twice", Freshness(pull=PullSupport.NONE), Twice),
    Kind("versioned in phases", Freshness(pull=PullSupport.NONE, phases=Phases.UNTIL_PROGRESS_ENDS), Phased),
    Kind("unversioned", Freshness(pull=PullSupport.NONE), Unversioned),
    Kind("unversioned, paused", Freshness(pull=PullSupport.NONE, debounce_ms=200), Debounced),
    Kind("silent, barrier", Freshness(pull=PullSupport.NONE, barrier=BARRIER, publishes_unchanged=False), Silent,
         {"documentSymbolProvider": True}),
    Kind("silent, barrier, versioned", Freshness(pull=PullSupport.NONE, barrier=BARRIER, publishes_unchanged=False),
         SilentVersioned, {"documentSymbolProvider": True}),
    Kind("on demand", Freshness(pull=PullSupport.NONE, on_demand=ON_DEMAND), Commanded,
         {"executeCommandProvider": {"commands": ["check"]}}, asked=True),
    Kind("on demand, rereading", Freshness(pull=PullSupport.NONE, on_demand=REREADING), Rereading,
         {"executeCommandProvider": {"commands": ["check"]}}, asked=True),
)  # fmt: skip

MORE_KINDS = (
    Kind("unversioned, indexing", Freshness(pull=PullSupport.NONE, phases=Phases.AFTER_PROGRESS, debounce_ms=200,
         debounces_opens=False), Indexing),
    Kind("versioned, in rounds", Freshness(pull=PullSupport.NONE, phases=Phases.WITHIN_PROGRESS), Looping),
)  # fmt: skip
"""Not among those above, so that a number goes on to mean the schedule that it has meant."""
