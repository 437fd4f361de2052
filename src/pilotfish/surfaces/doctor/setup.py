"""What the doctor reports besides servers: configuration, trust, the daemon, watches, hosts."""

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping

from pilotfish.config.load import Loaded
from pilotfish.config.trust import Stale, Trusted
from pilotfish.counting import counted
from pilotfish.errors import Code, Failure
from pilotfish.ipc.client import Terms, open_link
from pilotfish.paths import DEPENDENCY_FOLDERS
from pilotfish.surfaces.cli.terminal.units import duration
from pilotfish.surfaces.doctor.report import SetupFinding

INOTIFY = "/proc/sys/fs/inotify"

ROOM = 0.5
"""The share of the system's watches that one workspace may use without a warning: other programs watch, too."""

MANY_WATCHES = 524_288
"""The limit that editors recommend."""

FEW_INSTANCES = 64
"""We use one for each root, and other programs use theirs."""

MAX_FOLDERS = 200_000
"""Folders that are counted."""

HostFindings = Callable[[], Iterable[SetupFinding]]
"""What is known of the hosts on this machine."""


def findings(loaded: Loaded, environment: Mapping[str, str], wiring: HostFindings) -> tuple[SetupFinding, ...]:
    return (
        *_configuration(loaded),
        *_trust(loaded),
        _daemon(environment),
        *_watches(loaded.config.root),
        *wiring(),
    )


def _configuration(loaded: Loaded) -> Iterator[SetupFinding]:
    if not loaded.config.enabled:
        yield SetupFinding("configuration", "note", 'LSP disabled by configuration ("lsp": false): nothing is started')
    for problem in loaded.errors:
        yield SetupFinding(
            "configuration", "todo", str(problem), (f"Fix {problem.file}, then: pilotfish config check",)
        )
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


def _daemon(environment: Mapping[str, str]) -> SetupFinding:
    try:
        with open_link(terms=Terms(environment, start=False)) as link:
            about = link.request("about")
    except Failure as failure:
        if failure.code is Code.NOT_FOUND:
            return SetupFinding("daemon", "ok", "not running; it starts with the first edit or question")
        advice = (failure.hint,) if failure.hint else ()
        return SetupFinding("daemon", "todo", failure.message, advice)
    if about["superseded"]:
        step = "pilotfish daemon stop"
        return SetupFinding("daemon", "note", "older than this program; it ends when no client is connected", (step,))
    sessions = counted(len(about["sessions"]), "session")
    return SetupFinding("daemon", "ok", f"running for {duration(round(about['seconds'] * 1000))}, {sessions}")


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
    count = 0
    for folder, names, _ in os.walk(root):
        names[:] = [name for name in names if name not in DEPENDENCY_FOLDERS and name != ".git"]
        count += bool(folder)
        if count >= MAX_FOLDERS:
            break
    return count


def _number(name: str) -> int | None:
    try:
        with open(os.path.join(INOTIFY, name), encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None
