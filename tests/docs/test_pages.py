"""Every page of the documentation does what it says: commands run, shown output is printed, verbs and options exist."""

import html
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from pilotfish.config.jsonc import parse
from pilotfish.hosts.registry import host_names
from pilotfish.operations.rows import ROWS
from pilotfish.servers.catalogue import read_languages, read_spec
from pilotfish.surfaces.cli.main import root
from support.daemon.homes import no_daemon_left
from support.pages import DOCTEST, Reader, blocks, invocations, make_reader, matches
from support.servers.real import PYPI, REPOSITORY

pytestmark = pytest.mark.proves("DOCS-1")

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
RUN = ("console", "python", "output")
PROGRAMS = ("pilotfish", "basedpyright-langserver")
SERVERS = REPOSITORY / "src" / "pilotfish" / "servers"
LANGUAGES = read_languages(tomllib.loads((SERVERS / "languages.toml").read_text()))

each_page = pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(REPOSITORY)) for page in PAGES])


def is_run(page: Path) -> bool:
    found = [block for block in blocks(page.read_text()) if block.what is None]
    return any(block.language in RUN and not block.text.startswith(DOCTEST) for block in found)


@pytest.mark.server("basedpyright")
@pytest.mark.parametrize(
    "page", [pytest.param(page, id=str(page.relative_to(REPOSITORY))) for page in PAGES if is_run(page)]
)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    reader = make_reader(tmp_path, {name: PYPI / name for name in PROGRAMS})
    with no_daemon_left(reader.environment["PILOTFISH_HOME"]):
        reader.follow(page.read_text())
    assert not reader.told, "\n\n".join(reader.told)


@each_page
def test_verbs_and_options_of_a_page_exist(page: Path) -> None:
    unknown = [f"{line}: {fault}" for line in invocations(page.read_text()) if (fault := fault_of(line))]
    assert not unknown


@each_page
def test_blocks_of_a_page_are_what_they_are_called(page: Path) -> None:
    for block in blocks(page.read_text()):
        match block.language:
            case "json":
                parse(block.text.encode())
            case "toml":
                read_spec("example", tomllib.loads(block.text), LANGUAGES)
            case "python" | "console" | "output" | "text" | "ts":
                pass
            case other:
                pytest.fail(f"line {block.line}: no reader knows what a block {other!r} is")


def fault_of(line: str) -> str | None:
    """What is wrong with a command line; words in capitals stand for something else."""
    command: click.Command = root
    for word in shlex.split(line)[1:]:
        name = word.partition("=")[0]
        if name.startswith("-") and not is_option(command, name):
            return f"{command.name} has no option {name}"
        if not name.startswith("-") and isinstance(command, click.Group) and not re.fullmatch("[A-Z…]+", name):
            found = command.get_command(click.Context(command), name)
            if found is None:
                return f"there is no verb {name}"
            command = found
    return None


def is_option(command: click.Command, name: str) -> bool:
    known = {"-h", "--help"}
    for param in command.params:
        known.update(param.opts, param.secondary_opts)
    return name in known


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        pytest.param("pilotfish check --nonsense", "check has no option --nonsense", id="an unknown option"),
        pytest.param("pilotfish nonsense", "there is no verb nonsense", id="an unknown verb"),
        pytest.param("pilotfish daemon nonsense", "there is no verb nonsense", id="an unknown word of a verb"),
        pytest.param("pilotfish setup HOST --remove", None, id="a word that stands for another"),
        pytest.param("pilotfish --version", None, id="an option of the program"),
    ],
)
def test_a_wrong_command_line_is_noticed(line: str, fault: str | None) -> None:
    assert fault_of(line) == fault


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        pytest.param(["a", "…", "z"], "a\nb\nc\nz\n", True, id="any lines"),
        pytest.param(["a", "…", "z"], "a\nz\n", True, id="no line"),
        pytest.param(["a … z"], "a b z\n", True, id="any text"),
        pytest.param(["a"], "a\nb\n", False, id="more than is shown"),
        pytest.param(["a.c"], "abc\n", False, id="letters are letters"),
        pytest.param([], "", True, id="nothing"),
    ],
)
def test_what_is_shown_is_compared(shown: list[str], printed: str, same: bool) -> None:
    assert matches(shown, printed) is same


@pytest.mark.parametrize(
    ("page", "told"),
    [
        pytest.param("```console\n$ echo hello\nhello\n```\n", 0, id="as it is"),
        pytest.param("```console\n$ echo hello\ngood bye\n```\n", 1, id="other output"),
        pytest.param("```console\n$ echo hello\n```\n", 1, id="output that is not shown"),
        pytest.param("```console\n$ false\n```\n", 1, id="a failure"),
        pytest.param("```console\n$ false\n$ echo $?\n1\n```\n", 0, id="a failure that is shown"),
        pytest.param("<!-- not run: why -->\n```console\n$ false\n```\n", 0, id="what is not run"),
        pytest.param("<!-- file: a.txt -->\n```text\nx\n```\n\n```console\n$ cat a.txt\nx\n```\n", 0, id="a file"),
        pytest.param("```python\nprint(1)\n```\n\n```output\n2\n```\n", 1, id="other output of a program"),
        pytest.param("```python\n1 / 0\n```\n", 1, id="a program that fails"),
    ],
)
def test_a_page_that_is_wrong_is_noticed(page: str, told: int, tmp_path: Path) -> None:
    reader: Reader = make_reader(tmp_path, {})
    reader.follow(page)
    assert len(reader.told) == told, reader.told


def test_what_follows_from_the_code_is_current() -> None:
    argv = [sys.executable, str(REPOSITORY / "tools" / "write_docs.py"), "--check"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert not done.returncode, f"run `.venv/bin/python tools/write_docs.py`:\n{done.stdout}{done.stderr}"


def test_the_catalogue_is_as_large_as_the_pages_say() -> None:
    servers = len(list((SERVERS / "catalogue").glob("*.server.toml")))
    said = {int(number) for page in PAGES for number in re.findall(r"(\d+) (?:language )?servers", page.read_text())}
    assert said <= {servers}


def test_every_tool_that_writes_is_said_to_do_so_only_when_asked() -> None:
    page = (REPOSITORY / "docs" / "guide" / "mcp.md").read_text()
    (sentence,) = [line for line in page.splitlines() if line.endswith("write only with `apply`.")]
    assert not [row.tool for row in ROWS.values() if row.writes and f"`{row.tool}`" not in sentence]


def test_the_readme_has_a_line_for_every_host() -> None:
    named = set(re.findall(r"`pilotfish setup ([a-z][a-z-]*)`", (REPOSITORY / "README.md").read_text()))
    assert named == set(host_names())


def test_the_picture_shows_what_the_guide_shows_and_fetches_nothing() -> None:
    picture = (REPOSITORY / "docs" / "squiggle.svg").read_text()
    text = html.unescape("\n".join(re.findall(r">([^<>]+)</text>", picture))).replace("\xa0", " ")
    guide = (REPOSITORY / "docs" / "guide" / "install.md").read_text()
    shown = re.search(r"^OPEN \[3:7\].*$", guide, re.MULTILINE)
    assert shown is not None
    assert shown[0] in text
    assert "~~~~" in text
    assert not re.search(r"url\(|href|<image|<script", picture.replace("url(#", ""))
