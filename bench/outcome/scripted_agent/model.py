"""The same arms with a model: any endpoint that speaks OpenAI's chat completions. It costs money, so it asks first."""

import json
import os
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from told.edits import Change, Edit

from scripted_agent import pages
from scripted_agent.agent import MOST_TURNS, Outcome, diff, halves
from scripted_agent.arms import Feedback, Told

BYTES_PER_TOKEN = 4
"""Of code and English, roughly."""

SECONDS = 600.0
"""For one answer of a model."""

PROMPT = """You work in a project of several files, with the tools that you have and no others. Make the change of which
these parts are decided, word by word, and whatever else must change with them so that nothing is broken.
`edit_file` replaces what is in the file once, and writes a whole file where `old` is empty. Say "done" when you are.

"""
TOOLS: Mapping[str, tuple[str, ...]] = {"read_file": ("path",), "edit_file": ("path", "old", "new")}
"""By name: what each is given, all of it text."""


def add_options(add: Callable[..., Any]) -> None:
    add("--model", default="", help="the name of a model to run instead of the script")
    add("--endpoint", default="http://127.0.0.1:11434/v1", help="where it answers OpenAI's chat completions")
    add("--key", default="", help="the environment variable that holds the key of that endpoint")
    add("--prices", default="0,0", help="dollars for a million tokens read and for a million written")
    add("--yes", action="store_true", help="go on without a question")


def is_wanted(chosen: Any, arms: Sequence[str]) -> bool:
    """Tell what it may cost, and ask."""
    runs = (1 if chosen.repo else len(chosen.projects.split(","))) * chosen.changes * len(chosen.orders.split(","))
    print(estimate(pages.kept(pages.KEPT), arms, runs, chosen.prices))
    try:
        return chosen.yes or input("Go on? [y/N] ").strip().lower() == "y"
    except EOFError:
        return False


def estimate(measured: Sequence[Outcome], arms: Sequence[str], each: int, prices: str) -> str:
    """From what the scripted agent has read and written in as many turns; all of it is sent again with every turn."""
    of = {arm: [one for one in measured if one.arm == arm] or measured for arm in arms}
    read = sum(fmean(one.turns * (one.bytes_read + one.written) for one in several) for several in of.values())
    written = sum(fmean(one.written for one in several) for several in of.values())
    read, written = (each * size / BYTES_PER_TOKEN for size in (read, written))
    for_read, for_written = map(float, prices.split(","))
    dollars = (read * for_read + written * for_written) / 1e6
    tokens = f"about {read:,.0f} tokens read and {written:,.0f} written, {dollars:,.2f} dollars"
    return f"{each * len(arms)} runs: {tokens}. A model that reads more than the script costs more."


class ModelAgent:
    def __init__(self, chosen: Any) -> None:
        self._chosen = chosen

    def work(
        self, made: Sequence[Edit], texts: Mapping[str, str], arm: Feedback, outcome: Outcome
    ) -> Mapping[str, str]:
        """Let the model make the change; the texts as it leaves them."""
        planned, rest = halves(made)
        self._state, unplanned = dict(texts), {path for edit in rest for path in edit.paths}
        messages: list[dict[str, Any]] = [{"role": "user", "content": PROMPT + "".join(map(diff, planned))}]
        outcome.unplanned, stops = len(rest), 0
        while outcome.turns < MOST_TURNS and stops < 2:
            messages.append(self._ask(messages, outcome))
            calls, edits = messages[-1].get("tool_calls") or (), list[Edit]()
            said = [
                {"role": "tool", "tool_call_id": one["id"], "content": self._call(one, edits, outcome)} for one in calls
            ]
            stops += not said
            # What it hears before the stop it takes up once, as the script does.
            told = arm.edited(edits, self._state) if edits else Told() if said or stops > 1 else arm.stopping()
            outcome.bytes_read += told.size
            outcome.told += len(told.places)
            outcome.found += sum(not unplanned.isdisjoint(edit.paths) for edit in edits)
            if not said and not told.text:
                break
            messages += said or [{"role": "user", "content": ""}]
            messages[-1]["content"] += f"\n\n{told.text}" if told.text else ""
        return self._state

    def _ask(self, messages: Sequence[Mapping[str, Any]], outcome: Outcome) -> dict[str, Any]:
        body = {"model": self._chosen.model, "messages": messages, "tools": [_schema(*one) for one in TOOLS.items()]}
        headers = {"Content-Type": "application/json"}
        if self._chosen.key:
            headers["Authorization"] = f"Bearer {os.environ[self._chosen.key]}"
        url = f"{self._chosen.endpoint}/chat/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            answer = json.load(response)
        outcome.turns += 1
        outcome.tokens += answer.get("usage", {}).get("total_tokens", 0)
        return answer["choices"][0]["message"]

    def _call(self, call: Mapping[str, Any], edits: list[Edit], outcome: Outcome) -> str:
        """Carry a call out on the texts; the arm writes what was changed to the disk."""
        name, given = call["function"]["name"], json.loads(call["function"]["arguments"] or "{}")
        text = self._state.get(given.get("path", ""))
        if set(given) != set(TOOLS.get(name, ())) or (text is None and given.get("old") != ""):
            return "There is no such tool, argument or file."
        if name == "read_file":
            outcome.reads += 1
            outcome.bytes_read += len((text or "").encode())
            return text or ""
        path, old, new = given["path"], given["old"], given["new"]
        if old and (text or "").count(old) != 1:
            return "What is to be replaced must be in the file once."
        after, tool = ((text or "").replace(old, new), "edit") if old else (new, "write")
        edits.append(Edit(len(edits) + 1, tool, "others", tool, (Change(path, text, after),), path))
        outcome.written += len(diff(edits[-1]).encode())
        self._state[path] = after
        return "Done."


def _schema(name: str, given: Sequence[str]) -> dict[str, Any]:
    properties = {one: {"type": "string"} for one in given}
    about = {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(given)}}
    return {"type": "function", "function": about}
