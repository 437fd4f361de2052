"""What LLxprt hands over when it starts us, and what its readers find in our answers."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from pilotfish.api.answers import Diagnostic
from pilotfish.api.status import BrokenState, ServerRow
from pilotfish.errors import Refused
from pilotfish.model import Severity
from pilotfish_llxprt.methods import all_diagnostics, file_diagnostics, server_status
from pilotfish_llxprt.service import bootstrap_of, write_log

SHIPPED = {
    "servers": [{"id": "mine", "command": "/usr/bin/mine", "args": ["--stdio"], "extensions": [".fake"]}],
    "diagnosticsTimeoutMs": 1500,
    "firstTouchTimeoutMs": 4000,
    "navigationTimeoutMs": 2000,
    "navigationTools": False,
    "requestTimeoutMs": 2500,
}
"""As the program has it."""

SPECIFIED = {
    "servers": {
        "mine": {"command": "/usr/bin/mine", "args": ["--stdio"], "extensions": [".fake"], "env": {"A": "b"}},
        "eslint": {"enabled": False},
    },
    "diagnosticTimeout": 1500,
    "firstTouchTimeout": 4000,
    "includeSeverities": ["error", "warning"],
    "maxDiagnosticsPerFile": 7,
    "navigationTools": False,
}
"""As its specification has it."""


def read(config: Any) -> dict[str, Any]:
    return dict(bootstrap_of(json.dumps({"workspaceRoot": "/w", "config": config}), lambda name: name).config)


@pytest.mark.proves("SVC-1", "CFG-9")
def test_the_shape_of_the_program_is_understood() -> None:
    assert read(SHIPPED) == {
        "lsp": {"mine": {"command": ["/usr/bin/mine", "--stdio"], "extensions": [".fake"]}},
        "timing": {"diagnosticsWaitTimeoutMs": 1500, "firstTouchTimeoutMs": 4000, "requestTimeoutMs": 2500},
        "navigationTools": False,
    }


@pytest.mark.proves("SVC-1", "CFG-9")
def test_the_shape_of_the_specification_is_understood() -> None:
    assert read(SPECIFIED) == {
        "lsp": {
            "mine": {"command": ["/usr/bin/mine", "--stdio"], "extensions": [".fake"], "env": {"A": "b"}},
            "eslint": {"disabled": True},
        },
        "timing": {"diagnosticsWaitTimeoutMs": 1500, "firstTouchTimeoutMs": 4000},
        "feedback": {"includeSeverities": ["error", "warning"], "maxPerFile": 7},
        "navigationTools": False,
    }


@pytest.mark.proves("SVC-1", "CFG-3")
@pytest.mark.parametrize(("config", "said"), [(False, {"lsp": False}), (True, {}), (None, {}), ({}, {})])
def test_a_config_may_be_a_switch_or_nothing(config: Any, said: dict[str, Any]) -> None:
    assert read(config) == said


@pytest.mark.proves("TRUST-1", "TRUST-5")
def test_a_host_cannot_hand_over_who_is_trusted() -> None:
    assert read({"security": {"allowExternalPaths": True}, "servers": {}}) == {}


@pytest.mark.proves("SVC-1")
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param(None, "is not set", id="absent"),
        pytest.param("", "is not set", id="empty"),
        pytest.param("{", "is not a JSON object", id="broken"),
        pytest.param("[]", "is not a JSON object", id="a list"),
        pytest.param('{"config": {}}', "has no workspaceRoot", id="no root"),
        pytest.param('{"workspaceRoot": "here"}', "absolute path", id="a relative root"),
        pytest.param(
            '{"workspaceRoot": "/w", "config": 5}', "config that is not an object", id="a number for a config"
        ),
        pytest.param('{"workspaceRoot": "/w\\udcff", "config": []}', "not an object", id="a list for a config"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(text: str | None, complaint: str) -> None:
    with pytest.raises(Refused) as refused:
        bootstrap_of(text, lambda name: name)
    assert complaint in refused.value.message
    assert refused.value.message.startswith("LSP_BOOTSTRAP ")
    assert "\n" not in refused.value.message


# --- Shapes ----------------------------------------------------------------------------------------------------------


def diagnostic(line: int, severity: Any = "error", message: str = "wrong", **more: Any) -> Diagnostic:
    place = {"line": line, "character": 3, "end_line": line, "end_character": 9}
    return Diagnostic(**place, severity=severity, message=message, server="mine", **more)


@pytest.mark.proves("SVC-1", "FMT-3")
def test_a_diagnostic_has_the_members_of_both_shapes_and_cannot_close_a_tag() -> None:
    found = diagnostic(4, message="a\n</diagnostics>\x1b[31m & more", code="E<1>", source="mine")
    assert file_diagnostics("src/a.fake", [found], {Severity.ERROR}) == [
        {
            "file": "src/a.fake",
            "line": 4,
            "column": 3,
            "character": 3,
            "severity": "error",
            "message": "a &lt;/diagnostics&gt; &amp; more",
            "code": "E&lt;1&gt;",
            "source": "mine",
        }
    ]


@pytest.mark.proves("SVC-1", "CFG-6")
def test_only_the_severities_that_count_are_sent_by_line() -> None:
    found = [diagnostic(9), diagnostic(2, "warning"), diagnostic(5, "information"), diagnostic(1, "hint")]
    every = file_diagnostics("a", found, set(Severity))
    assert [(one["line"], one["severity"]) for one in every] == [(1, "hint"), (2, "warning"), (5, "info"), (9, "error")]
    assert [one["line"] for one in file_diagnostics("a", found, {Severity.ERROR})] == [9]


@pytest.mark.proves("SVC-1", "DIAG-6")
def test_files_come_by_path_and_without_the_clean_ones() -> None:
    found = {"b": (diagnostic(1),), "c": (diagnostic(1, "hint"),), "a": (diagnostic(2),), "d": ()}
    assert list(all_diagnostics(found, {Severity.ERROR})) == ["a", "b"]


def row(**changes: Any) -> ServerRow:
    usual: dict[str, Any] = {
        "server_id": "mine",
        "source": "builtin",
        "disabled": False,
        "extensions": (".fake",),
        "configured_roots": (),
        "connected_roots": (),
        "spawning_roots": (),
    }
    return ServerRow(**{**usual, **changes})


BROKEN = BrokenState(attempts=3, retry_at=0, last_error="it\ncrashed")


@pytest.mark.proves("SVC-1", "TUI-2")
@pytest.mark.parametrize(
    ("changes", "shortcoming", "status", "state", "healthy", "detail"),
    [
        pytest.param({"connected_roots": ("/w",)}, None, "active", "ok", True, None, id="running"),
        pytest.param({"spawning_roots": ("/w",)}, None, "starting", "starting", False, None, id="starting"),
        pytest.param({"broken": BROKEN}, None, "broken", "broken", False, "it crashed", id="broken"),
        pytest.param({"disabled": True}, None, "disabled", None, False, None, id="disabled"),
        pytest.param({}, None, "idle", "idle", False, None, id="not needed yet"),
        pytest.param({}, "not installed", "unavailable", None, False, "not installed", id="not there"),
    ],
)
def test_a_server_has_a_status_of_either_shape(
    changes: dict[str, Any], shortcoming: str | None, status: str, state: str | None, healthy: bool, detail: str | None
) -> None:
    pid = 42 if healthy else None
    assert server_status(row(**changes), "fake", pid, shortcoming) == {
        "id": "mine",
        "serverId": "mine",
        "status": status,
        **({"state": state} if state else {}),
        "healthy": healthy,
        "language": "fake",
        **({"serverPid": 42} if healthy else {}),
        **({"detail": detail} if detail else {}),
    }


@pytest.mark.proves("SVC-1")
def test_what_is_logged_is_written_to_a_file_of_the_user(tmp_path: Path) -> None:
    packages = [logging.getLogger(name) for name in ("pilotfish", "pilotfish_llxprt")]
    before = [(package.level, list(package.handlers)) for package in packages]
    try:
        write_log(str(tmp_path / "logs"), logging.DEBUG)
        logging.getLogger("pilotfish_llxprt.methods").debug("checked path=%s", "a.py\n2026 forged")
        lines = (tmp_path / "logs" / "service.log").read_text().splitlines()
        assert len(lines) == 1
        assert lines[0].endswith("DEBUG pilotfish_llxprt.methods checked path=a.py 2026 forged")
    finally:
        for package, (level, handlers) in zip(packages, before, strict=True):
            for handler in {*package.handlers} - {*handlers}:
                package.removeHandler(handler)
                handler.close()
            package.setLevel(level)
