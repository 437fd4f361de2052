"""Writes the parts of the documentation that follow from the code: `.venv/bin/python tools/write_docs.py [--check]`.

A page says where such a part stands: between `<!-- generated: NAME -->` and `<!-- end of NAME -->`. What is outside of
that is left alone. `--check` writes nothing, shows what would change, and ends with 1 when something would.
"""

import difflib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from pilotfish.config.schema import json_schema
from pilotfish.hosts.registry import load_hosts
from pilotfish.operations.rows import ROWS
from pilotfish.protocol.lifecycle import TRANSITIONS
from pilotfish.surfaces.cli.main import SECTIONS, root

DOCS = Path(__file__).resolve().parent.parent / "docs"
BLOCK = re.compile(r"(<!-- generated: (?P<name>[a-z-]+) -->\n).*?(\n<!-- end of (?P=name) -->)", re.DOTALL)
WIDTH = 88
"""Columns of a help text: what a page shows without scrolling."""


def main() -> int:
    changed = {page: text for page in sorted(DOCS.rglob("*.md")) if (text := filled(page.read_text())) is not None}
    for page, text in changed.items():
        name = str(page.relative_to(DOCS.parent))
        if "--check" in sys.argv:
            print(*difflib.unified_diff(page.read_text().splitlines(), text.splitlines(), name, lineterm=""), sep="\n")
        else:
            page.write_text(text)
            print(f"written: {name}")
    return 1 if changed and "--check" in sys.argv else 0


def filled(text: str) -> str | None:
    """The page with its parts as the code says; None when they are so already."""
    new = BLOCK.sub(lambda found: f"{found[1]}\n{PARTS[found['name']]().strip()}\n{found[3]}", text)
    return None if new == text else new


# --- The configuration ----------------------------------------------------------------------------------------------


def config_keys() -> str:
    """A table for every object of `lsp.json`."""
    schema = json_schema()
    objects = {
        "The file": schema,
        **{title(name): part for name, part in schema["$defs"].items() if "properties" in part},
    }
    return "\n\n".join(table_of(name, part) for name, part in objects.items())


def table_of(name: str, part: Mapping[str, Any]) -> str:
    rows = [f"| `{key}` | {kind(of)} | {default(of)} | {meaning(key, of)} |" for key, of in part["properties"].items()]
    about = part.get("description", "").replace("\n", " ")
    head = f"## {name}\n\n{about}\n\n| key | value | default | meaning |\n|---|---|---|---|\n"
    return head + "\n".join(rows)


def title(name: str) -> str:
    own = {"ServerEntry": "One server", "TimingSettings": "timing, and a server's timeouts"}
    return own.get(name, name.removesuffix("Settings").lower())


def kind(of: Mapping[str, Any]) -> str:
    """What is accepted, in words."""
    if "$ref" in of:
        name = title(of["$ref"].rpartition("/")[2])
        return f"[object](#{re.sub(r'[^a-z ]', '', name.lower()).replace(' ', '-')})"
    for several in ("anyOf", "oneOf"):
        if several in of:
            return " or ".join(kind(one) for one in of[several])
    if "enum" in of:
        return ", ".join(f"`{json.dumps(one)}`" for one in of["enum"])
    if "const" in of:
        return f"`{json.dumps(of['const'])}`"
    match of.get("type"):
        case "array":
            return f"list of {kind(of['items'])}"
        case "object":
            values = of.get("additionalProperties")
            return f"object of {kind(values)}" if isinstance(values, dict) and values else "object"
        case "integer":
            return f"{of['minimum']:,} to {of['maximum']:,}"
        case other:
            return str(other or "anything")


def default(of: Mapping[str, Any]) -> str:
    return f"`{json.dumps(of['default'])}`" if "default" in of else ""


def meaning(key: str, of: Mapping[str, Any]) -> str:
    if "$ref" in of:
        return "See below."
    if "description" not in of:
        raise SystemExit(f"the schema of lsp.json says nothing about {key}")
    return str(of["description"])


# --- The command line -----------------------------------------------------------------------------------------------


def verbs() -> str:
    """The help of every verb, in the order of the list of verbs."""
    parts = [f"```text\n{helped(root, 'pilotfish')}\n```"]
    for section, names in SECTIONS.items():
        parts.append(f"## {section}")
        for name in names:
            parts += [f"### {called}\n\n```text\n{text}\n```" for called, text in of_verb(name)]
    return "\n\n".join(parts)


def of_verb(name: str) -> Iterator[tuple[str, str]]:
    command = root.get_command(click.Context(root), name)
    if command is None:
        raise SystemExit(f"there is no verb {name}")
    yield name, helped(command, f"pilotfish {name}")
    if isinstance(command, click.Group):
        for word, below in command.commands.items():
            yield f"{name} {word}", helped(below, f"pilotfish {name} {word}")


def helped(command: click.Command, name: str) -> str:
    context = click.Context(command, info_name=name, terminal_width=WIDTH, help_option_names=["-h", "--help"])
    return command.get_help(context)


# --- Tables of the code ---------------------------------------------------------------------------------------------


def operations() -> str:
    head = "| verb | MCP tool | what it answers |\n|---|---|---|\n"
    return head + "\n".join(f"| `{row.verb}` | `{row.tool}` | {row.description} |" for row in ROWS.values())


def hosts() -> str:
    """What setup knows of every host."""
    head = "| host | command | feedback after an edit | tools |\n|---|---|---|---|\n"
    return head + "\n".join(
        f"| {row.title} | `pilotfish setup {row.name}` | {FEEDBACK[how(row.probes)]} | {tools(row.probes)} |"
        for row in sorted(load_hosts().values(), key=lambda row: row.title.lower())
    )


FEEDBACK = {
    "hook": "by a hook",
    "daemon": "by a plugin",
    "lint": "as its linter",
    "mcp": "none; its model asks with tools",
}


def how(probes: tuple[str, ...]) -> str:
    return next(way for way in FEEDBACK if way in probes)


def tools(probes: tuple[str, ...]) -> str:
    return "MCP" if "mcp" in probes else "by the plugin" if "daemon" in probes else "none"


def lifecycle() -> str:
    """The state machine of one connection, a line for every step."""
    width = max(len(phase) for phase in TRANSITIONS)
    steps = max(len(step) for moves in TRANSITIONS.values() for step in moves)
    lines = [
        f"{phase:{width}} ── {step + ' ':─<{steps + 1}}─▶ {following}"
        for phase, moves in TRANSITIONS.items()
        for step, following in moves.items()
    ]
    return "```text\n" + "\n".join(lines) + "\n```"


def tests() -> str:
    """The index of the test support, without its heading."""
    return (DOCS.parent / "tests" / "support" / "README.md").read_text().partition("\n")[2]


PARTS: Mapping[str, Callable[[], str]] = {
    "config-keys": config_keys,
    "verbs": verbs,
    "operations": operations,
    "hosts": hosts,
    "lifecycle": lifecycle,
    "tests": tests,
}

if __name__ == "__main__":
    sys.exit(main())
