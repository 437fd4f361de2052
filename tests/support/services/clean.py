"""Is a file with an error ever called clean and fresh? A case: a project without errors, a change, a question at once.

The matrix is server × case (`CASES`), each asked as the hook asks (`touched`) and as a person does (`check`).
`bench/clean.py` plays all of it, `tests/faults/test_clean.py` a sample.
"""

import json
import mmap
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pilotfish.api.answers import State
from pilotfish.api.questions import Touch
from pilotfish.system.ports import OpenWatcher
from pilotfish.system.watching.watcher import open_watcher
from support.services.real import CLONE, RealService, only, real_service
from support.watching.short_of import watches_for

Way = Literal["check", "hook"]
WAYS: tuple[Way, ...] = ("check", "hook")

MAX_WORDS = 160
"""Of what is said in place of a verdict."""

MAX_TRIES = 5
"""Of a first answer: a cold server on a busy machine may need more than one."""

RIGHT, WRONG = "fresh", "FALSE CLEAN"

Change = Callable[[Path], None]


@dataclass(frozen=True)
class Case:
    """`files` are below the workspace, which they may leave with `..`; the first one is asked about."""

    server: str
    name: str
    files: Mapping[str, str]
    change: Change
    error: str
    """What the server says of the file that is asked about, after the change and not before."""
    prepare: Change = field(default=lambda _root: None)
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the user's configuration says of the server."""
    trusted: bool = True
    cold: bool = False
    """Nothing is asked before the change."""
    watch: OpenWatcher = open_watcher
    needs: str | None = None
    """A variable of the environment without which it cannot be played."""

    @property
    def main(self) -> str:
        return next(iter(self.files))

    def __str__(self) -> str:
        return f"{self.server}: {self.name}"


async def play(case: Case, way: Way, folder: Path) -> str:
    """What came of it: `fresh` and right, another state with its reason, or a false clean."""
    root = folder / "workspace"
    root.mkdir(parents=True)
    for name, text in case.files.items():
        write(root / name, text)
    case.prepare(root)
    config = only(case.server)
    config["lsp"][case.server] = case.options
    if not case.trusted:
        config["security"] = {}
    config["feedback"] = {"includeSeverities": ["error", "warning"]}
    async with real_service(folder, config, watch=case.watch) as real:
        if not case.cold:
            before, found = await _ask(real, case, way)
            for _ in range(MAX_TRIES if before is not State.FRESH else 0):
                before, found = await _ask(real, case, way)
            if case.error in found:
                return f"not clean before: {found[:MAX_WORDS]}"
        case.change(root)
        state, found = await _ask(real, case, way)
    if case.error in found:
        return RIGHT if state is State.FRESH else f"{state}, right"
    said = " ".join(found.replace(str(root), "…").split())[:MAX_WORDS]
    return f"{WRONG} {said}" if state is State.FRESH else f"{state}: {said}"


async def _ask(real: RealService, case: Case, way: Way) -> tuple[State, str]:
    if way == "hook":
        feedback = await real.service.touched(Touch((case.main,), "edit"), real.client)
        return feedback.state, feedback.text or feedback.reason or ""
    answer = await real.service.check(real.client, (case.main,))
    found = [one.message for items in (answer.data or {}).values() for one in items if one.severity != "hint"]
    return answer.meta.state, "; ".join(found) or answer.meta.reason or ""


# --- Changes ---------------------------------------------------------------------------------------------------------


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def writes(name: str, text: str) -> Change:
    return lambda root: write(root / name, text)


def in_place(name: str, text: str) -> Change:
    """The same size and time, another text."""

    def change(root: Path) -> None:
        path, before = root / name, (root / name).stat()
        assert before.st_size == len(text.encode())
        with path.open("r+") as file:
            file.write(text)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    return change


def mapped(name: str, text: str) -> Change:
    """Of the same size, through a memory mapping: no write is told of, and only the end of the mapping is."""

    def change(root: Path) -> None:
        assert (root / name).stat().st_size == len(text.encode())
        with (root / name).open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            memory[:] = text.encode()

    return change


def deletes(name: str) -> Change:
    return lambda root: (root / name).unlink()


def replaces_folder(name: str, files: Mapping[str, str]) -> Change:
    """As package managers do: the old one is removed and the new one put in its place."""

    def change(root: Path) -> None:
        shutil.rmtree(root / name)
        for inside, text in files.items():
            write(root / name / inside, text)

    return change


def both(*changes: Change) -> Change:
    def change(root: Path) -> None:
        for one in changes:
            one(root)

    return change


def links(name: str, target: str) -> Change:
    return lambda root: (root / name).symlink_to(target)


