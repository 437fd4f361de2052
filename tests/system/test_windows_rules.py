"""Windows' rules as tables: they are pure, so each case runs everywhere.

What reads a command line is written here anew, after the rules that Microsoft documents for C programs, so that quoting
is compared with what a program gets and not with itself.
"""

import re
import shlex

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pilotfish import paths
from pilotfish.config.trusted_roots import comparable
from pilotfish.system.windows import (
    command_line,
    for_cmd,
    for_powershell,
    forwarded,
    forwarder,
    program_names,
    program_suffixes,
)
from pilotfish.system.windows_os import path_module

pytestmark = pytest.mark.proves("PLAT-1")

PYTHON = r"C:\Program Files\Python\python.exe"


@pytest.mark.parametrize(
    ("words", "cmd", "powershell"),
    [
        pytest.param(["python", "-I", "a.py"], "python -I a.py", "python -I a.py", id="plain"),
        pytest.param([PYTHON, "-I"], f'"{PYTHON}" -I', f"& '{PYTHON}' -I", id="a program with a space"),
        pytest.param(
            [r"C:\a\b.exe", "x y\\"], r'C:\a\b.exe "x y\\"', r"C:\a\b.exe 'x y\'", id="a backslash at the end"
        ),
        pytest.param(["C:/a/b.exe", "C:/c.py"], '"C:/a/b.exe" C:/c.py', "C:/a/b.exe C:/c.py", id="a path with slashes"),
        pytest.param(["a", ""], 'a ""', "a ''", id="an empty word"),
        pytest.param(["a", "b&c|d"], 'a "b&c|d"', "a 'b&c|d'", id="operators"),
        pytest.param(["a", "(b)"], 'a "(b)"', "a '(b)'", id="parentheses"),
        pytest.param(["a", "%PATH%"], 'a ^"^%PATH^%^"', "a '%PATH%'", id="a variable of cmd"),
        pytest.param(["a", "wow!"], 'a ^"wow^!^"', "a 'wow!'", id="a delayed variable of cmd"),
        pytest.param(["a", "$HOME `n"], 'a "$HOME `n"', "a '$HOME `n'", id="a variable of PowerShell"),
        pytest.param(["a", "it's"], 'a "it\'s"', "a 'it''s'", id="an apostrophe"),
        pytest.param(["a", "it\u2019s"], 'a "it\u2019s"', "a 'it\u2019\u2019s'", id="a typographic apostrophe"),
        pytest.param(["a", 'say "x"'], r'a ^"say^ \^"x\^"^"', "a 'say \"x\"'", id="quotes"),
        pytest.param(["a", "é.py"], 'a "é.py"', "a 'é.py'", id="an accent"),
    ],
)
def test_a_command_line_is_quoted_for_its_shell(words: list[str], cmd: str, powershell: str) -> None:
    assert for_cmd(words) == cmd
    assert for_powershell(words) == powershell


def read_by_cmd(line: str) -> str:
    """What `cmd /c` hands on: a caret outside of quotes makes the next character plain, and goes."""
    handed, quoted, at = "", False, 0
    while at < len(line):
        if line[at] == "^" and not quoted:
            at += 1
            handed += line[at : at + 1]
        else:
            quoted ^= line[at] == '"'
            assert quoted or line[at] not in "&|<>()", "an operator of cmd"
            handed += line[at]
        at += 1
    return handed


