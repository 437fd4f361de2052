"""Lets language servers loose in trap repositories, and writes down what ran: `.venv/bin/python tests/traps.py --help`.

Each server of `KINDS` that is on `PATH` gets a fresh trap repository (`tests/support/traps`): every file that it is for
is checked, asked about and edited, and then the canaries are counted. The user's variables lead into the repository.
What it wrote of the home and of the repository, and which secrets of the home it opened, is told as well.
Three times: in a trusted workspace, which shows that the traps work (the control); in one that is not trusted; and in
one that is not trusted, with all that the kernel holds it to.
A server that the catalogue withholds runs all the same, which shows why it is withheld.

Servers that are not installed can be had with `pilotfish install`, pip, npm or from the package of a later Debian,
unpacked; put their programs on `PATH`, and name the folders of what they need with `--needs`. The first and the last
version of `[shown]` in the catalogue are versions for which this has shown 0: run it for both.
"""

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio
from msgspec import Struct

from pilotfish.servers.catalogue import load
from pilotfish.servers.launch import Withheld, admitted
from support.servers.real import User
from support.traps.probing import Leash, Loosed, let_loose, version_of
from support.traps.repository import misled, set_trap

TOP = Path(__file__).resolve().parent.parent

KINDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("basedpyright", "pyright", "ty", "pyrefly", "ruff", "pylsp", "jedi", "zuban"), ("python",)),
    "typescript-native": ("node", "node7"),
    **dict.fromkeys(("typescript", "vtsls", "biome", "eslint", "oxlint"), ("node",)),
    **dict.fromkeys(("quick-lint-js", "html", "css", "somesass", "graphql", "vue", "svelte", "astro"), ("node",)),
    **dict.fromkeys(("tailwindcss", "stylelint"), ("node",)),
    **dict.fromkeys(("json", "yaml", "tombi", "taplo", "dockerfile", "docker-compose", "github-actions"), ("data",)),
    **dict.fromkeys(("rumdl", "prisma", "nginx", "systemd", "cucumber", "zizmor", "marksman"), ("data",)),
    **dict.fromkeys(("clangd", "cmake", "autotools", "verible", "meson", "ccls", "neocmake"), ("c",)),
    **dict.fromkeys(("gopls",), ("go", "c")),
    **dict.fromkeys(("rust-analyzer",), ("rust",)),
    **dict.fromkeys(("bash", "herb", "fortls", "sqruff", "jinja", "just", "tcl", "vim", "nushell"), ("scripts",)),
    **dict.fromkeys(("intelephense", "devsense-php", "phpactor", "emmylua", "lua-language-server"), ("scripts",)),
    **dict.fromkeys(("jarl", "fatou", "perlnavigator", "ruby-lsp", "rubocop", "solargraph", "deno"), ("scripts",)),
    **dict.fromkeys(("buf", "ast-grep", "protols"), ("scripts",)),
}
"""The repositories for each server."""

HEADINGS = (
    "server",
    "version",
    "untrusted",
    "ways",
    "control",
    "ran untrusted",
    "ran confined",
    "wrote or read confined",
)
PAGE = TOP / "docs" / "SECURITY.md"
BLOCK = re.compile(r"(<!-- traps -->\n).*?(<!-- end of traps -->)", re.DOTALL)

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"

ALWAYS = "named-server"
"""Works in every trusted workspace, whatever the server: it says nothing about one."""

MAX_NAMED = 3
"""Ways that a cell names; of more it has the count."""


class Row(Struct, frozen=True):
    """One server, and the ways that worked on each leash."""

    server: str
    version: str
    form: str
    ways: int
    ran: Mapping[Leash, Sequence[str]]
    touched: Sequence[str] = ()
    """What it wrote, and which secrets it read, confined."""
    absent: frozenset[Leash] = frozenset()
    """On which leash the server did not run at all."""
    troubles: Sequence[str] = ()
    """What makes the row prove less than it seems to."""

    @property
    def is_bad(self) -> bool:
        """Whether the server may run untrusted, and this does not show that it should."""
        return self.form != "withheld" and self._untrusted != ("0", "0", "0")

    @property
    def cells(self) -> tuple[str, ...]:
        control = [way for way in self.ran[Leash.TRUSTED] if way != ALWAYS]
        more = [f"{len(control) - MAX_NAMED} more"] if len(control) > MAX_NAMED else []
        named = ", ".join([*control[:MAX_NAMED], *more]) or "none"
        return (self.server, self.version or "?", self.form, str(self.ways), named, *self._untrusted)

    @property
    def _untrusted(self) -> tuple[str, ...]:
        ran = {leash: str(len(self.ran[leash])) for leash in (Leash.OPEN, Leash.CONFINED)}
        said = {leash: "did not run" if leash in self.absent else count for leash, count in ran.items()}
        touched = str(len(self.touched)) if Leash.CONFINED not in self.absent else "did not run"
        return (said[Leash.OPEN], said[Leash.CONFINED], touched)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="*", choices=[[], *KINDS], help="only these", metavar="SERVER")
    parser.add_argument("--write", action="store_true", help="put the rows into the table of docs/SECURITY.md")
    parser.add_argument("--confined", action="store_true", help="only confined, and keep the rest of the rows")
    parser.add_argument("--linger", type=float, default=2.0, help="seconds for what a server does in its own time")
    parser.add_argument(
        "--needs", action="append", default=[], help="a folder of programs for servers", metavar="FOLDER"
    )
    options = parser.parse_args()
    path = ":".join([*options.needs, SYSTEM_PATH])
    bad = False
    for server in options.servers or KINDS:
        if shutil.which(load()[server].command[0]) is None:
            print(f"{server}: not on PATH", file=sys.stderr)
            continue
        if options.confined:
            bad |= _confined(server, path, options.linger, write=options.write)
            continue
        row = _row(server, path, options.linger)
        print(
            json.dumps(
                {
                    **dict(zip(HEADINGS, row.cells, strict=True)),
                    "ran": row.ran,
                    "touched": row.touched,
                    "troubles": row.troubles,
                }
            )
        )
        sys.stdout.flush()
        bad |= row.is_bad
        if options.write:
            _write(row.cells)
    return 1 if bad else 0


