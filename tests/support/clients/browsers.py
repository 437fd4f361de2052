"""A real browser without a screen: Debian's Chromium, driven by Playwright, which brings no browser of its own here."""

import http.server
import os
import shutil
import threading
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

from support.process_tree import below, ends

CHROMIUM = shutil.which("chromium")

NOT_HERE = "not installed: chromium (python3 tools/setup.py check)"

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
"""The sandbox needs rights that a container rarely has; the only page that is opened is ours."""


def require_browser() -> None:
    """Skip the test where there is none; in CI that is a failure, or the test would prove nothing."""
    if CHROMIUM is None:
        if os.environ.get("CI") == "true":
            pytest.fail(NOT_HERE, pytrace=False)
        pytest.skip(NOT_HERE)


@contextmanager
def other_site() -> Generator[str]:
    """The address of a site of somebody else's, on this machine."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Site) as site:
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{site.server_port}/"
        finally:
            site.shutdown()
            thread.join()


class _Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>a site</title>")

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


@contextmanager
def browser() -> Generator[Browser]:
    require_browser()
    before = {process.pid for process in below(os.getpid())}
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield opened
        finally:
            opened.close()
    assert all(ends(process.pid) for process in below(os.getpid()) if process.pid not in before)
