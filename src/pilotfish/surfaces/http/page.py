"""The live page: one document, made of its three files, that loads nothing else.

It is served with status 401, because it asks for the key: it holds no data, and its script reads everything with that
key. The policy allows exactly this script and this style, by their digests; a diagnostic that looks like markup stays
text.
"""

import base64
import hashlib
from functools import cache
from pathlib import Path

from msgspec import Struct

FOLDER = Path(__file__).with_name("web")


class PageDocument(Struct, frozen=True):
    document: bytes
    policy: str
    """The value of `Content-Security-Policy`."""


@cache
def page() -> PageDocument:
    """Read once."""
    style, script = (FOLDER / "page.css").read_text("utf-8"), (FOLDER / "page.js").read_text("utf-8")
    document = (FOLDER / "page.html").read_text("utf-8").replace("{style}", style).replace("{script}", script)
    policy = (
        "default-src 'none'; connect-src 'self'; img-src data:; "
        f"script-src {_digest(script)}; style-src {_digest(style)}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return PageDocument(document.encode(), policy)


def _digest(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
