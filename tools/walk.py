"""The first walk of a new user through real projects: `python3 tools/newcomer.py httpx express mixed`.

Every project is walked in an empty home with the same commands. What is printed is shown with its time, and judged:
an error that the server's own command line does not report, a hint that fails when it is typed, a hint that is not
ours, two commands that contradict each other, a wrong answer. Standard library only.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

LINES = 14
"""Of what one command prints; the others are counted."""

SECONDS = 600
"""For one command: some install from the network."""

FIRST_ANSWER = 60.0
"""Seconds from the first command to the first useful answer."""

HINTS = (
    re.compile(r"^Next: (?P<command>.+)$", re.MULTILINE),
    re.compile(r"Install it with: (?P<command>.+)$", re.MULTILINE),
    re.compile(r"^ +→ (?P<command>.+)$", re.MULTILINE),
    re.compile(r"^  \d+\. (?P<command>.+)$", re.MULTILINE),
    re.compile(r"^  \w[\w-]*, for .+: (?P<command>pilotfish .+)$", re.MULTILINE),
)
"""Where a command is proposed."""

FOREIGN = re.compile(r"\b(?:pip|npm|brew|cargo|gem|apt) (?:install|add)\b.*")
"""A hint that needs what may not be here, or that changes the project's environment."""

PACKAGES = (
    "anyio", "brotli", "brotlicffi", "certifi", "chardet", "click", "cryptography", "h2", "httpcore", "idna",
    "pygments", "pytest", "rich", "socksio", "trio", "trustme", "uvicorn", "zstandard",
)  # fmt: skip
"""What httpx and its tests import."""


@dataclass(frozen=True)
class Printed:
    argv: tuple[str, ...]
    code: int
    text: str
    seconds: float


@dataclass(frozen=True)
class Project:
    """One project, and what is true of it."""

    name: str
    make: Callable[[Path, "Shell"], None]
    servers: tuple[str, ...]
    """Those whose own command lines say which errors there are."""
    definition: tuple[str, str]
    """A symbol, and where it is defined."""
    references: tuple[tuple[str, str], int]
    """A file and a symbol in it, and in how many places it is mentioned at least."""
    edited: str
    """A file of which another one imports `renamed`."""
    renamed: str


