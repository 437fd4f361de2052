"""What a person can ask for by name in a host that shows MCP prompts: three jobs that go wrong by search and replace.

A prompt costs a model nothing until it is chosen: hosts show the list to the person, not to the model.
"""

from collections.abc import Mapping
from string import Template

import mcp_types as types
from mcp.shared.exceptions import MCPError
from msgspec import Struct

from pilotfish.sanitise import sanitised

MAX_ARGUMENT = 200
"""Characters of what a person fills in: a name or a path."""


class WrittenPrompt(Struct, frozen=True):
    title: str
    description: str
    arguments: Mapping[str, str]
    """Name → what it is."""
    text: Template


PROMPTS: Mapping[str, WrittenPrompt] = {
    "rename_safely": WrittenPrompt(
        "Rename safely",
        "Rename a symbol in every file that uses it, and nothing else.",
        {"symbol": "Its name, such as Class.method", "new_name": "The new name"},
        Template(
            "Rename $symbol to $new_name with pilotfish, not by search and replace.\n"
            "1. lsp_rename with symbol and newName shows the diff of all files. Read it.\n"
            "2. The same with apply: true writes all files or none. If it is refused, say why and stop.\n"
            "3. Search for the old name as text: strings, comments, documents and configuration are not renamed. "
            "Change those that mean this symbol.\n"
            "4. lsp_diagnostics without a file: nothing may be new."
        ),
    ),
    "change_signature": WrittenPrompt(
        "Change a signature",
        "Change the parameters of a function, and every call of it.",
        {"symbol": "The function, such as Class.method", "change": "What shall change"},
        Template(
            "Change the signature of $symbol: $change.\n"
            "1. lsp_source shows the function, lsp_find_references every use; lsp_subtypes and "
            "lsp_goto_implementation what overrides it. An answer that is partial is not all of them.\n"
            "2. Change the declaration and its overrides first: each edit names the files that it broke.\n"
            "3. Change every use in that list, by what the call means, not by its text.\n"
            "4. lsp_impact, then lsp_diagnostics without a file: nothing may be left."
        ),
    ),
    "find_dead_code": WrittenPrompt(
        "Find dead code",
        "List what nothing uses, with the evidence.",
        {"path": "A file or a folder"},
        Template(
            "Find what nothing uses in $path.\n"
            "1. lsp_document_symbols of each file.\n"
            "2. For each symbol lsp_find_references with includeDeclaration: false. Only a fresh and empty answer "
            "counts; partial or stale proves nothing.\n"
            "3. Search for its name as text: reflection, templates, configuration and public APIs use names that no "
            "server sees. Entry points and tests are used.\n"
            "4. List what is left with its place and the evidence. Delete nothing before the person agrees; then "
            "lsp_edit_symbol with edit: delete, and lsp_diagnostics."
        ),
    ),
}


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
    text = prompt.text.substitute({name: sanitised(given[name], MAX_ARGUMENT) for name in prompt.arguments})
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.GetPromptResult(description=prompt.description, messages=[message])
