"""What the language's own command line says of a project, before and after every edit.

A checker runs on a copy of its own, so that whoever is measured never meets its files, and always from the start.
What it said of a state is kept in the cache, by the state: a second run with the same seed asks nobody.
"""

import gzip
import json
import os
import re
import subprocess
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Self

from harness import corpus
from harness.corpus import Project
from harness.servers import SERVERS, Server
from harness.setting import plain_path

from told.edits import Change, Edit, Texts, digest, states

REVISION = 2
"""Raised when what is kept of a state was wrong or has another form."""
CHECK_SECONDS = 600.0


class CheckerFailed(Exception):
    """The checker itself did not work; nothing is known."""


@dataclass(frozen=True)
class Problem:
    """One line of a checker; lines and columns are counted from 1."""

    file: str
    line: int
    column: int
    severity: str
    rule: str
    message: str

    @property
    def key(self) -> tuple[str, str]:
        """What makes two problems of one file the same: edits move them, tsc orders unions and elides as it likes."""
        told = re.sub(r"'[^']* \.\.\.[^']*'", "", self.message.lower())
        return " ".join(sorted(re.findall(r"[^\W_]+|\.\.\.", told))), self.rule

    @property
    def place(self) -> tuple[int, int, str, str]:
        headline = self.message.partition("\n")[0]
        return self.line, self.column, self.rule, " ".join(sorted(re.findall(r"[^\W_]+|\.\.\.", headline.lower())))

    def __str__(self) -> str:
        rule = f" ({self.rule})" if self.rule else ""
        return f"{self.file}:{self.line}:{self.column} {self.severity}: {one_line(self.message)}{rule}"


Findings = Mapping[str, tuple[Problem, ...]]
"""By file; a file without problems is not there."""


@dataclass(frozen=True)
class Truth:
    """What one edit did, by the checker."""

    before: Findings
    after: Findings
    new: Findings
    optional: Findings = field(default_factory=dict[str, tuple[Problem, ...]])
    """What may be told as new, and need not: it says something else than before at a place that nobody touched, or
    stands on a line that the edit wrote, while one like it went away elsewhere in the file."""

    @classmethod
    def of(cls, before: Findings, after: Findings, changes: Sequence[Change]) -> Self:
        new, lines = difference(before, after), {one.path: kept_lines(one) for one in changes}
        words = reworded(before, after, new, lines)
        rest = {file: tuple(one for one in found if one not in words.get(file, ())) for file, found in new.items()}
        rest = {file: found for file, found in rest.items() if found}
        written = {
            file: tuple(one for one in after.get(file, ()) if one.line not in kept.values())
            for file, kept in lines.items()
        }
        other = {file: tuple(one for one in found if one not in rest.get(file, ())) for file, found in written.items()}
        return cls(before, after, rest, {file: other.get(file, ()) + words.get(file, ()) for file in {*other, *words}})


def difference(before: Findings, after: Findings) -> dict[str, tuple[Problem, ...]]:
    """By file, what is in `after` and was not in `before`, each as often as it is more often there.

    What explains an error below its headline names the member of a union that the checker has met first: in the same
    place it is the same error.
    """
    found: dict[str, tuple[Problem, ...]] = {}
    for file, problems in after.items():
        places = {problem.place: problem.key for problem in before.get(file, ())}
        known = Counter(problem.key for problem in before.get(file, ()))
        known -= Counter(places[problem.place] for problem in problems if problem.place in places)
        fresh = list[Problem]()
        # Of several that are alike, the last ones count as new, whichever those are.
        for problem in problems:
            if problem.place in places:
                continue
            if known[problem.key]:
                known[problem.key] -= 1
            else:
                fresh.append(problem)
        if fresh:
            found[file] = tuple(fresh)
    return found


def reworded(before: Findings, after: Findings, new: Findings, lines: Mapping[str, Mapping[int, int]]) -> Findings:
    """Of what is new, what names something else at a place where the same rule was broken before.

    An alias of a type gets one more member, and a hundred old errors spell it out: none of them is a break.
    """
    found = dict[str, tuple[Problem, ...]]()
    for file, problems in new.items():
        stay = lines.get(file)
        # A line that is not there any more is none that a file has.
        had = Counter(
            (one.line if stay is None else stay.get(one.line, 0), one.column, one.rule) for one in before.get(file, ())
        )
        more = Counter((one.line, one.column, one.rule) for one in after[file]) - had
        sites = [(one, (one.line, one.column, one.rule)) for one in problems]
        if words := tuple(one for one, site in sites if had[site] and not more[site]):
            found[file] = words
    return found


