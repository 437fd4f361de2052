"""`pilotfish setup`: change a host's files so that it calls Pilotfish, and undo it.

Every change is shown and backed up before it is written; a file that cannot be parsed is refused, and then nothing is
changed.
"""

import json
import os
import sys
import textwrap
from collections.abc import Callable, Sequence

import click
from msgspec import Struct
from msgspec.structs import replace

from pilotfish.config.load import load
from pilotfish.config.places import user_places
from pilotfish.errors import Code, Failure, Refused
from pilotfish.hosts.registry import host_names, load_host, load_hosts
from pilotfish.hosts.shared.changes import HostFileChange, Receipts, carry_out, diff_of, plan_removal, plan_setup
from pilotfish.hosts.shared.hook_settings import advice_files, tools_only
from pilotfish.hosts.shared.host_spec import HostSpec, SetupScope, Way, Where, WiredFile, installed_programs
from pilotfish.hosts.shared.status import check_host, is_installed, read_unread, wired_otherwise
from pilotfish.surfaces.cli.completion import hosts
from pilotfish.surfaces.cli.workspace import config_request, root_of
from pilotfish.system.ownership import top_of


class SetupCommand(click.Command):
    """The verb, whose help names the hosts without importing them."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- click's

        formatter.write_paragraph()
        # Not by `write_text`, which breaks names at their hyphens.
        names = textwrap.wrap(f"HOST is one of: {', '.join(host_names())}.", formatter.width, break_on_hyphens=False)
        formatter.write("".join(f"{line}\n" for line in names))


@click.command(cls=SetupCommand)
@click.argument("host", required=False, shell_complete=hosts)
@click.option("--project", "scope", flag_value="project", help="In this project's files.")
@click.option("--global", "scope", flag_value="global", help="In your own files, for every project. (default)")
@click.option("--all", "every", is_flag=True, help="Every host that is installed.")
@click.option("--yes", is_flag=True, help="With --all: do not ask before writing; needed where there is no terminal.")
@click.option("--dry-run", is_flag=True, help="Show the changes and write nothing.")
@click.option("--remove", is_flag=True, help="Take out what setup put in.")
@click.option("--repair", is_flag=True, help="Write anew what another installation or version has wired.")
@click.option("--status", is_flag=True, help="Show which files are wired, and try what they start.")
@click.option(
    "--by",
    "way",
    type=click.Choice(["command", "mcp", "lsp"]),
    help="How the host calls after an edit, where it knows several ways: it runs a program, calls a tool of the MCP "
    "server, or tells its LSP client. Default: the best that it knows.",
)
@click.option(
    "--advice",
    is_flag=True,
    help="Also tell the model when to use the tools: a skill, or a section of the project's AGENTS.md.",
)
@click.option("--without", type=click.Choice(["feedback"]), help="The tools alone: nothing is told after edits.")
@click.option("--root", metavar="DIR", help="The project, for --project; by default the one around this folder.")
@click.option("--json", "as_json", is_flag=True, help="Print the status as JSON.")
@click.pass_context
def setup(
    context: click.Context,
    host: str | None,
    scope: SetupScope | None,
    way: Way | None,
    without: str | None,
    root: str | None,
    *,
    every: bool,
    yes: bool,
    dry_run: bool,
    remove: bool,
    repair: bool,
    status: bool,
    advice: bool,
    as_json: bool,
) -> None:
    """Wire a coding agent to Pilotfish, and undo it.

    It gets hooks after its edits, and tools for its model. Changes are shown first, and a backup is kept.
    """
    receipts = Receipts(os.path.join(user_places(os.environ).state, "setup"))
    if (every or ((status or repair) and host is None)) == (host is not None):
        raise click.UsageError("Name one HOST, or say --all.")
    chosen = list(load_hosts().values()) if host is None else [load_host(host)]
    if status:
        context.exit(_print_status(chosen, root, receipts, as_json=as_json))
    if repair:
        context.exit(_repair(chosen, root, receipts, dry_run=dry_run))
    usual: SetupScope = "global" if every else chosen[0].scopes[0]
    run = SetupRun(where_of(scope or usual, root), receipts, way, dry_run, remove, advice, without is None)
    if every:
        context.exit(run.change_all(chosen, ask=not yes))
    run.change(chosen[0])


def where_of(scope: SetupScope, root: str | None) -> Where:
    places = user_places(os.environ)
    folder = os.path.abspath(root) if root else top_of(os.getcwd())
    return Where(scope, places.home, places.config, folder, os.environ, installed_programs(os.environ))


class HostPlan(Struct, frozen=True):
    """The changes of one host's files, or why there can be none."""

    host: HostSpec
    changes: tuple[HostFileChange, ...] = ()
    failure: Failure | None = None

    @property
    def needed(self) -> list[HostFileChange]:
        return [change for change in self.changes if change.is_needed]


