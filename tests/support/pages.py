"""The pages of the documentation, read and run. Standard library only: `tools/newcomer.py` runs it before anything is
installed.

A block `console` is run line by line. What is shown after a command must be what it prints, and `…` stands for
anything: alone on a line for any lines, in a line for any text. A command that ends with another code than 0 is
followed by `$ echo $?`. A block `python` is run, and a block `output` after it is what it prints.
A comment before a block says what else is to be done with it:
`<!-- file: NAME -->` writes it, `<!-- newcomer: why -->` and `<!-- not run: why -->` leave it out here.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

FENCE = re.compile(
    r"(?:^<!-- (?P<what>file|newcomer|not run): (?P<about>.+?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
SPAN = re.compile(r"(?<!`)`(pilotfish [^`\n]+)`(?!`)")
ANY = "…"
PROMPT = "$ "
DOCTEST = ">>> "
"""Such a block is run by the tests of what it is about."""
SECONDS = 110
"""For one block, on a machine that is busy with something else."""

MARK = "\x1e"
"""Stands before the exit code of a command; nothing prints it."""

HELLO = {
    "greeting.py": 'def greet(name: str) -> str:\n    return f"Hello, {name}!"\n',
    "main.py": 'from greeting import greet\n\nprint(greet("world"))\n',
}
"""The project of every page, as the guide's first page has it."""


@dataclass(frozen=True)
class Block:
    line: int
    language: str
    text: str
    what: str | None
    about: str | None


@dataclass(frozen=True)
class Command:
    line: str
    shown: tuple[str, ...]


@dataclass
class Reader:
    """Somebody who reads a page, with a home, a folder and what is on the `PATH`."""

    folder: Path
    """Where the reader is; `cd` changes it."""
    environment: Mapping[str, str]
    newcomer: bool = False
    seconds: int = SECONDS
    told: list[str] = field(default_factory=list[str])
    """What the page shows and the program does not."""

    def follow(self, page: str) -> None:
        """Do all that a page says, in order."""
        printed = ""
        for block in blocks(page):
            if block.what == "file" and block.about:
                self._write(block.about, block.text)
            elif block.what == "not run" or (block.what == "newcomer" and not self.newcomer):
                continue
            elif block.language == "console":
                self._type(block)
            elif block.language == "python" and not block.text.startswith(DOCTEST):
                printed = self._run([sys.executable, "-c", block.text], block)
            elif block.language == "output" and not matches(block.text.splitlines(), printed):
                self.told.append(f"line {block.line}: shown is\n{block.text}\nand printed\n{printed}")

    def _write(self, name: str, text: str) -> None:
        path = Path(name.replace("~", self.environment["HOME"], 1)) if name[0] == "~" else self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def _type(self, block: Block) -> None:
        """Run the commands of a block in one shell, and compare what they print."""
        typed = list(commands(block.text))
        # The status is kept for `echo $?`.
        script = "".join(f"{command.line}\n(s=$?; printf '\\n{MARK}%s\\n' $s; exit $s)\n" for command in typed)
        *said, place = self._run(["bash", "-c", f"{script}printf '{MARK}%s' \"$PWD\""], block).split(MARK)
        if len(said) != len(typed) + 1:
            self.told.append(f"line {block.line}: the shell ended early:\n{''.join(said)}")
            return
        self.folder = Path(place)
        printed = [said[0], *(part.partition("\n")[2] for part in said[1:-1])]
        codes = [part.partition("\n")[0] for part in said[1:]]
        asked = [following.line == "echo $?" for following in typed[1:]] + [False]
        for command, text, code, is_asked in zip(typed, printed, codes, asked, strict=True):
            if code != "0" and not is_asked:
                self.told.append(f"line {block.line}: `{command.line}` ends with {code}:\n{text}")
            elif (command.shown or not is_silent(typed, command)) and not matches(command.shown, text):
                shown = "\n".join(command.shown)
                self.told.append(f"line {block.line}: `{command.line}`: shown is\n{shown}\nand printed\n{text}")

    def _run(self, argv: list[str], block: Block) -> str:
        merged = subprocess.STDOUT if argv[0] == "bash" else subprocess.PIPE
        with subprocess.Popen(
            argv,
            cwd=self.folder,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=merged,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                printed, complained = process.communicate(timeout=self.seconds)
            except subprocess.TimeoutExpired:
                # With all that it started, which would go on in a folder that is gone.
                os.killpg(process.pid, signal.SIGKILL)
                printed, complained = process.communicate()
                self.told.append(f"line {block.line}: no end within {self.seconds} s")
        if process.returncode and argv[0] != "bash":
            self.told.append(f"line {block.line}: it ends with {process.returncode}:\n{printed}{complained}")
        return printed


def is_silent(typed: list[Command], command: Command) -> bool:
    """Whether nothing is shown after any command of a block: then the page does not say what they print."""
    return len(typed) > 1 and not any(one.shown for one in typed) and not command.shown


def make_reader(base: Path, programs: Mapping[str, Path]) -> Reader:
    """Somebody who uses two hosts, in a folder with the two files; `PATH` has these programs and the system's."""
    real = Path(os.path.realpath(base))
    folder, home, tools = real / "hello", real / "home", real / "bin"
    for made in (folder, home, tools, home / ".claude", home / ".gemini"):
        made.mkdir()
    for name, text in HELLO.items():
        (folder / name).write_text(text)
    for name, program in programs.items():
        if name == "pilotfish":
            # No link: through it the servers of the gate's own environment would be found.
            (tools / name).write_text(f'#!/bin/sh\nexec {shlex.quote(str(program))} "$@"\n')
            (tools / name).chmod(0o755)
        else:
            (tools / name).symlink_to(program)
    environment = {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": f"{tools}:/usr/bin:/bin",
        "PILOTFISH_HOME": str(home / "state"),
    }
    return Reader(folder, environment)


def blocks(page: str) -> Iterator[Block]:
    for found in FENCE.finditer(page):
        line = page.count("\n", 0, found.start("text"))
        yield Block(line, found["language"], found["text"], found["what"], found["about"])


def commands(text: str) -> Iterator[Command]:
    """The commands of a block, each with what is shown after it."""
    line: str | None = None
    shown: list[str] = []
    for row in text.splitlines():
        if row.startswith(PROMPT):
            if line is not None:
                yield Command(line, tuple(shown))
            line, shown = row.removeprefix(PROMPT), []
        elif line is None:
            raise ValueError(f"a block `console` begins with a command, and not with {row!r}")
        else:
            shown.append(row)
    if line is not None:
        yield Command(line, tuple(shown))


def matches(shown: list[str] | tuple[str, ...], printed: str) -> bool:
    """Whether a program printed what is shown."""
    pattern = "".join(
        r"(?:[^\n]*\n)*?" if row.strip() == ANY else r"[^\n]*".join(map(re.escape, row.rstrip().split(ANY))) + r"\n"
        for row in shown
    )
    text = "".join(f"{row.rstrip()}\n" for row in printed.rstrip("\n").splitlines())
    return re.fullmatch(pattern, text) is not None


def invocations(page: str) -> Iterator[str]:
    """Every command line that begins with `pilotfish`: of blocks, of the parts of a pipe, and of running text."""
    for block in blocks(page):
        if block.language == "console":
            for command in commands(block.text):
                parts = re.split(r"\||&&|;|>", command.line)
                yield from (part.strip() for part in parts if part.strip().startswith("pilotfish "))
    outside = FENCE.sub("", page)
    yield from (found[1] for found in SPAN.finditer(outside))
