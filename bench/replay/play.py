"""One project under one daemon: every change in every order, edit by edit, and what was told beside what is true."""

import html
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness import processes
from harness.servers import SCRIPTS, fetched
from harness.setting import Setting, verb
from told import score
from told.conversation import Conversation, Heard
from told.score import Judge
from told.truth import Findings, Problem, Truth

from replay import trees
from replay.history import RealChange, Subject
from replay.plan import Step

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
        trees.copied(self._subject, self._setting.root)
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
        left = trees.left(change, first.before, true[-1].after, own)
        heard = agent.stop()
        outcome = listener.heard(len(steps), None, Truth(true[-1].after, true[-1].after, {}), heard)
        said = score.said(heard.text, str(self._setting.root))
        right, rest = score.matched(said.findings, [one for several in left.values() for one in several])
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
        edit = trees.merged(step.edits if step else (), number)
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