@dataclass
class Shell:
    """A user's shell: an empty home, and the `PATH` of a fresh machine."""

    home: Path
    environment: Mapping[str, str]
    faults: list[str] = field(default_factory=list[str])
    printed: list[Printed] = field(default_factory=list[Printed])
    foreign: re.Pattern[str] | None = FOREIGN
    began: float | None = None
    answered: float | None = None

    def run(self, folder: Path, *argv: str, quiet: bool = False, codes: Iterable[int] = (0,)) -> Printed:
        """Run a command, show what it prints, and look for hints in it."""
        started = time.monotonic()
        self.began = self.began or started
        done = subprocess.run(
            argv,
            cwd=folder,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        shown = Printed(argv, done.returncode, done.stdout, time.monotonic() - started)
        if not quiet:
            self._show(shown)
        self.printed.append(shown)
        if done.returncode not in codes:
            self.fault(f"`{shlex.join(argv)}` exits with {done.returncode}: {done.stdout[-300:].strip()}")
        if "Traceback" in done.stdout or "fault in pilotfish" in done.stdout:
            self.fault(f"`{shlex.join(argv)}` crashes")
        if foreign := self.foreign and argv[0] == "pilotfish" and self.foreign.search(done.stdout):
            self.fault(f"`{shlex.join(argv)}` proposes `{foreign[0]}`")
        return shown

    def useful(self) -> None:
        """The first answer to a question of the user's was just printed."""
        if self.answered is None and self.began is not None:
            self.answered = time.monotonic() - self.began

    def fault(self, text: str) -> None:
        print(f"  FAULT: {text}")
        self.faults.append(text)

    def expect(self, *, holds: bool, otherwise: str) -> None:
        if not holds:
            self.fault(otherwise)

    def _show(self, printed: Printed) -> None:
        print(f"$ {shlex.join(printed.argv)}")
        lines = printed.text.rstrip().splitlines()
        for line in lines[:LINES]:
            print(f"  {line[:160]}")
        more = f", {len(lines) - LINES} more lines" if len(lines) > LINES else ""
        print(f"  [{printed.seconds:.1f} s, exit {printed.code}{more}]")


# --- The projects -----------------------------------------------------------------------------------------------------


def make_httpx(folder: Path, shell: Shell) -> None:
    _unpack(_download(shell, "pip", "httpx==0.28.1"), folder)
    _environment(folder, shell)


def make_express(folder: Path, shell: Shell) -> None:
    _unpack(_download(shell, "npm", "express@5.1.0"), folder)


def make_mixed(folder: Path, shell: Shell) -> None:
    """A service in Python, a front end in JavaScript, and what lies around in every repository."""
    make_httpx(folder / "service", shell)
    make_express(folder / "web", shell)
    (folder / "README.md").write_text("# Mixed\n\nA [service](service) and a [front end](web).\n")
    (folder / "Dockerfile").write_text("FROM python:3.13\nCOPY . /srv\n")
    (folder / "deploy.sh").write_text("#!/bin/sh\nset -eu\necho done\n")
    (folder / "settings.yaml").write_text("name: mixed\n")


PROJECTS = {
    "httpx": Project(
        "httpx",
        make_httpx,
        ("basedpyright",),
        ("AsyncClient", "httpx/_client.py:1307:7"),
        (("httpx/_client.py", "AsyncClient"), 70),
        "httpx/_utils.py",
        "to_str",
    ),
    "express": Project(
        "express",
        make_express,
        ("typescript",),
        ("createApplication", "lib/express.js:36:10"),
        (("lib/utils.js", "compileTrust"), 2),
        "lib/express.js",
        "createApplication",
    ),
    "mixed": Project(
        "mixed",
        make_mixed,
        ("basedpyright", "typescript"),
        ("createApplication", "web/lib/express.js:36:10"),
        (("service/httpx/_client.py", "AsyncClient"), 70),
        "service/httpx/_utils.py",
        "to_str",
    ),
}


def _download(shell: Shell, manager: str, package: str) -> Path:
    """An archive of a registry, fetched once per home."""
    folder = shell.home / "downloads" / package
    if not folder.is_dir():
        folder.mkdir(parents=True)
        argv = {
            "pip": [
                "python3",
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                f"--no-binary={package.partition('=')[0]}",
                package,
            ],
            "npm": ["npm", "pack", "--silent", package],
        }[manager]
        subprocess.run(argv, cwd=folder, env=dict(shell.environment), check=True, capture_output=True)
    return next(folder.iterdir())


def _unpack(archive: Path, folder: Path) -> None:
    """Without the folder at its top."""
    folder.mkdir(parents=True)
    subprocess.run(["tar", "--extract", "--strip-components=1", f"--file={archive}"], cwd=folder, check=True)


def _environment(folder: Path, shell: Shell) -> None:
    """The packages of a Python project, where its developers have them."""
    environment = dict(shell.environment)
    subprocess.run(["python3", "-m", "venv", folder / ".venv"], env=environment, check=True)
    pip = [str(folder / ".venv/bin/pip"), "install", "--quiet", *PACKAGES]
    subprocess.run(pip, env=environment, check=True, capture_output=True)


# --- The walk ---------------------------------------------------------------------------------------------------------


def prepare(project: Project, shell: Shell) -> None:
    """The project as its developers have it: a git repository, with the packages that it needs."""
    folder = _folder(project, shell)
    project.make(folder, shell)
    with (folder / ".gitignore").open("a") as ignored:
        ignored.write("\n.venv/\n")
    for argv in (["git", "init", "--quiet"], ["git", "add", "."], [*COMMIT, "--message=begin"]):
        subprocess.run(argv, cwd=folder, env=dict(shell.environment), check=True)


def _folder(project: Project, shell: Shell) -> Path:
    return shell.home / "projects" / project.name


def walk(project: Project, shell: Shell) -> None:
    """All steps in one project; what is wrong is in `shell.faults`."""
    folder = _folder(project, shell)
    arrive(folder, shell)
    ask(project, folder, shell)
    check(project, folder, shell)
    edit(project, folder, shell)
    look(folder, shell)
    mistype(folder, shell)
    connect(folder, shell)
    shell.run(folder, "pilotfish", "daemon", "stop", quiet=True)
    status = subprocess.run(["git", "status", "--porcelain"], cwd=folder, capture_output=True, text=True, check=True)
    shell.expect(holds=not status.stdout, otherwise=f"{project.name}: files were left in the project: {status.stdout}")


COMMIT = ("git", "-c", "user.name=you", "-c", "user.email=you@example.invalid", "commit", "--quiet")


def arrive(folder: Path, shell: Shell) -> None:
    """`pilotfish`, and what it proposes, until it proposes to check."""
    for _ in range(6):
        shown = shell.run(folder, "pilotfish")
        (command,) = [found["command"] for found in HINTS[0].finditer(shown.text)] or ["pilotfish check"]
        if command == "pilotfish check":
            return
        shell.run(folder, *shlex.split(command))
    shell.fault("`pilotfish` never proposes to check")


def ask(project: Project, folder: Path, shell: Shell) -> None:
    name, place = project.definition
    found = shell.run(folder, "pilotfish", "definition", name)
    if place in found.text:
        shell.useful()
    shell.expect(holds=place in found.text, otherwise=f"{name} is defined at {place}")
    (file, symbol), least = project.references
    found = shell.run(folder, "pilotfish", "references", file, symbol)
    count = int(match[1]) if (match := re.match(r"(\d+) results?", found.text)) else 0
    shell.expect(holds=count >= least, otherwise=f"{symbol} has {least} references or more, {count} are shown")
    shell.run(folder, "pilotfish", "hover", file, symbol)
    outline = shell.run(folder, "pilotfish", "symbols", file)
    lines = len((folder / file).read_text().splitlines())
    shell.expect(
        holds=outline.text.count("\n") < lines / 4, otherwise=f"the outline of {file} is longer than a quarter"
    )


def check(project: Project, folder: Path, shell: Shell) -> None:
    """No error that the servers' own command lines do not report, and no other."""
    shown = shell.run(folder, "pilotfish", "check", codes=(0, 1))
    again = shell.run(folder, "pilotfish", "check", quiet=True, codes=(0, 1))
    same = _without_times(shown.text) == _without_times(again.text)
    shell.expect(holds=same, otherwise="a second check prints something else than the first")
    answer = json.loads(_json(shell, folder, "check"))
    if answer["meta"]["state"] != "fresh":
        # Only for want of a program that doctor names, and proposes to install.
        todo = re.findall(r"^  \d+\. (.+)$", shell.run(folder, "pilotfish", "doctor", codes=(1,)).text, re.MULTILINE)
        for command in todo:
            shell.run(folder, *shlex.split(command))
        answer = json.loads(_json(shell, folder, "check"))
        shell.expect(holds=answer["meta"]["state"] == "fresh", otherwise=f"the check is {answer['meta']}")
    ours = {
        (path, found["line"], str(found.get("code")))
        for path, several in answer["data"].items()
        for found in several
        if found["severity"] == "error"
    }
    true = {one for server in project.servers for one in OWN_ERRORS[server](folder, shell)}
    shell.expect(holds=ours <= true, otherwise=f"false errors: {sorted(ours - true)[:5]}")
    shell.expect(holds=true <= ours, otherwise=f"missing errors: {sorted(true - ours)[:5]}")
    print(f"  ({len(ours)} errors; the servers' own command lines report {len(true)})")


def edit(project: Project, folder: Path, shell: Shell) -> None:
    """A comment says nothing; a symbol that other files use is told until it is back."""
    file = folder / project.edited
    before = file.read_text()
    file.write_text(f"{before}\n{'#' if file.suffix == '.py' else '//'} A remark.\n")
    shown = shell.run(folder, "pilotfish", "touched", project.edited)
    shell.expect(holds=not shown.text, otherwise=f"a comment is answered with: {shown.text[:200]}")
    if file.suffix == ".py":
        file.write_text(before.replace(f"def {project.renamed}(", f"def {project.renamed}_new("))
        shown = shell.run(folder, "pilotfish", "touched", project.edited)
        shell.expect(
            holds=project.renamed in shown.text, otherwise=f"nothing about the files that use {project.renamed}"
        )
        shell.expect(holds="other files" in shown.text, otherwise="the other files are not told apart")
    else:
        file.write_text(before + "\nfunction (\n")
        shown = shell.run(folder, "pilotfish", "touched", project.edited)
        shell.expect(holds="ERROR" in shown.text, otherwise="a syntax error is not told")
    file.write_text(before)
    shown = shell.run(folder, "pilotfish", "touched", project.edited)
    shell.expect(holds="ERROR" not in shown.text, otherwise=f"the repaired file has: {shown.text[:200]}")


def look(folder: Path, shell: Shell) -> None:
    """The verbs that show agree with each other, and what they propose works."""
    overview = shell.run(folder, "pilotfish")
    doctor = shell.run(folder, "pilotfish", "doctor")
    status = shell.run(folder, "pilotfish", "status")
    ready = set(re.findall(r"[:,] ([\w-]+) is ready", overview.text))
    starts = {found.split()[0] for found in re.findall(r"^    ok    (.+) starts in", doctor.text, re.MULTILINE)}
    listed = {line.split()[0] for line in status.text.splitlines() if re.search(r" (active|idle)\b", line)}
    shell.expect(holds=ready <= starts, otherwise=f"ready but not started by doctor: {ready - starts}")
    shell.expect(holds=ready <= listed, otherwise=f"ready but not in status: {ready - listed}")
    shell.expect(holds=status.text.count("\n") < 30, otherwise=f"status has {status.text.count(chr(10))} lines")
    shell.expect(holds="Everything works." in doctor.text, otherwise="doctor has something to do after all steps")
    for command in dict.fromkeys(_hints(shell.printed)):
        if command != "pilotfish check":
            shell.run(folder, *shlex.split(command))
    shell.run(folder, "pilotfish", "check", codes=(0, 1))


def mistype(folder: Path, shell: Shell) -> None:
    for argv, expected in {
        ("chek",): "Did you mean check?",
        ("setup", "claude"): "Did you mean claude-code?",
        ("definition", "nowhere_at_all_here"): "nowhere_at_all_here",
    }.items():
        shown = shell.run(folder, "pilotfish", *argv, codes=(1, 2, 3))
        shell.expect(holds=expected in shown.text, otherwise=f"`{shlex.join(argv)}` does not say: {expected}")
    shown = shell.run(Path("/"), "pilotfish", "check", codes=(2, 3))
    shell.expect(holds="whole file system" in shown.text, otherwise="`pilotfish check` in / does not say why not")
    settings = folder / ".pilotfish" / "lsp.json"
    settings.parent.mkdir()
    settings.write_text('{"lsp": {"pyrihgt": }')
    for verb in ((), ("check",), ("status",), ("doctor",), ("config", "check")):
        shown = shell.run(folder, "pilotfish", *verb, codes=(0, 1, 2, 3))
        shell.expect(
            holds="lsp.json" in shown.text, otherwise=f"`pilotfish {' '.join(verb)}` hides a broken configuration"
        )
    shutil.rmtree(settings.parent)


def connect(folder: Path, shell: Shell) -> None:
    """A host is wired, works, and is as before when it is removed."""
    settings = shell.home / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('{\n  "theme": "dark"\n}\n')
    before = settings.read_bytes()
    shell.run(folder, "pilotfish", "setup", "claude-code")
    shown = shell.run(folder, "pilotfish", "setup", "--status")
    shell.expect(holds="Claude Code (global): works" in shown.text, otherwise="setup does not work")
    shell.run(folder, "pilotfish", "setup", "claude-code", "--remove", quiet=True)
    shell.expect(holds=settings.read_bytes() == before, otherwise="--remove leaves another file than before")


# --- What is true -----------------------------------------------------------------------------------------------------


def basedpyright_errors(folder: Path, shell: Shell) -> set[tuple[str, int, str]]:
    """What basedpyright itself reports in a copy with the same settings."""
    inside = next(path.parent for path in folder.rglob("httpx/_client.py")).parent
    copy = shell.home / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(inside, copy, symlinks=True)
    (copy / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    program = _installed(shell, "basedpyright-langserver").with_name("basedpyright")
    argv = [program, "--outputjson", "--pythonpath", inside / ".venv/bin/python", "httpx", "tests"]
    done = subprocess.run(argv, cwd=copy, env=dict(shell.environment), capture_output=True, text=True, check=False)
    start = os.path.relpath(inside, folder)

    def named(path: str) -> str:
        return os.path.normpath(os.path.join(start, os.path.relpath(path, copy)))

    return {
        (named(one["file"]), one["range"]["start"]["line"] + 1, one["rule"])
        for one in json.loads(done.stdout)["generalDiagnostics"]
        if one["severity"] == "error"
    }


def typescript_errors(folder: Path, shell: Shell) -> set[tuple[str, int, str]]:
    """What tsc reports about the JavaScript files."""
    package = _installed(shell, "typescript-language-server").parent.parent
    tsc = next(package.parent.rglob("typescript/lib/tsc.js"))
    files = [str(path.relative_to(folder)) for path in folder.rglob("*.js") if ".venv" not in path.parts]
    argv = ["node", str(tsc), "--allowJs", "--noEmit", "--target", "esnext", "--types", "", *files]
    done = subprocess.run(argv, cwd=folder, env=dict(shell.environment), capture_output=True, text=True, check=False)
    found = re.findall(r"^(.+?)\((\d+),\d+\): error TS(\d+)", done.stdout, re.MULTILINE)
    return {(path, int(line), code) for path, line, code in found}


OWN_ERRORS = {"basedpyright": basedpyright_errors, "typescript": typescript_errors}


def _installed(shell: Shell, program: str) -> Path:
    """The real file of a server's program."""
    own = shell.home / ".local/state/pilotfish/tools/bin" / program
    beside = (shell.home / ".local/bin/pilotfish").resolve().with_name(program)
    return (own if own.exists() else beside).resolve()


def _json(shell: Shell, folder: Path, *verb: str) -> str:
    argv = ["pilotfish", *verb, "--json"]
    return subprocess.run(
        argv, cwd=folder, env=dict(shell.environment), capture_output=True, text=True, check=False
    ).stdout


def _hints(printed: Iterable[Printed]) -> Iterable[str]:
    """Every command that was proposed, without its explanation."""
    for one in printed:
        for pattern in HINTS:
            yield from (found["command"].strip() for found in pattern.finditer(one.text))


def _without_times(text: str) -> str:
    return re.sub(r"\(\d+(\.\d+)? s\)", "", text)