def kept_lines(change: Change) -> dict[int, int]:
    """Of lines that an edit leaves, where they are then; counted from 1."""
    before, after = (change.before or "").splitlines(), (change.after or "").splitlines()
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    return {old + at + 1: new + at + 1 for old, new, size in blocks for at in range(size)}


def moved(before: Findings, edit: Edit) -> Findings:
    """What was known of a file that has another name now is known of that one."""
    gone = [change for change in edit.changes if change.after is None]
    come = [change for change in edit.changes if change.before is None]
    if len(gone) != 1 or len(come) != 1:
        return before
    return {come[0].path if file == gone[0].path else file: found for file, found in before.items()}


def letters(text: str) -> str:
    # Without all that quoting, escaping and folding may change.
    return re.sub(r"[\W_]+", "", text).lower()


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


# --- What checkers print ----------------------------------------------------------------------------------------------


def parse_pyright(output: str, root: Path) -> Iterator[Problem]:
    """`--outputjson` of pyright and basedpyright."""
    for one in json.loads(output)["generalDiagnostics"]:
        start = one.get("range", {}).get("start", {"line": 0, "character": 0})
        place = start["line"] + 1, start["character"] + 1
        yield _problem(root, one["file"], place, one["severity"], one.get("rule", ""), one["message"])


def parse_ty(output: str, root: Path) -> Iterator[Problem]:
    """`--output-format gitlab`."""
    severities = {"info": "information", "minor": "warning", "major": "error", "critical": "error"}
    for one in json.loads(output or "[]"):
        rule, begin = one["check_name"], one["location"]["positions"]["begin"]
        severity, message = severities.get(one["severity"], "error"), one["description"].removeprefix(f"{rule}: ")
        yield _problem(root, one["location"]["path"], (begin["line"], begin["column"]), severity, rule, message)


def parse_pyrefly(output: str, root: Path) -> Iterator[Problem]:
    """`--output-format json`."""
    for one in json.loads(output)["errors"]:
        message = one["description"].replace(f"{root}/", "").replace(str(root), "")
        place, severity = (one["line"], one["column"]), one.get("severity", "error")
        yield _problem(root, one["path"], place, severity, one["name"], message)


def parse_tsc(output: str, root: Path) -> Iterator[Problem]:
    """`--pretty false`: a line for each error, and indented ones that explain it."""
    head = re.compile(
        r"(?P<file>[^\n(]+)\((?P<line>\d+),(?P<column>\d+)\): (?P<severity>\w+) TS(?P<rule>\d+): (?P<message>.*)"
    )
    found = list[tuple[re.Match[str], list[str]]]()
    for line in output.splitlines():
        if match := head.fullmatch(line):
            found.append((match, [match["message"]]))
        elif line.startswith(" ") and found:
            found[-1][1].append(line)
        elif line.strip():
            raise CheckerFailed(line)
    for match, lines in found:
        place = int(match["line"]), int(match["column"])
        yield _problem(root, match["file"], place, match["severity"], match["rule"], "\n".join(lines))


GO_ANALYSES = re.compile(
    r"^(unused parameter|redundant type from|simplify |unneeded: |result of .* call not used|unreachable code"
    r"|self-assignment of|struct field |possible misuse|the cancel function|unused write|nil dereference"
    r"|tautological condition|impossible condition)"
    r"|unkeyed fields| format %|formatting directive|arg list ends with|lock by value|copies lock|is deprecated"
    r"|should have signature|captured by func literal| is unused$|(?:malformed|refers to unknown) .*(?:name|identifier)"
)
"""What its analyses say, by their first or last words: warnings for a client, and nothing that a compiler stops at."""