class SetupRun(Struct, frozen=True):
    where: Where
    receipts: Receipts
    way: Way | None
    """None: the usual one of each host."""
    dry_run: bool
    remove: bool = False
    advice: bool = False
    has_feedback: bool = True
    """False: only the tools are wired."""

    def change(self, host: HostSpec) -> None:
        """Show the changes of one host and make them; raises `Failure`."""
        if not self.concerns(host):
            whose = "of the user that setup could write" if self.where.is_global else "in a project"
            hint = f"Say --{host.scopes[0]}."
            raise Refused(Code.INVALID_INPUT, f"{host.title} has no files {whose}", hint=hint)
        plan = self._plan(host)
        _show_diffs(plan)
        if not self.dry_run:
            carry_out(plan.changes, self.receipts)
        if self.remove:
            return
        self._show_cautions(host)
        if not self.dry_run and plan.needed:
            for change in plan.needed:
                if change.without is not None and not change.removes:
                    click.echo(f"Backup of {change.now.path}: {self.receipts.backup(change.now.target)}")
            for sentence in self._left_to_person(host):
                click.echo(f"{host.title}: {sentence}")
            if self.way == "lsp" and host.by_lsp:
                click.echo(f"{host.title}: {host.by_lsp}")
            self._show_undo(host.name)

    def change_all(self, every: Sequence[HostSpec], *, ask: bool) -> int:
        """Change all hosts that are installed; one that is refused does not keep the others from it. The exit code."""
        hosts = [host for host in every if self.concerns(host)]
        if not self.remove:
            # To be removed is what is wired, whether its host is installed or not any more.
            hosts = [host for host in hosts if is_installed(host, self.where, self.receipts)]
            click.echo(f"Found here: {', '.join(host.title for host in hosts) or 'none'}.")
        plans = [_tried(host, lambda host=host: self._plan(host)) for host in hosts]
        for plan in plans:
            if plan.failure is None and self.dry_run:
                _show_diffs(plan)
            for line in () if self.dry_run else file_lines(plan):
                click.echo(line)
        needed = [plan for plan in plans if plan.needed]
        if needed and ask and not self.dry_run and not _may_write():
            return 1
        done = plans if self.dry_run else [_tried(plan.host, lambda plan=plan: self._written(plan)) for plan in plans]
        for plan in done:
            if plan.failure is not None:
                why = f"{plan.failure.message} {plan.failure.hint or ''}".rstrip()
                click.echo(f"{plan.host.title}: {why}", err=True)
        if not self.dry_run:
            self._show_summary(done)
        return 1 if any(plan.failure for plan in done) else 0

    def concerns(self, host: HostSpec) -> bool:
        return self.where.scope in host.scopes

    def _plan(self, host: HostSpec) -> HostPlan:
        if self.way == "lsp" and self.way not in host.ways:
            why = f"{host.title} is told more, and sooner, in another way than by its LSP client"
            raise Refused(Code.INVALID_INPUT, why, hint="Leave out --by lsp.")
        way = self.way if self.way in host.ways else host.ways[0]
        files = self.wired_files(host)
        if self.remove:
            return HostPlan(host, tuple(plan_removal(file, self.receipts) for file in files.values()))
        advice = advice_files(host, self.where)
        chosen = host.files(replace(self.where, way=way))
        chosen = chosen if self.has_feedback else tools_only(host, chosen)
        if not chosen:
            why = f"{host.title} reads no file of the user that names language servers"
            raise Refused(Code.INVALID_INPUT, why, hint="Say --project.")
        changes = [plan_setup(file, self.receipts) for file in (*chosen, *(advice if self.advice else ()))]
        # A host is told in one way only: what another way has wired goes.
        others = files.keys() - {file.path for file in chosen}
        changes += [plan_removal(files[path], self.receipts) for path in sorted(others)]
        return HostPlan(host, tuple(change for change in changes if change is not None))

    def wired_files(self, host: HostSpec) -> dict[str, WiredFile]:
        """By their paths: what any way of the host has wired, and when all of it goes, also the advice."""
        ways = dict.fromkeys((*([self.way] if self.way in host.ways else []), *host.ways))
        files = [file for each in reversed(ways) for file in host.files(replace(self.where, way=each))]
        return {file.path: file for file in (*files, *(advice_files(host, self.where) if self.remove else ()))}

    def _written(self, plan: HostPlan) -> HostPlan:
        carry_out(plan.changes, self.receipts)
        return plan

    def _left_to_person(self, host: HostSpec) -> tuple[str, ...]:
        return host.afterwards if self.where.is_global else (*host.afterwards, *host.in_project)

    def _show_summary(self, plans: Sequence[HostPlan]) -> None:
        changed = [plan for plan in plans if plan.needed]
        verb = "Removed" if self.remove else "Wired"
        click.echo(f"{verb}: {', '.join(plan.host.title for plan in changed) or 'nothing'}.")
        if self.remove:
            return
        for plan in plans:
            self._show_cautions(plan.host)
        # What several hosts ask for is said once.
        sentences: dict[str, list[str]] = {}
        for plan in changed:
            for sentence in self._left_to_person(plan.host):
                sentences.setdefault(sentence, []).append(plan.host.title)
        for sentence, titles in sentences.items():
            click.echo(f"{', '.join(titles)}: {sentence}")
        if changed:
            self._show_undo("--all")

    def _show_cautions(self, host: HostSpec) -> None:
        for caution, holds in host.cautions.items():
            if holds(self.where):
                click.echo(f"{host.title}: {caution}")

    def _show_undo(self, what: str) -> None:
        scope = "" if self.where.is_global else " --project"
        click.echo(f"Undo it with `pilotfish setup {what}{scope} --remove`.")


