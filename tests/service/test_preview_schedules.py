"""Previews and edits in any order, at any pace, some given up: each answer is about its own text, and the disk's stays.

Virtual time; the server takes its time with every answer, and answers about the text that it had when it was asked.
"""

from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import pytest
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.client.pulse import Pulse
from pilotfish.model import AbsPath
from pilotfish.service.diagnostics.check import Check
from pilotfish.service.diagnostics.ledger import FileToSend
from pilotfish.service.diagnostics.proposals import propose_texts
from pilotfish.service.texts import Texts
from pilotfish.system.ports import FileText, Identity
from support.servers.script import SILENCE
from support.servers.sessions import FILE
from support.services.checks import Bench, bench, messages

DELAYS = st.sampled_from([0.0, 0.01, 0.1, 0.5, 2.0])


@dataclass(frozen=True)
class Act:
    """Begin `after` so many seconds; with `patience`, give up after so many more."""

    kind: str
    after: float
    patience: float | None = None
    path: AbsPath = FILE


OTHER = AbsPath(f"{FILE}.other.py")

ACTS = st.builds(
    Act,
    st.sampled_from(["preview", "edit"]),
    DELAYS,
    st.one_of(st.none(), st.sampled_from([0.005, 0.05, 0.3, 1.0])),
    st.sampled_from([FILE, OTHER]),
)


@dataclass
class World:
    bench: Bench
    paces: list[float]
    disk: dict[AbsPath, str] = field(default_factory=lambda: {FILE: "bad first\n", OTHER: "bad other\n"})
    at_server: dict[str, str] = field(default_factory=dict[str, str])
    sent: list[str] = field(default_factory=list[str])
    written: dict[AbsPath, list[str]] = field(default_factory=dict[AbsPath, list[str]])
    wrong: list[str] = field(default_factory=list[str])
    asked: Pulse = field(default_factory=Pulse)

    async def current(self, path: AbsPath) -> FileText:
        return FileText(path, self.disk[path], bom=False, identity=Identity(0, 0, 0, 0), content=b"")

    def take(self, params: Any) -> None:
        document = params["textDocument"]
        text = document["text"] if "text" in document else params["contentChanges"][-1]["text"]
        self.at_server[document["uri"]] = text
        self.sent.append(text.strip())

    def close(self, params: Any) -> None:
        self.at_server.pop(params["textDocument"]["uri"], None)

    def save(self, params: Any) -> None:
        text = self.at_server.get(params["textDocument"]["uri"], "")
        if "proposed" in text:
            self.wrong.append(f"{text!r} was said to be saved")

    async def answer(self) -> None:
        """Answer every pull in its turn, after a while, about the text of when it came."""
        asked: list[tuple[Any, str]] = []

        def ask(params: Any) -> Any:
            uri = params["textDocument"]["uri"]
            asked.append((self.bench.server.received[-1].id, self.at_server[uri].strip()))
            others = [text for other, text in self.at_server.items() if other != uri and "proposed" in text]
            self.wrong.extend(f"{uri} was asked about beside {text!r}" for text in others)
            self.asked.notify()
            return SILENCE

        self.bench.server.on("textDocument/diagnostic", ask)
        for count in range(1, 1_000):
            while len(asked) < count:
                await self.asked.wait()
            await anyio.sleep(self.paces[count % len(self.paces)])
            identifier, text = asked[count - 1]
            place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
            items = [{"range": place, "severity": 1, "message": text}]
            self.bench.server.reply(identifier, {"kind": "full", "items": items})

    async def act(self, number: int, act: Act) -> None:
        await anyio.sleep(act.after)
        with anyio.move_on_after(float("inf") if act.patience is None else act.patience):
            await (self.preview(number, act.path) if act.kind == "preview" else self.edit(number, act.path))

    async def preview(self, number: int, path: AbsPath = FILE) -> None:
        text = f"bad proposed {number}\n"
        session, ledger = self.bench.session, self.bench.ledger
        async with propose_texts(session, ledger, cast("Texts", self), [path]) as made:
            made.put(path, "python", text)
            file = FileToSend(path, "python", text, saved=False)
            outcome = await Check(session, ledger, self.bench.freshness, file).run(anyio.current_time() + 60)
        self.judge(text, messages(outcome))

    async def edit(self, number: int, path: AbsPath = FILE) -> None:
        text = self.disk[path] = f"bad written {number}\n"
        written = self.written.setdefault(path, [])
        written.append(text)
        order = len(written)
        outcome = await self.bench.check(text, path, seconds=60, order=order)
        # One that was written later is as good an answer.
        self.judge(text, messages(outcome), *written[order:])

    def judge(self, text: str, found: list[str] | None, *as_good: str) -> None:
        accepted = [[one.strip()] for one in (text, *as_good)]
        if found not in accepted:
            self.wrong.append(f"{text!r} was answered with {found}")


