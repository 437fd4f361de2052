"""The real OpenCode, from `pilotfish setup` to what its model reads; and what becomes of an edit in trouble."""

import subprocess

import pytest

from support.daemon.homes import DaemonHome
from support.hosts.agents import ERROR, MENDED
from support.hosts.daemon_trouble import SILENT, Trouble, a_dead_daemon, a_hung_daemon, no_language_server
from support.hosts.model_server import Call, ModelServer, Say
from support.hosts.opencode import config_folder, opencode
from support.hosts.pi import shorten_wait
from support.hosts.real import pilotfish, run, strangers
from support.hosts.told import NOT_CHECKED, appended_once, leaves_only_the_edits

pytestmark = [pytest.mark.host("opencode", "node"), pytest.mark.server("ty")]


@pytest.fixture(autouse=True)
def _set_up(home: DaemonHome) -> None:
    pilotfish(home, "setup", "opencode", "--global")


@pytest.mark.proves("HOOK-1", "HOOK-3", "FMT-1", "FMT-7")
@pytest.mark.parametrize("model_name", ["scripted", "gpt-5.5"])
def test_the_model_reads_what_its_edit_broke_and_nothing_once_it_is_mended(home: DaemonHome, model_name: str) -> None:
    agent = opencode(model_name)
    with ModelServer(agent.turns(home)) as model:
        run(agent, home, model)
    mended = appended_once(agent, model, "LSP errors detected in this file")
    assert "LSP" not in mended
    leaves_only_the_edits(home)


@pytest.mark.proves("HOOK-1", "FMT-8")
@pytest.mark.parametrize("trouble", SILENT.values(), ids=SILENT)
def test_trouble_of_ours_leaves_the_edit_as_it_is(trouble: Trouble, home: DaemonHome) -> None:
    agent = opencode()
    if trouble is a_hung_daemon:
        shorten_wait(config_folder(home) / "plugin" / "pilotfish.json")
    with trouble(home), ModelServer(agent.turns(home)) as model:
        run(agent, home, model)
        results = model.after(2).heard.results
        assert results == agent.own_words
    assert (home.root / "a.py").read_text() == MENDED
    assert strangers(home) == {}


@pytest.mark.proves("HOOK-1", "FMT-8")
def test_a_missing_server_is_named_once_beside_the_edit(home: DaemonHome) -> None:
    agent = opencode()
    with no_language_server(home), ModelServer(agent.turns(home)) as model:
        run(agent, home, model)
    broken, mended = model.after(2).heard.results
    assert broken.startswith(f"{agent.own_words[0]}\n\n{NOT_CHECKED}")
    assert mended == agent.own_words[1]


@pytest.mark.proves("HOOK-1", "F65")
def test_a_dead_daemon_is_followed_by_another(home: DaemonHome) -> None:
    agent = opencode()
    with a_dead_daemon(home), ModelServer(agent.turns(home)) as model:
        run(agent, home, model)
    assert ERROR in model.after(1).text


@pytest.mark.proves("HOOK-1")
def test_the_results_of_mcp_servers_are_left_alone(home: DaemonHome) -> None:
    asking = Call("pilotfish_symbols", {"filePath": "a.py"})
    agent = opencode()
    with ModelServer([agent.breaking(home.root / "a.py"), asking, Say("Done.")]) as model:
        run(agent, home, model)
    offered = model.after(0).heard.tools
    assert [name for name in offered if name.startswith("pilotfish_")]
    assert "LSP" not in model.after(2).heard.results[1]


@pytest.mark.proves("HOOK-1")
@pytest.mark.parametrize("own", [True, False])
def test_whoever_has_the_own_lsp_of_opencode_on_is_told_once(home: DaemonHome, own: bool) -> None:
    agent = opencode(lsp=own)
    with ModelServer([agent.breaking(home.root / "a.py"), Say("Done.")]) as model:
        done = subprocess.run(
            agent.command(home, model.url),
            cwd=home.root,
            env=home.environment,
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stderr.count("OpenCode's own lsp is on") == own