def read_by_c(line: str) -> list[str]:
    """The arguments that a C program makes of a line."""
    words: list[str] = []
    word, quoted, begun = "", False, False
    for slashes, quote, other in _pieces(line):
        if quote:
            word += "\\" * (slashes // 2)
            begun = True
            if slashes % 2:
                word += '"'
            else:
                quoted = not quoted
            continue
        word += "\\" * slashes
        begun = begun or slashes > 0
        if other == " " and not quoted:
            words += [word] if begun else []
            word, begun = "", False
        else:
            word += other
            begun = begun or other != ""
    return [*words, word] if begun else words


def _pieces(line: str) -> list[tuple[int, bool, str]]:
    """Backslashes, then a quote or any other character."""
    return [
        (len(found[1]), found[2] == '"', "" if found[2] == '"' else found[2])
        for found in re.finditer(r"(\\*)([^\\]|\Z)", line, re.DOTALL)
        if found[0]
    ]


WORDS = st.text(st.sampled_from("ab \\\"%!^&|<>()'`;,*?=é"), max_size=8)


@given(st.lists(WORDS, min_size=1, max_size=4))
@example(["a\\\\", 'b\\"c', "%x%\\"])
def test_a_program_gets_the_words_that_cmd_was_given(words: list[str]) -> None:
    assert read_by_c(read_by_cmd(for_cmd(words))) == words


@given(st.lists(WORDS.filter(lambda word: '"' not in word), min_size=2, max_size=4))
def test_powershell_reads_the_words_that_it_was_given(words: list[str]) -> None:
    line = for_powershell(words).removeprefix("& ")
    read = [found[1].replace("''", "'") if found[2] is None else found[2] for found in _tokens(line)]
    assert read == words


def _tokens(line: str) -> list[re.Match[str]]:
    return list(re.finditer(r"'((?:[^']|'')*)'(?: |\Z)|([^' ]+)(?: |\Z)", line))


@pytest.mark.parametrize(
    ("platform", "pathext", "suffixes"),
    [
        ("linux", ".EXE", ()),
        ("darwin", None, ()),
        ("win32", None, (".com", ".exe", ".bat", ".cmd")),
        ("win32", "", (".com", ".exe", ".bat", ".cmd")),
        ("win32", ".COM;.EXE;;.PS1;.exe;sh", (".com", ".exe", ".ps1")),
    ],
)
def test_the_endings_of_programs(platform: str, pathext: str | None, suffixes: tuple[str, ...]) -> None:
    environment = {} if pathext is None else {"PATHEXT": pathext}
    assert program_suffixes(environment, platform) == suffixes


@pytest.mark.parametrize(
    ("program", "names"),
    [
        pytest.param("tsserver", ("tsserver.exe", "tsserver.cmd"), id="npm's shim, and not the script beside it"),
        pytest.param("gopls.exe", ("gopls.exe",), id="with its ending"),
        pytest.param("RUN.CMD", ("RUN.CMD",), id="in capitals"),
        pytest.param("python3.11", ("python3.11.exe", "python3.11.cmd"), id="a dot is no ending"),
    ],
)
def test_the_files_that_may_be_a_program(program: str, names: tuple[str, ...]) -> None:
    assert program_names(program, (".exe", ".cmd")) == names
    assert program_names(program, ()) == (program,)


@pytest.mark.parametrize(
    ("platform", "one", "other", "same"),
    [
        ("win32", r"C:\Code\App", "c:/code/app/", True),
        ("win32", "C:\\Work\\caf\u00e9", "c:\\work\\cafe\u0301", False),
        ("darwin", "/w/caf\u00e9", "/w/cafe\u0301/", True),
        ("darwin", "/w/App", "/w/app", False),
        ("linux", "/w/caf\u00e9", "/w/cafe\u0301", False),
        ("linux", "/w/App", "/w/app", False),
        ("linux", "/w/a\\b", "/w/a/b", False),
    ],
)
def test_which_names_of_a_trusted_folder_are_one(platform: str, one: str, other: str, same: bool) -> None:
    assert (comparable(one, platform) == comparable(other, platform)) == same


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([r"C:\n\node.exe", "a b"], [r"C:\n\node.exe", "a b"]),
        ([r"C:\n\tsc.CMD", "--stdio"], r'D:\Win\System32\cmd.exe /d /s /c "C:\n\tsc.CMD --stdio"'),
        ([r"C:\my n\x.bat", "a&b"], r'D:\Win\System32\cmd.exe /d /s /c ""C:\my n\x.bat" "a&b""'),
        (["x.cmd", "%PATH%"], r'D:\Win\System32\cmd.exe /d /s /c "x.cmd ^"^%PATH^%^""'),
    ],
)
def test_a_script_of_cmd_is_started_by_cmd(words: list[str], expected: list[str] | str) -> None:
    assert command_line(words, {"SystemRoot": r"D:\Win"}) == expected


@pytest.mark.parametrize("program", ["C:/Python/python.exe", "C:/Program Files/Python/python.exe"])
def test_a_hook_is_the_same_words_in_cmd_and_in_the_bash_of_git(program: str) -> None:
    words = [program, "-I", "-S", "C:/Users/me and you/hook.py", "claude-code", "--deadline-ms", "8000"]
    line = for_cmd(words)
    assert shlex.split(line) == read_by_c(read_by_cmd(line)) == words
    assert line.startswith('"')


@pytest.mark.parametrize(
    ("function", "given", "made"),
    [
        ("join", (r"C:\a", "b", "c.py"), "C:/a/b/c.py"),
        ("join", ("C:/a", r"D:\b"), "D:/b"),
        ("join", ("C:/a", "/b"), "C:/b"),
        ("join", (r"\\server\share", "a"), "//server/share/a"),
        ("normpath", (r"C:\a\..\b\.\c/",), "C:/b/c"),
        ("normpath", (r"\\server\share\a\..\b",), "//server/share/b"),
        ("normpath", (r"\\?\C:\a b",), r"\\?\C:\a b"),
        ("relpath", (r"C:\a\b", "C:/a/c"), "../b"),
        ("dirname", ("C:/a/b.py",), "C:/a"),
        ("dirname", ("C:/",), "C:/"),
        ("splitdrive", ("//server/share/a",), ("//server/share", "/a")),
        ("isabs", ("C:/a",), True),
        ("isabs", ("C:a",), False),
        ("commonpath", ((r"C:\a\b", "C:/a/c"),), "C:/a"),
    ],
)
def test_paths_are_written_with_slashes(function: str, given: tuple[object, ...], made: object) -> None:
    assert getattr(path_module(), function)(*given) == made


@pytest.mark.parametrize(
    ("path", "folders"),
    [
        ("/a/b", ("/a/b", "/a", "/")),
        ("C:/a/b", ("C:/a/b", "C:/a", "C:/")),
        ("C:/", ("C:/",)),
        ("//server/share/a", ("//server/share/a", "//server/share/")),
    ],
)
def test_the_folders_above_end_at_the_drive_or_the_share(
    path: str, folders: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not path.startswith("/a"):
        monkeypatch.setattr(paths.os, "path", path_module())
    assert paths.ancestors(path) == folders
    assert paths.is_inside(path, paths.top_folder(path))


@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("../servers/ty-1/Scripts/ty.exe", r'@"%~dp0..\servers\ty-1\Scripts\ty.exe" %*'),
        ("../a b&c/50%.cmd", r'@"%~dp0..\a b&c\50%%.cmd" %*'),
    ],
)
def test_a_script_that_stands_for_a_link_names_its_program_from_its_own_folder(program: str, line: str) -> None:
    assert forwarder(program) == line + "\r\n"
    assert forwarded(forwarder(program)).replace("\\", "/") == program


@pytest.mark.parametrize("script", ["", "@echo off\r\n", '@"C:\\x.exe" %*\r\n', forwarder("a") + forwarder("b")])
def test_another_script_stands_for_no_link(script: str) -> None:
    assert forwarded(script) == ""
