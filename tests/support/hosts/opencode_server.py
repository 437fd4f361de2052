"""OpenCode as the server that its terminal, its desktop program and editors talk to: it stays when a turn is over."""

import json
import subprocess
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.client import HTTPResponse
from typing import Any, cast

from support.daemon.homes import DaemonHome
from support.hosts.agents import PROMPT
from support.hosts.opencode import CHAT, started
from support.hosts.real import RUN_SECONDS, program

LISTENING = "opencode server listening on "


class OpenCodeServer:
    def __init__(self, url: str) -> None:
        self._url = url

    def prompt(self, idles: int) -> None:
        """Ask for something in a new session, and wait until it has been idle so many times."""
        with self._request("/event") as events:
            session = json.load(self._request("/session", {"title": "scripted"}))["id"]
            self._request(f"/session/{session}/prompt_async", {"parts": [{"type": "text", "text": PROMPT}]}).close()
            for event in _events(events):
                idles -= event["type"] == "session.idle" and event["properties"]["sessionID"] == session
                if not idles:
                    return
        raise AssertionError("the server has ended")

    def _request(self, path: str, body: Any = None) -> HTTPResponse:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, {"Content-Type": "application/json"})
        return cast("HTTPResponse", urllib.request.urlopen(request, timeout=RUN_SECONDS))


@contextmanager
def opencode_server(home: DaemonHome, model_url: str) -> Generator[OpenCodeServer]:
    started(home, model_url, "scripted", CHAT, {})
    process = subprocess.Popen(
        [program("opencode"), "serve", "--hostname", "127.0.0.1", "--port", "0"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        cwd=home.root,
        env=home.environment,
        text=True,
    )
    with process, cast("Any", process.stdout) as output:
        try:
            url = next(line for line in output if line.startswith(LISTENING)).removeprefix(LISTENING).strip()
            yield OpenCodeServer(url)
        finally:
            process.kill()


def _events(stream: HTTPResponse) -> Iterator[Any]:
    for line in stream:
        if line.startswith(b"data:"):
            yield json.loads(line.removeprefix(b"data:"))
