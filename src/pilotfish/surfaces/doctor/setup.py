"""What the doctor reports besides servers: configuration, trust, the daemon, watches, hosts."""

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress

from msgspec.structs import replace

from pilotfish.config.load import Loaded
from pilotfish.config.places import user_places
from pilotfish.config.trust import Stale, Trusted
from pilotfish.counting import counted
from pilotfish.errors import Code, Failure
from pilotfish.hosts.registry import load_hosts
from pilotfish.hosts.shared.changes import Receipts, read_state
from pilotfish.hosts.shared.host_spec import HostSpec, Where, installed_programs
from pilotfish.hosts.shared.status import is_installed
from pilotfish.ipc.client import Terms, open_link
from pilotfish.paths import DEPENDENCY_FOLDERS
from pilotfish.surfaces.cli.terminal.table import duration
from pilotfish.surfaces.doctor.report import SetupFinding

INOTIFY = "/proc/sys/fs/inotify"

ROOM = 0.5  # The share of the system's watches that one workspace may use without a warning: other programs watch, too
MANY_WATCHES = 524_288  # The limit that editors recommend
FEW_INSTANCES = 64  # We use one for each root, and other programs use theirs
MAX_FOLDERS = 200_000  # Folders that are counted


def findings(loaded: Loaded, environment: Mapping[str, str]) -> tuple[SetupFinding, ...]:
    return (
        *_configuration(loaded),
        *_trust(loaded),
        *_daemon(environment),
        *_watches(loaded.config.root),
        *wiring(loaded.config.root, environment),
    )


def _configuration(loaded: Loaded) -> Iterator[SetupFinding]:
    if not loaded.config.enabled:
        yield SetupFinding("configuration", "note", 'LSP disabled by configuration ("lsp": false): nothing is started')
    for problem in loaded.errors:
        step = f"Fix {problem.file}, then: pilotfish config check"
        yield SetupFinding("configuration", "todo", str(problem), (step,))
    for problem in loaded.warnings:
        yield SetupFinding("configuration", "note", str(problem))
    if not loaded.errors and loaded.config.enabled:
        files = [sheet.file for sheet in loaded.sheets]
        yield SetupFinding("configuration", "ok", ", ".join(files) if files else "no file; the defaults apply")


def _trust(loaded: Loaded) -> Iterator[SetupFinding]:
    trust, root = loaded.config.trust, loaded.config.root
    withheld = [f"{server}.{path}" for server, one in loaded.config.servers.items() for path in one.withheld]
    if isinstance(trust, Trusted) and not withheld:
        yield SetupFinding("trust", "ok", trust.why)
        return
    step = f"pilotfish trust {shlex.quote(root)}"
    if isinstance(trust, Stale):
        yield SetupFinding("trust", "todo", f"{trust.why}: {'; '.join(trust.differences)}", (step,))
    elif withheld:
        why = f"{trust.why}, which does not count for all" if isinstance(trust, Trusted) else trust.why
        yield SetupFinding("trust", "todo", f"{why}, so these settings are ignored: {', '.join(withheld)}", (step,))
    else:
        yield SetupFinding("trust", "ok", "not trusted; no settings are ignored")


def _daemon(environment: Mapping[str, str]) -> Iterator[SetupFinding]:
    try:
        with open_link(terms=Terms(environment, start=False)) as link:
            about = link.request("about")
    except Failure as failure:
        if failure.code is Code.NOT_FOUND:
            yield SetupFinding("daemon", "ok", "not running; it starts with the first edit or question")
        else:
            yield SetupFinding("daemon", "todo", failure.message, (failure.hint,) if failure.hint else ())
        return
    if about["superseded"]:
        step = "pilotfish daemon stop"
        yield SetupFinding("daemon", "note", "older than this program; it ends when no client is connected", (step,))
    else:
        sessions = counted(len(about["sessions"]), "session")
        yield SetupFinding("daemon", "ok", f"running for {duration(round(about['seconds'] * 1000))}, {sessions}")
    for line in about.get("unread", ()):
        yield SetupFinding("hooks", "todo", line)


def _watches(root: str) -> Iterator[SetupFinding]:
    if sys.platform != "linux":
        return
    watches, instances = _number("max_user_watches"), _number("max_user_instances")
    folders = _folders(root)
    if watches is not None and folders > watches * ROOM:
        step = f"sudo sysctl fs.inotify.max_user_watches={max(MANY_WATCHES, 4 * folders)}"
        message = f"{folders} folders here, but the system allows {watches} watches: some folders may be polled"
        yield SetupFinding("watching", "todo", message, (step,))
    elif instances is not None and instances < FEW_INSTANCES:
        step = "sudo sysctl fs.inotify.max_user_instances=512"
        yield SetupFinding("watching", "note", f"the system allows only {instances} inotify instances", (step,))
    elif watches is not None:
        yield SetupFinding("watching", "ok", f"{counted(folders, 'folder')}; the system allows {watches} watches")
    else:
        yield SetupFinding("watching", "note", "the system's limits cannot be read")


def _folders(root: str) -> int:
    # Not by `os.walk`, which calls itself: folders may lie in each other deeper than that goes.
    count, left = 0, [root]
    while left and count < MAX_FOLDERS:
        count += 1
        with suppress(OSError), os.scandir(left.pop()) as entries:
            inner = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
            left += [entry.path for entry in inner if entry.name not in DEPENDENCY_FOLDERS and entry.name != ".git"]
    return count


def _number(name: str) -> int | None:
    try:
        with open(os.path.join(INOTIFY, name), encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


# --- Hosts ---------------------------------------------------------------------------------------------------------


def wiring(root: str, environment: Mapping[str, str]) -> Iterator[SetupFinding]:
    """One finding for each host that is on this machine, or wired.

    It reads files and starts nothing; `pilotfish setup --status` sends a real event through each host's hook.
    """
    places = user_places(environment)
    where = Where("global", places.home, places.config, root, environment, installed_programs(environment))
    receipts = Receipts(os.path.join(places.state, "setup"))
    found = [finding for host in load_hosts().values() if (finding := _host(host, where, receipts)) is not None]
    yield from found
    if not found:
        yield SetupFinding("coding agents", "note", "none was found on this machine")


def _host(host: HostSpec, where: Where, receipts: Receipts) -> SetupFinding | None:
    step = f"pilotfish setup {host.name}"
    try:
        states = {scope: _states(host, replace(where, scope=scope), receipts) for scope in host.scopes}
    except Failure as failure:
        return SetupFinding(host.title, "note", failure.message) if is_installed(host, where, receipts) else None
    wired = [scope for scope, found in states.items() if "wired" in found]
    outdated = [scope for scope, found in states.items() if "outdated" in found]
    if outdated:
        again = f"{step} --project" if outdated == ["project"] else step
        return SetupFinding(host.title, "todo", "wired by another installation or version", (again,))
    if any("missing" in states[scope] for scope in wired):
        return SetupFinding(host.title, "todo", "only some of its files are wired", (step,))
    if wired and not is_installed(host, where, receipts):
        return SetupFinding(host.title, "note", "wired, and not installed")
    if wired:
        return SetupFinding(host.title, "ok", f"wired ({', '.join(wired)})")
    if not is_installed(host, where, receipts):
        return None
    return SetupFinding(host.title, "note", "installed and not wired", (step,))


def _states(host: HostSpec, where: Where, receipts: Receipts) -> list[str]:
    """The state of each file; of the ways in which the host may call us, the one that is in use."""
    said = [[read_state(file, receipts) for file in host.files(replace(where, way=way))] for way in host.ways]
    return list(max(said, key=lambda states: states.count("wired")))
