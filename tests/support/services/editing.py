"""The service on one server that has texts in mind (`support.servers.editing`)."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from pilotfish.api.answers import Action, Answer, Changes, Feedback
from pilotfish.api.questions import Operation, Question
from pilotfish.errors import Code
from support.servers.editing import EditingServer
from support.servers.scripted import ScriptedServer
from support.services.scripted import ScriptedService, scripted_service


class EditingService(ScriptedService):
    mind: EditingServer

    @property
    def server(self) -> ScriptedServer:
        """The one that was started last."""
        return self.servers[-1]

    async def ask(self, operation: Operation, **fields: Any) -> Answer[Any]:
        return await self.service.ask(Question(operation=operation, **fields), self.session())

    async def rename(self, line: int = 1, character: int = 1, new_name: str = "new", **fields: Any) -> Answer[Any]:
        place = {"file_path": "a.fake", "line": line, "character": character, **fields}
        return await self.ask(Operation.RENAME, new_name=new_name, **place)

    async def move(self, old: str, new: str, *, apply: bool = True) -> Answer[Any]:
        return await self.ask(Operation.RENAME_FILE, file_path=old, new_path=new, apply=apply)

    async def act(self, action: str | None, *, apply: bool = False) -> Answer[Any]:
        return await self.ask(Operation.CODE_ACTIONS, file_path="a.fake", line=1, action=action, apply=apply)

    async def preview(self, text: str, name: str = "a.fake") -> Answer[Any]:
        return await self.ask(Operation.DIAGNOSTICS, file_path=name, text=text)

    async def check(self, *names: str, texts: Mapping[str, str] | None = None) -> Answer[Any]:
        return await self.service.check(self.session(), names, texts=texts)

    def files(self) -> dict[str, str]:
        """What is on disk."""
        found = (path for path in self.root.rglob("*") if path.is_file())
        return {str(path.relative_to(self.root)): path.read_bytes().decode() for path in found}

    def heard(self, method: str) -> list[Any]:
        """The parameters of every message of a method that the server has got."""
        return [message.params for message in self.server.received if message.method == method]

    def texts_of(self, name: str) -> list[str]:
        """Every text that the server was shown of a file, in order."""
        found: list[str] = []
        for message in self.server.received:
            params: dict[str, Any] = message.params or {}
            document = params.get("textDocument", {})
            if document.get("uri") == self.uri(name):
                if message.method == "textDocument/didOpen":
                    found.append(document["text"])
                elif message.method == "textDocument/didChange":
                    found.append(params["contentChanges"][-1]["text"])
        return found


@asynccontextmanager
async def editing_service(
    folder: Path, files: dict[str, str], config: dict[str, Any] | None = None, **mind: Any
) -> AsyncGenerator[EditingService]:
    """A workspace with these files, all of which the server has read."""
    made = EditingServer(folder.resolve() / "workspace", remembered=dict(files), **mind)
    async with scripted_service(folder, made, config=config) as scripted:
        service = EditingService(**vars(scripted))
        service.mind = made
        for name, text in files.items():
            (service.root / name).parent.mkdir(parents=True, exist_ok=True)
            (service.root / name).write_bytes(text.encode())
        yield service


def changes(answer: Answer[Any]) -> Changes:
    """What was changed or would be, by whatever operation."""
    data = action(answer).changes if isinstance(answer.data, tuple) else answer.data
    assert isinstance(data, Changes), answer
    return data


def action(answer: Answer[Any]) -> Action:
    (found,) = cast("tuple[Action, ...]", answer.data)
    return found


def feedback(answer: Answer[Any]) -> Feedback:
    found = changes(answer).feedback
    assert found is not None
    return found


def refusal(answer: Answer[Any]) -> tuple[Code, str]:
    """Why nothing was done."""
    assert not answer.ok
    assert answer.data is None
    return answer.errors[0].code, answer.errors[0].message
