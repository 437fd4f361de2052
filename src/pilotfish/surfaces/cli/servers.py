"""`pilotfish servers`: the catalogue, and which servers are installed, proven, and used here. Starts no server.

Runs without the daemon. Where a workspace is not trusted, a program may be asked for its version.
"""

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

import click
from msgspec.structs import replace

from pilotfish.config.load import load as load_config
from pilotfish.config.places import Places, project_files, user_places
from pilotfish.model import AbsPath
from pilotfish.servers.catalogue import effective_servers, load, proofs
from pilotfish.servers.environment import beside_us, search_path
from pilotfish.servers.install import PROGRAMS, install_command
from pilotfish.servers.launch import Withheld, admitted
from pilotfish.servers.locate import Lookup, ProgramFound, ProgramMissing, locate, tool_folders
from pilotfish.servers.resolve import Candidate, Explained, Resolver, SearchScope, choose, explained
from pilotfish.servers.spec import ServerSpec
from pilotfish.servers.toolchains import is_hollow, with_toolchain
from pilotfish.servers.tree import DiskTree
from pilotfish.servers.versions import installed_version
from pilotfish.surfaces.cli.terminal.servers_text import (
    ALSO_CALLED,
    ListedServer,
    choice_lines,
    proof_lines,
    rows_json,
    table_lines,
    wanted_servers,
)
from pilotfish.surfaces.cli.workspace import asking_host, config_request, host_option, json_option, root_of, root_option
from pilotfish.system.confinement import confinable
from pilotfish.system.real_path import real_path
from pilotfish.system.windows import program_suffixes

WHY_NOT = {
    "disabled": "the configuration disables it",
    "missing": "it is not installed",
    "untrusted": "it is the project's own program, and the project is not trusted",
}


@click.command()
@click.argument("words", metavar="[WORD]…", nargs=-1)
@root_option
@host_option
@json_option
@click.pass_context
def servers(context: click.Context, words: tuple[str, ...], root: str | None, as_json: bool) -> None:  # noqa: FBT001 -- click passes flags
    """List the known language servers and which are installed.

    WORD narrows the list to a server, a language or an extension. Of a language it is said which server would be used
    here, and why; of a server, what was shown of it: a proven one was run, a listed one was not.
    """
    top = real_path(root_of(root))
    rows, trusted = _rows(top, words)
    choice = _choice(top, rows, words[0], trusted=trusted) if len(words) == 1 else ()
    if as_json:
        click.echo(json.dumps(rows_json(rows, choice), indent=2))
    elif rows:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        lines = [*table_lines(rows, width), *(choice_lines(words[0], choice, width) if choice else ())]
        named = [row for row in rows if row.spec.id in words]
        click.echo("\n".join([*lines, *(line for row in named for line in proof_lines(row, width))]))
    if not rows:
        click.echo(f"No server is known for {' '.join(words)}.{_nearest(top, words)}", err=True)
        context.exit(1)


def _nearest(root: str, words: tuple[str, ...]) -> str:
    """What the words may have been meant to be."""
    specs, _ = _specs(root, user_places(os.environ))
    known = {*ALSO_CALLED, *specs, *(name for spec in specs.values() for name in (*spec.languages, *spec.aliases))}
    near = [name for word in words for name in get_close_matches(word.casefold(), sorted(known), 1, 0.7)]
    return f" Did you mean {' '.join(near)}?" if near else ""


def _rows(root: str, words: tuple[str, ...]) -> tuple[list[ListedServer], bool]:
    """The rows, and whether the workspace is trusted."""
    places = user_places(os.environ)
    specs, trusted = _specs(root, places)
    territory = (AbsPath(root),)
    path = search_path(os.environ.get("PATH", ""), territory, trusted=trusted)
    beside = beside_us(path, territory, trusted=trusted)
    suffixes = program_suffixes(os.environ)
    lookup = Lookup(territory, trusted, path, tool_folders(places.state), beside, suffixes=suffixes)
    managers = {program for program in PROGRAMS.values() if shutil.which(program, path=os.pathsep.join(path))}
    rows: list[ListedServer] = []
    wanted = [*specs.values()]
    for word in words:
        chosen = {spec.id for spec in wanted_servers(specs.values(), word)}
        wanted = [spec for spec in wanted if spec.id in chosen]
    for spec in wanted:
        located = locate(spec.command[0], territory[0], lookup) if spec.command else ProgramMissing(spec.id, ())
        if isinstance(located, ProgramFound) and is_hollow(spec, located.path, os.environ):
            located = ProgramMissing(spec.command[0], (territory[0],))
        install = with_toolchain(install_command(spec, managers.__contains__), os.environ)
        rows.append(ListedServer(spec, located, install, proofs().get(spec.id), is_ours=spec.id in load()))
    return rows, trusted


def _choice(root: str, rows: Sequence[ListedServer], word: str, *, trusted: bool) -> tuple[Explained, ...]:
    """Which of these servers would serve a file of the language at the top of the workspace; none: no such language."""
    word = ALSO_CALLED.get(word.casefold(), word.casefold())
    file = next((name for row in rows if (name := file_of(row.spec, word))), None)
    if file is None:
        return ()
    path = AbsPath(os.path.join(root, file))
    by_id = {row.spec.id: row for row in rows}
    candidates = Resolver((row.spec for row in rows), DiskTree()).candidates(path, SearchScope(AbsPath(root)), "")

    def why_not(spec: ServerSpec) -> str | None:
        located = by_id[spec.id].located
        if not isinstance(located, ProgramFound):
            return WHY_NOT[by_id[spec.id].state]
        version = None if trusted else installed_version(spec, located)
        allowed = admitted(spec, trusted=trusted, version=version, held=confinable())
        return allowed.reason if isinstance(allowed, Withheld) else None

    def is_available(candidate: Candidate) -> bool:
        return why_not(candidate.spec) is None

    choice = choose(candidates, is_available)
    serving = {row.spec.id: row.spec for row in rows if file_of(row.spec, word)}
    return explained(serving, candidates, choice, why_not)


def file_of(spec: ServerSpec, word: str) -> str | None:
    """A file that the server serves, where the word is one of its languages, extensions or file names."""
    if word in map(str.casefold, spec.files.extensions):
        return f"x{word}"
    if word in map(str.casefold, spec.files.names):
        return next(name for name in spec.files.names if name.casefold() == word)
    if word not in spec.languages:
        return None
    of_language = [key for key, language in spec.files.language_ids.items() if language == word]
    extensions = [key for key in of_language if key in spec.files.extensions] or list(spec.files.extensions)
    return f"x{extensions[0]}" if extensions else None


def _specs(root: str, places: Places) -> tuple[Mapping[str, ServerSpec], bool]:
    """The servers of this workspace, and whether it is trusted."""
    # Reading the configuration is a seventh of what this verb takes, and most people have none.
    speaking = (places.global_file, places.pins, *(os.path.join(root, name) for _, name in project_files()))
    if asking_host() is None and not any(map(os.path.lexists, speaking)):
        return load(), False

    loaded = load_config(config_request(root))
    for problem in loaded.errors:
        click.echo(f"The configuration has an error: {problem}", err=True)
    config = loaded.config
    if not config.enabled:
        return {server_id: replace(spec, disabled=True) for server_id, spec in load().items()}, config.trusted
    return effective_servers(config.servers, config.named), config.trusted
