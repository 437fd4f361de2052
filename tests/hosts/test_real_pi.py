"""The real Pi, old and new, from `pilotfish setup` to what its model reads; and what becomes of an edit in trouble."""

import json
import subprocess

import msgspec
import pytest

from pilotfish.api.answers import Answer
from support.daemon.homes import DaemonHome
from support.hosts.agents import BROKEN, ERROR, MENDED
from support.hosts.daemon_trouble import SILENT, Trouble, a_dead_daemon, a_hung_daemon, no_language_server
from support.hosts.model_server import Call, ModelServer, Say
from support.hosts.pi import VERSIONS, agent_folder, pi, shorten_wait, started
from support.hosts.real import pilotfish, run, strangers
from support.hosts.told import NOT_CHECKED, appended_once, leaves_only_the_edits

ROWS = [pytest.param(version, id=version, marks=pytest.mark.host(version, "node")) for version in VERSIONS]

with_all_hosts = pytest.mark.host("pi-0.73")
"""In the gate the first test stands for all: the others prove in the real Pi what `test_plugins_pi` proves quickly."""

pytestmark = [pytest.mark.server("ty"), pytest.mark.parametrize("version", ROWS)]


@pytest.fixture(autouse=True)
def _set_up(home: DaemonHome) -> None:
    pilotfish(home, "setup", "pi", "--global")


@pytest.mark.proves("HOOK-1", "HOOK-3", "FMT-1", "FMT-7")
def test_the_model_reads_what_its_edit_broke_and_nothing_once_it_is_mended(version: str, home: DaemonHome) -> None:
    agent = pi(version)
    asking = Call("lsp", {"operation": "diagnostics", "filePath": "@a.py"})
    with ModelServer([*agent.turns(home), asking, Say("Done.")]) as model:
        run(agent, home, model)
    mended = appended_once(agent, model, "LSP diagnostics detected in this file")
    assert "\n" not in mended
    answer = msgspec.json.decode(model.after(3).heard.results[2], type=Answer[object])
    assert (answer.meta.state, answer.data) == ("fresh", {"a.py": []})
    leaves_only_the_edits(home)


@with_all_hosts
@pytest.mark.proves("HOOK-1", "FMT-8")
@pytest.mark.parametrize("trouble", SILENT.values(), ids=SILENT)
def test_trouble_of_ours_leaves_the_edit_as_it_is(version: str, trouble: Trouble, home: DaemonHome) -> None:
    agent = pi(version)
    if trouble is a_hung_daemon:
        shorten_wait(agent_folder(home) / "extensions" / "pilotfish.json")
    with trouble(home), ModelServer(agent.turns(home)) as model:
        run(agent, home, model)
        results = model.after(2).heard.results
        assert [words in result for words, result in zip(agent.own_words, results, strict=True)] == [True, True]
        assert "LSP" not in "".join(results)
    assert (home.root / "a.py").read_text() == MENDED
    assert strangers(home) == {}


@with_all_hosts
@pytest.mark.proves("HOOK-1", "FMT-8")
def test_a_missing_server_is_named_once_beside_the_edit(version: str, home: DaemonHome) -> None:
    agent = pi(version)
    with no_language_server(home), ModelServer(agent.turns(home)) as model:
        run(agent, home, model)
    broken, mended = model.after(2).heard.results
    assert f"\n\n{NOT_CHECKED}" in broken
    assert mended.startswith(agent.own_words[1])
    assert "\n" not in mended


@with_all_hosts
@pytest.mark.proves("HOOK-1", "F65")
def test_a_dead_daemon_is_followed_by_another(version: str, home: DaemonHome) -> None:
    agent = pi(version)
    with a_dead_daemon(home), ModelServer(agent.turns(home)) as model:
        run(agent, home, model)
    assert ERROR in model.after(1).text


@with_all_hosts
@pytest.mark.proves("HOOK-1", "FMT-8")
def test_a_failed_edit_and_edits_side_by_side_are_each_answered_for_themselves(version: str, home: DaemonHome) -> None:
    failing = Call("edit", {"path": "a.py", "edits": [{"oldText": "nowhere", "newText": "x"}]})
    writing = [Call("write", {"path": name, "content": text}) for name, text in (("a.py", BROKEN), ("b.py", MENDED))]
    with ModelServer([writing, failing, Say("Done.")]) as model:
        run(pi(version), home, model)
    results = model.after(2).heard.results
    assert ["in this file" in result for result in results] == [True, False, False]
    assert "LSP" not in results[2]


@with_all_hosts
@pytest.mark.proves("TUI-1")
@pytest.mark.parametrize("mode", ["text", "json"])
def test_without_a_terminal_the_command_prints_a_summary_beside_the_output(
    version: str, mode: str, home: DaemonHome
) -> None:
    with ModelServer([]) as model:
        argv = [*started(version, home, model.url), "--mode", mode, "--print", "/lsp"]
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, cwd=home.root, env=home.environment, check=True
        )
    assert b"Language servers: " in done.stderr
    for line in done.stdout.splitlines():
        json.loads(line)
    assert model.requests == []
