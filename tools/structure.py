"""Lists what makes the tree hard to find one's way in: `python3 tools/structure.py [LIST…]`.

- crowded: folders with more than 25 modules
- names: public types that are defined in more than one module
- circles: modules that import each other, lazily or through others, by `import_module`, or under `TYPE_CHECKING`
- long: functions over 40 lines and modules over 500, as Style has it
- small: modules under 40 lines that one other module imports
- layers: lines of each layer

`tests/package/test_structure.py` keeps the first four empty, but for the exceptions that it gives a reason for.
Standard library only.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
MOST_MODULES = 25
SMALL_LINES = 40
MOST_FUNCTION_LINES = 40
MOST_MODULE_LINES = 500


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


def long() -> dict[str, int]:
    """Functions and modules with more lines than they may have."""
    found: dict[str, int] = {}
    for module, path in modules().items():
        text = path.read_text()
        if (lines := len(text.splitlines())) > MOST_MODULE_LINES:
            found[module] = lines
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                lines = node.end_lineno - node.lineno + 1
                if lines > MOST_FUNCTION_LINES:
                    found[f"{module}.{node.name}"] = lines
    return found


def layers() -> list[str]:
    """Lines of each package below `src`, and of each layer of ours, the largest first."""
    counted: dict[str, int] = defaultdict(int)
    for module, path in modules().items():
        lines = len(path.read_text().splitlines())
        package, *rest = module.split(".")
        counted[package] += lines
        if rest:
            counted[f"{package}.{rest[0]}"] += lines
    return [f"{lines:6} {layer}" for layer, lines in sorted(counted.items(), key=lambda one: (-one[1], one[0]))]


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
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            yield from _imported_by_name(node.args[0], tree, known)


def _imported_by_name(name: ast.expr, tree: ast.Module, known: Mapping[str, Path]) -> Iterator[str]:
    """What `import_module` may import: the module of that name.

    Where a part of the name varies, it is any one word, or any text that the importing module has as a constant.
    """
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    varying = "|".join(["[^.]+", *map(re.escape, sorted(words))])
    parts = name.values if isinstance(name, ast.JoinedStr) else [name]
    pattern = "".join(
        re.escape(str(part.value)) if isinstance(part, ast.Constant) else f"({varying})" for part in parts
    )
    yield from (module for module in known if re.fullmatch(pattern, module))


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
    wanted = sys.argv[1:] or ["crowded", "names", "circles", "long", "small", "layers"]
    listed = {
        "crowded": crowded,
        "names": lambda: [f"{name}: {', '.join(places)}" for name, places in repeated_names().items()],
        "circles": lambda: [" ⇄ ".join(group) for group in circles()],
        "long": lambda: [f"{name}: {lines} lines" for name, lines in sorted(long().items())],
        "small": small,
        "layers": layers,
    }
    for what in wanted:
        lines = listed[what]()
        print(f"{what}: {len(lines)}", *(f"  {line}" for line in lines), sep="\n")


if __name__ == "__main__":
    main()
