"""Texts of a given size in the place of ours, to see how much of them a host shows to its model."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from pilotfish.hosts.registry import dialect_of
from support.daemon.homes import DaemonHome
from support.hosts.long_server import long_text

SUPPORT = Path(__file__).parent
SMALL = 65536
"""Bytes of a file that `setup` has written, and most that hosts write themselves."""


PLUGINS = {
    "pi": """
import { readdirSync, readFileSync, unlinkSync } from "node:fs";
export default function (pi) {
	pi.on("tool_result", async (event) => ({ content: [...event.content, { type: "text", text: NEXT() }] }));
}
""",
    "opencode": """
import { readdirSync, readFileSync, unlinkSync } from "node:fs";
export const Long = async () => ({
	"tool.execute.after": async (_input, output) => { output.output += NEXT(); },
});
""",
}
"""For hosts without hooks, in the place of our plugin."""

NEXT = """
function NEXT() {
	const [name] = readdirSync(FOLDER).sort();
	if (!name) return "";
	const text = readFileSync(`${FOLDER}/${name}`, "utf8");
	unlinkSync(`${FOLDER}/${name}`);
	return text;
}
"""


def say_long_texts(home: DaemonHome, host: str, sizes: Sequence[int]) -> None:
    """Let the hook or the plugin that `setup` has written for a host say texts of these sizes, one after each edit."""
    event = "AfterTool" if host == "gemini" else "PostToolUse"
    folder = home.root.parent / "long"
    (folder / "answers").mkdir(parents=True)
    for number, size in enumerate(sizes):
        answer = dialect_of(host).written(long_text(size), event)
        (folder / "answers" / f"{number:03}").write_bytes(answer)
    if host in PLUGINS:
        (plugin,) = Path(home.environment["HOME"]).rglob("pilotfish.ts")
        plugin.write_text(f"{PLUGINS[host]}const FOLDER = {json.dumps(str(folder / 'answers'))};{NEXT}")
        return
    program = "aider_lint.py" if host == "aider" else "hook.py"
    shutil.copyfile(SUPPORT / "long_hook.py", folder / program)
    assert _replaced(home, rf"[^\s\"']+/{re.escape(program)}", str(folder / program)), host


def give_long_tool(home: DaemonHome, host: str) -> None:
    """Put an MCP server with the tool `long` in the place of ours, as `setup` has written it."""
    server = json.dumps(str(SUPPORT / "long_server.py"))
    assert _replaced(home, r'"-m",\s*"pilotfish",\s*"mcp"', server), host


def shown(size: int, text: str) -> int:
    """How many characters of a text of this size are in what the model reads, from its beginning."""
    long = long_text(size)
    if long in text:
        return size
    low, high = 0, size
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if long[:middle] in text else (low, middle - 1)
    return low


def _replaced(home: DaemonHome, pattern: str, text: str) -> int:
    """In every file of the user; how many there were."""
    count = 0
    for path in Path(home.environment["HOME"]).rglob("*"):
        if path.is_file() and not path.is_symlink() and path.stat().st_size < SMALL:
            new, number = re.subn(pattern, lambda _: text, path.read_text(errors="surrogateescape"))
            count += number
            if number:
                path.write_text(new, errors="surrogateescape")
    return count
