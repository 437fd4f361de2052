"""Servers for which no file outside of their root matters: they say the same whatever is there."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from support.services.clean import write
from support.services.real import only, real_service

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.proves("F95")]

NAMING: Mapping[str, Mapping[str, str]] = {
    "css": {"a.css": '@import "../lib/outer.css";\na { color: rgd(1); colr: red }\n', "package.json": "{}"},
    "html": {"a.html": '<script src="../lib/outer.js"></script><link href="../lib/outer.css"><style>a {</style>\n'},
    "ruff": {"a.py": "import sys\nfrom ..lib import outer\n", "ruff.toml": ""},
}
"""A file that names one outside, in the ways that its language has, with something to say of itself."""

OUTSIDE: tuple[Mapping[str, str], ...] = (
    {},
    {"outer.css": "b { color: red }\n", "outer.js": "let x = 1;\n", "outer.py": "x = 1\n", "__init__.py": ""},
    {"outer.css": "b { colr", "outer.js": "let x x", "outer.py": "def (", "__init__.py": "def ("},
)


@pytest.mark.server(*NAMING)
@pytest.mark.parametrize("server", NAMING)
async def test_what_lies_outside_changes_no_answer(server: str, tmp_path: Path) -> None:
    said = list[str]()
    for number, files in enumerate(OUTSIDE):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with real_service(folder, only(server)) as running:
            root = folder / "workspace"
            for name, text in NAMING[server].items():
                write(root / name, text)
            for name, text in files.items():
                write(folder / "lib" / name, text)
            answer = await running.service.check(running.client, (next(iter(NAMING[server])),))
            assert answer.meta.state == "fresh"
            said.append(str(answer.data).replace(str(folder), ""))
    assert said[0] == said[1] == said[2]
    assert said[0]
