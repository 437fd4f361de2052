"""Makes `docs/squiggle.svg` from a real run: `.venv/bin/python tools/picture.py`.

A real daemon, a real language server, an edit, and the hook program called as Claude Code calls it. What the picture
shows after the edit is what the hook program printed; the squiggle stands where the diagnostic says.
"""

import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
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

PILOTFISH = [sys.executable, "-m", "pilotfish"]

GREETING = 'def greet(name: str) -> str:\n    return f"Hello, {name}!"\n'
CHANGED = 'def greet(name: str, times: int) -> str:\n    return f"Hello, {name}! " * times\n'
MAIN = 'from greeting import greet\n\nprint(greet("world"))\n'


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="pilotfish-picture-") as folder:
        root = Path(folder).resolve() / "hello"
        root.mkdir()
        (root / "greeting.py").write_text(GREETING)
        (root / "main.py").write_text(MAIN)
        beside = str(Path(sys.executable).parent)
        environment = {
            **os.environ,
            "HOME": folder,
            "PILOTFISH_HOME": f"{folder}/state",
            "PATH": f"{beside}:/usr/bin:/bin",
        }
        try:
            answer, found = edited(root, environment)
        finally:
            called(root, environment, "daemon", "stop")
    PICTURE.write_text(drawn(answer, found))
    print(f"written: {PICTURE.relative_to(CLONE)}")


def edited(root: Path, environment: Mapping[str, str]) -> tuple[str, Mapping[str, int]]:
    """Make the edit; what the hook program answers, and where the error is."""
    called(root, environment, "check")
    (root / "greeting.py").write_text(CHANGED)
    event = {
        "hook_event_name": "PostToolUse",
        "session_id": "picture",
        "cwd": str(root),
        "tool_name": "Write",
        "tool_input": {"file_path": str(root / "greeting.py"), "content": CHANGED},
        "tool_response": {"filePath": str(root / "greeting.py")},
    }
    answer = json.loads(called(root, environment, "hook", "claude-code", said=json.dumps(event)))
    found = json.loads(called(root, environment, "check", "main.py", "--severity", "error", "--json"))
    return answer["hookSpecificOutput"]["additionalContext"], found["data"]["main.py"][0]


def called(root: Path, environment: Mapping[str, str], *words: str, said: str | None = None) -> str:
    argv = [*PILOTFISH, *words]
    return subprocess.run(
        argv, cwd=root, env=dict(environment), input=said, capture_output=True, text=True, check=False
    ).stdout


def drawn(answer: str, found: Mapping[str, int]) -> str:
    console = Console(width=WIDTH, record=True, file=io.StringIO(), force_terminal=True)
    show = console.print
    show(Text("The agent writes greeting.py:", "bold"))
    for before, after in zip(GREETING.splitlines(), CHANGED.splitlines(), strict=True):
        show(Text(f"  - {before}", "red"))
        show(Text(f"  + {after}", "green"))
    show(Text("\nAn IDE would now show a person, in main.py:", "bold"))
    for number, line in enumerate(MAIN.splitlines(), 1):
        show(Text(f"  {number}  {line}"))
        if number == found["line"]:
            length = found["endCharacter"] - found["character"]
            show(Text("     " + " " * (found["character"] - 1) + "~" * length, "bold red"))
    show(Text("\nWith Pilotfish, the agent reads it in the result of its edit:", "bold"))
    for line in answer.strip().splitlines():
        show(Text(f"  {line}", "bold red" if line.startswith("ERROR") else "cyan"))
    # No font is fetched from elsewhere: whoever looks at it has one that will do.
    plain = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return animated(console.export_svg(title="pilotfish", code_format=plain, unique_id="squiggle"))


def animated(picture: str) -> str:
    """Its lines appear one after the other, with a pause before each heading; who wants no motion sees all at once."""
    lines = sorted({int(number) for number in re.findall(r"url\(#squiggle-line-(\d+)\)", picture)})
    headings = {int(found[1]) for found in re.finditer(r"squiggle-line-(\d+)\)\">(?:The|An|With)&#160;", picture)}
    rules, seconds = [ANIMATION], 0.0
    for line in lines:
        seconds += HEADING_SECONDS if line in headings and line != lines[0] else LINE_SECONDS
        rules.append(f'    [clip-path="url(#squiggle-line-{line})"] {{ animation-delay: {seconds:.1f}s }}')
    return picture.replace("    </style>", "\n".join(rules) + "\n    </style>", 1)


if __name__ == "__main__":
    main()
