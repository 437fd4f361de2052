"""What a person can ask for by name in a host that shows MCP prompts: see `prompts.toml`.

A prompt costs a model nothing until it is chosen: hosts show the list to the person, not to the model.
"""

from collections.abc import Mapping
from pathlib import Path
from string import Template

import mcp_types as types
from mcp.shared.exceptions import MCPError
from msgspec import Struct, toml

from pilotfish.sanitise import sanitised

MAX_ARGUMENT = 200
"""Characters of what a person fills in: a name or a path."""


class WrittenPrompt(Struct, frozen=True):
    title: str
    description: str
    arguments: Mapping[str, str]
    """Name → what it is."""
    text: str


PROMPTS = toml.decode(Path(__file__).with_suffix(".toml").read_bytes(), type=dict[str, WrittenPrompt])


def listed_prompts() -> types.ListPromptsResult:
    def arguments(prompt: WrittenPrompt) -> list[types.PromptArgument]:
        return [
            types.PromptArgument(name=name, description=what, required=True) for name, what in prompt.arguments.items()
        ]

    return types.ListPromptsResult(
        prompts=[
            types.Prompt(name=name, title=one.title, description=one.description, arguments=arguments(one))
            for name, one in PROMPTS.items()
        ]
    )


def prompt_of(params: types.GetPromptRequestParams) -> types.GetPromptResult:
    """The text of a prompt; raises `MCPError` for an unknown one, or without one of its arguments."""
    prompt = PROMPTS.get(params.name)
    if prompt is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {sanitised(params.name, MAX_ARGUMENT)}")
    given = params.arguments or {}
    missing = [name for name in prompt.arguments if not given.get(name)]
    if missing:
        raise MCPError(types.INVALID_PARAMS, f"This prompt needs: {', '.join(missing)}")
    text = Template(prompt.text).substitute({name: sanitised(given[name], MAX_ARGUMENT) for name in prompt.arguments})
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.GetPromptResult(description=prompt.description, messages=[message])
