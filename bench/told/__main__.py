"""`bench/told/run [--project httpx] [--edits 10] [--subject plain,claude-code]`: see README.md."""

import argparse
import json
import os
import queue
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import corpus
from harness.corpus import Project
from harness.pages import circumstances
from harness.servers import CLONE
from harness.setting import Setting
from parity.subjects import PEERS

from told import edits, figures, report, score, subjects, truth
from told.conversation import carry_out
from told.edits import Edit
from told.report import Outcome, Run

QUICK = (("httpx+venv", 10), ("rxjs", 8), ("cobra", 8))
"""Projects and how many edits of each: some minutes on two cores once the truth is in the cache."""


EVERYBODY = (
    *("nothing", "claude-code", "library", "mcp", "serena", "agent-lsp"),
    *(f"{host}/{help_}" for host in ("claude-code", "opencode", "qwen") for help_ in ("nothing", "own", "pilotfish")),
)
SUBJECTS_RUN = [
    *("--project", "rxjs", "--edits", "36", "--seed", "56", "--pause", "1", "--seconds", "600"),
    *("--subject", ",".join(EVERYBODY)),
]
"""Twelve edits of what other files use, four that break their own, five harmless ones, and undoing what broke."""

SILENCES = 4
"""Edits in a row after which a subject that has never answered is asked no more."""

BROKEN = (OSError, RuntimeError, queue.Empty, subprocess.SubprocessError)
"""How a subject shows that cannot be measured."""


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = options(arguments)
    if chosen.pages:
        print("\n".join(map(str, figures.written())))
        return 0
    if chosen.subjects:
        return _everybody()
    if chosen.keep:
        found = [row for name in chosen.keep.split(",") for row in figures.rows(Path(name))]
        figures.OTHERS.write_text("".join(json.dumps(report.kept(row)) + "\n" for row in found))
        print(figures.of_others(found))
        return 0
    known = corpus.projects()
    if chosen.fetch:
        return _fetch(chosen.project.split(",") if chosen.project else list(known))
    wanted = [(name, chosen.edits) for name in chosen.project.split(",")] if chosen.project else []
    runs, loads = list[Run](), [os.getloadavg()[0]]
    for name, count in wanted or (QUICK if chosen.quick else [("httpx", chosen.edits)]):
        if name not in known:
            raise SystemExit(f"no such project: {name}; known are {', '.join(known)}")
        project = known[name]
        servers = chosen.server.split(",") if chosen.server else project.servers[:1]
        for server in servers:
            runs += measured(project, server, count, chosen)
            loads.append(os.getloadavg()[0])
    print(f"\n{report.table(runs)}\n\n{report.by_kind(runs)}")
    if chosen.report:
        Path(chosen.report).write_text(report.page(runs, arguments or sys.argv[1:], loads))
    if chosen.out:
        Path(chosen.out).write_text(report.json_lines(runs, short=chosen.short))
        print(f"\nEvery edit with what was told: {chosen.out}")
    return int(any(one.is_wrong for run in runs for one in run.outcomes) and chosen.strict)


def measured(project: Project, server: str, count: int, chosen: Any) -> list[Run]:
    """One plan, its truth, and every subject on it."""
    began = time.monotonic()
    plan, true = planned(project, server, count, chosen)
    took = time.monotonic() - began
    print(f"\n## {project.name}, {server}, seed {chosen.seed}: {count} edits; truth in {took:.0f} s", flush=True)
    if chosen.truth_only:
        return []
    found = list[Run]()
    for name in chosen.subject.split(","):
        try:
            found.append(watched(project, server, name, plan, true, chosen))
        except BROKEN as broken:
            traceback.print_exc()
            print(f"{name} was not measured: {type(broken).__name__}", flush=True)
    return found


def planned(project: Project, server: str, count: int, chosen: Any) -> tuple[Sequence[Edit], Sequence[truth.Truth]]:
    with tempfile.TemporaryDirectory(prefix="told-plan-") as folder:
        texts = corpus.texts(corpus.copy(project, Path(folder)), project.language)
    plan = edits.plan(texts, project.language, count, chosen.seed, chosen.kinds.split(","))
    return plan, truth.truths(project, server, texts, plan, _progress)


def _everybody() -> int:
    """Measure all subjects in one run, keep the results, and write the pages that show them."""
    before = os.getloadavg()[0]
    code = main([*SUBJECTS_RUN, "--out", str(figures.SUBJECTS), "--short"])
    about = circumstances("bench/told/run --subjects", [before, os.getloadavg()[0]])
    figures.ABOUT.write_text(json.dumps({**about, **versions()}, indent=2) + "\n")
    figures.written()
    return code


