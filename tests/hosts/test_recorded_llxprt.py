"""LLxprt Code, as it was recorded: it is on no registry, so one run of it from its source is played here again.

The recording was made with a scripted model, after `pilotfish setup llxprt`. It has what LLxprt said to the hook and
what the hook printed, what its model then read, and what its LSP client and `pilotfish service` said to each other.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from llxprt.test_process import LAUNCH, SERVICE
from support.clients.frames import Frames, framed
from support.daemon.homes import DaemonHome

pytestmark = [pytest.mark.host("node"), pytest.mark.server("ty"), pytest.mark.proves("DIAG-11", "HOOK-1")]

RECORDED = json.loads((Path(__file__).parent / "recordings" / "llxprt.json").read_text())
GOOD = "def f() -> int:\n    return 1\n"
BAD = 'def g() -> int:\n    return "x"\n'
USING = "from a import f\n\nprint(f())\n"
OTHERS = ("b.py", "c.py")


@pytest.fixture
def project(home: DaemonHome) -> DaemonHome:
    for name in OTHERS:
        home.write(name, USING)
    return home


def here(value: Any, home: DaemonHome) -> Any:
    """A recorded value with the workspace of this test."""
    return json.loads(json.dumps(value).replace("/w/", f"{home.root}/").replace('"/w"', json.dumps(str(home.root))))


def test_its_events_are_answered_as_they_were(project: DaemonHome) -> None:
    for step in RECORDED["hooks"]:
        said = here(step["said"], project)
        if said["hook_event_name"] == "AfterTool":
            project.write("a.py", said["tool_response"]["returnDisplay"]["newContent"])
        done = project.run_hook(json.dumps(said).encode(), "llxprt", "--deadline-ms", "50000")
        assert (done.returncode, done.stdout.decode()) == (0, step["printed"])


def test_its_model_read_what_the_hook_printed_after_the_words_of_the_edit() -> None:
    printed = [json.loads(step["printed"] or "{}") for step in RECORDED["hooks"] if "tool_name" in step["said"]]
    context = [answer.get("hookSpecificOutput", {}).get("additionalContext", "") for answer in printed]
    own = [step["said"]["tool_response"]["llmContent"] for step in RECORDED["hooks"] if "tool_name" in step["said"]]
    for read, words, text in zip(RECORDED["read"], own, context, strict=True):
        assert read.partition("output:\n")[2] == "\n\n".join(filter(None, (words, text)))
    wrote, broke, mended = context
    assert (wrote, mended) == ("", "")
    assert [name in broke for name in ("a.py", *OTHERS)] == [True] * 3


@contextmanager
def service(home: DaemonHome) -> Generator[tuple[subprocess.Popen[bytes], dict[str, socket.socket]]]:
    """The service with the five streams that LLxprt gives it."""
    pairs = {name: socket.socketpair() for name in ("3", "4")}
    inner = [theirs.fileno() for _, theirs in pairs.values()]
    bootstrap = json.dumps({"workspaceRoot": str(home.root), "config": {"servers": []}})
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCH, SERVICE, ",".join(map(str, inner))],
        env=home.environment | {"LSP_BOOTSTRAP": bootstrap},
        pass_fds=inner,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    for _, theirs in pairs.values():
        theirs.close()
    with process:
        try:
            yield process, {name: ours for name, (ours, _) in pairs.items()}
        finally:
            process.kill()
            for ours, _ in pairs.values():
                ours.close()


def frames(process: subprocess.Popen[bytes]) -> Iterator[Any]:
    assert process.stdout is not None
    reader = Frames()
    while data := os.read(process.stdout.fileno(), 65536):
        yield from reader.feed(data)


def test_its_client_and_the_service_say_the_same_again(project: DaemonHome) -> None:
    texts = iter([GOOD, BAD, GOOD])
    project.write("a.py", GOOD)
    with service(project) as (process, sockets), sockets["3"].makefile() as lines:
        answers = {"stdio": frames(process), "3": map(json.loads, lines)}
        for step in RECORDED["service"]:
            message, stream = here(step["message"], project), step["stream"]
            if step["from"] == "service":
                # The long answers about tools and servers were left out of the recording.
                heard = next(answer for answer in answers[stream] if answer.get("id") == message.get("id"))
                assert heard == message
                continue
            if message["method"] == "lsp/checkFile":
                project.write("a.py", next(texts))
            if stream == "stdio":
                assert process.stdin is not None
                process.stdin.write(framed(message))
                process.stdin.flush()
            else:
                sockets[stream].sendall(json.dumps(message).encode() + b"\n")
        assert process.wait() == 0