def _tried(host: HostSpec, work: Callable[[], HostPlan]) -> HostPlan:
    """One that fails does not keep the others from it."""
    try:
        return work()
    except Failure as failure:
        return HostPlan(host, failure=failure)


def _may_write() -> bool:
    """What a person says; where there is none to ask, nothing is written."""
    if not sys.stdin.isatty():
        click.echo("Nothing was changed, as nobody can be asked here: add --yes to write these files.")
        return False
    if click.confirm("Write these files?", default=True):
        return True
    click.echo("Nothing was changed.")
    return False


def _show_diffs(plan: HostPlan) -> None:
    if not plan.needed:
        click.echo(f"{plan.host.title}: nothing to change.")
    for change in plan.needed:
        click.echo(diff_of(change))


def file_lines(plan: HostPlan) -> list[str]:
    """One for each file; `--dry-run` shows the changes themselves."""

    def kind(change: HostFileChange) -> str:
        return "new" if change.now.content is None else "remove" if change.then is None else "change"

    return [f"{plan.host.title}: {change.now.path} ({kind(change)})" for change in plan.needed]


def _repair(chosen: Sequence[HostSpec], root: str | None, receipts: Receipts, *, dry_run: bool) -> int:
    """Wire again what is wired, and would start another installation than this; the exit code."""
    places = [(host, where_of(scope, root)) for host in chosen for scope in host.scopes]
    found = [(host, where) for host, place in places if (where := wired_otherwise(host, place, receipts)) is not None]
    if not found:
        click.echo("Nothing to repair: every host that is wired starts this installation.")
    for host, where in found:
        SetupRun(where, receipts, where.way, dry_run).change(host)
    return 0


def _print_status(chosen: Sequence[HostSpec], root: str | None, receipts: Receipts, *, as_json: bool) -> int:
    """Print which hosts are wired; 1 when one of them does not work."""
    # A host that is wired well shows nothing of a server that the configuration does not start.
    for problem in load(config_request(root_of(root))).errors:
        click.echo(f"The configuration has an error: {problem}", err=True)
    found = [check_host(host, where_of(scope, root), receipts) for host in chosen for scope in host.scopes]
    wired = [status for status in found if status is not None]
    unread = read_unread(where_of("global", root).programs) if wired else ()
    if as_json:
        click.echo(json.dumps([status.as_json() for status in wired]))
    else:
        none = () if wired else ("No host is wired. `pilotfish setup --all` wires those that are installed.",)
        for line in (*(line for status in wired for line in status.lines()), *unread, *none):
            click.echo(line)
    return 1 if unread or any(status.trouble for status in wired) else 0
