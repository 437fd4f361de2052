"""Which languages a workspace has, which servers handle them, and whether each server starts.

Every server that the workspace's files use is started, initialized and stopped again, by this program and not by the
daemon: the time is that of a cold start, and nothing keeps running.
"""

import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import anyio
import anyio.to_thread
from msgspec import Struct, field
from msgspec.structs import replace

from pilotfish.client.session import Session, open_session
from pilotfish.errors import Failure
from pilotfish.feedback.text import named
from pilotfish.model import AbsPath
from pilotfish.protocol.documents import Documents
from pilotfish.sanitise import sanitised
from pilotfish.servers.install import missing_helpers
from pilotfish.servers.launch import Withheld, may_other_start
from pilotfish.servers.locate import Gated, ProgramFound, ProgramMissing
from pilotfish.servers.resolve import Candidate
from pilotfish.servers.spec import Role, ServerSpec
from pilotfish.servers.versions import installed_version
from pilotfish.service.workspace import Workspace
from pilotfish.surfaces.doctor.report import LanguageReport, ServerReport
from pilotfish.system.clock import current_time
from pilotfish.system.ports import Spawner
from pilotfish.system.source_files import files_below
from pilotfish.system.tasks import owned_tasks

MAX_FILES = 50_000  # Files that are counted: a walk of a second, enough to meet every language
AT_ONCE = 2  # Servers that start side by side: more would slow each other down and spoil the times
MINOR = 10  # A language with fewer than a tenth of the files of the first one is not what the project is about
MAX_VERSION = 60  # Code points of the version that a server reports


class Census(Struct):
    counts: Counter[str] = field(default_factory=Counter[str])  # Files by language
    examples: dict[str, AbsPath] = field(default_factory=dict[str, AbsPath])
    unserved: int = 0


async def languages_of(
    workspace: Workspace, spawn: Spawner, begun: Callable[[str], None]
) -> tuple[tuple[LanguageReport, ...], int]:
    """Every language with its servers, and how many files no server handles. `begun` is called for each start."""
    census = await anyio.to_thread.run_sync(count_languages, workspace)
    chosen = {language: servers_of(workspace, path) for language, path in census.examples.items()}
    reports: dict[tuple[str, AbsPath], ServerReport] = {}
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def examine(candidate: Candidate) -> None:
        async with limiter:
            begun(candidate.spec.id)
            known = readiness(workspace, candidate)
            started = await _start(workspace, candidate, spawn, known) if known.state == "ready" else known
            reports[candidate.spec.id, candidate.root] = started

    async with owned_tasks() as tasks:
        unique = {(one.spec.id, one.root): one for candidates in chosen.values() for one in candidates}
        for candidate in unique.values():
            tasks.start_soon(examine, candidate)
    return language_reports(workspace, census, lambda one: reports[one.spec.id, one.root]), census.unserved


def language_reports(
    workspace: Workspace, census: Census, report_of: Callable[[Candidate], ServerReport]
) -> tuple[LanguageReport, ...]:
    """The languages, those that the project is about first; the servers of the others are optional."""
    chosen = {language: servers_of(workspace, census.examples[language]) for language in census.counts}
    ordered, main = by_importance(census.counts, {name: [one.spec for one in found] for name, found in chosen.items()})
    reports: list[LanguageReport] = []
    for language in ordered:
        servers = [
            # A linter that waits for trust keeps nobody from checking the code.
            replace(report_of(one), optional=language not in main or one.spec.rank.role is Role.COMPANION)
            for one in chosen[language]
        ]
        example = census.examples[language]
        lacking = [found for one in chosen[language] if (found := workspace.shortfall(one.spec, example))]
        lacked = lacking[0] if lacking and language in main else None
        shown = named(example, workspace.root)
        reports.append(LanguageReport(language, census.counts[language], shown, tuple(servers), lacked))
    return tuple(reports)


def by_importance(
    counts: Mapping[str, int], servers: Mapping[str, Sequence[ServerSpec]]
) -> tuple[list[str], frozenset[str]]:
    """The languages in order, and those among them that the project is about: code before styles, scripts and build
    files, these before prose and data, and then by the number of files."""

    def kind(language: str) -> int:
        specs = [spec for spec in servers[language] if spec.serves_code]
        return 2 if not specs else int(all(spec.auxiliary for spec in specs))

    ordered = sorted(counts, key=lambda language: (kind(language), -counts[language], language))
    first = [language for language in ordered if kind(language) == kind(ordered[0]) < 2]
    return ordered, frozenset(one for one in first if counts[one] * MINOR >= counts[first[0]])