def relinks(name: str, target: str) -> Change:
    """As `ln -sfn` does."""

    def change(root: Path) -> None:
        (root / f"{name}.new").symlink_to(target)
        os.replace(root / f"{name}.new", root / name)

    return change


def links_hard(name: str, target: str) -> Change:
    return lambda root: os.link(root / target, root / name)


def repository(root: Path) -> None:
    (root / ".git").mkdir()


# --- Cases -----------------------------------------------------------------------------------------------------------

NATIVE = "typescript-native"

HOME = "../home"
"""Of the user, from the workspace."""

RUST_SOURCE = "RUST_SRC_PATH"
"""The variable that names the source of Rust's standard library."""

PYTHON_WRONG = {
    "basedpyright": "is not assignable to declared type",
    "pyright": "is not assignable to declared type",
    "ty": "is not assignable to",
    "pyrefly": "is not assignable to",
    "zuban": "Incompatible types in assignment",
}
PYTHON_MISSING = {
    "basedpyright": "could not be resolved",
    "pyright": "could not be resolved",
    "ty": "Cannot resolve imported module",
    "pyrefly": "Cannot find module",
    "zuban": "Cannot find implementation or library stub",
}
PYTHON_CONFIGURATION = {
    "basedpyright": ("pyrightconfig.json", '{"typeCheckingMode": "off"}', '{"typeCheckingMode": "standard"}'),
    "pyright": ("pyrightconfig.json", '{"typeCheckingMode": "off"}', '{"typeCheckingMode": "standard"}'),
    "ty": ("ty.toml", '[rules]\ninvalid-assignment = "ignore"\n', '[rules]\ninvalid-assignment = "error"\n'),
    "pyrefly": ("pyrefly.toml", "[errors]\nbad-assignment = false\n", "[errors]\nbad-assignment = true\n"),
    "zuban": ("mypy.ini", "[mypy]\ndisable_error_code = assignment\n", "[mypy]\nenable_error_code = assignment\n"),
}
PYTHON_ELSEWHERE = {
    "ty": {"configuration above": "../ty.toml", "configuration at home": f"{HOME}/.config/ty/ty.toml"},
    "pyrefly": {"configuration above": "../pyrefly.toml", "configuration in .pyrefly.toml": ".pyrefly.toml"},
    "zuban": {"configuration above": "../mypy.ini", "configuration in .mypy.ini": ".mypy.ini"},
}
"""Where else they look for what configures them."""
OUTSIDE_PYTHON = {
    "basedpyright": {"pyrightconfig.json": '{"extraPaths": ["../lib"]}'},
    "pyright": {"pyrightconfig.json": '{"extraPaths": ["../lib"]}'},
    "ty": {"ty.toml": '[environment]\nextra-paths = ["../lib"]\n'},
    "pyrefly": {"pyrefly.toml": 'search-path = [".", "../lib"]\n'},
    "zuban": {"mypy.ini": "[mypy]\nmypy_path = ../lib\n"},
}
FINE, BAD = "value: int = 1\n", 'value: str = "a"\n'
PROJECT = {"pyproject.toml": '[project]\nname = "x"\nversion = "1"\n'}
SITE = ".venv/lib/python3.11/site-packages"


