"""Records what models read of Pilotfish in hosts that cannot be run here, and draws what they read in all of them.

`.venv/bin/python tools/record_hosts.py`. What the model of a real host reads after an edit is in `tests/hosts/golden`,
where `./check --hosts` compares it word by word. Of any other host with a hook it is what the hook program answers to
the event that comes after the host's tool, of one with an LSP client what `pilotfish lsp` publishes, and of the rest
what our MCP server answers when their model asks. That goes into `tools/told.json`, once for each of these ways.
`tools/write_docs.py` makes the pages of all this, and this program the pictures in `docs/pictures/hosts`.
"""

import io
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from picture import framed
from rich.console import Console
from rich.text import Text
from write_docs import GOLDEN, TOLD, how, lines_read

TOP = Path(__file__).resolve().parent.parent
PICTURES = TOP / "docs" / "pictures" / "hosts"
WIDTH = 100

sys.path.append(str(TOP / "tests"))

from pilotfish.hosts.registry import load_hosts  # noqa: E402
from pilotfish.hosts.shared.host_spec import HostSpec  # noqa: E402
from support.clients.lsp import started_client  # noqa: E402
from support.daemon.homes import DaemonHome  # noqa: E402
from support.hosts.agents import BROKEN, ERROR, MENDED  # noqa: E402
from support.hosts.real import host_home, pilotfish  # noqa: E402


def main() -> None:
    TOLD.write_text(json.dumps(record(), indent=1, ensure_ascii=False) + "\n")
    draw()


def record() -> dict[str, list[str]]:
    told: dict[str, list[str]] = {}
    for host in load_hosts().values():
        # LLxprt has words of its own.
        way = host.name if host.name == "llxprt" else how(host)
        if not (GOLDEN / f"{host.name}.txt").exists() and way not in {*told, "person"}:
            with tempfile.TemporaryDirectory(prefix="pilotfish-told-") as folder, host_home(Path(folder)) as home:
                (home.root / "a.py").write_text(BROKEN)
                pilotfish(home, "daemon", "start")
                told[way] = recorded(host, home).replace(str(home.root), "/workspace").splitlines()
                pilotfish(home, "daemon", "stop")
    return told


def draw() -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, host in load_hosts().items():
        (PICTURES / f"{name}.svg").write_text(drawn(host.title, name, lines_read(name)))
        print(f"written: {name}.svg")


def recorded(host: HostSpec, home: DaemonHome) -> str:
    if host.dialect is not None:
        return by_hook("llxprt" if host.name == "llxprt" else "claude-code", home)
    return by_lsp(home) if "lsp" in host.probes else by_mcp(home)


def by_hook(name: str, home: DaemonHome) -> str:
    """What the hook program adds to the result of the tool that writes a file."""
    file = str(home.root / "a.py")
    after, tool = ("AfterTool", "write_file") if name == "llxprt" else ("PostToolUse", "Write")
    event = {"hook_event_name": after, "session_id": "1", "cwd": str(home.root), "tool_name": tool}
    event |= {"tool_input": {"file_path": file, "content": BROKEN}, "tool_response": {"llmContent": "Written."}}
    answer = json.loads(called(home, ["hook", name], json.dumps(event)))
    return answer["hookSpecificOutput"]["additionalContext"]


def by_mcp(home: DaemonHome) -> str:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "record", "version": "1"}}
    call = {"name": "lsp_diagnostics", "arguments": {"filePath": "a.py"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    with subprocess.Popen(
        [sys.executable, "-I", "-m", "pilotfish", "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=home.root,
        env=home.environment,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(json.dumps(message) + "\n" for message in messages))
        server.stdin.flush()
        answer: Any = next(said for line in server.stdout if (said := json.loads(line)).get("id") == 2)
        server.stdin.close()
    return answer["result"]["content"][0]["text"]


def by_lsp(home: DaemonHome) -> str:
    """What is published after an edit, to a client that does as Crush's own does."""
    (home.root / "a.py").write_text(MENDED)
    with started_client(home.root, home.environment, [sys.executable, "-I", "-m", "pilotfish", "lsp"]) as client:
        folders = [{"uri": client.root.as_uri(), "name": client.root.name}]
        client.initialize(processId=os.getpid(), capabilities={}, workspaceFolders=folders)
        client.open("a.py")
        client.published({"a.py": 0})
        (home.root / "a.py").write_text(BROKEN)
        client.change("a.py", BROKEN, 2)
        told = client.published({"a.py": 1})
        client.process.kill()
    return json.dumps(told, indent=2)


def called(home: DaemonHome, words: list[str], said: str) -> str:
    argv = [sys.executable, "-I", "-m", "pilotfish", *words]
    done = subprocess.run(
        argv, cwd=home.root, env=home.environment, input=said, capture_output=True, text=True, check=True
    )
    return done.stdout


def drawn(title: str, name: str, lines: list[str]) -> str:
    console = Console(width=WIDTH, record=True, file=io.StringIO(), force_terminal=True)
    for line in lines:
        console.print(Text(line, "bold red" if re.search(rf"\bERROR\b|{ERROR}", line) else "cyan"))
    return framed(console, title, f"told-{name}")


if __name__ == "__main__":
    main()
