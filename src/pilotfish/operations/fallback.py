"""What to say when no server can answer: which one is missing, how to get it, and how to search instead.

The search is one that the model can copy. What goes into it is the caller's own query or an identifier of plain
letters, so that no text of a repository becomes an instruction.
"""

import json
import os
import re
from collections.abc import Callable

from msgspec import Struct

from pilotfish.api.questions import Operation, Question
from pilotfish.errors import Code, Unavailable

_IDENTIFIER = re.compile(r"[\w$]{1,100}")
_EXTENSION = re.compile(r"\.[\w+-]{1,20}")
_DECLARATION = r"\b(class|def|enum|fn|func|function|interface|struct|trait|type)\b"
"""What an outline is made of, in most languages."""


class Expected(Struct, frozen=True):
    """The server that would have answered."""

    server: str
    install: str | None
    """The command that installs it on this platform."""
    trust: str | None = None
    """What else it needs before it may run."""


SearchSpelling = Callable[[str, str], str]
"""Spells a search for a pattern in files like a glob, as some host has it."""


def ripgrep(pattern: str, glob: str) -> str:
    quoted = "'" + pattern.replace("'", "'\\''") + "'"
    return f"rg -n {quoted} -g '{glob}'"


def search_files(pattern: str, glob: str) -> str:
    return f"search_files({json.dumps({'pattern': pattern, 'glob': glob})})"


def no_server(
    question: Question, expected: Expected, word: str | None, search: SearchSpelling = ripgrep
) -> Unavailable:
    """For a file whose server is not there; `word` is the identifier at the position, where there is one."""
    message = f'LSP server "{expected.server}" is not available.'
    install = f"Install it with: {expected.install}\n" if expected.install else ""
    trust = f"{expected.trust}\n" if expected.trust else ""
    return Unavailable(Code.SERVER_MISSING, message, hint=f"{install}{trust}{_advice(question, word, search)}")


def not_allowed(
    question: Question, why: Unavailable, word: str | None, search: SearchSpelling = ripgrep
) -> Unavailable:
    """For a file whose server is there and may not run: nothing is to be installed."""
    hint = f"{why.hint}\n" if why.hint else ""
    return Unavailable(why.code, why.message, hint=f"{hint}{_advice(question, word, search)}", scene=why.scene)


def no_server_for(path: str) -> Unavailable:
    """For a file of a type that no server is for."""
    extension = os.path.splitext(path)[1]
    files = f"{extension} files" if _EXTENSION.fullmatch(extension) else "files of this type"
    return Unavailable(Code.UNSUPPORTED, f"No LSP server configured for {files}")


def _advice(question: Question, word: str | None, search: SearchSpelling) -> str:
    name = _IDENTIFIER.findall(question.symbol or word or "")
    pattern = _DECLARATION
    if question.query:
        pattern = re.escape(question.query)
    elif name and question.operation is not Operation.DOCUMENT_SYMBOL:
        pattern = rf"\b{re.escape(name[-1])}\b"
    extension = os.path.splitext(question.file_path or "")[1]
    glob = f"*{extension}" if _EXTENSION.fullmatch(extension) else "*"
    return f"Until then, search the text: {search(pattern, glob)}"
