"""One project under one daemon: every change in every order, edit by edit, and what was told beside what is true."""

import html
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness import corpus, processes
from harness.corpus import SUFFIXES, Project
from harness.servers import SCRIPTS, fetched
from harness.setting import Setting, verb
from told import score
from told.conversation import Conversation, Heard
from told.edits import Edit, Texts, digest
from told.score import Judge, is_missing_package
from told.truth import Asker, Findings, Problem, Truth, moved, prepare, version, write_state

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
        found.append(Truth.of(before, known, edit.changes))
    return found


def whole(change: RealChange, start: Findings, end: Findings) -> Truth:
    """What all of the change did."""
    begun = {change.moves.get(file, file): problems for file, problems in start.items()}
    return Truth.of(begun, end, change.changes)


def left_by(truth: Truth, own: Sequence[str] | None) -> Findings:
    """The errors that the whole change brought; `own` are the project's modules where others are not installed."""
    found = dict[str, tuple[Problem, ...]]()
    for file, problems in truth.new.items():
        errors = [one for one in problems if one.severity == "error"]
        if counting := tuple(one for one in errors if own is None or not is_missing_package(one, own)):
            found[file] = counting
    return found


# --- Playing --------------------------------------------------------------------------------------------------------

FORMATTERS = {
    "python": lambda: [str(SCRIPTS / "ruff"), "format", "-q"],
    "typescript": lambda: [str(fetched("prettier") / "bin" / "prettier"), "--write", "--log-level", "silent"],
    "go": lambda: ["gofmt", "-w"],
}

NO_VERDICT = ("not checked", "no verdict", "has not answered", "is starting")


@dataclass
class Outcome:
    """One thing that the agent did, or that happened around it; a finding is written as the checker would."""

    kind: str
    what: str
    milliseconds: float
    text: str
    edits: int = 0
    """Made at once."""
    lines: int = 0
    new: int = 0
    older: list[str] = field(default_factory=list[str])
    repeated: list[str] = field(default_factory=list[str])
    false: list[str] = field(default_factory=list[str])
    missing: list[str] = field(default_factory=list[str])
    broken: list[str] = field(default_factory=list[str])
    told: list[str] = field(default_factory=list[str])
    late: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    error: str = ""

    @property
    def size(self) -> int:
        return len(self.text.encode())

    @property
    def is_uncalled_for(self) -> bool:
        """Whether something was said though nothing had changed, and nothing was owed."""
        return self.kind in {"harmless", "disorder"} and bool(self.size and not self.new and not self.late)

    @property
    def has_no_verdict(self) -> bool:
        return bool(self.error) or any(words in self.text for words in NO_VERDICT)


@dataclass
class Played:
    """One change in one order."""

    project: str
    change: str
    order: str
    outcomes: list[Outcome]
    told: int = 0
    """Lines that were true when they were told, each once."""
    premature: list[str] = field(default_factory=list[str])
    """Of those, told as errors and gone at the end of the change."""
    opened: int = 0
    """Of those, told as open."""
    left: list[str] = field(default_factory=list[str])
    left_told: list[str] = field(default_factory=list[str])
    beside: list[str] = field(default_factory=list[str])
    """What else was told at the stop."""

    @property
    def key(self) -> tuple[str, ...]:
        return self.project, self.change, self.order

    @property
    def later(self) -> set[tuple[int, str]]:
        return {pair for one in self.outcomes for pair in one.late}

    @property
    def untold(self) -> set[tuple[int, str]]:
        """Broken files with the steps that broke them, not told in the same turn."""
        found = enumerate(self.outcomes)
        return {(number, file) for number, one in found for file in one.broken if file not in one.told}

    @property
    def is_wrong(self) -> bool:
        return bool(
            any(one.older or one.false or one.repeated or one.error for one in self.outcomes)
            or any(one.is_uncalled_for for one in self.outcomes)
            or self.untold - self.later
            or self.beside
            or set(self.left) - set(self.left_told)
        )


