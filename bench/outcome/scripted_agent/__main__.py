"""`bench/outcome/run [--projects itsdangerous] [--changes 2] [--orders callee,caller]`: see README.md."""

import argparse
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from parity import processes
from replay import history, plan, trees
from replay.history import RealChange, Subject, git
from replay.plan import applied, edits
from told.report import circumstances
from told.subjects.children import pilotfish, run
from told.subjects.setting import Setting
from told.truth import CheckerFailed

from scripted_agent.agent import Agent, Outcome, scored
from scripted_agent.arms import ARMS

FIGURES: Mapping[str, Callable[[Outcome], int]] = {
    "turns": lambda one: one.turns,
    "files read": lambda one: one.reads,
    "bytes read": lambda one: one.bytes_read,
    "unplanned files repaired": lambda one: one.found,
    "of": lambda one: one.unplanned,
    "left-over errors": lambda one: one.left,
    "premature detours": lambda one: one.premature,
    "lines told": lambda one: one.told,
}


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _options(arguments)
    # So that whoever ends this run ends what it has started.
    signal.signal(signal.SIGTERM, _ended)
    given = list(arguments) if arguments is not None else sys.argv[1:]
    outcomes, loads = list[Outcome](), [os.getloadavg()[0]]
    for name in chosen.projects.split(","):
        subject = history.subject(name)
        for change in history.changes(subject, chosen.changes):
            for one in _worked(subject, change, chosen):
                outcomes.append(one)
                print(f"{one.project} {one.change[:50]}, {one.order}, {one.arm}: {_figures([one])}", flush=True)
        loads.append(os.getloadavg()[0])
        about = {**circumstances([], loads), "command": shlex.join(["bench/outcome/run", *given])}
        if chosen.report:
            Path(chosen.report).write_text(page(outcomes, about))
    print(f"\n{table(outcomes)}")
    return 0


def _ended(*_signal: object) -> None:
    raise SystemExit(1)


def _worked(subject: Subject, change: RealChange, chosen: Any) -> Iterator[Outcome]:
    """One change in every order under every arm, each in a clone and under a daemon of its own."""
    with trees.Trees(subject).open() as asker:
        assert isinstance(asker, trees.Trees)
        texts = asker.at(change.base)
        for order in chosen.orders.split(","):
            made = edits(change, order)
            try:
                base = asker.findings(texts)
                whole = asker.findings(applied(texts, [one for edit in made for one in edit.changes]))
                for arm in chosen.arms.split(",") if chosen.arms else ARMS:
                    outcome = Outcome(subject.name, change.name, order, arm)
                    end = _run(subject, change, asker, texts, outcome, chosen.pause)
                    scored(outcome, base, asker.findings(end), whole)
                    yield outcome
            except CheckerFailed as failed:
                print(f"{change.name} is left out: {failed}", flush=True)


def _run(
    subject: Subject, change: RealChange, asker: trees.Trees, texts: dict[str, str], outcome: Outcome, pause: float
) -> dict[str, str]:
    arm = ARMS[outcome.arm]
    with tempfile.TemporaryDirectory(prefix="outcome-") as given:
        folder = Path(os.path.realpath(given))
        config = {"feedback": arm.config} if arm.config else {}
        root = folder / "work" / subject.name
        setting = Setting(root, folder / "scratch", subject.server, trusted=True, config=config, pause=pause)
        trees.copied(subject, root)
        setting.prepare()
        git(root, "checkout", "-q", "-f", "--detach", change.base)
        try:
            return dict(
                Agent(change, outcome.order, texts, arm.feedback(setting, asker.findings, "agent")).work(outcome)
            )
        finally:
            run([*pilotfish(), "daemon", "stop"], setting, None)
            if processes.left(setting.scratch, root, ()):
                processes.end(setting.scratch, root)


def _figures(several: Sequence[Outcome]) -> str:
    return ", ".join(f"{name} {sum(map(of, several))}" for name, of in FIGURES.items())


def table(outcomes: Sequence[Outcome]) -> str:
    """A row for each arm, summed over all changes."""
    rows = [["arm", *FIGURES], ["---"] * (len(FIGURES) + 1)]
    for arm in dict.fromkeys(one.arm for one in outcomes):
        several = [one for one in outcomes if one.arm == arm]
        rows.append([arm, *(str(sum(map(of, several))) for of in FIGURES.values())])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def page(outcomes: Sequence[Outcome], about: dict[str, str]) -> str:
    changes = len({(one.project, one.change, one.order) for one in outcomes})
    lines = [
        "# A scripted agent under different kinds of feedback\n",
        "Written by `bench/outcome/run`; [README.md](README.md) says what the agent does. No model was run.\n",
        *(f"- {name}: {value}" for name, value in about.items()),
        f"- changes and orders: {changes}\n",
        table(outcomes),
        *(
            f"\n## {order}\n\n{table([one for one in outcomes if one.order == order])}"
            for order in dict.fromkeys(one.order for one in outcomes)
        ),
    ]
    return "\n".join(lines) + "\n"


def _options(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="bench/outcome/run", description=__doc__)
    add = parser.add_argument
    add("--projects", default="itsdangerous", help="names of bench/replay/corpus.toml, NAME+SERVER for another server")
    add("--changes", type=int, default=2, help="of each project, those whose files depend on each other most")
    add("--orders", default=",".join(plan.ORDERS[1:]))
    add("--arms", default="", help=f"all by default: {', '.join(ARMS)}")
    add("--pause", type=float, default=1.0, help="seconds after each batch, in which a model thinks")
    add("--report", default="", help="a file for the tables")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
