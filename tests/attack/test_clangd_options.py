"""Options of clang that write, read or load what a project names, each by itself and by every file that has some.

Where nothing holds clangd, some of them work, which shows that the rows can tell; untrusted, none does (T35, T46).
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Container, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import pilotfish
from pilotfish.library.workspace import computer
from pilotfish.system.confinement import confinable
from support.files.canaries import Canaries
from support.servers.real import User, make_user
from support.traps.watched_home import OURS, SECRET

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.server("clangd"), pytest.mark.proves("T35", "T46")]

WRITING: Mapping[str, Sequence[str]] = {
    "log-of-diagnostics": ["-Xclang", "-diagnostic-log-file", "-Xclang", "{}"],
    "fragment-of-a-database": ["-MJ", "{}"],
    "fragments-of-a-database": ["-gen-cdb-fragment-path", "{}"],
    "diagnostics": ["--serialize-diagnostics", "{}"],
    "diagnostics-by-cc1": ["-Xclang", "-serialize-diagnostic-file", "-Xclang", "{}"],
    "dependencies": ["-MD", "-MF", "{}"],
    "dependencies-by-cc1": ["-Xclang", "-dependency-file", "-Xclang", "{}", "-Xclang", "-MT", "-Xclang", "a"],
    "graph-of-dependencies": ["-Xclang", "-dependency-dot", "-Xclang", "{}"],
    "crashes": ["-fcrash-diagnostics-dir={}", "-fcrash-diagnostics=all", "-gen-reproducer=always"],
    "times": ["-ftime-trace={}", "-ftime-trace-granularity=0"],
    "intermediate-files": ["-save-temps=obj", "-o", "{}"],
    "intermediate-files-here": ["-save-temps=cwd", "-working-directory={}"],
    "list-of-headers": ["-H", "-Xclang", "-header-include-file", "-Xclang", "{}"],
    "index": ["-index-store-path", "{}"],
    "statistics": ["-Xclang", "-stats-file={}", "-Xclang", "-print-stats"],
    "remarks": ["-fsave-optimization-record", "-foptimization-record-file={}", "-O2"],
    "module": ["-std=c++20", "-xc++-module", "-fmodule-output={}"],
    "precompiled-header": ["-xc++-header", "-Xclang", "-emit-pch", "-o", "{}"],
    "profile": ["-fprofile-instr-generate={}", "-fcoverage-mapping", "--coverage"],
    "parts-for-a-debugger": ["-g", "-gsplit-dwarf", "-Xclang", "-split-dwarf-output", "-Xclang", "{}"],
    "analysis": ["--analyze", "-o", "{}"],
    "symbols": ["-extract-api", "--emit-extension-symbol-graphs", "--symbol-graph-dir={}"],
    "output-of-llvm": ["-mllvm", "-info-output-file={}", "-mllvm", "-stats"],
    "cache-of-modules": ["-fmodules", "-fmodules-cache-path={}"],
}
"""`{}` is what it is to write."""

READING: Mapping[str, Sequence[str]] = {
    "include": ["-include", "{}"],
    "macros": ["-imacros", "{}"],
    "include-pch": ["-include-pch", "{}"],
    "config": ["--config={}"],
    "response-file": ["@{}"],
    "file-of-modules": ["-fmodules", "-fmodule-file={}"],
    "map-of-modules": ["-fmodules", "-fmodule-map-file={}"],
    "use-of-a-profile": ["-fprofile-use={}"],
    "list-of-functions": ["-fprofile-list={}"],
    "list-to-be-ignored": ["-fsanitize=address", "-fsanitize-ignorelist={}"],
    "list-of-calls": ["-fxray-instrument", "-fxray-attr-list={}"],
    "list-of-warnings": ["--warning-suppression-mappings={}"],
    "layout": ["-frandomize-layout-seed-file={}"],
    "index-of-a-linker": ["-fthinlto-index={}"],
    "file-system": ["-ivfsoverlay", "{}"],
}
"""`{}` is a secret of the home."""

SAYING: Mapping[str, str] = {
    "embed": '#embed "{}"',
    "include-in-a-source": '#include "{}"',
    "import-in-a-source": '#import "{}"',
    "has-include": '#if __has_include("{}")\n#include "{}"\n#endif',
    "dependency": '#pragma GCC dependency "{}"',
}
"""Of sources: `{}` is a secret of the home."""

LOADING: Mapping[str, Sequence[str]] = {
    "fplugin": ["-fplugin={}"],
    "fpass-plugin": ["-fpass-plugin={}"],
    "load": ["-Xclang", "-load", "-Xclang", "{}"],
    "add-plugin": ["-Xclang", "-load", "-Xclang", "{}", "-Xclang", "-add-plugin", "-Xclang", "trap"],
    "load-of-llvm": ["-mllvm", "-load={}"],
    "load-pass-plugin": ["-mllvm", "-load-pass-plugin={}"],
}
"""`{}` is a library that opens a canary."""

WORKING = (
    "log-of-diagnostics", "fragment-of-a-database", "fragments-of-a-database", "cache-of-modules", "include", "macros",
    "map-of-modules", "embed", "include-in-a-source",
)  # fmt: skip
"""Those that do something in every file of configuration where nothing holds clangd."""

CRASHING = {"cache-of-modules", "file-of-modules", "file-system"}
"""clangd does not survive them, so they come last, and it need not judge their sources."""

TEXT = '#pragma message("\\nssh-ed25519 AAAA attacker\\n")\n#include "part.h"\nint main(void) { return part + text; }\n'
PLUGIN = '#include <stdio.h>\n__attribute__((constructor)) static void run(void) { fclose(fopen("@", "r")); }\n'


@dataclass(frozen=True)
class Option:
    """One folder of the workspace, with one source and what stands for it in the configuration."""

    name: str
    arguments: Sequence[str]
    source: str = ""


def in_flags(root: Path, options: Sequence[Option]) -> None:
    for option in options:
        (root / option.name / "compile_flags.txt").write_text("".join(f"{word}\n" for word in option.arguments))


def in_a_database(root: Path, options: Sequence[Option]) -> None:
    entries = [
        {"directory": str(root / one.name), "file": "a.cpp", "arguments": ["clang++", *one.arguments, "-c", "a.cpp"]}
        for one in options
    ]
    (root / "compile_commands.json").write_text(json.dumps(entries))


def in_clangd(root: Path, options: Sequence[Option]) -> None:
    fragments = [
        json.dumps({"If": {"PathMatch": f"{one.name}/.*"}, "CompileFlags": {"Add": [*one.arguments]}})
        for one in options
    ]
    (root / ".clangd").write_text("\n---\n".join(fragments) + "\n")


CARRIERS: Mapping[str, Callable[[Path, Sequence[Option]], None]] = {
    "compile_flags.txt": in_flags,
    "compile_commands.json": in_a_database,
    ".clangd": in_clangd,
}


@dataclass(frozen=True)
class Repository:
    """A workspace with a folder for each option, and what tells which of them worked."""

    user: User
    options: Sequence[Option]
    canaries: Canaries
    before: Mapping[Path, bytes]

    def effects(self) -> set[str]:
        """The secrets that were opened, the libraries that were loaded, and the files that were made or changed."""
        base = self.user.workspace.parent
        now = _texts(base)
        changed = {path for path in now.keys() | self.before.keys() if now.get(path) != self.before.get(path)}
        return {str(path.relative_to(base)) for path in changed | self.canaries.opened()}


@contextmanager
def make_repository(base: Path, carrier: str, chosen: Container[str], *, trusted: bool) -> Generator[Repository]:
    # One server for all folders, also for those that have flags of their own.
    user = make_user(base, ["clangd"], {"lsp": {"clangd": {"roots": ["top"]}}}, trusted=trusted)
    base, root = user.workspace.parent, user.workspace
    written, secrets, loaded = base / "home" / "written", base / "home" / "secrets", base / "loaded"
    for folder in (written, secrets, loaded):
        folder.mkdir()
    rows = [
        *((name, words, "", written) for name, words in WRITING.items()),
        *((name, words, "", secrets) for name, words in READING.items()),
        *((name, ["-std=c++26"], said, secrets) for name, said in SAYING.items()),
        *((name, words, "", loaded) for name, words in LOADING.items() if shutil.which("cc")),
    ]
    options = list[Option]()
    for name, words, said, target in sorted(rows, key=lambda row: row[0] in CRASHING):
        if name in chosen:
            value = str(_planted(name, target))
            options.append(Option(name, [word.replace("{}", value) for word in words], said.replace("{}", value)))
            _write_sources(root / name, options[-1].source)
    (root / "top").touch()
    CARRIERS[carrier](root, options)
    canaries = Canaries(secrets, loaded)
    yield Repository(user, options, canaries, _texts(base))
    canaries.close()


def _write_sources(folder: Path, said: str) -> None:
    folder.mkdir()
    (folder / "module.modulemap").write_text('module part { header "part.h" }\n')
    (folder / "part.h").write_text("static int part;\n")
    (folder / "a.cpp").write_text(f"{said}\n{TEXT}")


def _planted(name: str, target: Path) -> Path:
    """What an option is to name: nothing yet, a secret, or a library with its canary."""
    place = target / name
    if target.name == "written":
        return place
    place.write_text(f"{SECRET}\n")
    if target.name == "secrets":
        return place
    library = target.parent / f"{name}.so"
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-o", str(library), "-"]
    subprocess.run(command, input=PLUGIN.replace("@", str(place)).encode(), check=True)
    return library


def _texts(base: Path) -> Mapping[Path, bytes]:
    """All but our own folder and what is watched."""
    apart = (base / "home" / OURS, base / "home" / "secrets", base / "loaded")
    files = (path for path in base.rglob("*") if not any(path.is_relative_to(one) for one in apart))
    return {path: path.read_bytes() if path.is_file() else b"" for path in files}


async def use(repository: Repository) -> Mapping[str, str]:
    """What clangd said of each source that it judged."""
    said = dict[str, str]()
    async with pilotfish.open(repository.user.workspace, shell=computer(repository.user.environment)) as workspace:
        for option in repository.options:
            answer = await workspace.check(f"{option.name}/a.cpp")
            if answer.ok:
                said[option.name] = str(answer)
    return said


ALL = {*WRITING, *READING, *SAYING, *LOADING}


@pytest.mark.proves("A1.1", "A1.2")
@pytest.mark.skipif("files" not in confinable(), reason="this kernel has no Landlock")
@pytest.mark.timeout(180)
@pytest.mark.parametrize("carrier", CARRIERS)
async def test_no_option_writes_reads_or_loads_what_a_project_names(carrier: str, tmp_path: Path) -> None:
    with make_repository(tmp_path, carrier, ALL, trusted=False) as repository:
        said = await use(repository)
        assert repository.effects() == set()
    assert {option.name for option in repository.options} - said.keys() <= CRASHING
    assert SECRET not in str(said)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("carrier", CARRIERS)
async def test_where_nothing_holds_clangd_the_rows_tell_of_those_that_work(carrier: str, tmp_path: Path) -> None:
    with make_repository(tmp_path, carrier, WORKING, trusted=True) as repository:
        await use(repository)
        done = {Path(effect).name for effect in repository.effects()}
    assert done >= {*WORKING}
