"""Where real changes come from: a git repository with one commit for each of them.

Registries have releases and no history. The difference of two consecutive releases is cut into changes of a few files
that belong together, because their changed lines share a name that one of them defines; each becomes a commit on top of
the one before. A clone that somebody has (`--repo`) is read in the same way.
Commits are of source files alone: what a project configures stays as it was in the first release.
"""

import hashlib
import os
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import corpus
from harness.corpus import SUFFIXES, Project
from told.edits import Change, Texts, words

PINS = Path(__file__).with_name("corpus.toml")
SERVERS = {"python": "basedpyright", "typescript": "typescript", "go": "gopls"}
FEWEST, MOST = 2, 12
"""Files of one change."""

CUT = 4
"""Raised when releases are cut into changes in another way."""

COMMON = 8
"""A name in the changed lines of more files than this does not show that they belong together."""

_DEFINED = re.compile(
    r"\b(?:def|class|function|interface|type|enum|const|let|var|func|struct)\s+(?:\([^)]*\)\s*)?([A-Za-z_]\w{2,})"
    r"|^\s*(?:self\.)?([A-Za-z_]\w{2,})\s*(?::[^=\n]+)?=[^=]"
)


@dataclass(frozen=True)
class Subject:
    """A project to replay: a row of the pins, or somebody's clone."""

    name: str
    language: str
    repository: Path
    server: str
    environment: Path | None = None
    """A Python environment with what the project needs."""


@dataclass(frozen=True)
class RealChange:
    """One commit: what it did to the sources."""

    name: str
    base: str
    commit: str
    changes: tuple[Change, ...]
    moves: Mapping[str, str] = field(default_factory=dict[str, str])
    """Old paths of files that got another one, with those."""


def subjects() -> dict[str, dict[str, Any]]:
    return tomllib.loads(PINS.read_text())


def subject(named: str) -> Subject:
    """`NAME`, or `NAME+SERVER` for another server than usual; downloaded and cut into commits once."""
    name, _, server = named.partition("+")
    row = subjects()[name]
    projects = list(_releases(name, row))
    digest = hashlib.sha256("\0".join([str(CUT), *(one.identity for one in projects)]).encode()).hexdigest()
    target = corpus.kept("histories", f"{name}-{digest[:8]}", lambda folder: _write_history(folder / name, projects))
    needs = tuple(row.get("requirements", ()))
    environment = corpus.environment(f"replay-{name}", needs) if needs else None
    return Subject(named, row["language"], target, server or SERVERS[row["language"]], environment)


def chosen(options: Any) -> Iterator[Subject]:
    """The clone, or the projects, that `add_choice` let somebody choose."""
    if options.repo:
        yield clone(Path(options.repo), options.language, options.server)
        return
    for name in options.projects.split(",") if options.projects else subjects():
        try:
            yield subject(name)
        except corpus.Unavailable as unavailable:
            print(f"{name} is left out: {unavailable}", flush=True)


def add_choice(add: Callable[..., Any], projects: str = "") -> None:
    add("--projects", default=projects, help="names of bench/replay/corpus.toml, NAME+SERVER for another server")
    add("--repo", default="", help="a clone instead, whose commits are the changes")
    add("--language", default="python", help="of that clone")
    add("--server", default="", help="for that clone, another one than usual for the language, as ty")


def clone(path: Path, language: str, server: str = "") -> Subject:
    return Subject(path.resolve().name, language, path.resolve(), server or SERVERS[language])


def changes(found: Subject, most: int) -> list[RealChange]:
    """The commits of the main line that change several sources, the oldest first.

    Of many, the `most` whose files depend on each other most: the others break little on the way.
    """
    log = git(found.repository, "log", "--first-parent", "--no-merges", "--reverse", "--format=%H %P %s")
    rows = [line.split(" ", 2) for line in log.splitlines()]
    several = [_read(found, *row) for row in rows if len(row) == 3 and re.fullmatch("[0-9a-f]{40,}", row[1])]
    kept = [one for one in several if FEWEST <= len(one.changes) <= MOST]
    if 0 < most < len(kept):
        closeness = {one.commit: _closeness(uses(one.changes)) for one in kept}
        least = sorted(closeness.values(), reverse=True)[most - 1]
        return [one for one in kept if closeness[one.commit] >= least][:most]
    return kept


def _closeness(counted: Counter[tuple[str, str]]) -> tuple[float, int]:
    """Of how many pairs of files one uses the other, and how much."""
    return sum(map(bool, counted.values())) / len(counted), counted.total()


