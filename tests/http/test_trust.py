"""A repository whose every key tries to run `touch pwned` never does, asked over HTTP."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.test_pwned import OWN, everything
from support.clients.http import http_served
from support.daemon.homes import daemon_home

pytestmark = pytest.mark.proves("T1", "TRUST-1")

QUESTIONS: list[dict[str, Any]] = [
    {"operation": "hover", "filePath": "a.py", "line": 1, "character": 1},
    {"operation": "diagnostics", "filePath": "a.py"},
    {"operation": "diagnostics"},
    {"operation": "workspaceSymbol", "query": "x"},
]


def test_no_question_over_http_runs_what_a_repository_names(tmp_path: Path) -> None:
    with daemon_home(tmp_path) as home:
        for program in (home.root / "pwned", home.root / "touch", home.root / "node_modules/.bin/pyright-langserver"):
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text(f"#!/bin/sh\necho > {tmp_path}/pwned\n")
            program.chmod(0o755)
        home.environment["PATH"] = f"{home.root}:{home.root}/node_modules/.bin"
        home.write("a.py", "x = 1\n")
        file = home.root / OWN
        file.parent.mkdir()
        file.write_text(json.dumps(everything()))
        with http_served(home) as served:
            served.ask("PUT", "/conversations/a/cwd", {"cwd": str(home.root)})
            for question in QUESTIONS:
                answer = served.ask("POST", "/conversations/a/lsp", question)
                assert answer.status == 200
                assert answer.json["meta"]["state"] != "fresh"
            assert served.ask("GET", "/conversations/a/lsp").status == 200
            assert served.ask("GET", "/status").status == 200
        assert not (tmp_path / "pwned").exists()