async def play(acts: list[Act], paces: list[float]) -> World:
    async with bench(diagnosticProvider={"interFileDependencies": False, "workspaceDiagnostics": False}) as made:
        world = World(made, paces)
        made.server.on("textDocument/didOpen", world.take)
        made.server.on("textDocument/didChange", world.take)
        made.server.on("textDocument/didClose", world.close)
        made.server.on("textDocument/didSave", world.save)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(world.answer)
            async with anyio.create_task_group() as acting:
                for number, act in enumerate(acts):
                    acting.start_soon(world.act, number, act)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        assert world.wrong == []
        assert not [text for text in world.at_server.values() if "proposed" in text]
        return world


def played(acts: list[Act], paces: list[float]) -> World:
    clock = trio.testing.MockClock(autojump_threshold=0)
    return anyio.run(play, acts, paces, backend="trio", backend_options={"clock": clock})


@pytest.mark.proves("DIAG-9", "DIAG-10")
@given(st.lists(ACTS, min_size=1, max_size=6), st.lists(DELAYS, min_size=1, max_size=4))
@settings(max_examples=300)
def test_every_answer_is_about_its_own_text(acts: list[Act], paces: list[float]) -> None:
    played(acts, paces)


@pytest.mark.proves("DIAG-9")
def test_the_server_goes_from_one_preview_straight_to_the_next_that_waits() -> None:
    world = played([Act("preview", 0.0), Act("preview", 0.1), Act("preview", 0.2)], [0.5])
    # Which of those that wait is next is nobody's promise.
    assert sorted(world.sent[:3]) == ["bad proposed 0", "bad proposed 1", "bad proposed 2"]
    assert world.sent[3:] == ["bad first"]


@pytest.mark.proves("DIAG-9")
def test_an_edit_that_waits_has_the_disk_before_the_next_preview() -> None:
    world = played([Act("preview", 0.0), Act("preview", 0.1), Act("edit", 0.2)], [0.5])
    assert world.sent[:2] == ["bad proposed 0", "bad written 2"]


@pytest.mark.proves("DIAG-9")
def test_a_preview_that_is_given_up_while_it_waits_leaves_nothing_behind() -> None:
    world = played([Act("preview", 0.0), Act("preview", 0.1, patience=0.2)], [0.5])
    assert world.sent == ["bad proposed 0", "bad first"]


@pytest.mark.proves("DIAG-9")
def test_a_text_that_cannot_be_put_back_holds_nobody_up() -> None:
    async def failing() -> None:
        async with bench(diagnosticProvider={"interFileDependencies": False, "workspaceDiagnostics": False}) as made:
            world = World(made, [0.0], disk={})
            with pytest.raises(KeyError):
                async with propose_texts(made.session, made.ledger, cast("Texts", world), [FILE]) as texts:
                    texts.put(FILE, "python", "bad proposed\n")
            with anyio.fail_after(1):
                async with made.ledger.shared():
                    assert not made.session.documents.is_open(FILE)

    clock = trio.testing.MockClock(autojump_threshold=0)
    anyio.run(failing, backend="trio", backend_options={"clock": clock})