def parse_gopls(output: str, root: Path) -> Iterator[Problem]:
    """`gopls check`: `FILE:LINE:COLUMN-END: MESSAGE`."""
    head = re.compile(r"(?P<file>/[^\n:]+):(?P<line>\d+):(?P<column>\d+)(?:-[\d:]+)?: (?P<message>.*)")
    for match in filter(None, map(head.fullmatch, output.splitlines())):
        # It prints no severities.
        severity = "warning" if GO_ANALYSES.search(match["message"]) else "error"
        yield _problem(root, match["file"], (int(match["line"]), int(match["column"])), severity, "", match["message"])


def parse_cargo(output: str, root: Path) -> Iterator[Problem]:
    """`--message-format=json`: the library and its tests are compiled apart, and say much twice."""
    found = dict[Problem, None]()
    for line in output.splitlines():
        message = json.loads(line).get("message") if line.startswith("{") else None
        spans = [span for span in message["spans"] if span["is_primary"]] if message else []
        if message and spans and message["level"] in {"error", "warning"}:
            rule = message["code"]["code"] if message["code"] else ""
            place = (spans[0]["line_start"], spans[0]["column_start"])
            found[_problem(root, spans[0]["file_name"], place, message["level"], rule, message["message"])] = None
    yield from found


def parse_clangd(output: str, root: Path) -> Iterator[Problem]:
    """`clangd --check=FILE`, for one file after another: only errors are listed, without their columns."""
    head, file = re.compile(r"E\[[\d:.]+\] \[(?P<rule>[^\]\s]+)\] Line (?P<line>\d+): (?P<message>.*)"), ""
    for line in output.splitlines():
        if ": Testing on source file " in line or "] Testing on source file " in line:
            file = line.partition("source file ")[2].strip()
        elif match := head.fullmatch(line):
            yield _problem(root, file, (int(match["line"]), 1), "error", match["rule"], match["message"])


def _problem(root: Path, file: str, place: tuple[int, int], severity: str, rule: str, message: str) -> Problem:
    named = file.removeprefix(f"{root}/").removeprefix("./")
    return Problem(named, *place, severity, rule, message.replace(f"{root}/", ""))


PARSERS: Mapping[str, Callable[[str, Path], Iterable[Problem]]] = {
    "pyright": parse_pyright,
    "ty": parse_ty,
    "pyrefly": parse_pyrefly,
    "tsc": parse_tsc,
    "gopls": parse_gopls,
    "cargo": parse_cargo,
    "clangd": parse_clangd,
}


# --- Asking them ------------------------------------------------------------------------------------------------------


def prepare(checker: Server, root: Path) -> None:
    """For pyright what the project asks for; the ordinary mode where it asks for none, and all of its files."""
    path = root / "pyproject.toml"
    if checker.parse != "pyright":
        return
    tools = (tomllib.loads(path.read_text()) if path.exists() else {}).get("tool", {})
    # With a file of its own in place, what `pyproject.toml` says is not read.
    settings = {"typeCheckingMode": "standard", **tools.get("pyright", {}), **tools.get("basedpyright", {})}
    settings.pop("include", None)
    (root / "pyrightconfig.json").write_text(json.dumps(settings))


def _go_files(root: Path) -> list[str]:
    """Those that are built on this machine: gopls refuses to check the others."""
    several = ("GoFiles", "TestGoFiles", "XTestGoFiles")
    form = "".join(f"{{{{range .{kind}}}}}{{{{$.Dir}}}}/{{{{.}}}} {{{{end}}}}" for kind in several)
    return sorted(_run(["go", "list", "-e", "-f", form, "./..."], root, {**os.environ, "GOPROXY": "off"}, (0,)).split())


def truths(
    project: Project, server: str, texts: Texts, edits: Sequence[Edit], report: Callable[[str], None]
) -> list[Truth]:
    """What each edit did."""
    with Asker(project, server).open() as asker:
        found = list[Findings]()
        for number, state in enumerate(states(texts, edits)):
            found.append(asker.findings(state))
            report(f"truth {number}/{len(edits)}")
    judged = list[Truth]()
    for edit, known, after in zip(edits, found, found[1:], strict=False):
        before = moved(known, edit)
        judged.append(Truth.of(before, after, edit.changes))
    return judged


