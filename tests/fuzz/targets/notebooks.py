"""Notebooks: the text of their cells, in which every line belongs to one, or the reason why there is none."""

from fuzz.pieces import Pieces
from pilotfish.protocol.notebooks import NotANotebook, cell_at, code_bytes, code_of

WORDS = (
    b'"cells":',
    b'{"cell_type": "code", "source": ["x = 1\\n"]}',
    b'"source": "%%bash\\nls"',
    b'"metadata": {"kernelspec": {"language": "python"}}',
    b"%time x\\n",
    b"!ls\\n",
    b"'''",
    b"[" * 2000,
    b"9" * 5000,
    b"\\ud800",
    b"# %% [cell 1]",
)
SEEDS = (
    b'{"cells": [{"cell_type": "code", "source": ["import os\\n", "%time f(\\n", ")"]}, {"cell_type": "markdown"}]}',
    b'{"cells": [{"cell_type": "code", "source": "%%capture x\\ny?\\nz = !ls"}], "metadata": {"language_info": {}}}',
)


def run(data: bytes) -> None:
    content = Pieces(data).rest()
    code_bytes("a.ipynb", content)
    try:
        text = code_of(content.decode("utf-8", "surrogateescape"))
    except NotANotebook:
        return
    for line in range(text.count("\n")):
        cell = cell_at(text, line)
        assert cell is None or cell.first_line <= line
