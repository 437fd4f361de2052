"""The plugin of Amp in a plain node: what its model reads after an edit, and before it stops."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pilotfish.hosts.registry import load_host
from pilotfish.hosts.shared.host_spec import Where, installed_programs
from support.daemon.homes import WAIT_SECONDS, DaemonHome
from support.hosts.real import program

DRIVER = """
import plugin from "./pilotfish.ts";
const handlers = {};
const helpers = {
  filesModifiedByToolCall: (event) => event.input?.path ? [{ path: event.input.path }] : null,
  filePathFromURI: (uri) => uri.path,
};
plugin({ on: (name, handler) => { handlers[name] = handler; }, helpers });
const answers = [];
for (const [name, event] of JSON.parse(process.argv[2])) answers.push((await handlers[name](event)) ?? null);
console.log(JSON.stringify(answers));
"""


PROGRAMS = installed_programs({})


def plugin() -> str:
    """The plugin as `setup` writes it."""
    where = Where("project", "/home", "/home/.config", "/project", {}, PROGRAMS)
    return load_host("amp").files(where)[0].edit.added(None)


def played(home: DaemonHome, folder: Path, *events: tuple[str, dict[str, Any]], text: str | None = None) -> list[Any]:
    """What the plugin returns to Amp for each event of one thread."""
    (folder / "pilotfish.ts").write_text(plugin() if text is None else text)
    (folder / "driver.mjs").write_text(DRIVER)
    said = json.dumps([(name, {"thread": {"id": "T-1"}, "status": "done", **event}) for name, event in events])
    done = subprocess.run(
        [program("node"), "--experimental-strip-types", str(folder / "driver.mjs"), said],
        capture_output=True,
        text=True,
        cwd=home.root,
        env=home.environment,
        timeout=WAIT_SECONDS,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.host("node")
@pytest.mark.proves("HOOK-1", "DIAG-12")
def test_its_model_reads_what_the_edit_broke_and_is_sent_on_with_what_is_left(own: DaemonHome, tmp_path: Path) -> None:
    own.control(start=True).close()
    own.write("a.x", "good\n")
    played(own, tmp_path, ("session.start", {}), ("tool.result", {"input": {"path": "a.x"}, "output": "Edited."}))
    own.write("a.x", "bad\n")
    edited, listed, failed, stopped = played(
        own,
        tmp_path,
        ("tool.result", {"input": {"path": "a.x"}, "output": "Edited."}),
        ("tool.result", {"input": {}, "output": {"exitCode": 0}}),
        ("tool.result", {"input": {"path": "a.x"}, "status": "error", "error": "no"}),
        ("agent.end", {}),
    )
    assert edited["status"] == "done"
    assert edited["output"].startswith("Edited.\n\n")
    assert "ERROR [1:1] bad word" in edited["output"]
    assert (listed, failed) == (None, None)
    assert stopped["action"] == "continue"
    assert "bad word" in stopped["userMessage"]


@pytest.mark.host("node")
@pytest.mark.proves("HOOK-2")
def test_nothing_makes_an_edit_fail_where_pilotfish_cannot_be_started(own: DaemonHome, tmp_path: Path) -> None:
    gone = plugin().replace(json.dumps(PROGRAMS.hook("amp")), '["/nonexistent/pilotfish"]')
    assert gone != plugin()
    edit = ("tool.result", {"input": {"path": "a.x"}, "output": "Edited."})
    assert played(own, tmp_path, edit, ("agent.end", {}), text=gone) == [None, None]
