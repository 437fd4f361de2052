"""What the checker's own command line says of a tree: each one once, and kept."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from harness import corpus
from harness.corpus import SUFFIXES, Project
from told.edits import Edit, Texts, digest
from told.score import is_missing_package
from told.truth import Asker, Findings, Problem, Truth, difference, moved, prepare, version, write_state

from replay.history import RealChange, Subject, git
from replay.plan import Step, applied


def copied(subject: Subject, root: Path) -> Path:
    """A clone to work in, with what the project needs beside its sources."""
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", str(subject.repository), str(root)], check=True)
    (root / ".git" / "info" / "exclude").write_text(".venv\nnode_modules\n")
    git(root, "config", "user.name", "bench")
    git(root, "config", "user.email", "bench@localhost")
    if subject.environment:
        shutil.copytree(subject.environment, root / ".venv", symlinks=True, copy_function=os.link)
    return root


class Trees(Asker):
    """The checker on a clone that nobody else has."""

    def __init__(self, subject: Subject) -> None:
        project = Project(subject.name, subject.language, "pypi", "", "", (), environment=bool(subject.environment))
        super().__init__(project, subject.server)
        self._subject, self._base, self._rest = subject, "", ""

    def at(self, base: str) -> dict[str, str]:
        """The sources of a commit, whose other files count from now on."""
        if self._root is None:
            self._root = copied(self._subject, self.folder / self._subject.name)
        git(self._root, "checkout", "-q", "-f", "--detach", base)
        git(self._root, "clean", "-q", "-f", "-d")
        prepare(self._checker, self._root)
        listed = git(self._root, "ls-tree", "-r", base).splitlines()
        self._rest = "\n".join(line for line in listed if not line.endswith(SUFFIXES[self._subject.language]))
        self._written = corpus.texts(self._root, self._subject.language)
        return dict(self._written)

    def _copy(self, state: Texts) -> Path:
        assert self._root is not None
        for path in state:
            (self._root / path).parent.mkdir(parents=True, exist_ok=True)
        write_state(self._root, self._written, state)
        self._written = dict(state)
        return self._root

    def _kept(self, state: Texts, *way: str) -> Path:
        environment = self._subject.environment.name if self._subject.environment else ""
        checker = self._checker
        parts = [
            "replay",
            checker.kept_as or checker.name,
            version(checker.name),
            environment,
            self._rest,
            digest(state),
            *way,
        ]
        return corpus.kept_by(*parts)


def merged(edits: Sequence[Edit], number: int) -> Edit:
    """Edits made at once, or none, as one."""
    changes = tuple(change for edit in edits for change in edit.changes)
    return Edit(number, "several", "others", edits[0].tool if edits else "patch", changes, "")


def truths(trees: Trees, steps: Sequence[Step], state: Texts) -> list[Truth]:
    """What each step did. Harmless ones do nothing by themselves, and so does what is undone at once."""
    known, found = trees.findings(state), list[Truth]()
    for number, step in enumerate(steps):
        if step.kind == "harmless" or not step.edits:
            found.append(Truth(known, known, {}))
            continue
        edit = merged(step.edits, number)
        state = applied(state, edit.changes)
        before, known = moved(known, edit), trees.findings(state)
        found.append(Truth(before, known, difference(before, known)))
    return found


def left(change: RealChange, start: Findings, end: Findings, own: Sequence[str] | None) -> Findings:
    """The errors that the whole change brought; `own` are the project's modules where others are not installed."""
    begun = {change.moves.get(file, file): problems for file, problems in start.items()}
    found = dict[str, tuple[Problem, ...]]()
    for file, problems in difference(begun, end).items():
        errors = [one for one in problems if one.severity == "error"]
        if counting := tuple(one for one in errors if own is None or not is_missing_package(one, own)):
            found[file] = counting
    return found
