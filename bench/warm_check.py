"""`pilotfish check` of a whole project: cold, with nothing changed, after one change; beside the checker itself.

    PYTHONPATH=bench python bench/warm_check.py [PROJECT:SERVER:FILE …]

The errors are compared with the checker's own, file by file, in every state.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from told import corpus, truth
from told.subjects import Setting

WHOLE = (
    "httpx:basedpyright:httpx/_utils.py",
    "httpx:ty:httpx/_utils.py",
    "rich:basedpyright:rich/_ratio.py",
    "rxjs:typescript:src/internal/util/noop.ts",
    "cobra:gopls:args.go",
)
"""A project, its server, and the file that is changed: something is added at its end that does not compile."""

MISTAKE = {".py": "\nno_such_name\n", ".ts": "\nno_such_name;\n", ".go": "\nvar mistake int = noSuchName\n"}

Errors = Counter[tuple[str, int]]
"""Files and lines: a checker and its language server word some messages in their own ways."""


def main(chosen: list[str]) -> None:
    print("| project | server | files | checker s | cold s | nothing changed s | × | one changed s | × | equal |")
    print("|---|---|---|---|---|---|---|---|---|---|")
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
        finally:
            subprocess.run(
                _command("daemon", "stop"), cwd=root, env=setting.environment(), check=False, capture_output=True
            )
    equal = [len((a - b) + (b - a)) for a, b in ((said, true), (said_broken, true_broken))]
    verdict = "yes" if not any(equal) else f"no, {equal[0]} and {equal[1]} differ"
    factors = f"{warm:.2f} | {took / warm:.0f} | {changed:.2f} | {took / changed:.1f}"
    return f"| {name} | {server} | {len(texts)} | {took:.1f} | {cold:.1f} | {factors} | {verdict} |"


def check(setting: Setting) -> tuple[float, Errors]:
    began = time.perf_counter()
    words = _command("check", "--project", "--json", "--severity", "error", "--skip-missing")
    done = subprocess.run(words, cwd=setting.root, env=setting.environment(), capture_output=True, check=False)
    took = time.perf_counter() - began
    answer: Any = json.loads(done.stdout)
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


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "pilotfish", *words]


if __name__ == "__main__":
    main(sys.argv[1:])