def python_cases(server: str) -> list[Case]:
    error = PYTHON_WRONG[server]
    make = partial(Case, server, error=error)
    name, off, on = PYTHON_CONFIGURATION[server]
    uses = {"main.py": "from {} import value\n\nx: int = value\n"}

    def using(module: str) -> dict[str, str]:
        return {"main.py": uses["main.py"].format(module), **PROJECT}

    venv = {".venv/pyvenv.cfg": "home = /usr/bin\nversion = 3.11.2\n", ".gitignore": ".venv/",
            f"{SITE}/pkg/py.typed": ""}  # fmt: skip
    cases = [
        make("same size and time", {"main.py": "x: int = 12345\n", **PROJECT},
             change=in_place("main.py", 'x: int = "123"\n')),
        make("another file", {**using("lib"), "lib.py": FINE}, change=writes("lib.py", BAD)),
        make("another file deleted", {**using("lib"), "lib.py": FINE}, change=deletes("lib.py"),
             error=PYTHON_MISSING[server]),
        make("configuration", {"main.py": 'x: int = "a"\n', **PROJECT, name: off}, change=writes(name, on)),
        make("generated, ignored", {**using("gen.api"), "gen/__init__.py": "", "gen/api.py": FINE,
                                    ".gitignore": "gen/\n"},
             change=writes("gen/api.py", BAD), prepare=repository),
        make("package upgraded", {**using("pkg"), **venv, f"{SITE}/pkg/__init__.py": FINE,
                                  f"{SITE}/pkg-1.dist-info/METADATA": "Name: pkg\nVersion: 1\n"},
             change=both(replaces_folder(f"{SITE}/pkg", {"__init__.py": BAD, "py.typed": ""}),
                         lambda root: os.rename(root / SITE / "pkg-1.dist-info", root / SITE / "pkg-2.dist-info")),
             prepare=repository),
        make("inside of a package", {**using("pkg.inner"), **venv, f"{SITE}/pkg/__init__.py": "",
                                     f"{SITE}/pkg/inner.py": FINE},
             change=writes(f"{SITE}/pkg/inner.py", BAD), prepare=repository),
        make("inside of a package, same size and time", {**using("pkg"), **venv,
                                                         f"{SITE}/pkg/__init__.py": "value: int = 100\n"},
             change=in_place(f"{SITE}/pkg/__init__.py", BAD), prepare=repository),
        make("outside folder", {**using("outer"), **OUTSIDE_PYTHON[server], "../lib/outer.py": FINE},
             change=writes("../lib/outer.py", BAD)),
        make("linked folder", {**using("linked.lib"), "../elsewhere/__init__.py": "", "../elsewhere/lib.py": FINE},
             change=writes("../elsewhere/lib.py", BAD), prepare=links("linked", "../elsewhere")),
        make("link inside", {**using("linked.lib"), "real/__init__.py": "", "real/lib.py": FINE},
             change=writes("real/lib.py", BAD), prepare=links("linked", "real")),
        make("switched link", {**using("linked.lib"), "../one/lib.py": FINE, "../two/lib.py": BAD},
             change=relinks("../current", "two"),
             prepare=both(links("../current", "one"), links("linked", "../current"))),
        make("switched link inside", {**using("linked.lib"), "one/lib.py": FINE, "two/lib.py": BAD},
             change=relinks("linked", "two"), prepare=links("linked", "one")),
        make("link to a link inside", {**using("linked.lib"), "real/deep/lib.py": FINE},
             change=writes("real/deep/lib.py", BAD),
             prepare=both(links("step", "real"), links("linked", "step/deep"))),
        make("switched file", {**using("lib"), "one.py": FINE, "two.py": BAD},
             change=relinks("lib.py", "two.py"), prepare=links("lib.py", "one.py")),
        make("another file, same size and time", {**using("lib"), "lib.py": "value: int = 100\n"},
             change=in_place("lib.py", BAD)),
        make("hard link", {**using("lib"), "../other/lib.py": FINE},
             change=writes("../other/lib.py", BAD), prepare=links_hard("lib.py", "../other/lib.py")),
        make("memory mapping", {**using("lib"), "lib.py": "value: int = 100\n"}, change=mapped("lib.py", BAD)),
        make("few watches", {**using("a.b.c.lib"), "a/b/c/lib.py": FINE}, change=writes("a/b/c/lib.py", BAD),
             watch=watches_for(1)),
    ]  # fmt: skip
    cases += [
        make(title, {"main.py": 'x: int = "a"\n', place: off}, change=writes(place, on))
        for title, place in PYTHON_ELSEWHERE.get(server, {}).items()
    ]
    if server == "basedpyright":
        known = [{"code": "reportAssignmentType", "range": {"startColumn": 9, "endColumn": 12, "lineCount": 1}}]
        baseline = {".basedpyright/baseline.json": json.dumps({"files": {"./main.py": known}})}
        cases.append(
            make("configuration: baseline deleted", {"main.py": 'x: int = "a"\n', **PROJECT, **baseline},
                 change=deletes(".basedpyright/baseline.json"))
        )  # fmt: skip
    if "pyright" in server:
        extending = {"pyrightconfig.json": '{"extends": "base/base.json"}', "base/base.json": off}
        cases.append(
            make("extended configuration", {"main.py": 'x: int = "a"\n', **PROJECT, **extending},
                 change=writes("base/base.json", on))
        )  # fmt: skip
    return cases


