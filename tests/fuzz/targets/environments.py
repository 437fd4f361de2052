"""What a repository says of its Python environment: `.venv`, `pyvenv.cfg`, `.pth`, finders; paths without a zero."""

from fuzz.pieces import Pieces
from pilotfish.model import AbsPath
from pilotfish.servers.python_environment import Project, find_environment, stand_in
from support.files.virtual_tree import VirtualTree

WORDS = (
    b"home = /usr/bin\n",
    b"version = 3.11.2\n",
    b"version_info = 999999999.1\n",
    b"include-system-site-packages = true\n",
    b"import __editable___x_finder; __editable___x_finder.install()\n",
    b"MAPPING: dict[str, str] = {'x': '/w/x'}\n",
    b"../../x\n",
    b"/w/src\n",
    b"[tool.poetry]\n",
    b"\x00",
)
SEEDS = (
    b"\x00\x20home = /usr/bin\nversion = 3.11.2\n\x01\x07/w/src\n\x02\x05.venv",
    b"\x03\x2aMAPPING: dict[str, str] = {'x': '/w/x/y/zz'}\n\x01\x20import __editable___x_finder; x()\n",
    b"\x04\x09/w/.venv\n\x05\x05a/b\x00c",
)
SITE = "/w/.venv/lib/python3.11/site-packages"
PLACES = (
    "/w/.venv/pyvenv.cfg",
    f"{SITE}/x.pth",
    "/w/.venv",
    f"{SITE}/__editable___x_finder.py",
    "/w/.pdm-python",
    "/w/pyproject.toml",
    "/w/poetry.toml",
    "/w/.python-version",
)


def run(data: bytes) -> None:
    pieces = Pieces(data)
    files = {f"{SITE}/pkg/__init__.py": "", "/w/.venv/pyvenv.cfg": "home = /usr/bin\n"}
    while pieces.more:
        place = pieces.choice(PLACES)
        files[place] = pieces.text()
    found = find_environment(Project(AbsPath("/w"), AbsPath("/w"), {"HOME": "/h"}), VirtualTree(files))
    if found is not None:
        assert not any("\0" in path for path in (found.prefix, *found.library, *found.packages)), found
        stand_in(found)
