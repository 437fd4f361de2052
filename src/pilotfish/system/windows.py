"""What Windows does otherwise, as pure functions: how a command line is quoted, and which files are programs.

Pure, so that each rule is a table of cases that runs everywhere.
"""

import ntpath
import re
import sys
from collections.abc import Mapping, Sequence

USUAL_SUFFIXES = ".COM;.EXE;.BAT;.CMD"
"""What Windows takes for programs when `PATHEXT` does not say."""

_BARE = re.compile(r"[\w\-+./:\\=~]+", re.ASCII)
_TOLD_BY_CMD = re.compile(r'[()\[\]%!^"`<>&|;, *?]')
_QUOTES_OF_POWERSHELL = re.compile("['\u2018\u2019\u201a\u201b]")
"""It takes the typographic ones for the plain one."""


def for_cmd(words: Sequence[str]) -> str:
    """One line for `cmd /c`, for a program that reads its arguments as C programs do.

    Git's `bash`, in which some hosts start theirs, reads the same of it, where paths are written with `/`.
    """
    line = " ".join(map(_for_cmd, words))
    # `cmd` takes what follows a slash for an option, even in the name of a program, unless it is quoted.
    return line if _BARE.fullmatch(words[0]) is None or "/" not in words[0] else f'"{words[0]}"{line[len(words[0]) :]}'


def _for_cmd(word: str) -> str:
    if _BARE.fullmatch(word):
        return word
    # Backslashes before a quote are doubled, and so are those before the quote at the end.
    quoted = '"' + re.sub(r'(\\*)"', r'\1\1\\"', re.sub(r"(\\+)\Z", r"\1\1", word)) + '"'
    if re.search(r'[%!"\r\n]', word) is None:
        return quoted
    # `cmd` replaces variables inside of quotes too, and a quote of ours would end its own: with a caret before each
    # character that it knows, it never sees a quote at all.
    return _TOLD_BY_CMD.sub(r"^\g<0>", quoted)


def command_line(words: Sequence[str], environment: Mapping[str, str]) -> Sequence[str] | str:
    """What starts a program: a script of `cmd` only runs in `cmd`, which takes its own line (CVE-2024-24576)."""
    if not words[0].lower().endswith((".cmd", ".bat")):
        return list(words)
    cmd = ntpath.join(environment.get("SystemRoot", r"C:\Windows"), "System32", "cmd.exe")
    return f'{cmd} /d /s /c "{for_cmd(words)}"'


def for_powershell(words: Sequence[str]) -> str:
    """One line for PowerShell, which takes a quoted word at the beginning for a text and not for a program."""
    quoted = ("'" + _QUOTES_OF_POWERSHELL.sub(r"\g<0>\g<0>", word) + "'" for word in words)
    line = " ".join(word if _BARE.fullmatch(word) else safe for word, safe in zip(words, quoted, strict=True))
    return f"& {line}" if line.startswith("'") else line


def forwarder(program: str) -> str:
    """A script for `cmd` that runs a program, named from the script's folder: on Windows it stands for a link.

    Links are for administrators there. The name of the user, which `cmd` may read wrong, is not in it.
    """
    return '@"%~dp0{}" %*\r\n'.format(program.replace("/", "\\").replace("%", "%%"))


def forwarded(script: str) -> str:
    """The program that such a script runs, from the script's folder; empty for another script."""
    found = re.fullmatch(r'@"%~dp0([^"]+)" %\*\r?\n', script)
    return found[1].replace("%%", "%") if found else ""


def program_suffixes(environment: Mapping[str, str], platform: str = sys.platform) -> tuple[str, ...]:
    """The endings that make a file a program there, in their order; none where any file can be one."""
    if platform != "win32":
        return ()
    named = environment.get("PATHEXT") or USUAL_SUFFIXES
    return tuple(dict.fromkeys(ending.lower() for ending in named.split(";") if ending.startswith(".")))


def program_names(program: str, suffixes: Sequence[str]) -> tuple[str, ...]:
    """The names that a program may have as a file, first choice first.

    A name without an ending is none of them where endings decide: npm puts a script for other systems there, beside the
    `.cmd` that runs.
    """
    if not suffixes or program.lower().endswith(tuple(suffixes)):
        return (program,)
    return tuple(program + suffix for suffix in suffixes)
