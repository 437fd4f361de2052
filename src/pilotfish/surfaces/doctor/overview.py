"""`pilotfish` without a command: this project's languages and servers, trust, agents, and what to do next.

It starts nothing and changes nothing. `doctor` starts the servers and says more.
"""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence

import click
from msgspec import Struct

from pilotfish.config.load import Loaded
from pilotfish.counting import counted
from pilotfish.feedback.text import named
from pilotfish.model import AbsPath
from pilotfish.sanitise import sanitised
from pilotfish.servers.launch import Withheld
from pilotfish.servers.locate import ProgramMissing
from pilotfish.servers.resolve import Candidate
from pilotfish.service.workspace import Workspace
from pilotfish.surfaces.cli.workspace import root_of
from pilotfish.surfaces.doctor.report import SetupFinding
from pilotfish.surfaces.doctor.servers import count_languages, servers_of

MAX_LANGUAGES = 8
"""Lines of languages; the others are counted."""

MAX_LINE = 300


class ServerState(Struct, frozen=True):
    """One server of a language. `step` is the command that makes it ready."""

    id: str
    state: str
    step: str | None = None
    optional: bool = False


class LanguageState(Struct, frozen=True):
    language: str
    files: int
    servers: tuple[ServerState, ...]


class Overview(Struct, frozen=True):
    root: str
    trusted: bool
    enabled: bool
    languages: tuple[LanguageState, ...]
    environment: str | None
    """The Python environment whose packages count, where there are Python files."""
    agents: tuple[SetupFinding, ...]
    problems: tuple[str, ...]
    """Errors of the configuration."""


def look(workspace: Workspace, loaded: Loaded, agents: Sequence[SetupFinding]) -> Overview:
    """Everything at one moment; reads folders."""
    census = count_languages(workspace)
    languages = sorted(census.counts, key=lambda language: (-census.counts[language], language))
    return Overview(
        root=workspace.root,
        trusted=workspace.config.trusted,
        enabled=workspace.config.enabled,
        languages=tuple(
            LanguageState(
                language,
                census.counts[language],
                tuple(_state(workspace, one) for one in servers_of(workspace, census.examples[language])),
            )
            for language in languages
        ),
        environment=_environment(workspace, census.examples["python"]) if "python" in census.counts else None,
        agents=tuple(agents),
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
    yield from _languages(overview.languages)
    if overview.environment:
        yield f"Python packages: {overview.environment}"
    for agent in overview.agents:
        yield _line(f"{agent.subject}: {agent.message}")
    yield ""
    yield f"Next: {next_step(overview)}"
    yield "All commands: pilotfish --help"


def next_step(overview: Overview) -> str:
    """The one command that helps most."""
    if overview.problems:
        return "pilotfish config check"
    needed = [one.step for language in overview.languages for one in language.servers if one.step and not one.optional]
    if needed:
        return needed[0]
    unwired = [agent.advice[0] for agent in overview.agents if agent.advice]
    if unwired:
        return unwired[0]
    return "pilotfish check" if overview.languages else "pilotfish demo"


def _languages(languages: Sequence[LanguageState]) -> Iterator[str]:
    if not languages:
        yield "No file here has a language server."
        return
    code = [one for one in languages if any(not server.optional for server in one.servers)]
    shown = code[:MAX_LANGUAGES]
    width = max((len(one.language) for one in shown), default=0)
    for one in shown:
        states = ", ".join(f"{server.id} {server.state}" for server in one.servers)
        yield _line(f"{one.language:{width}}  {counted(one.files, 'file')}: {states}")
    if len(languages) > len(shown):
        yield f"{counted(len(languages) - len(shown), 'more language')}: pilotfish doctor"


def _state(workspace: Workspace, candidate: Candidate) -> ServerState:
    spec, optional = candidate.spec, not candidate.spec.serves_code
    if isinstance(workspace.located(candidate), ProgramMissing):
        return ServerState(spec.id, "is not installed", workspace.install_hint(spec), optional)
    if isinstance(workspace.admitted(candidate), Withheld):
        return ServerState(spec.id, "waits for trust", f"pilotfish trust {shlex.quote(workspace.root)}", optional)
    return ServerState(spec.id, "is ready", optional=optional)


def _environment(workspace: Workspace, path: AbsPath) -> str:
    """Of the package that a Python file belongs to, which in a mixed repository is a folder of it."""
    root = next((one.root for one in workspace.candidates(path)), workspace.root)
    found = workspace.python_environment(root)
    return "no environment was found" if found is None else named(found, workspace.root)


def _line(text: str) -> str:
    return sanitised(text, MAX_LINE)


def overview_of(root: str, environment: Mapping[str, str] = os.environ) -> Overview:
    """Raises `Refused` when the root is no folder."""
    from pilotfish.surfaces.cli.project import workspace_of
    from pilotfish.surfaces.doctor.wiring import wiring

    workspace, loaded = workspace_of(root, environment)
    return look(workspace, loaded, tuple(wiring(root, environment)))


def print_overview() -> None:
    """Of the project around the current folder."""
    click.echo("\n".join(overview_lines(overview_of(os.path.abspath(root_of(None))))))