def typescript_cases(server: str) -> list[Case]:
    make = partial(Case, server, error="is not assignable to type")
    strict, loose = '{"compilerOptions": {"strict": true}}', '{"compilerOptions": {"strict": false}}'
    fine, bad = "export const value: number = 1;\n", 'export const value: string = "a";\n'
    project = {"tsconfig.json": strict, "package.json": '{"name": "x"}'}
    package = {"package.json": '{"name": "pkg", "version": "1.0.0", "types": "index.d.ts"}'}

    installed = {f"node_modules/pkg/{name}": text for name, text in package.items()}

    def using(module: str) -> dict[str, str]:
        return {"main.ts": f'import {{ value }} from "{module}";\nexport const x: number = value;\n', **project}

    null = {"main.ts": "export const x: number = null;\n"}
    if server == NATIVE:
        # The project has this version, or the server does not fit it; the program is the one of `native-preview`.
        make = partial(make, options={"command": ["tsgo", "--lsp", "--stdio"]})
        project["node_modules/typescript/package.json"] = '{"name": "typescript", "version": "7.0.2"}'
    own = {name: text for name, text in project.items() if name != "tsconfig.json"}
    # Others look for it below the root alone.
    above = [make("configuration above", {**null, **own, "../tsconfig.json": loose},
                  change=writes("../tsconfig.json", strict))] if server == NATIVE else []  # fmt: skip
    return [
        *above,
        make("same size and time", {"main.ts": "export const x: number = 12345;\n", **project},
             change=in_place("main.ts", 'export const x: number = "123";\n')),
        make("another file", {**using("./lib"), "lib.ts": fine}, change=writes("lib.ts", bad)),
        make("another file deleted", {**using("./lib"), "lib.ts": fine}, change=deletes("lib.ts"),
             error="Cannot find module"),
        make("configuration", {**null, **project, "tsconfig.json": loose}, change=writes("tsconfig.json", strict)),
        make("extended configuration", {**null, **project, "tsconfig.json": '{"extends": "../base/tsconfig.json"}',
                                        "../base/tsconfig.json": loose},
             change=writes("../base/tsconfig.json", strict)),
        make("package.json, no module any more", {"main.ts": "export const x = await Promise.resolve(1);\n", **project,
                 "tsconfig.json": '{"compilerOptions": {"module": "node16", "target": "es2022"}}',
                 "package.json": '{"type": "module"}'},
             change=writes("package.json", '{"type": "commonjs"}'), error="await"),
        make("generated, ignored", {**using("./gen/api"), "gen/api.ts": fine, ".gitignore": "gen/\n"},
             change=writes("gen/api.ts", bad), prepare=repository),
        make("package upgraded", {**using("pkg"), **installed,
                                  "node_modules/pkg/index.d.ts": "export declare const value: number;\n",
                                  "node_modules/.package-lock.json": '{"packages": {"pkg": "1"}}\n'},
             change=both(replaces_folder("node_modules/pkg", {
                 **package, "index.d.ts": "export declare const value: string;\n"}),
                 writes("node_modules/.package-lock.json", '{"packages": {"pkg": "2"}}\n'))),
        make("inside of a package", {**using("pkg"), **installed,
                                     "node_modules/pkg/index.d.ts": 'export { value } from "./lib/inner";\n',
                                     "node_modules/pkg/lib/inner.d.ts": "export declare const value: number;\n"},
             change=writes("node_modules/pkg/lib/inner.d.ts", "export declare const value: string;\n")),
        make("inside of a package, same size and time", {**using("pkg"), **installed,
                "node_modules/pkg/index.d.ts": "export declare const value: number;\n"},
             change=in_place("node_modules/pkg/index.d.ts", "export declare const value: string;\n")),
        make("types of a package", {**using("pkg"), **installed,
                                    "node_modules/pkg/index.d.ts": "export declare const value: number;\n",
                                    "node_modules/pkg/other.d.ts": "export declare const value: string;\n"},
             change=writes("node_modules/pkg/package.json", package["package.json"].replace("index", "other"))),
        make("outside folder", {**using("../lib/outer"), "../lib/outer.ts": fine},
             change=writes("../lib/outer.ts", bad)),
        make("linked folder", {**using("./linked/lib"), "../elsewhere/lib.ts": fine},
             change=writes("../elsewhere/lib.ts", bad), prepare=links("linked", "../elsewhere")),
        make("link inside", {**using("./linked/lib"), "real/lib.ts": fine},
             change=writes("real/lib.ts", bad), prepare=links("linked", "real")),
        make("switched link", {**using("./linked/lib"), "../one/lib.ts": fine, "../two/lib.ts": bad},
             change=relinks("../current", "two"),
             prepare=both(links("../current", "one"), links("linked", "../current"))),
        make("switched link inside", {**using("./linked/lib"), "one/lib.ts": fine, "two/lib.ts": bad},
             change=relinks("linked", "two"), prepare=links("linked", "one")),
        make("link to a link inside", {**using("./linked/lib"), "real/deep/lib.ts": fine},
             change=writes("real/deep/lib.ts", bad),
             prepare=both(links("step", "real"), links("linked", "step/deep"))),
        make("switched file", {**using("./lib"), "one.ts": fine, "two.ts": bad},
             change=relinks("lib.ts", "two.ts"), prepare=links("lib.ts", "one.ts")),
        make("another file, same size and time", {**using("./lib"), "lib.ts": "export const value: number = 100;\n"},
             change=in_place("lib.ts", bad)),
        make("hard link", {**using("./lib"), "../other/lib.ts": fine},
             change=writes("../other/lib.ts", bad), prepare=links_hard("lib.ts", "../other/lib.ts")),
        make("memory mapping", {**using("./lib"), "lib.ts": "export const value: number = 100;\n"},
             change=mapped("lib.ts", bad)),
        make("few watches", {**using("./a/b/c/lib"), "a/b/c/lib.ts": fine}, change=writes("a/b/c/lib.ts", bad),
             watch=watches_for(1)),
    ]  # fmt: skip


