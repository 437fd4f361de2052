"""`bench/told/run [--project httpx] [--edits 10] [--subject plain,claude-code]`: see README.md."""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from told import corpus, edits, report, score, subjects, truth
from told.corpus import Project
from told.edits import Edit
from told.report import Outcome, Run
from told.subjects import Setting

QUICK = (("httpx+venv", 10), ("rxjs", 8), ("cobra", 8))
"""Projects and how many edits of each: some minutes on two cores once the truth is in the cache."""


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _options(arguments)
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
        Path(chosen.out).write_text(report.json_lines(runs))
        print(f"\nEvery edit with what was told: {chosen.out}")
    return int(any(one.is_wrong for run in runs for one in run.outcomes) and chosen.strict)


def measured(project: Project, server: str, count: int, chosen: Any) -> list[Run]:
    """One plan, its truth, and every subject on it."""
    with tempfile.TemporaryDirectory(prefix="told-plan-") as folder:
        texts = corpus.texts(corpus.copy(project, Path(folder)), project.language)
    planned = edits.plan(texts, project.language, count, chosen.seed, chosen.kinds.split(","))
    began = time.monotonic()
    true = truth.truths(project, server, texts, planned, _progress)
    took = time.monotonic() - began
    print(f"\n## {project.name}, {server}, seed {chosen.seed}: {count} edits; truth in {took:.0f} s", flush=True)
    if chosen.truth_only:
        return []
    return [watched(project, server, name, planned, true, chosen) for name in chosen.subject.split(",")]


def watched(
    project: Project, server: str, subject: str, planned: Sequence[Edit], true: Sequence[truth.Truth], chosen: Any
) -> Run:
    """One subject on its own copy, edit by edit, each explained as it comes."""
    print(f"\n### {subject}", flush=True)
    outcomes, began = list[Outcome](), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="told-") as given:
        folder = Path(os.path.realpath(given))
        root = corpus.copy(project, folder / "work")
        own = (path.stem for path in (*root.iterdir(), *root.glob("src/*")))
        judge = score.Judge(installed=project.environment or project.registry == "debian", own=own)
        scratch, config = folder / "scratch", json.loads(chosen.config)
        setting = Setting(root, scratch, server, trusted=chosen.trust, config=config, pause=chosen.pause)
        with subjects.opened(subject, setting) as asked:
            for edit, what in zip(planned, true, strict=True):
                if chosen.seconds and time.monotonic() - began > chosen.seconds:
                    print(f"stopped after {len(outcomes)} edits: {chosen.seconds:.0f} s are over", flush=True)
                    break
                asked.before(edit)
                for change in edit.changes:
                    subjects.carry_out(root, change)
                told = asked.after(edit)
                verdict = judge.verdict(edit, what, score.said(told.text, str(root)))
                outcomes.append(Outcome(edit, what, told, verdict))
                if chosen.all or outcomes[-1].is_wrong:
                    print(report.explained(outcomes[-1]), flush=True)
                    if chosen.text and told.text:
                        print("      | " + told.text.rstrip().replace("\n", "\n      | "))
                time.sleep(chosen.pause)
            cost = subjects.cost(setting)
    return Run(project.name, server, subject, chosen.seed, outcomes, cost)


def _options(arguments: Sequence[str] | None) -> Any:
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
    add("--trust", action="store_true", help="the user trusts the project")
    add("--config", default="{}", help="more of the user's lsp.json, as JSON")
    add("--all", action="store_true", help="explain every edit, not only those with a mistake")
    add("--text", action="store_true", help="print what was told, too")
    add("--quick", action="store_true", help="a few edits of a few projects")
    add("--out", default="", help="a file for JSON lines: every edit, its truth, what was told, the verdict")
    add("--report", default="", help="a file for the tables, with what they were measured on")
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
