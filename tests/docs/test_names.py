"""What the pages for developers name exists: files, folders, modules and what is in them."""

import re
import tomllib
from pathlib import Path

import pytest

from support.servers.real import REPOSITORY

SOURCE = REPOSITORY / "src" / "pilotfish"
SUPPORT = REPOSITORY / "tests" / "support"
ARCHITECTURE = REPOSITORY / "docs" / "ARCHITECTURE.md"
PAGES = [
    ARCHITECTURE,
    REPOSITORY / "docs" / "CONTRIBUTING.md",
    REPOSITORY / "docs" / "STYLE.md",
    REPOSITORY / "docs" / "SECURITY.md",
    REPOSITORY / "docs" / "RELIABILITY.md",
    SUPPORT / "README.md",
]

CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"(?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:py|toml|json|md)")
DOTTED = re.compile(r"[a-z_]+(?:\.\w+)+")
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b")
"""`tests/markers/cases/SERVER/NAME.txt`: a name to be filled in."""

LSP = ("textDocument/", "workspace/", "window/", "client/")
"""How methods of the protocol begin, which look like paths."""

PLACES = (REPOSITORY, SOURCE, SOURCE.parent, REPOSITORY / "tests")
"""What a page's paths may be relative to."""


def test_every_module_of_the_support_package_is_in_the_index_by_its_folder() -> None:
    index = (SUPPORT / "README.md").read_text()
    folders = {f"support.{path.parent.name if path.parent != SUPPORT else path.stem}" for path in _modules(SUPPORT)}
    assert sorted(name for name in folders if name not in index and name != "support.process_tree") == []


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_what_a_page_names_exists(page: Path) -> None:
    named = CODE.findall(_without_blocks(page.read_text()))
    paths = [name for name in named if FILE.fullmatch(name) and not name.startswith(LSP)]
    files = [name for name in paths if not PLACEHOLDER.search(name)]
    dotted = [name for name in named if DOTTED.fullmatch(name) and not FILE.fullmatch(name)]
    assert [name for name in files if not _is_there(name)] == []
    assert [name for name in dotted if not _is_defined(name)] == []


def test_the_layers_of_the_architecture_are_those_that_are_enforced() -> None:
    contracts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (enforced,) = [contract["layers"] for contract in contracts if contract["id"] == "layers"]
    layers = [[name.strip().removeprefix("pilotfish.") for name in row.split("|")] for row in enforced]
    rows = re.findall(r"^\| (`.*?`) \|", _table("layer"), re.MULTILINE)
    assert [CODE.findall(row) for row in rows] == layers


def test_the_architecture_names_every_folder() -> None:
    folders = {path.parent.relative_to(SOURCE) for path in SOURCE.rglob("*") if path.is_file()}
    inner = {f"{folder}/" for folder in folders if len(folder.parts) > 1 and "__pycache__" not in folder.parts}
    named = set(CODE.findall(_table("folder")))
    assert sorted(name for name in inner if not any(name.startswith(folder) for folder in named)) == []
    assert sorted(name for name in named if name.endswith("/") and not (SOURCE / name).is_dir()) == []


def test_the_architecture_is_short() -> None:
    assert len(ARCHITECTURE.read_text().splitlines()) < 250


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("service/service.py", True),
        ("protocol/", True),
        ("pyproject.toml", True),
        ("service/nothing.py", False),
        ("nothing/", False),
    ],
)
def test_a_file_that_is_not_there_is_noticed(name: str, there: bool) -> None:
    assert _is_there(name) is there


@pytest.mark.parametrize(
    ("name", "defined"),
    [
        ("feedback.settle", True),
        ("pool.plan", True),
        ("support.servers.script", True),
        ("pool.nothing", False),
        ("pool.plan.nothing_of_this_name", False),
    ],
)
def test_a_module_that_is_not_there_is_noticed(name: str, defined: bool) -> None:
    assert _is_defined(name) is defined


def _table(heading: str) -> str:
    """The table of the architecture whose first column is called so."""
    found = re.search(rf"^\| {heading} \|.*?(?=\n\n)", ARCHITECTURE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[0]


def _without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def _is_there(name: str) -> bool:
    bare = not name.endswith("/") and "/" not in name
    return any((place / name).exists() for place in PLACES) or (bare and any(SOURCE.rglob(name)))


def _is_defined(name: str) -> bool:
    """A module (`pool.plan`), something in one (`pool.plan.Key`), a key of a file or a method of a type."""
    parts = name.split(".")
    for place in (SOURCE, SOURCE.parent, REPOSITORY / "tests"):
        for count in range(len(parts), 0, -1):
            module = place.joinpath(*parts[:count])
            rest = parts[count:]
            if module.is_dir() and not rest:
                return True
            file = module.with_suffix(".py")
            if file.is_file():
                return all(re.search(rf"\b{re.escape(word)}\b", file.read_text()) for word in rest)
    return parts[0] not in {path.stem for path in SOURCE.iterdir()} | {"support"}


def _modules(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*.py") if path.name != "__init__.py"]