def ruff_cases() -> list[Case]:
    """It reads no other sources: what counts is the file, and every file that configures it."""
    make = partial(Case, "ruff", error="imported but unused")
    fine, bad = "[lint]\nselect = []\n", '[lint]\nselect = ["F401"]\n'
    main = {"main.py": "import os\n"}
    pyproject = '[project]\nname = "x"\nversion = "1"\n\n[tool.ruff.lint]\nselect = [{}]\n'
    return [
        make("same size and time", {"main.py": "x = 0   # abc\n", "ruff.toml": bad},
             change=in_place("main.py", "import os # a\n")),
        make("configuration", {**main, "ruff.toml": fine}, change=writes("ruff.toml", bad)),
        make("configuration in pyproject.toml", {**main, "pyproject.toml": pyproject.format("")},
             change=writes("pyproject.toml", pyproject.format('"F401"'))),
        make("configuration made", {**main, "pyproject.toml": pyproject.format("")}, change=writes("ruff.toml", bad)),
        make("extended configuration", {**main, "ruff.toml": 'extend = "base/base.toml"\n', "base/base.toml": fine},
             change=writes("base/base.toml", bad)),
        make("extended outside", {**main, "pyproject.toml": '[tool.ruff]\nextend = "../base.toml"\n',
                                  "../base.toml": fine}, change=writes("../base.toml", bad)),
        make("configuration below", {"a/b/main.py": "import os\n", "ruff.toml": fine, "a/ruff.toml": fine},
             change=writes("a/ruff.toml", bad)),
        make("generated, ignored", {"gen/main.py": "import os\n", "ruff.toml": fine, "gen/ruff.toml": fine,
                                    ".gitignore": "gen/\n"}, change=writes("gen/ruff.toml", bad), prepare=repository),
        make("hard link", {"main.py": "x = 1\n", "ruff.toml": bad, "../other/main.py": "x = 1\n"},
             change=writes("../other/main.py", "import os\n"),
             prepare=both(lambda root: (root / "main.py").unlink(), links_hard("main.py", "../other/main.py"))),
        make("package without __init__.py", {"pkg/main.py": "x = 1\n", "pkg/__init__.py": "",
                                             "ruff.toml": '[lint]\nselect = ["INP001"]\n'},
             change=deletes("pkg/__init__.py"), error="implicit namespace package"),
        *(make(f"module made in {place}", {"main.py": "import alpha\nimport requests\n",
                                           "ruff.toml": '[lint]\nselect = ["I001"]\n', "src/other.py": ""},
               change=writes(f"{place}/alpha{ending}", ""), error="un-sorted")
          for place, ending in ((".", ".py"), ("src", "/__init__.py"))),
        make("few watches", {"a/b/main.py": "import os\n", "ruff.toml": fine, "a/b/ruff.toml": fine},
             change=writes("a/b/ruff.toml", bad), watch=watches_for(1)),
    ]  # fmt: skip


