"""`pilotfish uninstall`: take back all that Pilotfish has put on this machine, and show it first.

In this order, so that what fails can be tried again: the daemon ends, hosts' files become what they were, and only when
all of them are does the state go, which holds the copies that they are restored from. In the folder of the state only
what we put there is deleted: `PILOTFISH_HOME` may name a folder with other things in it.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from pilotfish.paths import BIN, is_inside
from pilotfish.surfaces.cli.setup import HostPlan, SetupRun, file_lines, where_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pilotfish.config.places import Places
    from pilotfish.hosts.shared.changes import Receipts

OWN = (
    "journal", "logs", "program", "pythons", "run", "servers", "setup", "shown", "store.sqlite", "store.sqlite-shm",
    "store.sqlite-wal", "tools", "trust",
)  # fmt: skip
"""What is ours in the folder of the state."""

MIB = 1024 * 1024


class Removal(Struct, frozen=True):
    """All that goes."""

    hosts: tuple[tuple[SetupRun, HostPlan], ...]
    paths: tuple[str, ...]
    """Files and folders of ours."""
    left: tuple[str, ...]
    """Files that setup changed, and that no host of this version knows."""

    @property
    def is_empty(self) -> bool:
        return not self.paths and not any(plan.needed for _, plan in self.hosts)


@click.command()
@click.argument("servers", nargs=-1, metavar="")
@click.option("--yes", is_flag=True, help="Do not ask; needed where there is no terminal.")
@click.option("--dry-run", is_flag=True, help="Show what would go, and change nothing.")
@click.option("--keep-config", is_flag=True, help="Leave your configuration and what you trusted.")
@click.pass_context
def uninstall(context: click.Context, servers: tuple[str, ...], *, yes: bool, dry_run: bool, keep_config: bool) -> None:
    """Remove all that Pilotfish has put on this machine.

    The files of coding agents become what they were, byte for byte; the daemon ends; installed servers, logs, caches
    and the configuration go. What goes is shown first.
    """
    from pilotfish.config.places import user_places
    from pilotfish.surfaces.cli.daemon import stop_daemon

    if servers:
        one = f"pilotfish install --remove {' '.join(servers)}"
        raise click.UsageError(f"This removes all of Pilotfish. To remove one server: {one}", context)
    places = user_places(os.environ)
    removal = planned(places, keep_config=keep_config)
    for line in dict.fromkeys(_shown(removal)):
        click.echo(line)
    if dry_run or removal.is_empty:
        context.exit(0)
    if not yes and not _may_remove():
        context.exit(1)
    click.echo(stop_daemon())
    # Planned anew one after the other: hosts share files, and a home may be a project too.
    done = [run.try_write(run.try_plan(plan.host)) for run, plan in removal.hosts]
    failures = [plan for plan in done if plan.failure is not None]
    for failed in failures:
        click.echo(f"{failed.host.title}: {failed.failure}", err=True)
    if failures or removal.left:
        click.echo("These files are still wired, so the copies of what they were stay: try again.", err=True)
        context.exit(1)
    _delete(own_paths(places, keep_config=keep_config), places)  # the daemon has closed its files meanwhile
    click.echo(_farewell(os.path.normpath(sys.prefix), places))


def planned(places: Places, *, keep_config: bool) -> Removal:
    """Reads files, and changes nothing."""
    from pilotfish.hosts.registry import load_hosts
    from pilotfish.hosts.shared.changes import Receipts

    receipts = Receipts(os.path.join(places.state, "setup"))
    wheres = [where_of("global", None), *(where_of("project", root) for root in _roots(receipts))]
    runs = [SetupRun(where, receipts, None, dry_run=False, remove=True) for where in wheres]
    hosts = [(run, run.try_plan(host)) for run in runs for host in load_hosts().values() if run.concerns(host)]
    known = {change.now.target for _, plan in hosts for change in plan.changes}
    return Removal(
        tuple((run, plan) for run, plan in hosts if plan.needed or plan.failure),
        own_paths(places, keep_config=keep_config),
        tuple(file for file in receipts.files() if file not in known and os.path.exists(file)),
    )


def own_paths(places: Places, *, keep_config: bool) -> tuple[str, ...]:
    kept = ("trust", "shown") if keep_config else ()
    own = [os.path.join(places.state, name) for name in OWN if name not in kept]
    own += [] if keep_config else [os.path.dirname(places.global_file)]
    return tuple(path for path in own if os.path.lexists(path))


def _roots(receipts: Receipts) -> Iterator[str]:
    """The projects whose files were changed: a receipt names a file, and its project is one of the folders above it."""
    from pilotfish.hosts.registry import load_hosts
    from pilotfish.paths import ancestors
    from pilotfish.system.real_path import real_path

    hosts = [host for host in load_hosts().values() if "project" in host.scopes]
    files = set(receipts.files())
    for folder in sorted({folder for file in files for folder in ancestors(os.path.dirname(file))[:-1]}):
        where = where_of("project", folder)
        if not files.isdisjoint(real_path(wired.path) for host in hosts for wired in host.files(where)):
            yield folder


def _shown(removal: Removal) -> Iterator[str]:
    if removal.is_empty:
        yield "There is nothing of Pilotfish on this machine but the program."
        return
    yield "This goes:"
    for _, plan in removal.hosts:
        yield from (f"  {line}" for line in file_lines(plan))
        if plan.failure is not None:
            yield f"  {plan.host.title}: {plan.failure}"
    yield from (f"  {path} ({_size(path) / MIB:.1f} MiB)" for path in removal.paths)
    yield from (f"  {path}: setup has changed it, and no host of this version knows it" for path in removal.left)


def _size(path: str) -> int:
    sizes = [os.lstat(path).st_size]
    for folder, _, names in os.walk(path):
        with suppress(FileNotFoundError):  # the daemon still runs
            sizes += [os.lstat(os.path.join(folder, name)).st_size for name in names]
    return sum(sizes)


def _may_remove() -> bool:
    if not sys.stdin.isatty():
        click.echo("Nothing was changed, as nobody can be asked here: add --yes to remove all of this.")
        return False
    return click.confirm("Remove all of this?", default=False)


def _delete(paths: tuple[str, ...], places: Places) -> None:
    """Also the folder that a long path of the state made the daemon put its socket into."""
    from pilotfish.ipc.rendezvous import DaemonPlace
    from pilotfish.paths import ancestors

    place = DaemonPlace(os.environ)
    if place.socket_folder != place.folder:
        shutil.rmtree(place.socket_folder, ignore_errors=True)
    for path in paths:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, onerror=_failed)
        else:
            os.unlink(path)
    for folder in (*ancestors(places.state, places.home)[:-1], *ancestors(places.config, places.home)[:-1]):
        with suppress(OSError):  # something else lies there
            os.rmdir(folder)
    with suppress(OSError):
        os.rmdir(places.state)


def _failed(_function: object, path: str, _error: object) -> None:
    """Windows deletes nothing of a program that runs, as we do here: what is left of us is named last."""
    if os.path.lexists(path) and not is_inside(path, os.path.normpath(sys.prefix)):
        click.echo(f"{path} could not be removed.", err=True)


def _farewell(prefix: str, places: Places, environment: Mapping[str, str] = os.environ) -> str:
    """How the program itself goes: whoever installed it removes it."""
    if prefix == os.path.join(places.state, "program"):
        npm = "npm_config_user_agent" in environment or "npm_execpath" in environment
        last = "npm uninstall --global pilotfish" if npm else "delete the file pilotfish.pyz"
        last += f", and the folder {prefix}" if os.path.lexists(prefix) else ""
    elif "/uv/tools/" in prefix:
        last = "uv tool uninstall pilotfish"
    elif "/pipx/venvs/" in prefix:
        last = "pipx uninstall pilotfish"
    elif prefix == os.path.join(
        places.home, ".local", "share", "pilotfish"
    ):  # the environment of docs/guide/install.md
        last = f"delete {prefix} and {os.path.join(places.home, '.local', 'bin', 'pilotfish')}"
    else:
        last = f"{os.path.join(prefix, BIN, 'pip')} uninstall pilotfish"
    return f"Removed. What is left is the program itself: {last}"
