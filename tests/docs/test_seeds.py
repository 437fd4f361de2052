"""The page about the seeds: every capability is there, none is open, and every proof exists."""

import ast
import re
from functools import cache

import pytest

from requirements import TESTS

DOCS = TESTS.parent / "docs"
PAGE = DOCS / "SEEDS.md"
COUNTS = {
    "Pi": 78,
    "LLxprt, functional specification": 47,
    "LLxprt, domain model": 51,
    "Dispatch": 24,
    "Opta": 23,
}
PROOF = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
FILE = re.compile(r"`(docs/[\w/]+\.md)`")

Row = tuple[str, str, str]


def rows() -> dict[str, list[Row]]:
    """By seed: capability, state, proof or reason."""
    found: dict[str, list[Row]] = {}
    for section in PAGE.read_text().split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        lines = [line for line in text.splitlines() if line.startswith("| ")][1:]
        cells = [[cell.strip() for cell in re.split(r"(?<!\\\\)\|", line)[1:-1]] for line in lines]
        found[title] = [(row[0], row[1], row[2]) for row in cells]
    return found


@cache
def named_in(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS.parent / file).read_text())
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(function.name for function in functions)


def test_every_capability_of_every_seed_has_a_row() -> None:
    assert {title: len(found) for title, found in rows().items()} == COUNTS
    assert sum(COUNTS.values()) == 223


def test_every_row_works_or_was_decided_and_says_how_or_why() -> None:
    for capability, state, why in (row for found in rows().values() for row in found):
        assert state in {"works", "decided"}, capability
        if state == "works":
            assert PROOF.search(why) or FILE.search(why), capability
        else:
            assert len(why.split()) >= 10, capability


def test_every_proof_that_is_named_exists() -> None:
    text = PAGE.read_text()
    missing = {f"{file}::{test}" for file, test in PROOF.findall(text) if test not in named_in(file)}
    assert missing == set()
    assert [file for file in FILE.findall(text) if not (TESTS.parent / file).is_file()] == []


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("guide/operations.md", ["one leading `@`", "$/cancelRequest", "`meta.timedOut`", "`init_timeout`"]),
        ("guide/hosts.md", ["`/lsp` opens a panel", "`Ctrl+R`", "`◐` starting", "a JSON string"]),
        ("guide/llxprt.md", ["lsp/checkFile", "LSP_BOOTSTRAP", "lsp/verdict", "getMcpTransportStreams", "Tried with"]),
        ("guide/http.md", ["conversationId", '"connected": true', "not-started", "GET /events", ".dispatch/lsp.json"]),
        ("guide/opta.md", ["ToolRegistry", "search_files", "No LSP server configured", '"timeout"', "`ask`"]),
    ],
)
def test_the_pages_say_what_the_seeds_ask_them_to(page: str, words: list[str]) -> None:
    text = (DOCS / page).read_text()
    assert [word for word in words if word not in text] == []