def go_cases() -> list[Case]:
    make = partial(Case, "gopls", error="cannot use")
    mod = "module example.com/x\n\ngo 1.19\n"
    fine, bad = "package {}\n\nconst Value int = 1\n", 'package {}\n\nconst Value string = "a"\n'

    def using(module: str, package: str) -> dict[str, str]:
        imports = (
            f'package main\n\nimport "{module}"\n\nfunc main() {{\n\tvar x int = {package}.Value\n\tprintln(x)\n}}\n'
        )
        return {"main.go": imports, "go.mod": mod}

    replaced = f"{mod}\nrequire example.com/y v0.0.0\n\nreplace example.com/y => ../y\n"
    return [
        make("another file", {**using("example.com/x/lib", "lib"), "lib/lib.go": fine.format("lib")},
             change=writes("lib/lib.go", bad.format("lib"))),
        make("generated, ignored", {**using("example.com/x/gen", "gen"), "gen/gen.go": fine.format("gen"),
                                    ".gitignore": "gen/\n"},
             change=writes("gen/gen.go", bad.format("gen")), prepare=repository),
        make("outside folder", {**using("example.com/y", "y"), "go.mod": replaced,
                                "../y/go.mod": mod.replace("/x", "/y"), "../y/y.go": fine.format("y")},
             change=writes("../y/y.go", bad.format("y"))),
        make("hard link", {**using("example.com/x/lib", "lib"), "../other/lib.go": fine.format("lib"), "lib/doc.go":
                           "package lib\n"}, change=writes("../other/lib.go", bad.format("lib")),
             prepare=links_hard("lib/lib.go", "../other/lib.go")),
        make("another file, same size and time", {**using("example.com/x/lib", "lib"),
                                                  "lib/lib.go": fine.format("lib") + "////\n"},
             change=in_place("lib/lib.go", bad.format("lib"))),
        make("memory mapping", {**using("example.com/x/lib", "lib"), "lib/lib.go": fine.format("lib") + "////\n"},
             change=mapped("lib/lib.go", bad.format("lib"))),
        make("few watches", {**using("example.com/x/a/b/c", "c"), "a/b/c/c.go": fine.format("c")},
             change=writes("a/b/c/c.go", bad.format("c")), watch=watches_for(1)),
        make("cgo only, untrusted", {"main.go": 'package main\n\n// int one(void) { return 1; }\nimport "C"\n\n'
                                     'func main() { var x int = "a"; println(x, C.one()) }\n', "go.mod": mod},
             change=lambda _root: None, cold=True, trusted=False),
        make("embedded file deleted", {"main.go": 'package main\n\nimport _ "embed"\n\n//go:embed t.txt\n'
                                       'var text string\n\nfunc main() { println(text) }\n', "t.txt": "a\n",
                                       "go.mod": mod}, change=deletes("t.txt"), error="pattern t.txt"),
        make("configuration", {"main.go": "package main\n\nfunc one[T any](x T) {}\n\nfunc main() { one(1) }\n",
                               "go.mod": mod}, change=writes("go.mod", mod.replace("1.19", "1.17")), error="go1.18"),
        make("configuration above", {**using("example.com/y", "y"), "../y/go.mod": mod.replace("/x", "/y"),
                                     "../y/y.go": fine.format("y"),
                                     "../go.work": "go 1.19\n\nuse (\n\t./workspace\n\t./y\n)\n"},
             change=writes("../go.work", "go 1.19\n\nuse ./workspace\n"), error="example.com/y"),
        make("cgo, first answer", {"main.go": 'package main\n\n// int one(void) { return 1; }\nimport "C"\n\n'
                                   'func main() { var x int = "a"; println(x, C.one()) }\n', "go.mod": mod},
             change=lambda _root: None, cold=True),
    ]  # fmt: skip


STEERED = {"main.c": "int shared(int a, int b);\nint other(void) { return shared(1 ONE); }\n"}


def database(name: str, one: str) -> Change:
    """Write a compilation database in which `ONE` is defined as this."""

    def change(root: Path) -> None:
        command = {"directory": str(root), "file": "main.c", "arguments": ["cc", f"-DONE={one}", "-c", "main.c"]}
        write(root / name, json.dumps([command]) + "\n")

    return change


