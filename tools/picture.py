"""Makes `docs/squiggle.svg` from a real run: `.venv/bin/python tools/picture.py`.

Claude Code itself (`python3 tools/setup.py hosts`), set up by `pilotfish setup`, on a scripted model that makes one
edit; a real daemon and a real language server. What the picture shows after the edit is what the next request of
Claude Code to its model says; the squiggle stands where the diagnostic says.
"""

import io
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

CLONE = Path(__file__).resolve().parent.parent
PICTURE = CLONE / "docs" / "squiggle.svg"
WIDTH = 92
LINE_SECONDS, HEADING_SECONDS = 0.3, 1.5
ANIMATION = """
    @media (prefers-reduced-motion: no-preference) {
      [clip-path^="url(#squiggle-line"] { animation: appear .25s both }
    }
    @keyframes appear { from { opacity: 0 } to { opacity: 1 } }"""

GREETING = 'def greet(name: str) -> str:\n    return f"Hello, {name}!"\n'
CHANGED = 'def greet(name: str, times: int) -> str:\n    return f"Hello, {name}! " * times\n'
MAIN = 'from greeting import greet\n\nprint(greet("world"))\n'

HOOK = re.compile(r"PostTool[\w:]+ hook additional context: ")
"""What Claude Code puts before the words of a hook."""


def main() -> None:
    answer, found = edited()
    PICTURE.write_text(drawn(answer, found))
    print(f"written: {PICTURE.relative_to(CLONE)}")


def edited() -> tuple[str, Mapping[str, int]]:
    """Let the host make the edit; what its model reads then, and where the error is."""
    sys.path.append(str(CLONE / "tests"))
    from support.hosts.agents import AGENTS
    from support.hosts.model_server import Call, ModelServer
    from support.hosts.real import host_home, pilotfish, run

    agent = next(agent for agent in AGENTS if agent.host == "claude-code")
    temporary = tempfile.TemporaryDirectory(prefix="pilotfish-picture-")
    with temporary as folder, host_home(Path(folder).resolve(), ["basedpyright"]) as home:
        file = str(home.root / "greeting.py")
        (home.root / "greeting.py").write_text(GREETING)
        (home.root / "main.py").write_text(MAIN)
        pilotfish(home, "setup", agent.host, "--global")
        pilotfish(home, "check")
        edit = {"file_path": file, "old_string": GREETING, "new_string": CHANGED}
        with ModelServer([Call("Read", {"file_path": file}), Call("Edit", edit)]) as model:
            run(agent, home, model)
        told = next(text for text in strings(model.after(2).body) if HOOK.match(text))
        argv = [sys.executable, "-I", "-m", "pilotfish", "check", "main.py", "--json"]
        done = subprocess.run(argv, cwd=home.root, env=home.environment, capture_output=True, check=False)
        pilotfish(home, "daemon", "stop")
    return told, json.loads(done.stdout)["data"]["main.py"][0]


def strings(value: object) -> Iterator[str]:
    """Every text in a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


def drawn(answer: str, found: Mapping[str, int]) -> str:
    console = Console(width=WIDTH, record=True, file=io.StringIO(), force_terminal=True)
    show = console.print
    show(Text("Claude Code edits greeting.py:", "bold"))
    for before, after in zip(GREETING.splitlines(), CHANGED.splitlines(), strict=True):
        show(Text(f"  - {before}", "red"))
        show(Text(f"  + {after}", "green"))
    show(Text("\nAn IDE would now show a person, in main.py:", "bold"))
    for number, line in enumerate(MAIN.splitlines(), 1):
        show(Text(f"  {number}  {line}"))
        if number == found["line"]:
            length = found["endCharacter"] - found["character"]
            show(Text("     " + " " * (found["character"] - 1) + "~" * length, "bold red"))
    show(Text("\nWith Pilotfish, Claude Code reads it with the result of its edit:", "bold"))
    for line in HOOK.sub("", answer).strip().splitlines():
        show(Text(f"  {line}", "bold red" if line.startswith(("ERROR", "OPEN")) else "cyan"))
    return animated(framed(console, "Claude Code, with Pilotfish", "squiggle"))


def framed(console: Console, title: str, name: str) -> str:
    """What was printed, in the frame of a terminal."""
    # No font is fetched from elsewhere: whoever looks at it has one that will do.
    plain = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title=title, code_format=plain, unique_id=name)


def animated(picture: str) -> str:
    """Its lines appear one after the other, with a pause before each heading; who wants no motion sees all at once."""
    lines = sorted({int(number) for number in re.findall(r"url\(#squiggle-line-(\d+)\)", picture)})
    headings = {int(found[1]) for found in re.finditer(r"squiggle-line-(\d+)\)\">(?:Claude|An|With)&#160;", picture)}
    rules, seconds = [ANIMATION], 0.0
    for line in lines:
        seconds += HEADING_SECONDS if line in headings and line != lines[0] else LINE_SECONDS
        rules.append(f'    [clip-path="url(#squiggle-line-{line})"] {{ animation-delay: {seconds:.1f}s }}')
    return picture.replace("    </style>", "\n".join(rules) + "\n    </style>", 1)


if __name__ == "__main__":
    main()
