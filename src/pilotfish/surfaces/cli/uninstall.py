"""`pilotfish uninstall`: take back all that Pilotfish has put on this machine, and show it first.

In this order, so that what fails can be tried again: the daemon ends, hosts' files become what they were, each for
itself, and then the state goes, but for the copies of those files that could not be restored. In the folder of the
state only what we put there is deleted: `PILOTFISH_HOME` may name a folder with other things in it.
"""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress

import click
from msgspec import Struct

from pilotfish.config.places import Places, user_places
from pilotfish.errors import Failure
from pilotfish.hosts.edits.edit import MARK
from pilotfish.hosts.registry import load_hosts
from pilotfish.hosts.shared.changes import Receipts, carry_out, plan_removal, read_host_file
from pilotfish.ipc.rendezvous import DaemonPlace
from pilotfish.paths import BIN, ancestors, is_inside
from pilotfish.servers.confining import remove_dead_links
from pilotfish.surfaces.cli.daemon import stop_daemon
from pilotfish.surfaces.cli.setup import HostPlan, SetupRun, file_lines, where_of
from pilotfish.system.real_path import real_path

OWN = (
    "journal", "logs", "program", "pythons", "run", "servers", "setup", "shown", "store.sqlite", "store.sqlite-shm",
    "store.sqlite-wal", "tools", "trust",
)  # fmt: skip
"""What is ours in the folder of the state."""

MIB = 1024 * 1024


class Removal(Struct, frozen=True):
    plans: tuple[HostPlan, ...]
    """Of one file each: one that cannot be restored keeps no other from it."""
    paths: tuple[str, ...]
    """Files and folders of ours."""
    stuck: dict[str, str]
    """Files that cannot be restored, by their real paths, and why."""

    @property
    def is_empty(self) -> bool:
        return not (self.paths or self.plans or self.stuck)


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
    if servers:
        one = f"pilotfish install --remove {' '.join(servers)}"
        raise click.UsageError(f"This removes all of Pilotfish. To remove one server: {one}", context)
    places = user_places(os.environ)
    receipts = Receipts(os.path.join(places.state, "setup"))
    removal = planned(places, receipts, keep_config=keep_config)
    for line in dict.fromkeys(_shown(removal)):
        click.echo(line)
    if dry_run or not yes:
        _say_stuck(removal.stuck, receipts)
    if dry_run or removal.is_empty:
        context.exit(0)
    if not yes and not sys.stdin.isatty():
        click.echo("Nothing was changed, as nobody can be asked here: add --yes to remove all of this.")
        context.exit(1)
    if not yes and not click.confirm("Remove all of this?", default=False):
        context.exit(1)
    click.echo(stop_daemon())
    stuck = _restore(removal, receipts)
    # The daemon has closed its files meanwhile.
    _delete(own_paths(places, keep_config=keep_config, keep_setup=bool(stuck)), places)
    if stuck:
        _say_stuck(stuck, receipts)
        context.exit(1)
    click.echo(_farewell(os.path.normpath(sys.prefix), places))


def planned(places: Places, receipts: Receipts, *, keep_config: bool) -> Removal:
    """Reads files, and changes nothing."""
    wheres = [where_of("global", None), *(where_of("project", root) for root in _roots(receipts))]
    runs = [SetupRun(where, receipts, None, dry_run=False, remove=True) for where in wheres]
    hosts = [(run, host) for run in runs for host in load_hosts().values() if run.concerns(host)]
    wired = [(host, file) for run, host in hosts for file in run.wired_files(host).values()]
    known = {real_path(file.path) for _, file in wired}
    plans: list[HostPlan] = []
    left = [file for file in receipts.files() if file not in known and os.path.exists(file)]
    stuck = {file: f"{file}: setup has changed it, and no host of this version knows it" for file in left}
    for host, file in wired:
        try:
            plans.append(HostPlan(host, (plan_removal(file, receipts),)))
        except Failure as failure:
            # It cannot be parsed; one that setup has never written is no reason to fail.
            content, path = b"", real_path(file.path)
            with suppress(Failure):
                content = read_host_file(file.path, file.within).content or b""
            if MARK.encode() in content.lower() or path in receipts.files():
                stuck[path] = failure.message
    paths = own_paths(places, keep_config=keep_config, keep_setup=bool(stuck))
    return Removal(tuple(plan for plan in plans if plan.needed), paths, stuck)


def _restore(removal: Removal, receipts: Receipts) -> dict[str, str]:
    """The files that could not be restored, and why; only their receipts stay."""
    stuck = dict(removal.stuck)
    for change in (change for plan in removal.plans for change in plan.needed):
        try:
            # Planned anew one after the other: hosts share files, and a home may be a project too.
            carry_out([plan_removal(change.file, receipts)], receipts)
        except Failure as failure:
            stuck[change.now.target] = failure.message
    for file in receipts.files():
        if file not in stuck:
            receipts.forget(file)
    return stuck


def _say_stuck(stuck: dict[str, str], receipts: Receipts) -> None:
    for file, why in stuck.items():
        click.echo(f"{why}. Mend it and repeat this, or take out by hand what names pilotfish.", err=True)
        if os.path.exists(receipts.backup(file)):
            click.echo(f"What was in it before setup is in {receipts.backup(file)}", err=True)


def own_paths(places: Places, *, keep_config: bool, keep_setup: bool) -> tuple[str, ...]:
    kept = (*(("trust", "shown") if keep_config else ()), *(("setup",) if keep_setup else ()))
    own = [os.path.join(places.state, name) for name in OWN if name not in kept]
    own += [] if keep_config else [os.path.dirname(places.global_file)]
    return tuple(path for path in own if os.path.lexists(path))


def _roots(receipts: Receipts) -> Iterator[str]:
    """The projects whose files were changed: a receipt names a file, and its project is one of the folders above it."""
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
    if removal.paths or removal.plans:
        yield "This goes:"
    yield from (f"  {line}" for plan in removal.plans for line in file_lines(plan))
    yield from (f"  {path} ({_size(path) / MIB:.1f} MiB)" for path in removal.paths)


def _size(path: str) -> int:
    sizes = [os.lstat(path).st_size]
    for folder, _, names in os.walk(path):
        with suppress(FileNotFoundError):  # the daemon still runs
            sizes += [os.lstat(os.path.join(folder, name)).st_size for name in names]
    return sum(sizes)


def _delete(paths: tuple[str, ...], places: Places) -> None:
    """Also the folders that long paths of the state made us have elsewhere: of the socket, and of links of servers."""
    remove_dead_links()
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
