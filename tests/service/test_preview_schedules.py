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
    patience: float | None


ACTS = st.builds(
    Act, st.sampled_from(["preview", "edit"]), DELAYS, st.one_of(st.none(), st.sampled_from([0.005, 0.05, 0.3, 1.0]))
)


@dataclass
class World:
    bench: Bench
    paces: list[float]
    disk: str = "bad first\n"
    at_server: str | None = None
    written: list[str] = field(default_factory=list[str])
    wrong: list[str] = field(default_factory=list[str])
    asked: Pulse = field(default_factory=Pulse)

    async def current(self, path: AbsPath) -> FileText:
        return FileText(path, self.disk, bom=False, identity=Identity(0, 0, 0, 0), content=b"")

    def take(self, params: Any) -> None:
        document = params["textDocument"]
        self.at_server = document["text"] if "text" in document else params["contentChanges"][-1]["text"]

    def save(self, params: Any) -> None:
        if self.at_server is not None and "proposed" in self.at_server:
            self.wrong.append(f"{self.at_server!r} was said to be saved")

    async def answer(self) -> None:
        """Answer every pull in its turn, after a while, about the text of when it came."""
        asked: list[tuple[Any, str]] = []

        def ask(params: Any) -> Any:
            asked.append((self.bench.server.received[-1].id, (self.at_server or "").strip()))
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
            await (self.preview(number) if act.kind == "preview" else self.edit(number))

    async def preview(self, number: int) -> None:
        text = f"bad proposed {number}\n"
        session, ledger = self.bench.session, self.bench.ledger
        async with propose_texts(session, ledger, cast("Texts", self)) as made:
            made.put(FILE, "python", text)
            file = FileToSend(FILE, "python", text, saved=False)
            outcome = await Check(session, ledger, self.bench.freshness, file).run(anyio.current_time() + 60)
        self.judge(text, messages(outcome))

    async def edit(self, number: int) -> None:
        text = self.disk = f"bad written {number}\n"
        self.written.append(text)
        order = len(self.written)
        outcome = await self.bench.check(text, seconds=60, order=order)
        # One that was written later is as good an answer.
        self.judge(text, messages(outcome), *self.written[order:])

    def judge(self, text: str, found: list[str] | None, *as_good: str) -> None:
        accepted = [[one.strip()] for one in (text, *as_good)]
        if found not in accepted:
            self.wrong.append(f"{text!r} was answered with {found}")


async def play(acts: list[Act], paces: list[float]) -> None:
    async with bench(diagnosticProvider={"interFileDependencies": False, "workspaceDiagnostics": False}) as made:
        world = World(made, paces)
        made.server.on("textDocument/didOpen", world.take)
        made.server.on("textDocument/didChange", world.take)
        made.server.on("textDocument/didSave", world.save)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(world.answer)
            async with anyio.create_task_group() as acting:
                for number, act in enumerate(acts):
                    acting.start_soon(world.act, number, act)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        assert world.wrong == []
        if any(act.kind == "preview" for act in acts) and world.at_server is not None:
            assert "proposed" not in world.at_server


@pytest.mark.proves("DIAG-9", "DIAG-10")
@given(st.lists(ACTS, min_size=1, max_size=6), st.lists(DELAYS, min_size=1, max_size=4))
@settings(max_examples=150)
def test_every_answer_is_about_its_own_text(acts: list[Act], paces: list[float]) -> None:
    clock = trio.testing.MockClock(autojump_threshold=0)
    anyio.run(play, acts, paces, backend="trio", backend_options={"clock": clock})
