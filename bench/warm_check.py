"""`pilotfish check` of a whole project: cold, with nothing changed, after one change; beside the checker itself.

    PYTHONPATH=bench python bench/warm_check.py [PROJECT:SERVER:FILE …]

The errors are compared with the checker's own, file by file, in every state. A host asks the same by MCP
(`lsp_diagnostics` without a file) over a connection that it has: nobody starts a program for it.
What the daemon holds after a check is a part of `bench/run`.
"""

import asyncio
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from harness import corpus
from harness.clients import Mcp, started
from harness.pages import head, line, options
from harness.setting import Setting, pilotfish, verb, workplace
from told import truth

WHOLE = (
    "httpx:basedpyright:httpx/_utils.py",
    "httpx:ty:httpx/_utils.py",
    "httpx:pyrefly:httpx/_utils.py",
    "rich:basedpyright:rich/_ratio.py",
    "rxjs:typescript:src/internal/util/noop.ts",
    "rxjs-7:typescript-native:src/internal/util/noop.ts",
    "cobra:gopls:args.go",
    "hiredis:clangd:sds.c",
    "regex-syntax:rust-analyzer:src/either.rs",
)
"""A project, its server, and the file that is changed: something is added at its end that does not compile."""

HEAD = (
    *("project", "server", "files", "checker s", "cold s", "nothing changed s", "×", "by MCP s", "×"),
    *("one changed s", "×", "by MCP s", "×", "equal"),
)
Errors = Counter[tuple[str, int]]
"""Files and lines: a checker and its language server word some messages in their own ways."""


def main() -> None:
    print(head(HEAD))
    for one in options(__doc__, projects=WHOLE).projects:
        print(measured(*one.split(":")), flush=True)


def measured(name: str, server: str, file: str) -> str:
    project = corpus.projects()[name]
    with workplace(project, server, trusted=True) as setting:
        texts, path = corpus.texts(setting.root, project.language), setting.root / file
        broken = {**texts, file: texts[file] + corpus.MISTAKES[path.suffix]}
        took, true, true_broken = checked_by_itself(project, server, texts, broken)
        cold, _ = check(setting)
        check(setting)  # What was changed while the watcher began is checked once more.
        warm, said = check(setting)
        path.write_text(broken[file])
        changed, said_broken = check(setting)
        path.write_text(texts[file])
        asked, asked_changed = asyncio.run(by_mcp(setting, path, broken[file]))
    equal = [len((a - b) + (b - a)) for a, b in ((said, true), (said_broken, true_broken))]
    verdict = "yes" if not any(equal) else f"no, {equal[0]} and {equal[1]} differ"
    factors = [cell for each in (warm, asked, changed, asked_changed) for cell in (f"{each:.3f}", f"{took / each:.0f}")]
    return line([name, server, len(texts), f"{took:.1f}", f"{cold:.1f}", *factors, verdict])


async def by_mcp(setting: Setting, path: Path, broken: str) -> tuple[float, float]:
    """How long a host that has started `pilotfish mcp` waits: with nothing changed, and after the change."""
    child = await started([*pilotfish(), "mcp"], cwd=setting.root, environment=setting.environment(), framed=False)
    try:
        host = Mcp(child, setting.root)
        await host.start()
        times = [await _asked(host) for _ in range(7)]
        path.write_text(broken)
        return min(times[2:]), await _asked(host)
    finally:
        await child.close()


async def _asked(host: Mcp) -> float:
    """How long the whole project takes."""
    began = time.perf_counter()
    text = await host.call("lsp_diagnostics", {})
    took = time.perf_counter() - began
    if "the whole project was checked" not in text:
        print(f"not complete: {text[-300:]}", file=sys.stderr)
    return took


def check(setting: Setting) -> tuple[float, Errors]:
    began = time.perf_counter()
    answer: Any = json.loads(verb(setting, "check", "--project", "--json", "--severity", "error", "--skip-missing"))
    took = time.perf_counter() - began
    if answer["meta"]["state"] != "fresh":
        print(f"{answer['meta']['state']}: {answer['meta'].get('reason')}", file=sys.stderr)
    data: dict[str, list[dict[str, Any]]] = answer["data"] or {}
    return took, Counter((path, int(one["line"])) for path, items in data.items() for one in items)


def checked_by_itself(
    project: corpus.Project, server: str, texts: dict[str, str], broken: dict[str, str]
) -> tuple[float, Errors, Errors]:
    """How long the checker takes, and what it finds in both states."""
    with truth.Asker(project, server).open() as asker:
        true_broken = asker.ask(broken)
        began = time.perf_counter()
        true = asker.ask(texts)
        return time.perf_counter() - began, _errors(true), _errors(true_broken)


def _errors(found: truth.Findings) -> Errors:
    return Counter((file, one.line) for file, each in found.items() for one in each if one.severity == "error")


if __name__ == "__main__":
    main()