class Player:
    """The daemon of one user, and the repository that everybody works in."""

    def __init__(self, subject: Subject, setting: Setting) -> None:
        self._subject, self._setting = subject, setting
        self._conversations = 0

    def begin(self) -> None:
        copied(self._subject, self._setting.root)
        self._setting.prepare()

    def end(self) -> None:
        verb(self._setting, "daemon", "stop")
        if processes.left(self._setting):
            processes.end(self._setting)

    def play(self, change: RealChange, order: str, steps: Sequence[Step], true: Sequence[Truth], tip: str) -> Played:
        """From a clean checkout to the stop; the tree is left as the change leaves it."""
        self._terminal(f"git checkout -q -f --detach {tip}", f"git checkout -q -B work {change.base}")
        agent, listener = self._conversation(), Listener(self._subject, self._setting.root)
        agent.begin("Make the change.")
        played = Played(self._subject.name, change.name, order, [])
        for number, (step, truth) in enumerate(zip(steps, true, strict=True)):
            agent.looked = Heard()
            heard, other = self._done(agent, step, tip)
            judged = Listener(self._subject, self._setting.root) if other else listener
            played.outcomes.append(judged.heard(number, step, truth, heard, agent.looked))
        self._stopped(agent, change, steps, true, listener, played)
        agent.end()
        self._ended(order)
        return played

    def _done(self, agent: Conversation, step: Step, tip: str) -> tuple[Heard, bool]:
        """What was heard, and whether another conversation heard it."""
        switch = f"git stash -q -u && git checkout -q {tip} && git checkout -q work && git stash pop -q"
        match step.what.partition(" ")[0]:
            case "second":
                other = self._conversation()
                other.begin("Do something else.")
                heard = other.edit(*step.edits)
                other.end()
                return heard, True
            case "stash":
                return agent.command("git stash -q -u && git stash pop -q"), False
            case "switch":
                return agent.command(switch), False
            case "stash-outside":
                self._terminal("git stash -q -u", "git stash pop -q")
                return Heard(), False
            case "switch-outside":
                self._terminal(switch)
                return Heard(), False
            case "format":
                argv = [*FORMATTERS[self._subject.language](), step.what.partition(" ")[2]]
                return agent.command(" ".join(argv)), False
            case _:
                return agent.edit(*step.edits), False

    def _stopped(
        self,
        agent: Conversation,
        change: RealChange,
        steps: Sequence[Step],
        true: Sequence[Truth],
        listener: "Listener",
        played: Played,
    ) -> None:
        first = next(truth for step, truth in zip(steps, true, strict=True) if step.kind == "edit")
        own = None if listener.installed else listener.own
        done = whole(change, first.before, true[-1].after)
        left = left_by(done, own)
        heard = agent.stop()
        if heard.text and not score.said(heard.text, str(self._setting.root)).findings:
            # It has only heard that not everything could be checked in time: it goes on, and stops again.
            time.sleep(self._setting.pause)
            more = agent.stop(again=True)
            heard = Heard(f"{heard.text}\n{more.text}", heard.milliseconds + more.milliseconds, more.error)
        outcome = listener.heard(len(steps), None, Truth(true[-1].after, true[-1].after, {}), heard)
        said = score.said(heard.text, str(self._setting.root))
        right, rest = score.matched(said.findings, [one for several in left.values() for one in several])
        rest = score.matched(rest, [one for several in done.optional.values() for one in several])[1]
        named = {problem.file for _, problem in right} | {file for file in left if score.names(said, file)}
        played.left, played.left_told = sorted(left), sorted(named)
        played.beside = [str(one) for one in rest]
        # What is left may be told once more now, and what is told beside it is counted apart.
        played.outcomes.append(Outcome("stop", "stop", heard.milliseconds, heard.text, late=outcome.late))
        played.told, played.opened = len(listener.told), sum(is_open for _, is_open in listener.told)
        ends = true[-1].after
        played.premature = [str(one) for one, is_open in listener.told if not is_open and not _stands(one, ends)]

    def _ended(self, order: str) -> None:
        """How the world goes on: what was done is stashed away, committed, or thrown away."""
        match order:
            case "diff":
                self._terminal("git add -A", "git stash -q -u || true", "git stash drop -q || true")
            case "callee":
                self._terminal("git add -A", "git commit -q -m Done || true")
            case _:
                self._terminal("git checkout -q -f .", "git clean -q -f -d")

    def _conversation(self) -> Conversation:
        self._conversations += 1
        return Conversation(self._setting, f"conversation-{self._conversations}")

    def _terminal(self, *lines: str) -> None:
        """What a person does beside the agent."""
        variables = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        for line in lines:
            subprocess.run(line, shell=True, cwd=self._setting.root, env=variables, check=True, capture_output=True)


class Listener:
    """What one conversation is told, beside what is true."""

    def __init__(self, subject: Subject, root: Path) -> None:
        self.installed = subject.environment is not None or subject.language == "go"
        self.own = tuple(path.stem for path in (*root.iterdir(), *root.glob("src/*")))
        self.told: list[tuple[Problem, bool]] = []
        """What was right when it was told, and whether it was told as open."""
        self._root = str(root)
        self._judge = Judge(installed=self.installed, own=self.own)

    def heard(self, number: int, step: Step | None, truth: Truth, heard: Heard, looked: Heard | None = None) -> Outcome:
        """`looked`: what came with the files that were read for the edit."""
        said = score.said(heard.text, self._root)
        before = score.said(looked.text if looked else "", self._root)
        edit = merged(step.edits if step else (), number)
        verdict = self._judge.verdict(edit, truth, said, before)
        repeated = [one for one in verdict.old if any(score.same(one, earlier) for earlier, _ in self.told)]
        right = (*verdict.right, *verdict.late)
        text = "\n\n".join(one.text for one in (looked, heard) if one and one.text)
        self.told += [(one, is_open(text, one)) for one in right]
        own = {one.file for one in verdict.right if one.file in edit.paths}
        own_broken = own | {one.file for one in verdict.missing}
        return Outcome(
            step.kind if step else "stop",
            f"{step.what} {', '.join(edit.paths)} ({edit.tool})".strip() if step else "stop",
            heard.before + heard.milliseconds,
            text,
            edits=len(step.edits) if step else 0,
            lines=len(before.findings) + len(said.findings),
            new=sum(map(len, truth.new.values())),
            older=[str(one) for one in verdict.old if one not in repeated],
            repeated=[str(one) for one in repeated],
            false=[str(one) for one in verdict.unknown],
            missing=[str(one) for one in verdict.missing],
            broken=sorted({*verdict.broken, *own_broken}),
            told=sorted({*verdict.told, *own}),
            late=list(verdict.late_for),
            error=heard.error,
        )


def is_open(text: str, finding: Problem) -> bool:
    """Whether the text tells this one as something that is still to be done."""
    lines = html.unescape(text).splitlines()
    return any(
        line.startswith(f"OPEN [{finding.line}:{finding.column}]") and finding.message[:30] in line for line in lines
    )


def _stands(finding: Problem, end: Findings) -> bool:
    return any(score.same(finding, one) for one in end.get(finding.file, ()))
