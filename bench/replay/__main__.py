"""`bench/replay/run [--projects click,immer] [--changes 8] [--orders diff,callee,caller]`: see README.md."""

import argparse
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
from harness.pages import circumstances
from harness.setting import Setting, end_on_signal
from told.truth import CheckerFailed, Truth

from replay import history, plan, report
from replay.history import RealChange, Subject
from replay.play import Played, Player, Trees, truths

Planned = tuple[str, Sequence[plan.Step], Sequence[Truth]]


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _options(arguments)
    end_on_signal()
    given = list(arguments) if arguments is not None else sys.argv[1:]
    played, loads = _kept(chosen.keep), [os.getloadavg()[0]]
    done = {one.key for one in played}
    for subject in history.chosen(chosen):
        changes = history.changes(subject, chosen.changes)
        print(f"\n## {subject.name} ({subject.language}, {subject.server}): {len(changes)} changes", flush=True)
        for one in () if chosen.list else replayed(subject, changes, chosen, done):
            played.append(one)
            _tell(one, chosen)
            _write(played, circumstances(shlex.join(["bench/replay/run", *given]), loads), chosen)
        loads.append(os.getloadavg()[0])
    for of in report.summary(played).values() if played else ():
        print(f"\n{report.table(of)}")
    return int(chosen.strict and any(one.is_wrong for one in played))


def _kept(path: str) -> list[Played]:
    """What an earlier run has played: it is not played again."""
    lines = Path(path).read_text().splitlines() if path and Path(path).exists() else []
    return [msgspec.json.decode(line, type=Played) for line in lines]


def _write(played: Sequence[Played], about: dict[str, str], chosen: Any) -> None:
    """After every replay: who ends a long run has what was measured so far."""
    if chosen.report:
        before = json.loads(Path(chosen.before).read_text()) if chosen.before else None
        Path(chosen.report).write_text(report.page(played, about, before))
    if chosen.out:
        Path(chosen.out).write_text(json.dumps({"about": about, **report.summary(played)}, indent=1) + "\n")
    if chosen.keep:
        Path(chosen.keep).write_text("".join(json.dumps(asdict(one)) + "\n" for one in played))


def replayed(
    subject: Subject, changes: Sequence[RealChange], chosen: Any, done: Collection[tuple[str, ...]] = ()
) -> Iterator[Played]:
    """All changes of one project under one daemon. The truth comes first: nobody waits for a checker in between."""
    tip = history.git(subject.repository, "rev-parse", "HEAD").strip()
    with tempfile.TemporaryDirectory(prefix="replay-") as given, Trees(subject).open() as asker:
        folder = Path(os.path.realpath(given))
        setting = Setting(
            folder / "work" / subject.name,
            folder / "scratch",
            subject.server,
            trusted=True,
            config=json.loads(chosen.config),
            pause=chosen.pause,
            deadline=chosen.deadline_ms,
        )
        player = Player(subject, setting)
        player.begin()
        try:
            for change in changes:
                orders = [one for one in chosen.orders.split(",") if (subject.name, change.name, one) not in done]
                for order, steps, true in _planned(asker, change, subject, orders):
                    if not chosen.truth_only:
                        yield player.play(change, order, steps, true, tip)
        finally:
            player.end()


def _planned(asker: Trees, change: RealChange, subject: Subject, orders: Sequence[str]) -> list[Planned]:
    """These orders of a change, with their truth."""
    found = list[Planned]()
    texts = asker.at(change.base) if orders else {}
    for order in orders:
        steps = plan.steps(change, order, texts, subject.language)
        try:
            found.append((order, steps, truths(asker, steps, texts)))
        except CheckerFailed as failed:
            print(f"{change.name} is left out: {failed}", flush=True)
            return []
    return found


def _tell(played: Played, chosen: Any) -> None:
    mark = "✗" if played.is_wrong else "✓"
    told = f"{played.told} lines right, {len(played.premature)} premature, {len(played.left)} files left"
    print(f"{mark} {played.change[:70]}, {played.order}: {len(played.outcomes)} steps, {told}", flush=True)
    if played.is_wrong:
        print("\n".join(report.explained(played)[1:]), flush=True)
    for one in played.outcomes if chosen.text else ():
        if one.text:
            print(f"    {one.kind} {one.what}\n      | " + one.text.rstrip().replace("\n", "\n      | "), flush=True)


def _options(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="bench/replay/run", description=__doc__)
    add = parser.add_argument
    history.add_choice(add)
    add(
        "--changes",
        type=int,
        default=0,
        help="of each project, those whose files depend on each other most; all by default",
    )
    add("--orders", default=",".join(plan.ORDERS), help="callee*3: three edits at once")
    add("--pause", type=float, default=1.0, help="seconds after each batch, in which a model thinks")
    add("--deadline-ms", type=int, default=0, help="how long the hook program may take; its own limit by default")
    add("--config", default="{}", help="more of the user's lsp.json, as JSON")
    add("--list", action="store_true", help="only count the changes")
    add("--truth-only", action="store_true", help="only fill the cache with the truth")
    add("--text", action="store_true", help="print what was told, too")
    add("--report", default="", help="a file for the tables and the mistakes")
    add("--out", default="", help="a file for the figures, as JSON")
    add("--before", default="", help="what --out wrote in an earlier run, to stand beside the figures in that report")
    add(
        "--keep",
        default="",
        help="a file for JSON lines: every replay with all that was told; those in it are not done again",
    )
    add("--strict", action="store_true", help="exit with 1 if anything was wrong")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
