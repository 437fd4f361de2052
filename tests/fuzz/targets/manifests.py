"""Manifests of a repository, TOML and JSON: values within bounds, and what is read of them; never an exception."""

from fuzz.pieces import Pieces
from pilotfish.model import AbsPath
from pilotfish.servers.manifests import json_value, toml_table
from pilotfish.servers.resolve import interpreter
from pilotfish.servers.roots import MANIFESTS, claim
from pilotfish.servers.toolchains import no_compile_database, no_node_packages, no_python_packages, old_go
from support.files.virtual_tree import VirtualTree

WORDS = (
    b"[tool.uv.workspace]\n",
    b"[workspace]\n",
    b'members = ["a", "b/*"]\n',
    b'"workspaces":',
    b"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a = 1\n",
    b"[[[[[[[[",
    b"9" * 40,
    b"use (\n./a\n)\n",
    b"packages:\n  - a\n",
    b"'''",
    b'"""',
    b"\\u0000",
    b"\x00",
    b"{" * 70,
)
SEEDS = (
    b'[project]\nname = "x"\ndependencies = ["a"]\n\n[tool.uv.workspace]\nmembers = ["packages/*"]\nexclude = ["b"]\n',
    b'[workspace]\nmembers = ["a", "crates/*"]\nexclude = ["c"]\n\n[package]\nname = "x"\n',
    b'{"name": "x", "workspaces": {"packages": ["a/*", "!b"]}, "dependencies": {"a": "1"}} // c',
    b"go 1.21\n\nuse (\n\t./a\n\t./b\n)\n",
    b"packages:\n  - 'a/*'\n  - '!b'\n",
)
NAMES = ("pyproject.toml", "package.json", "requirements.txt", "Pipfile", "setup.py", "go.mod", "CMakeLists.txt")


def run(data: bytes) -> None:
    text = Pieces(data).rest().decode("utf-8", "surrogateescape")
    table = toml_table(text)
    assert table is None or isinstance(table, dict)
    json_value(text)
    for grouping in MANIFESTS:
        claim(grouping, text)
    tree = VirtualTree({f"/w/{name}": text for name in NAMES})
    no_python_packages(["/w"], tree)
    no_node_packages(["/w"], tree)
    no_compile_database(["/w"], tree)
    old_go(["/w"], tree, AbsPath("/w/bin/go"))
    interpreter(text)