def _row(server: str, path: str, seconds: float) -> Row:
    played = {leash: _played(server, path, seconds, leash) for leash in Leash}
    last = played[Leash.CONFINED]
    return Row(
        server,
        last.version,
        _form(server, last.version),
        last.ways,
        {leash: one.ran for leash, one in played.items()},
        last.touched,
        frozenset(leash for leash, one in played.items() if one.is_absent),
        [trouble for leash, one in played.items() for trouble in _troubles(leash, one.loosed)],
    )


def _confined(server: str, path: str, seconds: float, *, write: bool) -> bool:
    """Play the last leash alone; whether it shows something that should not be."""
    one = _played(server, path, seconds, Leash.CONFINED)
    known = {cells[0]: cells for cells in _rows(PAGE.read_text())}.get(server)
    troubles = [*_troubles(Leash.CONFINED, one.loosed)]
    said = {"server": server, "version": one.version, "ran": one.ran, "touched": one.touched, "troubles": troubles}
    print(json.dumps(said), flush=True)
    if known is None or known[1] != one.version or one.is_absent:
        print(f"{server}: there is no row of this version, or it did not run: play all of it", file=sys.stderr)
        return True
    if write:
        _write((*known[:-2], str(len(one.ran)), str(len(one.touched))))
    return known[2] != "withheld" and bool(one.ran or one.touched)


class _Played(Struct, frozen=True):
    """One server on one leash."""

    version: str
    ways: int
    ran: Sequence[str]
    touched: Sequence[str]
    loosed: Loosed

    @property
    def is_absent(self) -> bool:
        return self.loosed.why_not is not None or not self.loosed.files


def _played(server: str, path: str, seconds: float, leash: Leash) -> _Played:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(os.path.realpath(folder))
        user = _user(base, server, path, trusted=leash is Leash.TRUSTED)
        version = version_of(user, server)
        with set_trap(base, KINDS[server], user.workspace) as trap:
            user = User(user.workspace, misled(user.environment, trap.root))
            loosed = anyio.run(partial(let_loose, user, server, trap, leash, forced=True, seconds=seconds))
            touched = trap.home.read() | trap.home.written()
            return _Played(version, len(trap.ways), sorted(trap.sprung()), sorted(touched), loosed)


def _troubles(leash: Leash, loosed: Loosed) -> Iterator[str]:
    if not loosed.files:
        yield f"{leash}: no file is for it"
    elif loosed.why_not is not None:
        yield f"{leash}: did not run: {loosed.why_not}"
    elif loosed.judged < loosed.files and leash is not Leash.TRUSTED:
        yield f"{leash}: verdicts on {loosed.judged} of {loosed.files} files"
    if leash is Leash.CONFINED and "files" not in loosed.held:
        yield "this system has no Landlock"


def _form(server: str, version: str) -> str:
    spec = load()[server]
    if isinstance(admitted(spec, trusted=False, version=version), Withheld):
        return "withheld"
    if spec.shown is not None and spec.shown.confined:
        return "confined"
    return "restricted" if spec.restricted else "as it is"


def _user(base: Path, server: str, path: str, *, trusted: bool) -> User:
    """A user who has this server, the programs on a path, and nothing else."""
    workspace, home, tools = base / "workspace", base / "home", base / "bin"
    for folder in (workspace, home, tools):
        folder.mkdir()
    program = load()[server].command[0]
    (tools / program).symlink_to(shutil.which(program) or "")
    environment = {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": f"{tools}:{path}",
        "PILOTFISH_HOME": str(home / "pilotfish"),
        "TMPDIR": str(home),
    }
    own = {
        "lsp": {other: {"disabled": True} for other in load() if other != server},
        "timing": {"requestTimeoutMs": 5000},
        "security": {"trustedProjectRoots": [str(workspace)] if trusted else []},
    }
    user = User(workspace, environment)
    file = Path(user.places.global_file)
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(own))
    return user


def _write(row: tuple[str, ...]) -> None:
    """Put a row into the table of the page, in place of the one before."""
    text = PAGE.read_text()
    found = BLOCK.search(text)
    rows = {cells[0]: cells for cells in _rows(found[0] if found else "")}
    rows[row[0]] = row
    lines = [HEADINGS, ("---",) * len(HEADINGS), *(rows[server] for server in sorted(rows))]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    PAGE.write_text(BLOCK.sub(lambda block: f"{block[1]}\n{table}\n\n{block[2]}", text))


def _rows(table: str) -> Iterator[tuple[str, ...]]:
    for line in table.splitlines():
        cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
        if len(cells) >= len(HEADINGS) - 1 and cells[0] in KINDS:
            yield (*cells, "not tried")[: len(HEADINGS)]


if __name__ == "__main__":
    sys.exit(main())