def count_languages(workspace: Workspace) -> Census:
    """Walk the files; run it in a worker thread."""
    census, known = Census(), dict[str, str | None]()
    for number, path in enumerate(files_below(workspace.root)):
        if number >= MAX_FILES:
            break
        name = os.path.basename(path)
        kind = os.path.splitext(name)[1] or name
        if kind not in known:
            candidates = workspace.candidates(path)
            known[kind] = candidates[0].language_id if candidates else None
        language = known[kind]
        if language is None:
            census.unserved += 1
        else:
            census.counts[language] += 1
            census.examples.setdefault(language, path)
    return census


def servers_of(workspace: Workspace, path: AbsPath) -> tuple[Candidate, ...]:
    """The servers that an edit of the file would start, and those that would run if they were installed or trusted."""
    choice = workspace.servers_for(path)
    return (*([choice.expected] if choice.expected else []), *choice.servers, *choice.withheld)


def readiness(workspace: Workspace, candidate: Candidate) -> ServerReport:
    """Whether the server could be started; it is not."""
    spec, located = candidate.spec, workspace.located(candidate)
    blank = ServerReport(spec.id, spec.name, candidate.root, "missing")
    if isinstance(located, ProgramMissing):
        # Before trust, which is no use while the program is missing.
        what = f"{spec.command[0] if spec.command else spec.id} was not found"
        if located.unusable is not None:
            what = f"{located.unusable} is not an executable file"
        hint = workspace.install_hint(spec)
        steps = (hint,) if hint else ()
        return replace(blank, problem=what, looked_in=located.looked_in, advice=steps, needs=spec.needs)
    allowed = workspace.admitted(candidate)
    # What lets a server run that is there and may not: a version of our own that needs no trust, or trust.
    tested = (f"pilotfish install {spec.id}",) if may_other_start(spec, allowed) else ()
    withheld = replace(blank, state="withheld", advice=(*tested, _trust(workspace)))
    if isinstance(allowed, Withheld):
        return replace(withheld, problem=allowed.reason)
    if isinstance(located, Gated):
        return replace(withheld, path=located.path, problem=located.reason)
    restricted = workspace.restriction(spec, candidate.root)
    incomplete = restricted is not None and restricted.incomplete
    known = replace(blank, state="ready", path=located.path, given_up=allowed.given_up, incomplete=incomplete)
    lacking = _lacking(workspace, candidate)
    if lacking is None:
        return known
    program, need, step = lacking
    return replace(
        known,
        problem=f"{program} is not installed",
        needs=(f"{need}, and it is not installed",),
        incomplete=True,
        advice=(step,) if step else (),
    )


def _lacking(workspace: Workspace, candidate: Candidate) -> tuple[str, str, str | None] | None:
    spec = candidate.spec
    for program, need in missing_helpers(spec, lambda program: workspace.program(program) is not None).items():
        return program, need, workspace.helper_hint(program)
    relayed = () if spec.relay is None else spec.relay.to
    others = [workspace.specs[name] for name in relayed if name in workspace.specs]
    if not others or any(isinstance(workspace.located(replace(candidate, spec=one)), ProgramFound) for one in others):
        return None
    return others[0].id, f"{others[0].id} for types in scripts", workspace.install_hint(others[0])


def _trust(workspace: Workspace) -> str:
    return f"pilotfish trust {shlex.quote(workspace.root)}"


async def _start(workspace: Workspace, candidate: Candidate, spawn: Spawner, blank: ServerReport) -> ServerReport:
    async def restore_nothing(_session: Session, _before: Documents | None) -> None:
        """It has no documents."""

    by_hand: tuple[str, ...] = ()
    program = workspace.located(candidate)
    try:
        options = workspace.recipe(candidate, restore_nothing).options()
        by_hand = (f"Run it by hand to see the error: {shlex.join(options.launch.argv)}",)
        if options.launch.confinement is not None:
            by_hand = (*by_hand, f"Trust the workspace, if it fails because it is confined: {_trust(workspace)}")
        began = current_time()
        async with open_session(options, spawn) as session:
            took = current_time() - began
            version = plain_version(session.info.version)
            if not version and candidate.spec.version_args and isinstance(program, ProgramFound):
                version = await anyio.to_thread.run_sync(installed_version, candidate.spec, program)
            held = session.held
    except Failure as failure:
        steps = (failure.hint,) if failure.hint and not by_hand else ()
        return replace(
            blank, state="broken", problem=failure.message, last_words=failure.scene.stderr, advice=(*by_hand, *steps)
        )
    return replace(
        blank,
        state="works",
        version=sanitised(version, MAX_VERSION) or None,
        initialize_ms=round(took * 1000),
        confined=held,
        advice=(_trust(workspace),) if blank.incomplete and not blank.needs else blank.advice,
    )


def plain_version(said: str | None) -> str:
    """gopls describes its whole build there, as JSON."""
    if said is None or not said.startswith("{"):
        return said or ""
    found = re.search(r'"Version": ?"(?:v|\(devel\))?([^"]*)"', said.rpartition('"Main"')[2])
    return found[1] if found else ""
