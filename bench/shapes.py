"""What `pilotfish.feedback.shapes` misses, how much it names in vain, and how long it takes, on edits of real packages.

`python bench/shapes.py FOLDER [EDITS] [SEED]` edits one file of a copy at a time, asks the command line of basedpyright
which other files that breaks, and looks whether they are among those that may be affected. The exit code says whether
any was missed.
"""

import ast
import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median

from told.edits_python import MAKERS, Places, parsed
from told.source import Made, Source, spliced

from pilotfish.model import AbsPath
from pilotfish.service.diagnostics.affected import AffectedFiles, EditedText
from pilotfish.service.diagnostics.project_words import ProjectWords

ENDINGS = (".py", ".pyi")
VALUES = ("None", '""', "1", "(1, 2)", "[object()]", "(lambda: 1)")

Findings = Mapping[str, frozenset[str]]
"""By path, what is wrong there, without its place."""


def _nodes(text: str, kinds: type[ast.AST] | tuple[type[ast.AST], ...]) -> list[ast.AST]:
    tree = parsed(text)
    return [] if tree is None else [node for node in ast.walk(tree) if isinstance(node, kinds)]


def other_value(source: Source, chance: random.Random) -> Made:
    """Any expression becomes another one."""
    found = [node for node in _nodes(source.text, ast.expr) if isinstance(getattr(node, "ctx", ast.Load()), ast.Load)]
    if not found:
        return None
    node, places, value = chance.choice(found), Places(source.text), chance.choice(VALUES)
    return spliced(source.text, places.start(node), places.end(node), value), f"{ast.unparse(node)[:40]} -> {value}"


def without_statement(source: Source, chance: random.Random) -> Made:
    found = [node for node in _nodes(source.text, ast.stmt) if not isinstance(node, ast.Expr)]
    if not found:
        return None
    node, places = chance.choice(found), Places(source.text)
    first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
    start = places.line_start(first) + node.col_offset
    return spliced(source.text, start, places.end(node), "pass"), f"without {ast.unparse(node)[:60]}"


def dedented(source: Source, chance: random.Random) -> Made:
    """A method leaves its class."""
    found = [one for node in _nodes(source.text, ast.ClassDef) for one in node.body if isinstance(one, ast.FunctionDef)]
    if not found:
        return None
    node, lines = chance.choice(found), source.text.split("\n")
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)]) - 1
    for number in range(first, len(lines)):
        if number < node.end_lineno or not lines[number].strip():
            lines[number] = lines[number][node.col_offset :]
        else:
            break
    return "\n".join(lines), f"dedent {node.name}"


def without_annotation(source: Source, chance: random.Random) -> Made:
    found = [one for one in _nodes(source.text, (ast.FunctionDef, ast.AsyncFunctionDef)) if one.returns is not None]
    if not found:
        return None
    node, places = chance.choice(found), Places(source.text)
    start = source.text.rindex("->", 0, places.start(node.returns))
    return spliced(source.text, start, places.end(node.returns), ""), f"{node.name} without its result"


EDITS: Mapping[str, Callable[[Source, random.Random], Made]] = {
    **MAKERS,
    "other-value": other_value,
    "without-statement": without_statement,
    "dedented": dedented,
    "without-annotation": without_annotation,
}


def check(root: Path) -> Findings:
    argv = [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(root)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    found = defaultdict[str, set[str]](set)
    for one in json.loads(done.stdout)["generalDiagnostics"]:
        if one["severity"] == "error":
            found[os.path.relpath(one["file"], root)].add(f"{one.get('rule')} {one['message']}")
    return {path: frozenset(messages) for path, messages in found.items()}


def random_edits(root: Path, count: int, seed: int) -> Iterator[tuple[str, str, str, str]]:
    """The kind, the path, the new text, and what was done."""
    chance = random.Random(seed)
    paths = sorted(path for path in root.rglob("*.py") if path.stat().st_size > 100)
    for number in range(count):
        kind = list(EDITS)[number % len(EDITS)]
        for _ in range(40):
            path = chance.choice(paths)
            text = path.read_text()
            made = EDITS[kind](Source(str(path), text, lambda _: True), chance)
            if made is not None and made[0] != text:
                yield kind, str(path.relative_to(root)), *made
                break


async def run(root: Path, count: int, seed: int) -> int:
    words = ProjectWords()
    affected, missed = AffectedFiles(words), 0
    before, times, sizes = check(root), list[float](), defaultdict[str, list[int]](list)
    broken_of = defaultdict[str, int](int)
    for kind, path, text, done in random_edits(root, count, seed):
        file = root / path
        old = file.read_text()
        edit = EditedText(AbsPath(str(file)), old, text)
        started = time.perf_counter()
        found = await affected.of_edits(AbsPath(str(root)), [edit], ENDINGS, 600.0)
        times.append(time.perf_counter() - started)
        named = {os.path.relpath(one, root) for one in found.files}
        file.write_text(text)
        after = check(root)
        file.write_text(old)
        broken = {one for one, messages in after.items() if one != path and messages - before.get(one, frozenset())}
        sizes[kind].append(len(named))
        broken_of[kind] += len(broken)
        if broken - named:
            missed += 1
            print("MISSED", path, done, sorted(broken - named), flush=True)
    for kind, found in sorted(sizes.items()):
        print(
            f"{kind:20} edits {len(found):3}  named {sum(found):5}  median {median(found):5}  broken {broken_of[kind]}"
        )
    print(f"missed in {missed} edits; first {times[0] * 1e3:.0f} ms, later median {median(times[1:]) * 1e3:.0f} ms")
    return missed


def main() -> int:
    folder, count, seed = Path(sys.argv[1]), int((sys.argv[2:] or ["60"])[0]), int((sys.argv[3:] or ["1"])[0])
    with tempfile.TemporaryDirectory() as made:
        root = Path(os.path.realpath(made)) / folder.name
        shutil.copytree(folder, root, ignore=shutil.ignore_patterns(".git", "examples", "__pycache__"))
        settings = {"typeCheckingMode": "standard", "pythonPath": sys.executable}
        (root / "pyrightconfig.json").write_text(json.dumps(settings))
        return bool(asyncio.run(run(root, count, seed)))


if __name__ == "__main__":
    sys.exit(main())
