"""The TypeScript client of `npm/llxprt` at work in a plain node, with the real service and a real language server."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from llxprt.test_process import CONFIG, SERVICE, environment
from support.hosts.real import HOSTS, program
from support.process_tree import alive, ends
from support.servers.real import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.host("node"), pytest.mark.proves("SVC-1")]

PACKAGE = REPOSITORY / "npm" / "llxprt"
DRIVER = Path(__file__).parent / "client_driver.mjs"
COMMAND = [sys.executable, "-c", SERVICE]
PROGRAM = [sys.executable, "-m", "pilotfish"]
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@dataclass(frozen=True)
class Core:
    """LLxprt's side."""

    process: "subprocess.Popen[str]"

    def __call__(self, call: str, *given: Any) -> Any:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps({"call": call, "with": given}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["value"]


@contextmanager
def core(workspace: Path, config: object = CONFIG, command: list[str] | None = None, **more: str) -> Generator[Core]:
    script = [str(DRIVER), str(PACKAGE / "src" / "index.ts"), str(workspace), json.dumps(config)]
    process = subprocess.Popen(
        [program("node"), *script, json.dumps(command or COMMAND)],
        env={**environment(workspace.parent, ""), **more},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Core(process)
    finally:
        process.communicate(timeout=60)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "workspace"
    folder.mkdir()
    (folder / "a.fake").write_text("fine\nwrong\n")
    return folder


def pid_of(core: Core) -> int:
    (row,) = [row for row in core("status") if row["status"] == "active"]
    return row["serverPid"]


def test_a_file_is_checked_and_everything_ends_with_a_shutdown(workspace: Path) -> None:
    with core(workspace) as llxprt:
        assert (llxprt("state"), llxprt("isAlive"), llxprt("checkFile", "a.fake")) == ("never-started", False, [])
        llxprt("start")
        assert (llxprt("state"), llxprt("isAlive"), llxprt("reason")) == ("alive", True, None)
        assert [one["line"] for one in llxprt("checkFile", str(workspace / "a.fake"))] == [2]
        assert [one["line"] for one in llxprt("checkFile", "a.fake", "wrong\n")] == [1]
        assert [one["line"] for one in llxprt("getAllDiagnostics")["a.fake"]] == [1]
        assert llxprt("getDiagnosticEpoch") == 2
        assert list(llxprt("getAllDiagnosticsAfter", 1, 1000)) == ["a.fake"]
        assert llxprt("aborted", "a.fake") == []
        assert llxprt("checkFile", "none.fake") == []
        assert "none.fake" in llxprt("verdicts")[0]["reason"]
        server = pid_of(llxprt)
        llxprt("shutdown")
        assert (llxprt("state"), llxprt("isAlive"), llxprt("streams")) == ("dead", False, False)
        assert not alive(server)
        llxprt("start")
        assert (llxprt("state"), llxprt("checkFile", "a.fake")) == ("dead", [])


@pytest.mark.proves("MCP-1")
def test_the_streams_carry_mcp(workspace: Path) -> None:
    calls = [
        {"id": 1, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": {"name": "lsp_diagnostics", "arguments": {"filePath": "a.fake"}}},
    ]
    with core(workspace) as llxprt:
        llxprt("start")
        assert llxprt("streams")
        answers = {answer["id"]: answer["result"] for answer in llxprt("mcp", calls)}
    assert "lsp_goto_definition" in {tool["name"] for tool in answers[2]["tools"]}
    assert answers[3]["content"][0]["text"].startswith("a.fake:2:")


@pytest.mark.proves("POOL-5")
def test_a_service_that_dies_is_dead_and_edits_go_on(workspace: Path) -> None:
    with core(workspace) as llxprt:
        llxprt("start")
        assert llxprt("checkFile", "a.fake")
        server = pid_of(llxprt)
        (service,) = (int(pid) for pid in _children(llxprt.process.pid))
        os.kill(service, 9)
        assert ends(server)
        assert (llxprt("checkFile", "a.fake"), llxprt("state")) == ([], "dead")


@pytest.mark.parametrize(
    ("config", "command", "reason"),
    [
        (CONFIG, ["/nonexistent/pilotfish"], "ENOENT"),
        (False, COMMAND, "LSP disabled by configuration"),
        ({"servers": 3}, [sys.executable, "-c", "import sys; sys.exit('LSP unavailable: no')"], "LSP unavailable: no"),
    ],
    ids=["no program", "off", "a service that says why"],
)
def test_without_a_service_it_says_why(workspace: Path, config: object, command: list[str], reason: str) -> None:
    with core(workspace, config, command) as llxprt:
        llxprt("start")
        assert (llxprt("state"), llxprt("checkFile", "a.fake"), llxprt("status")) == ("dead", [], [])
        assert reason in llxprt("reason")


def test_run_as_its_main_the_package_is_the_service(workspace: Path) -> None:
    stand_in = [program("node"), str(PACKAGE / "src" / "main.ts")]
    with core(workspace, CONFIG, stand_in, PILOTFISH_COMMAND=json.dumps(PROGRAM)) as llxprt:
        llxprt("start")
        assert [one["line"] for one in llxprt("checkFile", "a.fake")] == [2]
        server = pid_of(llxprt)
    assert ends(server)


@pytest.mark.timeout(300)
@pytest.mark.host("pi")
def test_the_package_compiles(tmp_path: Path) -> None:
    compiler = REPOSITORY / ".tools" / "npm" / "node_modules" / "typescript" / "bin" / "tsc"
    types = ["--typeRoots", str(HOSTS / "pi" / "node_modules" / "@types")]
    command = [program("node"), str(compiler), "--project", str(PACKAGE), "--outDir", str(tmp_path), *types]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert {"index.js", "index.d.ts", "main.js"} <= {file.name for file in tmp_path.iterdir()}
    assert "./index.js" in (tmp_path / "main.js").read_text()


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
