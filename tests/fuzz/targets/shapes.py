"""Python sources: what others can see of them; a text that cannot be read is one symbol with all its words."""

from fuzz.pieces import Pieces
from pilotfish.feedback.shapes.changes import changed_symbols
from pilotfish.feedback.shapes.python import shape_of, visible_of
from pilotfish.model import AbsPath

FILE = AbsPath("/a.py")

WORDS = (
    b"class A(B):\n",
    b"    def f(self, x: int = 1) -> str:\n",
    b"        return self.y\n",
    b"from . import *\n",
    b"import a.b as c\n",
    b"__all__ = ['x']\n",
    b"# type: ignore\n",
    b"x: 'A' = lambda: (yield)\n",
    b"(" * 300,
    b"-" * 300,
    b"9" * 5000,
    b"\x00",
    b"\x0c",
    b"async def g(): await h\n",
    b"match x:\n    case [a, *b]: pass\n",
)
SEEDS = (
    b"\x20class A:\n    def f(self): pass\n\nimport os\nfrom .a import b\n\nclass C(A):\n    x: int = 1\n",
    b"\x10x = 1\n\ny = 2\nz = 3def f(x):\n    return g(x)\n\n__all__ = ['f']\n",
)
SHARE = 4


def run(data: bytes) -> None:
    pieces = Pieces(data)
    before, after = pieces.text(), pieces.rest().decode("utf-8", "surrogateescape")
    shape_of(after)
    visible_of(after)
    assert not changed_symbols(FILE, after, after)
    changed_symbols(FILE, before, after)
