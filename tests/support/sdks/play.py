"""Plays an agent of a Python SDK on a fake model: breaks a file, wants to stop, mends it, stops.

    python play.py SDK SNIPPET PATHS    (in the environment of the SDK, in a workspace with `a.py`)

The snippet is the block of `docs/guide/sdks.md`. Prints as JSON what the model has read before each of its answers.
"""

# The SDKs are not in the environment that is checked.
# pyright: basic, reportMissingImports=false

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

BROKEN = 'def f() -> int:\n    return "x"\n'
MENDED = BROKEN.replace('"x"', "1")
EDITS = [BROKEN, None, MENDED, None]
"""What each answer of the model writes; None: it says that it is done."""

read: list[str] = []


def heard(messages: object) -> str | None:
    """Note what the model reads, and say what it writes next."""
    read.append(str(messages))
    return EDITS[len(read) - 1]


def fill(snippet: str, **names: Any) -> Mapping[str, Any]:
    scope = {"Path": Path, **names}
    exec(snippet, scope)
    return scope


async def pydantic_ai(snippet: str, workspace: Any) -> None:
    from pydantic_ai import Agent, ModelRetry
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def model(messages: Any, _info: Any) -> ModelResponse:
        text = heard(messages)
        call = TextPart("Done.") if text is None else ToolCallPart("edit_file", {"path": "a.py", "text": text})
        return ModelResponse(parts=[call])

    agent = Agent(FunctionModel(model))
    fill(snippet, agent=agent, workspace=workspace, ModelRetry=ModelRetry)
    await agent.run("Write a.py.")


async def openai_agents(snippet: str, workspace: Any) -> None:
    from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    class Fake(Model):
        async def get_response(self, *_more: Any, **named: Any) -> ModelResponse:
            text = heard(named["input"])
            said = ResponseOutputText(text="Done.", type="output_text", annotations=[])
            output: Any = (
                ResponseOutputMessage(id="m", content=[said], role="assistant", status="completed", type="message")
                if text is None
                else ResponseFunctionToolCall(
                    call_id=f"c{len(read)}",
                    name="edit_file",
                    arguments=json.dumps({"path": "a.py", "text": text}),
                    type="function_call",
                )
            )
            return ModelResponse(output=[output], usage=Usage(), response_id=None)

        def stream_response(self, *_more: Any, **_named: Any) -> Any:
            raise NotImplementedError

    set_tracing_disabled(disabled=True)
    scope = fill(snippet, workspace=workspace, Agent=Agent, Runner=Runner, function_tool=function_tool)
    await scope["run"](Agent(name="a", model=Fake(), tools=[scope["edit_file"]]), "Write a.py.")


async def deepagents(snippet: str, workspace: Any) -> None:
    from deepagents import create_deep_agent
    from deepagents.backends import FilesystemBackend
    from langchain.agents.middleware import AgentMiddleware, hook_config
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Fake(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "fake"

        def bind_tools(self, *_more: Any, **_named: Any) -> Any:
            return self

        def _generate(self, messages: Any, *_more: Any, **_named: Any) -> ChatResult:
            text = heard(messages)
            name, given = ("write_file", {"content": text}) if len(read) == 1 else ("edit_file", {})
            if len(read) == 3:
                given = {"old_string": '"x"', "new_string": "1"}
            call = {"name": name, "args": {"file_path": str(Path("a.py").resolve()), **given}, "id": f"c{len(read)}"}
            message = AIMessage("Done.") if text is None else AIMessage("", tool_calls=[call])
            return ChatResult(generations=[ChatGeneration(message=message)])

    names = {"AgentMiddleware": AgentMiddleware, "hook_config": hook_config, "HumanMessage": HumanMessage}
    scope = fill(snippet, workspace=workspace, **names)
    Path("a.py").unlink()
    agent = create_deep_agent(model=Fake(), backend=FilesystemBackend(), middleware=[scope["Pilotfish"]()])
    await agent.ainvoke({"messages": [HumanMessage("Write a.py.")]})


async def claude_agent_sdk(snippet: str, _workspace: Any) -> None:
    """Its model is the one that ANTHROPIC_BASE_URL names, which keeps what it has read."""
    import os
    from dataclasses import replace

    from claude_agent_sdk import query

    options = replace(
        fill(snippet)["options"],
        cli_path=os.environ["CLAUDE"],
        permission_mode="bypassPermissions",
        setting_sources=[],
        cwd=str(Path.cwd()),
    )
    async for _message in query(prompt="Write a.py.", options=options):
        pass


PLAYS: Mapping[str, Callable[[str, Any], Any]] = {
    "pydantic-ai": pydantic_ai,
    "openai-agents": openai_agents,
    "deepagents": deepagents,
    "claude-agent-sdk": claude_agent_sdk,
}


async def main(sdk: str, snippet: str) -> None:
    import pilotfish

    async with pilotfish.open(".") as workspace:
        # What the file says before is known, as it is of a file that an agent has read.
        await workspace.after_edit("a.py")
        await PLAYS[sdk](Path(snippet).read_text(), workspace)
    print(json.dumps(read))


if __name__ == "__main__":
    sys.path += sys.argv[3].split(":")
    asyncio.run(main(*sys.argv[1:3]))
