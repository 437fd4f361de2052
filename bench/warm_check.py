"""`pilotfish check` of a whole project: cold, with nothing changed, after one change; beside the checker itself.

    PYTHONPATH=bench python bench/warm_check.py [PROJECT:SERVER:FILE …]
    PYTHONPATH=bench python bench/warm_check.py --memory [FILES]

The errors are compared with the checker's own, file by file, in every state. A host asks the same by MCP
(`lsp_diagnostics` without a file) over a connection that it has: nobody starts a program for it.
`--memory`: of the daemon alone, after a check of so many files, 1,000 by default.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Self

from told import corpus, truth
from told.subjects.children import pilotfish, resident, verb
from told.subjects.setting import Setting

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

MISTAKE = {
    ".py": "\nno_such_name\n",
    ".ts": "\nno_such_name;\n",
    ".go": "\nvar mistake int = noSuchName\n",
    ".c": "\nint mistake(void) { return no_such_name; }\n",
    ".rs": "\nfn mistake() -> u8 { no_such_name }\n",
}

Errors = Counter[tuple[str, int]]
"""Files and lines: a checker and its language server word some messages in their own ways."""


def main(chosen: list[str]) -> None:
    if chosen[:1] == ["--memory"]:
        print(memory_after(int(chosen[1]) if chosen[1:] else 1_000))
        return
    print(
        "| project | server | files | checker s | cold s | nothing changed s | × | by MCP s | × "
        "| one changed s | × | by MCP s | × | equal |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for one in chosen or WHOLE:
        print(measured(*one.split(":")), flush=True)


def measured(name: str, server: str, file: str) -> str:
    project = corpus.projects()[name]
    with tempfile.TemporaryDirectory(prefix="warm-") as given:
        folder = Path(os.path.realpath(given))
        root = corpus.copy(project, folder / "work")
        texts = corpus.texts(root, project.language)
        setting = Setting(root, folder / "scratch", server, trusted=True)
        setting.prepare()
        broken = {**texts, file: texts[file] + MISTAKE[Path(file).suffix]}
        took, true, true_broken = checked_by_itself(project, server, texts, broken)
        try:
            cold, _ = check(setting)
            check(setting)  # What was changed while the watcher began is checked once more.
            warm, said = check(setting)
            (root / file).write_text(broken[file])
            changed, said_broken = check(setting)
            (root / file).write_text(texts[file])
            with McpHost(setting) as host:
                host.ask()
                host.ask()
                asked = min(host.ask() for _ in range(5))
                (root / file).write_text(broken[file])
                asked_changed = host.ask()
        finally:
            verb(setting, "daemon", "stop")
    equal = [len((a - b) + (b - a)) for a, b in ((said, true), (said_broken, true_broken))]
    verdict = "yes" if not any(equal) else f"no, {equal[0]} and {equal[1]} differ"
    pairs = (
        (warm, took / warm),
        (asked, took / asked),
        (changed, took / changed),
        (asked_changed, took / asked_changed),
    )
    factors = " | ".join(f"{seconds:.3f} | {factor:.0f}" for seconds, factor in pairs)
    return f"| {name} | {server} | {len(texts)} | {took:.1f} | {cold:.1f} | {factors} | {verdict} |"


class McpHost:
    """A host that has started `pilotfish mcp`."""

    def __init__(self, setting: Setting) -> None:
        self._process = subprocess.Popen(
            [*pilotfish(), "mcp"],
            cwd=setting.root,
            env=setting.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._last = 0

    def __enter__(self) -> Self:
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self._call("initialize", hello)
        self._send({"method": "notifications/initialized"})
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def ask(self) -> float:
        """How long the whole project takes."""
        began = time.perf_counter()
        answer = self._call("tools/call", {"name": "lsp_diagnostics", "arguments": {}})
        took = time.perf_counter() - began
        text = answer["result"]["content"][0]["text"]
        if "the whole project was checked" not in text:
            print(f"not complete: {text[-300:]}", file=sys.stderr)
        return took

    def _call(self, method: str, params: dict[str, Any]) -> Any:
        self._last += 1
        self._send({"id": self._last, "method": method, "params": params})
        assert self._process.stdout is not None
        while (answer := json.loads(self._process.stdout.readline())).get("id") != self._last:
            pass
        return answer

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()


def memory_after(files: int) -> str:
    """Of the daemon, without its servers, in a project of so many modules that import each other."""
    with tempfile.TemporaryDirectory(prefix="warm-") as given:
        folder = Path(os.path.realpath(given))
        root = folder / "work"
        (root / "package").mkdir(parents=True)
        (root / "pyproject.toml").write_text("")
        for number in range(files):
            body = "".join(f"def f{number}_{one}(value: int) -> str:\n    return value\n\n\n" for one in range(20))
            head = f"from package.m{number - 1} import f{number - 1}_0\n\n\n" if number else ""
            (root / "package" / f"m{number}.py").write_text(head + body)
        setting = Setting(root, folder / "scratch", "ty", trusted=True)
        setting.prepare()
        try:
            check(setting, root / "package" / "m0.py")
            before = daemon_megabytes(setting)
            _, found = check(setting)
            check(setting)
            after = daemon_megabytes(setting)
        finally:
            verb(setting, "daemon", "stop")
    return f"{files} files with {sum(found.values())} errors: {before:.0f} MB before, {after:.0f} MB after"


def daemon_megabytes(setting: Setting) -> float:
    return resident(json.loads(verb(setting, "daemon", "status", "--json"))["pid"])


def check(setting: Setting, *files: Path) -> tuple[float, Errors]:
    """Of these files, or of the whole project."""
    began = time.perf_counter()
    what = [*map(str, files)] or ["--project"]
    answer: Any = json.loads(verb(setting, "check", *what, "--json", "--severity", "error", "--skip-missing"))
    took = time.perf_counter() - began
    if answer["meta"]["state"] != "fresh":
        print(f"{answer['meta']['state']}: {answer['meta'].get('reason')}", file=sys.stderr)
    data: dict[str, list[dict[str, Any]]] = answer["data"] or {}
    return took, Counter((path, int(one["line"])) for path, items in data.items() for one in items)


def checked_by_itself(
    project: corpus.Project, server: str, texts: dict[str, str], broken: dict[str, str]
) -> tuple[float, Errors, Errors]:
    """How long the checker takes, and what it finds in both states."""
    with truth.Asker(project, truth.CHECKERS[server]).open() as asker:
        true_broken = asker.ask(broken)
        began = time.perf_counter()
        true = asker.ask(texts)
        return time.perf_counter() - began, _errors(true), _errors(true_broken)


def _errors(found: truth.Findings) -> Errors:
    return Counter((file, one.line) for file, each in found.items() for one in each if one.severity == "error")


if __name__ == "__main__":
    main(sys.argv[1:])