class Asker:
    """One checker on one project: from the cache, or on a copy that is made when it is first needed."""

    def __init__(self, project: Project, server: str) -> None:
        self._project = project
        self._checker = SERVERS[server]
        self._root: Path | None = None
        self._written: dict[str, str] = {}

    @contextmanager
    def open(self) -> Generator[Self]:
        with tempfile.TemporaryDirectory(prefix="told-truth-") as folder:
            self._folder = Path(os.path.realpath(folder))
            yield self

    @property
    def folder(self) -> Path:
        """Where it works, and keeps what a checker keeps for the next time."""
        return self._folder

    def findings(self, state: Texts) -> Findings:
        found = self._from_cache(self._kept(state), lambda: self.ask(state))
        if self._checker.stops_at and _has_rule(found, self._checker.stops_at):
            return self._from_cache(self._kept(state, "whole"), lambda: self.ask(state, whole=True))
        return found

    @staticmethod
    def _from_cache(path: Path, ask: Callable[[], Findings]) -> Findings:
        if path.exists():
            return _read(path)
        found = ask()
        _write(path, found)
        return found

    def ask(self, state: Texts, *, whole: bool = False) -> Findings:
        """What the checker says now, whatever is in the cache."""
        checker, root = self._checker, self._copy(state)
        variables = {**os.environ, "PATH": plain_path(), **checker.environment}
        for name in ("VIRTUAL_ENV", "PYTHONPATH", "CONDA_PREFIX"):
            variables.pop(name, None)
        environment = root / ".venv" if self._project.environment else corpus.empty_environment()
        listed = "\n".join(_go_files(root)) if "{go_files}" in checker.check else ""
        places = {"root": str(root), "python": str(environment / "bin" / "python"), "go_files": listed}
        words = checker.filled(list(checker.whole if whole else checker.check), **places)
        argv = [part for word in words for part in word.split("\n")]
        files = [str(path) for path in sorted(root.rglob(checker.each))] if checker.each else [""]
        output = "".join(_run([*argv[:-1], argv[-1] + file], root, variables, checker.codes) for file in files)
        found: dict[str, list[Problem]] = {}
        for problem in PARSERS[checker.parse](output, root):
            found.setdefault(problem.file, []).append(problem)
        return {file: tuple(found[file]) for file in sorted(found)}

    def _copy(self, state: Texts) -> Path:
        if self._root is None:
            self._root = corpus.copy(self._project, self._folder)
            self._written = corpus.texts(self._root, self._project.language)
            prepare(self._checker, self._root)
        write_state(self._root, self._written, state)
        self._written = dict(state)
        return self._root

    def _kept(self, state: Texts, *way: str) -> Path:
        checker = self._checker
        parts = [
            str(REVISION),
            checker.kept_as or checker.name,
            version(checker.name),
            self._project.identity,
            digest(state),
            *way,
        ]
        return corpus.kept_by(*parts)


def _has_rule(found: Findings, pattern: str) -> bool:
    return any(re.fullmatch(pattern, one.rule) for problems in found.values() for one in problems)


def _run(argv: Sequence[str], root: Path, variables: Mapping[str, str], codes: Container[int] | str) -> str:
    """What the checker printed: clangd prints to where others complain."""
    done = subprocess.run(
        argv, cwd=root, env=variables, capture_output=True, text=True, timeout=CHECK_SECONDS, check=False
    )
    if not isinstance(codes, str) and done.returncode not in codes:
        words = (done.stderr or done.stdout)[-2000:]
        raise CheckerFailed(f"{' '.join(argv[:4])} ended with {done.returncode}: {words}")
    return done.stdout or done.stderr


def write_state(root: Path, before: Texts, after: Texts) -> None:
    """Make the files on disk those of `after`, where they are those of `before`."""
    for path in before.keys() - after.keys():
        (root / path).unlink()
    for path, text in after.items():
        if before.get(path) != text:
            (root / path).write_bytes(text.encode())


@cache
def version(name: str) -> str:
    """Of the checker of a server."""
    done = subprocess.run(SERVERS[name].filled(SERVERS[name].version), capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _read(path: Path) -> Findings:
    kept = json.loads(gzip.decompress(path.read_bytes()))
    return {file: tuple(Problem(**one) for one in found) for file, found in kept.items()}


def _write(path: Path, found: Findings) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = gzip.compress(json.dumps({file: [asdict(one) for one in each] for file, each in found.items()}).encode())
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as part:
        part.write(data)
    Path(part.name).rename(path)
