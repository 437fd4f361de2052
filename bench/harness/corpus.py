"""The projects: downloaded once by name, checked against their pins, and copied afresh for every run.

A project's name is its row of `corpus.toml`; `NAME+venv` is the same one with its dependencies in a `.venv`.
The cache is `$PILOTFISH_BENCH_CACHE` or `~/.cache/pilotfish-bench`, outside of every repository.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

WITH_ENVIRONMENT = "+venv"
PINS = Path(__file__).with_name("corpus.toml")
SUFFIXES = {
    "python": (".py", ".pyi"),
    "typescript": (".ts", ".tsx", ".mts", ".cts"),
    "vue": (".vue", ".ts"),
    "javascript": (".js", ".cjs", ".mjs"),
    "go": (".go",),
    "c": (".c", ".h"),
    "rust": (".rs",),
}

MADE = {"GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z"}
"""Of every commit, so that a history is the same wherever it is made."""


MISTAKES = {
    ".py": "\nno_such_name\n",
    ".ts": "\nno_such_name;\n",
    ".go": "\nvar mistake int = no_such_name\n",
    ".c": "\nint mistake(void) { return no_such_name; }\n",
    ".rs": "\nfn mistake() -> u8 { no_such_name }\n",
}
"""What does not compile at the end of a file, and is told by that name."""


class Unavailable(Exception):
    """A registry does not give what the pins name."""


@dataclass(frozen=True)
class Project:
    """One row of the pins."""

    name: str
    language: str
    registry: Literal["pypi", "npm", "debian", "debian-source"]
    package: str
    sha256: str
    servers: tuple[str, ...]
    folder: str = ""
    """Where the project is in what was unpacked."""
    keep: tuple[str, ...] = ()
    """At the top, where not everything is."""
    drop: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    beside: Mapping[str, str] = field(default_factory=dict[str, str])
    """Debian packages, by their digests, that are unpacked into a folder `beside` the project."""
    environment: bool = False
    node_modules: tuple[str, ...] = ()
    """Packages of npm that it has installed, always: its checker knows nothing without them."""

    @property
    def is_installed(self) -> bool:
        """Whether every package that it imports is there."""
        return self.environment or bool(self.node_modules) or self.registry == "debian"

    @property
    def identity(self) -> str:
        """Whatever decides what a copy holds; the truth is kept by it."""
        parts = [self.package, *self.keep, *self.drop, *self.files.values(), *self.beside, *self.node_modules]
        return hashlib.sha256(
            "\0".join([*parts, *(self.requirements if self.environment else ())]).encode()
        ).hexdigest()


def projects() -> dict[str, Project]:
    """By name, each with and without its environment where it has one."""
    found: dict[str, Project] = {}
    for name, row in tomllib.loads(PINS.read_text()).items():
        project = Project(name=name, **{key: _frozen(value) for key, value in row.items()})
        found[name] = project
        if project.requirements:
            found[name + WITH_ENVIRONMENT] = replace(project, name=name + WITH_ENVIRONMENT, environment=True)
    return found


def cache() -> Path:
    given = os.environ.get("PILOTFISH_BENCH_CACHE")
    folder = Path(given) if given else Path.home() / ".cache" / "pilotfish-bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def kept_by(*parts: str) -> Path:
    """Where the truth of something is kept that these decide."""
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return cache() / "truth" / name[:2] / f"{name}.json.gz"


def copy(project: Project, target: Path) -> Path:
    """A git repository with one commit at `target/NAME`, and what belongs beside it."""
    root = target / project.name.removesuffix(WITH_ENVIRONMENT)
    shutil.copytree(sources(project), root)
    if project.beside:
        shutil.copytree(_beside(project), target / "beside")
    for name, text in project.files.items():
        (root / name).write_text(text.lstrip("\n"))
    make_repository(root)
    if project.environment:
        # Hard links: nobody writes there, and a checker sees ordinary files.
        shutil.copytree(
            environment(_slug(project.package), project.requirements),
            root / ".venv",
            symlinks=True,
            copy_function=os.link,
        )
    if project.node_modules:
        shutil.copytree(_node_modules(project), root / "node_modules", symlinks=True, copy_function=os.link)
    return root


def texts(root: Path, language: str) -> dict[str, str]:
    """The sources of a project by relative path; what is not UTF-8 with plain line ends is left alone."""
    found: dict[str, str] = {}
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if (
            path.suffix not in SUFFIXES[language]
            or any(part.startswith(".") or part == "node_modules" for part in parts)
            or not path.is_file()
        ):
            continue
        try:
            text = path.read_bytes().decode()
        except UnicodeDecodeError:
            continue
        if "\r" not in text:
            found["/".join(parts)] = text
    return found


def _frozen(value: Any) -> Any:
    return tuple(cast("list[str]", value)) if isinstance(value, list) else value


def make_repository(root: Path) -> None:
    """One commit of all that is there; nothing of git goes on in the background afterwards."""
    variables = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, **MADE}
    who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    who += ["-c", "gc.auto=0", "-c", "maintenance.auto=false"]
    for command in (["init", "-q", "-b", "main"], ["add", "-A", "-f"], [*who, "commit", "-q", "-m", "As published"]):
        subprocess.run(["git", "-c", "core.autocrlf=false", *command], cwd=root, env=variables, check=True)
        if command[0] == "init":
            (root / ".git" / "info" / "exclude").write_text(".venv\nnode_modules\n")


# --- What is kept in the cache ------------------------------------------------------------------------------------


def sources(project: Project) -> Path:
    """The folder in the cache, not to be written to."""
    bare = replace(project, environment=False)

    def make(folder: Path) -> Path:
        archive = _downloaded(project.registry, project.package, project.sha256, folder)
        unpacked = _unpacked(archive, folder / "unpacked", project.folder)
        unwanted = [path for path in unpacked.iterdir() if project.keep and path.name not in project.keep]
        for path in [*unwanted, *(path for pattern in project.drop for path in unpacked.glob(pattern))]:
            if path.exists():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        return unpacked

    return kept("sources", f"{_slug(project.package)}-{bare.identity[:8]}", make)


def _beside(project: Project) -> Path:
    def make(folder: Path) -> Path:
        for package, digest in project.beside.items():
            _unpacked(_downloaded("debian", package, digest, folder), folder / "unpacked", "")
        return folder / "unpacked"

    return kept("beside", f"{_slug(project.package)}-{project.identity[:8]}", make)


def empty_environment() -> Path:
    """A Python without packages. Whatever the machine's own has must not help anybody."""
    return environment("empty", ())