def c_cases() -> list[Case]:
    make = partial(Case, "clangd", error="Too few arguments")
    fine, bad = "int shared(int a);\n", "int shared(int a, int b);\n"
    main = {"main.c": '#include "shared.h"\n\nint used(void) { return shared(1); }\n'}
    return [
        make("another file", {**main, "shared.h": fine, "compile_flags.txt": "-xc\n"}, change=writes("shared.h", bad)),
        make("another file, same size and time", {**main, "shared.h": "int shared(int a); //////\n",
                                                  "compile_flags.txt": "-xc\n"}, change=in_place("shared.h", bad)),
        make("memory mapping", {**main, "shared.h": "int shared(int a); //////\n", "compile_flags.txt": "-xc\n"},
             change=mapped("shared.h", bad)),
        make("generated, ignored", {**main, "build/gen/shared.h": fine, "compile_flags.txt": "-xc\n-Ibuild/gen\n",
                                    ".gitignore": "build/\n"},
             change=writes("build/gen/shared.h", bad), prepare=repository),
        make("outside folder", {**main, "../ext/shared.h": fine, "compile_flags.txt": "-xc\n-I../ext\n"},
             change=writes("../ext/shared.h", bad)),
        make("configuration", {"main.c": "#ifdef WRONG\nint used(void) { return shared(1); }\n#endif\n"
                               "int shared(int a, int b);\nint other(void) { return shared(1 ONE); }\n",
                               "compile_flags.txt": "-xc\n-DONE=,1\n"},
             change=writes("compile_flags.txt", "-xc\n-DONE=\n")),
        make("database", STEERED, prepare=database("compile_commands.json", ",1"),
             change=database("compile_commands.json", "")),
        make("database made", {**STEERED, ".clangd": "CompileFlags: {Add: ['-DONE=,1']}\n"},
             change=both(database("build/compile_commands.json", ""), deletes(".clangd"))),
        make("linked database", STEERED, change=database("out/compile_commands.json", ""),
             prepare=both(database("out/compile_commands.json", ",1"),
                          links("compile_commands.json", "out/compile_commands.json"))),
        make(".clangd", {**STEERED, ".clangd": "CompileFlags: {Add: ['-DONE=,1']}\n"},
             change=writes(".clangd", "CompileFlags: {Add: ['-DONE=']}\n")),
        make("configuration at home", {**STEERED, f"{HOME}/.config/clangd/config.yaml":
                                       "CompileFlags: {Add: ['-DONE=,1']}\n", "compile_flags.txt": "-xc\n"},
             change=writes(f"{HOME}/.config/clangd/config.yaml", "CompileFlags: {Add: ['-DONE=']}\n")),
        make(".clangd above", {**STEERED, "compile_flags.txt": "-xc\n",
                               "../.clangd": "CompileFlags: {Add: ['-DONE=,1']}\n"},
             change=writes("../.clangd", "CompileFlags: {Add: ['-DONE=']}\n")),
    ]  # fmt: skip


def data_cases() -> list[Case]:
    # Of shellcheck, which is to be on the `PATH`.
    script, silent, unset = '#!/bin/bash\necho "$x"\n', "disable=SC2154\n", "referenced but not assigned"
    number, text = '{"properties": {"a": {"type": "number"}}}', '{"properties": {"a": {"type": "string"}}}'
    return [
        Case("json", "generated, ignored", {"main.json": '{"$schema": "./gen/s.json", "a": 1}\n', "gen/s.json": number,
                                            "package.json": "{}", ".gitignore": "gen/\n"},
             writes("gen/s.json", text), "Incorrect type", prepare=repository),
        Case("json", "schema", {"main.json": '{"$schema": "./s.json", "a": 1}\n', "s.json": number,
                                "package.json": "{}"}, writes("s.json", text), "Incorrect type"),
        Case("yaml", "schema", {"main.yaml": "# yaml-language-server: $schema=./s.json\na: 1\n", "s.json": number},
             writes("s.json", text), "Incorrect type"),
        Case("yaml", "generated, ignored", {"main.yaml": "# yaml-language-server: $schema=./gen/s.json\na: 1\n",
                                            "gen/s.json": number, ".gitignore": "gen/\n"},
             writes("gen/s.json", text), "Incorrect type", prepare=repository),
        Case("bash", "configuration", {"a.sh": script, ".shellcheckrc": silent}, deletes(".shellcheckrc"), unset),
        Case("bash", "configuration above", {"a.sh": script, "../.shellcheckrc": silent}, deletes("../.shellcheckrc"),
             unset),
        Case("bash", "another file", {"a.sh": f"{script}. ./b.sh\n", "b.sh": "x=1\n"}, writes("b.sh", "y=1\n"), unset),
    ]  # fmt: skip


