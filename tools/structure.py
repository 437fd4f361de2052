"""Lists what makes the tree hard to find one's way in: `python3 tools/structure.py [crowded|names|circles|small]`.

- crowded: folders with more than 25 modules
- names: public types that are defined in more than one module
- circles: modules that import each other, lazily or through others, or under `TYPE_CHECKING`
- small: modules under 40 lines that one other module imports

`tests/package/test_structure.py` keeps the first three empty, but for the exceptions that it gives a reason for.
Standard library only.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
MOST_MODULES = 25
SMALL_LINES = 40


def modules() -> dict[str, Path]:
    """Every module by its dotted name."""
    found: dict[str, Path] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def crowded() -> list[str]:
    counted: dict[Path, int] = defaultdict(int)
    for path in modules().values():
        counted[path.parent] += path.name != "__init__.py"
    return [f"{folder.relative_to(SOURCE)}: {count}" for folder, count in counted.items() if count > MOST_MODULES]


def repeated_names() -> dict[str, list[str]]:
    """Public classes and type aliases that several modules define, with those modules."""
    defined: dict[str, list[str]] = defaultdict(list)
    for module, path in modules().items():
        for name in _types(ast.parse(path.read_text())):
            defined[name].append(module)
    return {name: places for name, places in sorted(defined.items()) if len(places) > 1}


def circles() -> list[list[str]]:
    """Groups of modules of which each reaches every other one by imports (Tarjan's strongly connected components)."""
    graph = imports()
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in graph[module]:
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            at = stack.index(module)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for module in graph:
        if module not in index:
            visit(module)
    return sorted(group for group in found if len(group) > 1)


def small() -> list[str]:
    """Modules that could be a part of the one module that imports them."""
    importers: dict[str, set[str]] = defaultdict(set)
    for module, others in imports().items():
        for other in others:
            importers[other].add(module)
    lines = {module: len(path.read_text().splitlines()) for module, path in modules().items()}
    return [
        f"{module} ({lines[module]} lines) <- {next(iter(users))}"
        for module, users in sorted(importers.items())
        if len(users) == 1 and 0 < lines[module] < SMALL_LINES
    ]


def imports() -> Mapping[str, list[str]]:
    """What each module imports of ours, anywhere in it."""
    known = modules()
    return {
        module: sorted(set(_imported(ast.parse(path.read_text()), known)) - {module}) for module, path in known.items()
    }


def _imported(tree: ast.Module, known: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in names if name in known)
            if node.module in known and not all(name in known for name in names):
                yield node.module


def _types(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
            is_type = isinstance(value, ast.Subscript | ast.BinOp | ast.Name) and not name.isupper()
            if is_type and name[0].isupper() and len(name) > 1:
                yield name


def main() -> None:
    wanted = sys.argv[1:] or ["crowded", "names", "circles", "small"]
    listed = {
        "crowded": crowded,
        "names": lambda: [f"{name}: {', '.join(places)}" for name, places in repeated_names().items()],
        "circles": lambda: [" ⇄ ".join(group) for group in circles()],
        "small": small,
    }
    for what in wanted:
        lines = listed[what]()
        print(f"{what}: {len(lines)}", *(f"  {line}" for line in lines), sep="\n")


if __name__ == "__main__":
    main()
