"""The prompts: offered by name, filled in, small, and true to the tools that they name."""

import re
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from pilotfish.operations.tools import NAMED
from pilotfish.surfaces.mcp.server import PROMPTS
from support.clients.mcp import client_on
from support.services.scripted import scripted_service

pytestmark = [pytest.mark.anyio, pytest.mark.proves("MCP-1")]

MAX_LISTED, MAX_TEXT = 1200, 900
"""Bytes of the list, and of one prompt."""


async def test_a_person_is_offered_three_jobs_and_a_model_gets_the_steps_of_the_chosen_one(tmp_path: Path) -> None:
    async with scripted_service(tmp_path) as scripted, client_on(scripted) as client:
        listed = await client.list_prompts()
        assert [prompt.name for prompt in listed.prompts] == ["rename_safely", "change_signature", "find_dead_code"]
        assert len(listed.model_dump_json(exclude_none=True).encode()) <= MAX_LISTED
        found = await client.get_prompt("rename_safely", {"symbol": "Class.$method", "new_name": "\x1b[31mother"})
        (message,) = found.messages
        assert isinstance(message.content, TextContent)
        text = message.content.text
        assert text.startswith("Rename Class.$method to ")
        assert "\x1b" not in text


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("rename_safely", {"symbol": "a"}, "needs: new_name"),
        ("nothing", {}, "Unknown prompt: nothing"),
    ],
)
async def test_what_cannot_be_filled_in_is_refused(name: str, given: dict[str, str], why: str, tmp_path: Path) -> None:
    async with scripted_service(tmp_path) as scripted, client_on(scripted) as client:
        with pytest.raises(MCPError, match=why):
            await client.get_prompt(name, given)


@pytest.mark.parametrize("name", PROMPTS)
async def test_a_prompt_is_short_and_names_tools_that_exist(name: str) -> None:
    text = PROMPTS[name].text
    assert len(text.encode()) <= MAX_TEXT
    assert set(re.findall(r"\blsp_\w+", text)) <= set(NAMED)
    assert set(re.findall(r"\$(\w+)", text)) == set(PROMPTS[name].arguments)
