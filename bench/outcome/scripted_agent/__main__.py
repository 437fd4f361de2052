"""`bench/outcome/run [--projects itsdangerous] [--changes 2] [--orders callee,caller]`: see README.md."""

import argparse
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.pages import circumstances
from harness.setting import Setting, end_on_signal
from replay import history, plan
from replay.history import RealChange, Subject, git
from replay.plan import applied, edits
from replay.play import Player, Trees
from told.truth import CheckerFailed, Findings

from scripted_agent import model, pages
from scripted_agent.agent import Agent, Outcome, halves, left_over, scored
from scripted_agent.arms import ARMS

PROJECTS = "flask+ty,itsdangerous,immer,click+ty,httpx+ty"
CANDIDATES = 18
"""Changes of a project that are looked at for those that leave errors when their call sites are left to do."""

PATIENT = {"timing": {"diagnosticsWaitTimeoutMs": 60_000, "firstTouchTimeoutMs": 60_000}}
DEADLINE_MS = 50_000
"""What is told counts here, and not how soon on a busy machine."""

Before = tuple[dict[str, str], Findings, Findings]
"""The texts at the base of a change, and what the checker says of them and of the whole change."""


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _options(arguments)
    command = shlex.join(["bench/outcome/run", *(arguments if arguments is not None else sys.argv[1:])])
    kept = Path(chosen.keep) if chosen.keep else None
    outcomes = pages.kept(kept) if kept and kept.exists() else []
    arms = chosen.arms.split(",") if chosen.arms else list(ARMS)
    if chosen.model and not model.is_wanted(chosen, arms):
        return 1
    loads = [os.getloadavg()[0]]
    for subject in history.chosen(chosen):
        for one in _worked(subject, chosen, arms, {one.key for one in outcomes}):
            outcomes.append(one)
            print(
                f"{one.project} {one.change[:50]}, {one.order}, {one.arm}: {one.turns} turns, {one.left} left",
                flush=True,
            )
            if kept:
                with kept.open("a") as file:
                    file.write(json.dumps(asdict(one)) + "\n")
        loads.append(os.getloadavg()[0])
        if chosen.report:
            Path(chosen.report).write_text(pages.page(outcomes, circumstances(command, loads)))
        if kept and kept.resolve() == pages.KEPT:
            pages.README.write_text(pages.readme(outcomes))
    print(f"\n{pages.table(outcomes)}")
    return 0


def _worked(subject: Subject, chosen: Any, arms: Sequence[str], done: set[tuple[str, ...]]) -> Iterator[Outcome]:
    """The changes in every order under every arm, each in a clone and under a daemon of its own."""
    with Trees(subject).open() as asker:
        for change, before in _broken_in_the_middle(subject, asker, chosen.changes):
            for order, arm in ((order, arm) for order in chosen.orders.split(",") for arm in arms):
                outcome = Outcome(subject.name, change.name, order, arm)
                if outcome.key in done:
                    continue
                try:
                    end = _run(subject, change, asker, before[0], outcome, chosen)
                    scored(outcome, before[1], asker.findings(end), before[2])
                except CheckerFailed as failed:
                    print(f"{change.name}, {order}, {arm} is left out: {failed}", flush=True)
                    continue
                yield outcome


def _broken_in_the_middle(subject: Subject, asker: Trees, most: int) -> Iterator[tuple[RealChange, Before]]:
    """Changes that leave errors when what the others define is there and these are as they were."""
    found = 0
    for change in history.changes(subject, CANDIDATES):
        texts, (first, rest) = asker.at(change.base), halves(edits(change, "callee"))
        try:
            half = applied(texts, [one for edit in first for one in edit.changes])
            whole = applied(half, [one for edit in rest for one in edit.changes])
            base, middle, end = (asker.findings(state) for state in (texts, half, whole))
        except CheckerFailed:
            continue
        if left_over(base, middle, end):
            found += 1
            yield change, (texts, base, end)
        if found == most:
            return


def _run(
    subject: Subject, change: RealChange, asker: Trees, texts: dict[str, str], outcome: Outcome, chosen: Any
) -> dict[str, str]:
    arm = ARMS[outcome.arm]
    asker.at(change.base)
    with tempfile.TemporaryDirectory(prefix="outcome-") as given:
        folder = Path(os.path.realpath(given))
        config = {**PATIENT, **({"feedback": arm.config} if arm.config else {})}
        root, scratch = folder / "work" / subject.name, folder / "scratch"
        setting = Setting(root, scratch, subject.server, trusted=True, config=config, deadline=DEADLINE_MS)
        player = Player(subject, setting)
        player.begin()
        git(root, "checkout", "-q", "-f", "--detach", change.base)
        try:
            feedback = arm.feedback(setting, asker.findings, texts)
            agent = model.ModelAgent(chosen) if chosen.model else Agent()
            return dict(agent.work(edits(change, outcome.order), texts, feedback, outcome))
        finally:
            player.end()


def _options(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="bench/outcome/run", description=__doc__)
    add = parser.add_argument
    history.add_choice(add, PROJECTS)
    add("--changes", type=int, default=3, help="of each project, those whose files depend on each other most")
    add("--orders", default=",".join(plan.ORDERS[1:]))
    add("--arms", default="", help=f"all by default: {', '.join(ARMS)}")
    add("--keep", default="", help="a file for JSON lines: what is in it already is not done again")
    add("--report", default="", help="a file for the tables")
    model.add_options(add)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    end_on_signal()
    raise SystemExit(main())