def uses(several: Sequence[Change]) -> Counter[tuple[str, str]]:
    """By a file and another one: how many names of the former's changed lines the latter's changed lines define."""
    lines = {one.path: changed_lines(one.before or "", one.after or "") for one in several}
    spoken = {path: words("\n".join(each)) for path, each in lines.items()}
    defined = {path: {name for line in each for name in defined_names(line)} for path, each in lines.items()}
    pairs = ((path, other) for path in lines for other in lines if path != other)
    return Counter({(path, other): len(spoken[path] & defined[other]) for path, other in pairs})


def _read(found: Subject, commit: str, base: str, title: str) -> RealChange:
    listed = git(found.repository, "diff", "--name-status", "--find-renames", base, commit).splitlines()
    rows = [row for row in (line.split("\t") for line in listed) if row[-1].endswith(SUFFIXES[found.language])]
    texts = list[Change]()
    for _, *paths in rows if len(rows) <= MOST else ():
        texts += [Change(path, _shown(found, base, path), _shown(found, commit, path)) for path in paths]
    moves = {row[1]: row[2] for row in rows if len(row) == 3}
    return RealChange(f"{commit[:9]} {title}", base, commit, tuple(texts), moves)


def _shown(found: Subject, commit: str, path: str) -> str | None:
    """The file in a commit; None where it is not there."""
    argv = ["git", "cat-file", "blob", f"{commit}:{path}"]
    done = subprocess.run(argv, cwd=found.repository, capture_output=True, check=False)
    return None if done.returncode else done.stdout.decode(errors="surrogateescape")


def git(root: Path, *arguments: str) -> str:
    """What git prints, whatever the machine's own settings are."""
    who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "core.autocrlf=false"]
    variables = {**os.environ, **dict.fromkeys(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), os.devnull), **corpus.MADE}
    done = subprocess.run(
        ["git", *who, *arguments], cwd=root, env=variables, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise corpus.Unavailable(f"git {' '.join(arguments)}: {done.stderr.strip()[-1000:]}")
    return done.stdout


# --- Releases into commits ----------------------------------------------------------------------------------------


def _releases(name: str, row: Mapping[str, Any]) -> Iterator[Project]:
    keep, drop = tuple(row.get("keep", ())), tuple(row.get("drop", ()))
    for release, digest in row["releases"].items():
        package = {"pypi": "{}=={}", "npm": "{}@{}"}.get(row["registry"], "{}_{}").format(row["package"], release)
        files = row.get("files", {})
        yield Project(name, row["language"], row["registry"], package, digest, (), "", keep, drop, (), files)


def _write_history(root: Path, projects: Sequence[Project]) -> Path:
    corpus.copy(projects[0], root.parent)
    language, state = projects[0].language, corpus.texts(root, projects[0].language)
    for project in projects[1:]:
        after, release = corpus.texts(corpus.sources(project), language), project.package.rpartition("/")[2]
        for group in groups(state, after):
            for path in group:
                _put(root / path, after.get(path))
            git(root, "add", "-A", "-f", "--", *group)
            git(root, "commit", "-q", "-m", f"{release}: {group[0]} and {len(group) - 1} more")
        state = after
    return root


def _put(path: Path, text: str | None) -> None:
    if text is None:
        path.unlink()
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def groups(before: Texts, after: Texts) -> list[list[str]]:
    """The changed files in groups that belong together, each of `FEWEST` to `MOST` where that is possible."""
    changed = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    lines = {path: changed_lines(before.get(path, ""), after.get(path, "")) for path in changed}
    spoken = {path: words("\n".join(several)) for path, several in lines.items()}
    defined = {name for several in lines.values() for line in several for name in defined_names(line)}
    users = {name: [path for path in changed if name in spoken[path]] for name in defined}
    of = {path: [path] for path in changed}
    # The rarest names first: they show best what belongs together.
    for _, together in sorted(users.items(), key=lambda item: (len(item[1]), item[0])):
        if FEWEST <= len(together) <= COMMON:
            for path in together[1:]:
                _join(of, together[0], path)
    alone = [path for path in changed if len(of[path]) == 1]
    for first, second in zip(alone[::2], alone[1::2], strict=False):
        _join(of, first, second)
    return [list(group) for group in dict.fromkeys(tuple(sorted(of[path])) for path in changed)]


def _join(of: dict[str, list[str]], one: str, other: str) -> None:
    if of[one] is not of[other] and len(of[one]) + len(of[other]) <= MOST:
        joined = of[one] + of[other]
        of |= dict.fromkeys(joined, joined)


def defined_names(line: str) -> Iterator[str]:
    for found in _DEFINED.finditer(line):
        yield found[1] or found[2]


def changed_lines(before: str, after: str) -> list[str]:
    """Lines that one text has more often than the other."""
    one, other = Counter(before.splitlines()), Counter(after.splitlines())
    return [*(one - other), *(other - one)]