def environment(name: str, requirements: Sequence[str]) -> Path:
    digest = hashlib.sha256("\n".join([sys.version, *requirements]).encode()).hexdigest()

    def make(folder: Path) -> Path:
        made = folder / ".venv"
        base = getattr(sys, "_base_executable", sys.executable)
        run([base, "-m", "venv", "--without-pip", str(made)])
        pip = [sys.executable, "-m", "pip", "--python", str(made / "bin" / "python"), "install", "-q", "--no-compile"]
        if requirements:
            run([*pip, "--no-deps", *requirements])
        return made

    return kept("environments", f"{name}-{digest[:8]}", make)


def _node_modules(project: Project) -> Path:
    digest = hashlib.sha256("\n".join(project.node_modules).encode()).hexdigest()

    def make(folder: Path) -> Path:
        run(["npm", "install", "--silent", "--ignore-scripts", "--prefix", str(folder), *project.node_modules])
        return folder / "node_modules"

    return kept("environments", f"{_slug(project.package)}-{digest[:8]}", make)


def _downloaded(registry: str, package: str, digest: str, folder: Path) -> Path:
    """The archive, in the cache. Its digest is that of the pins, or it is not used."""
    kept = cache() / "archives"
    kept.mkdir(exist_ok=True)
    path = kept / _slug(package)
    if not path.exists():
        into = folder / "download"
        into.mkdir(exist_ok=True)
        run(_download(registry, package), into)
        (found,) = into.iterdir()
        shutil.move(found, path)
    real = hashlib.sha256(path.read_bytes()).hexdigest()
    if real != digest:
        raise Unavailable(f"{package} has the digest {real}, the pins say {digest}; the file is {path}")
    return path


def _download(registry: str, package: str) -> list[str]:
    match registry:
        case "pypi":
            pip = [sys.executable, "-m", "pip", "download", "-q"]
            return [*pip, "--no-deps", "--no-binary", ":all:", package]
        case "npm":
            return ["npm", "pack", "--silent", package]
        case "debian-source":
            return ["curl", "-sSfO", "-m", "600", f"{mirror()}/{package}"]
        case _:
            return ["apt-get", "download", "-q", package]


def mirror() -> str:
    """Debian's, the one that the machine's own packages come from."""
    for path in [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]:
        text = path.read_text() if path.is_file() else ""
        if found := re.search(r"https?://\S+?/debian(?=/?\s)", text):
            return found[0]
    raise Unavailable("no mirror of Debian among the sources of apt")


def _unpacked(archive: Path, target: Path, folder: str) -> Path:
    target.mkdir(exist_ok=True)
    if archive.read_bytes()[:7] == b"!<arch>":
        run(["dpkg-deb", "-x", str(archive), str(target)])
        return target / folder
    run(["tar", "xf", str(archive), "--no-same-owner", "-C", str(target)])
    (top,) = target.iterdir()
    return top / folder


def kept(sort: str, name: str, make: Callable[[Path], Path]) -> Path:
    """A folder of the cache, made once in a scratch folder; by one rename, so that nobody sees half of it."""
    target = cache() / sort / name
    if target.is_dir():
        return target
    with tempfile.TemporaryDirectory(dir=cache(), prefix="new-") as folder:
        made = make(Path(folder))
        target.parent.mkdir(exist_ok=True)
        try:
            made.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    return target


def run(argv: Sequence[str], folder: Path | None = None) -> None:
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"{' '.join(argv)}: {done.stderr.strip()[-2000:]}")


def _slug(package: str) -> str:
    return "".join(letter if letter.isalnum() or letter in ".-_+" else "-" for letter in package)
