"""`pilotfish` without a command: this project's languages and servers, trust, agents, and what to do next.

At a terminal it asks one question, whether to do all that is missing: install servers, wire agents, and check the
project. Without a terminal it changes nothing, unless `--yes` says so. `doctor` starts the servers and says more.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct

from pilotfish.counting import counted
from pilotfish.feedback.text import named
from pilotfish.sanitise import sanitised
from pilotfish.surfaces.cli.project import workspace_of
from pilotfish.surfaces.cli.terminal.table import table
from pilotfish.surfaces.doctor.report import LanguageReport, ServerReport, SetupFinding
from pilotfish.surfaces.doctor.servers import Census, count_languages, language_reports, readiness
from pilotfish.surfaces.doctor.setup import wiring
from pilotfish.system.real_path import real_path

MAX_LANGUAGES = 8  # Lines of languages; the others are counted

MAX_LINE = 300

INSTALL = "pilotfish install "

MANIFESTS = (".git", "package.json", "pyproject.toml", "go.mod", "Cargo.toml", "pom.xml", "CMakeLists.txt")
"""One of them makes a project even of a home folder."""


STATES = {"missing": "is not installed", "withheld": "waits for trust", "ready": "is ready"}


class Overview(Struct, frozen=True):
    root: str
    trusted: bool
    enabled: bool
    is_project: bool  # False for the root of the file system and the home folder, where nothing makes them one
    languages: tuple[LanguageReport, ...]
    environment: str | None  # The Python environment whose packages count, where there are Python files
    agents: tuple[SetupFinding, ...]
    problems: tuple[str, ...]  # Errors of the configuration


def overview_of(root: str, environment: Mapping[str, str] = os.environ) -> Overview:
    """Everything at one moment; reads folders. Raises `Refused` when the root is no folder."""
    workspace, loaded = workspace_of(root, environment)
    top, home = workspace.root, real_path(os.path.expanduser("~"))
    is_project = top not in {os.path.sep, home} or any(os.path.lexists(os.path.join(top, name)) for name in MANIFESTS)
    census = count_languages(workspace) if is_project else Census()
    packages = None
    if (example := census.examples.get("python")) is not None:
        # Of the package that the file belongs to, which in a mixed repository is a folder of it.
        packages = workspace.python_environment(next((one.root for one in workspace.candidates(example)), top))
    return Overview(
        root=top,
        trusted=workspace.config.trusted,
        enabled=workspace.config.enabled,
        is_project=is_project,
        languages=language_reports(workspace, census, partial(readiness, workspace)),
        environment=None if packages is None else named(packages, top),
        agents=tuple(wiring(root, environment)),
        problems=tuple(map(str, loaded.errors)),
    )


def overview_lines(overview: Overview) -> Iterator[str]:
    trust = "trusted" if overview.trusted else "not trusted"
    yield f"{overview.root} ({trust})"
    for problem in overview.problems:
        yield _line(f"The configuration has an error: {problem}")
    if not overview.enabled:
        yield "LSP disabled by configuration"
    yield ""
    yield from _languages(overview.languages) if overview.is_project else ("This folder is no project.",)
    if overview.environment:
        yield f"Python packages: {overview.environment}"
    yield from dict.fromkeys(_line(one.lacking.what) for one in overview.languages if one.lacking)
    for agent in overview.agents:
        yield _line(f"{agent.subject}: {agent.message}")
    yield ""
    yield f"Next: {next_step(overview)}"
    yield "All commands: pilotfish --help"


def next_step(overview: Overview) -> str:
    """The one command that helps most."""
    if overview.problems:
        return "pilotfish config check"
    if not overview.is_project:
        return "cd into a project, or pilotfish demo"
    code = [one for language in overview.languages for one in language.servers if not one.optional]
    needed = [one.advice[0] for one in code if one.advice]
    lacking = [one.lacking for one in overview.languages if one.lacking and one.lacking.step]
    first = [one.step for one in lacking[:1] if one.comes_first and one is overview.languages[0].lacking]
    needed = [step for step in (*first, *needed, *(one.step for one in lacking)) if step]
    if needed and needed[0].startswith(INSTALL):
        # All that can be installed in the same way.
        ids = (step.removeprefix(INSTALL) for step in needed if step.startswith(INSTALL))
        return INSTALL + " ".join(dict.fromkeys(ids))
    if needed:
        return needed[0]
    unwired = [agent.advice[0] for agent in overview.agents if agent.advice]
    if unwired:
        return unwired[0]
    return "pilotfish check" if overview.languages else "pilotfish demo"


def _languages(languages: Sequence[LanguageReport]) -> Iterator[str]:
    if not languages:
        yield "No file here has a language server."
        return
    code = [one for one in languages if any(not server.optional for server in one.servers)]
    shown = code[:MAX_LANGUAGES]
    states = [", ".join(map(_state, one.servers)) for one in shown]
    rows = [(one.language, f"{counted(one.files, 'file')}: {said}") for one, said in zip(shown, states, strict=True)]
    yield from map(_line, table(rows))
    if len(languages) > len(shown):
        yield f"{counted(len(languages) - len(shown), 'more language')}: pilotfish doctor"


def _state(server: ServerReport) -> str:
    """Also what one that could be started does less without."""
    want = f", but {server.problem}" if server.state == "ready" and server.problem else ""
    return f"{server.id} {STATES[server.state]}{want}"


def _line(text: str) -> str:
    return sanitised(text, MAX_LINE)