def versions() -> dict[str, str]:
    """Of everybody else."""
    manifest = json.loads((CLONE / "tools" / "hosts.json").read_text())
    npm = json.loads((CLONE / "tools" / "npm-packages.json").read_text())
    hosts = {name: ", ".join(set(manifest[name]["npm"].values())) for name in ("claude-code", "opencode", "qwen")}
    pins = {name: next(iter(PEERS[name].pins.values())) for name in ("serena", "agent-lsp")}
    return {**hosts, **pins, **{name: npm[name] for name in ("typescript-language-server", "typescript")}}


def watched(
    project: Project, server: str, subject: str, plan: Sequence[Edit], true: Sequence[truth.Truth], chosen: Any
) -> Run:
    """One subject on its own copy, edit by edit, each explained as it comes."""
    print(f"\n### {subject}", flush=True)
    outcomes, began = list[Outcome](), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="told-") as given:
        folder = Path(os.path.realpath(given))
        root = corpus.copy(project, folder / "work")
        own = (path.stem for path in (*root.iterdir(), *root.glob("src/*")))
        judge = score.Judge(installed=project.is_installed, own=own)
        scratch, config = folder / "scratch", json.loads(chosen.config)
        setting = Setting(
            root, scratch, server, trusted=chosen.trust, config=config, pause=chosen.pause, deadline=chosen.deadline_ms
        )
        with subjects.opened(subject, setting) as asked:
            for edit, what in zip(plan, true, strict=True):
                if chosen.seconds and time.monotonic() - began > chosen.seconds:
                    print(f"stopped after {len(outcomes)} edits: {chosen.seconds:.0f} s are over", flush=True)
                    break
                if len(outcomes) >= SILENCES and all(one.told.error for one in outcomes):
                    print(f"stopped after {len(outcomes)} edits: it answered nothing", flush=True)
                    break
                asked.before(edit)
                for change in () if asked.carries_out else edit.changes:
                    carry_out(root, change)
                told = asked.after(edit)
                texts = (told.text, told.between)
                heard, between = (score.read(text, str(root), told.form) for text in texts)
                verdict = judge.verdict(edit, what, heard, between)
                outcomes.append(Outcome(edit, what, told, verdict))
                if chosen.all or outcomes[-1].is_wrong:
                    print(report.explained(outcomes[-1]), flush=True)
                    if chosen.text and told.text:
                        print("      | " + told.text.rstrip().replace("\n", "\n      | "))
                # Nobody is there who could use the time.
                time.sleep(0 if subject.endswith("nothing") else chosen.pause)
            cost = subjects.cost(setting)
    return Run(project.name, server, subject, chosen.seed, outcomes, cost)


def options(arguments: Sequence[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="bench/told/run", description=__doc__)
    add = parser.add_argument
    add("--project", default="", help="names of corpus.toml, with +venv for their dependencies; httpx by default")
    add("--edits", type=int, default=10)
    add("--kinds", default=",".join(edits.GROUPS), help="kinds or groups (harmless, own, fix, others)")
    add("--seed", type=int, default=1)
    add("--server", default="", help="the project's first one by default: basedpyright, ty, pyrefly, typescript, gopls")
    add("--subject", default="claude-code", help=f"of {', '.join(subjects.SUBJECTS)}")
    add("--seconds", type=float, default=0.0, help="after so many, a subject gets no further edit")
    add("--pause", type=float, default=0.0, help="seconds after each call of a tool, in which a model thinks")
    add("--deadline-ms", type=int, default=0, help="how long the hook program may take; its own limit by default")
    add("--trust", action="store_true", help="the user trusts the project")
    add("--config", default="{}", help="more of the user's lsp.json, as JSON")
    add("--all", action="store_true", help="explain every edit, not only those with a mistake")
    add("--text", action="store_true", help="print what was told, too")
    add("--quick", action="store_true", help="a few edits of a few projects")
    add("--out", default="", help="a file for JSON lines: every edit, its truth, what was told, the verdict")
    add("--report", default="", help="a file for the tables, with what they were measured on")
    add("--short", action="store_true", help="without the texts in that file")
    add("--subjects", action="store_true", help="all subjects in one run, kept in subjects.jsonl, and the pages of it")
    add("--pages", action="store_true", help="only write the pages of the kept results")
    add("--keep", default="", help="only keep what these files of --out have, without texts, in others.jsonl")
    add("--strict", action="store_true", help="exit with 1 if anything was wrong")
    add("--fetch", action="store_true", help="only fill the cache with the projects")
    add("--truth-only", action="store_true", help="only fill the cache with the truth of this plan")
    return parser.parse_args(arguments)


def _fetch(names: Sequence[str]) -> int:
    failed = 0
    for name in names:
        try:
            with tempfile.TemporaryDirectory() as folder:
                corpus.copy(corpus.projects()[name], Path(folder))
            print(f"{name}: in {corpus.cache()}")
        except corpus.Unavailable as unavailable:
            failed += 1
            print(f"{name}: {unavailable}")
    return failed


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