def framework_cases() -> list[Case]:
    web = {"package.json": '{"name": "x"}', "tsconfig.json": '{"compilerOptions": {"strict": true}}'}
    script = 'const x: number = "a";'
    importing = '<script lang="ts">\nimport { value } from "pkg";\nconst x: number = value;\n</script>\n<p>{x}</p>\n'
    parent = '<script lang="ts">\nimport Child from "./Child.svelte";\n</script>\n<Child />\n'
    declared, inner = "node_modules/pkg/index.d.ts", "export declare const value: {};\n"
    package = {"node_modules/pkg/package.json": '{"name": "pkg", "version": "1.0.0", "types": "index.d.ts"}'}
    rules = "export default [{{ rules: {{ 'no-undef': '{}' }} }}];\n"
    eslint = {"main.js": "missing();\n", "package.json": '{"name": "x", "type": "module"}'}
    return [
        Case("vue", "script in TypeScript", {"main.vue": f'<script setup lang="ts">\n{script}\n</script>\n', **web},
             lambda _root: None, "is not assignable to type", cold=True),
        Case("astro", "first answer", {"main.astro": f"---\n{script}\n---\n<p>hello</p>\n", **web},
             lambda _root: None, "is not assignable to type", cold=True),
        Case("svelte", "script in TypeScript", {"main.svelte": f'<script lang="ts">\n{script}\n</script>\n', **web},
             lambda _root: None, "is not assignable to type", cold=True),
        Case("svelte", "inside of a package",
             {"main.svelte": importing, **web, **package, declared: inner.format("number")},
             writes(declared, inner.format("string")), "is not assignable to type"),
        Case("svelte", "component deleted", {"main.svelte": parent, "Child.svelte": "<p>hello</p>\n", **web},
             deletes("Child.svelte"), "Cannot find module './Child.svelte'"),
        Case("eslint", "configuration", {**eslint, "eslint.config.js": rules.format("off")},
             writes("eslint.config.js", rules.format("error")), "is not defined", prepare=npm_packages("eslint")),
        Case("eslint", "inside of a package", {**eslint, "eslint.config.js": 'export { default } from "rules";\n',
                                               "node_modules/rules/package.json": '{"name": "rules", "type": "module"}',
                                               "node_modules/rules/index.js": rules.format("off")},
             writes("node_modules/rules/index.js", rules.format("error")), "is not defined",
             prepare=links("node_modules/eslint", str(CLONE / ".tools/npm/node_modules/eslint"))),
        Case("eslint", "library missing", {**eslint, "eslint.config.js": rules.format("error")},
             lambda _root: None, "is not defined", cold=True),
        Case("eslint", "configuration throws", {**eslint, "eslint.config.js": "throw new Error('on purpose');\n"},
             lambda _root: None, "is not defined", prepare=npm_packages("eslint"), cold=True),
    ]  # fmt: skip


def rust_cases(*, with_source: bool) -> list[Case]:
    """With the source of the standard library (`rust-src`), or with the compiler on `PATH` alone, which has none."""
    # Started through a loader of its own, it cannot stand in for rustc, nor talk to another version's macro server.
    cargo: dict[str, Any] = {"buildScripts": {"useRustcWrapper": False}}
    if with_source:
        cargo["sysrootSrc"] = os.environ.get(RUST_SOURCE)
    alone = {"cargo": cargo, "procMacro": {"enable": False}}
    suffix, needs = ("", RUST_SOURCE) if with_source else (", no rust-src", None)

    def make(name: str, files: Mapping[str, str], change: Change, error: str = "mismatched types", **more: Any) -> Case:
        options = {"initialization": alone}
        return Case("rust-analyzer", name + suffix, files, change, error, options=options, needs=needs, **more)

    manifest = '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n'
    fine, bad = "pub fn value() -> i32 { 1 }\n", "pub fn value() -> String { String::new() }\n"
    borrowed = "pub fn main() { let a = String::new(); drop(a); }\n"
    moved = "pub fn main() { let a = String::new(); drop(a); drop(a); }\n"
    uses = {"src/main.rs": 'mod lib2;\nfn main() { let x: i32 = lib2::value(); println!("{x}"); }\n'}
    wanting = f'{manifest}\n[dependencies]\nno-such-crate-at-all = {{ path = "../missing" }}\n'
    panics = {"build.rs": 'fn main() { panic!("on purpose"); }\n'}
    wrong = {"src/main.rs": 'fn main() { let x: i32 = "a"; println!("{x}"); }\n'}
    return [
        make("edit that only the compiler sees", {"src/main.rs": borrowed, "Cargo.toml": manifest},
             change=writes("src/main.rs", moved), error="use of moved value"),
        make("another file", {**uses, "src/lib2.rs": fine, "Cargo.toml": manifest},
             change=writes("src/lib2.rs", bad)),
        make("missing dependency", {**wrong, "Cargo.toml": wanting}, change=lambda _root: None, cold=True),
        make("build script panics", {**wrong, **panics, "Cargo.toml": manifest}, change=lambda _root: None, cold=True),
        make("broken manifest", {**wrong, "Cargo.toml": "[package\n"}, change=lambda _root: None, cold=True),
    ]  # fmt: skip


def npm_packages(_name: str) -> Change:
    """The packages of this clone, as those of the project."""
    return links("node_modules", str(CLONE / ".tools" / "npm" / "node_modules"))


CASES: tuple[Case, ...] = (
    *(case for server in PYTHON_WRONG for case in python_cases(server)),
    *ruff_cases(),
    *(case for server in ("typescript", "vtsls", NATIVE) for case in typescript_cases(server)),
    *go_cases(),
    *c_cases(),
    *data_cases(),
    *framework_cases(),
    *rust_cases(with_source=True),
    *rust_cases(with_source=False),
)
