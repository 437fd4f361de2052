"""What the manifests of monorepos claim."""

import pytest

from pilotfish.servers.roots import claim
from pilotfish.servers.spec import Grouping


@pytest.mark.proves("REG-3")
@pytest.mark.parametrize(
    ("grouping", "manifest", "members", "others"),
    [
        pytest.param(
            "npm",
            '{"workspaces": ["packages/*", "./apps/web", "!packages/old"]}',
            ["", "packages/a", "apps/web"],
            ["packages/old", "packages/a/deep", "tools"],
            id="npm",
        ),
        pytest.param("npm", '{"workspaces": {"packages": ["pkg/**"]}}', ["pkg/a/b"], ["x"], id="yarn 1"),
        pytest.param(
            "pnpm",
            "# all\npackages:\n  # us\n  - 'packages/*'\n\n  - \"apps/**\" # web\n  - '!**/test'\ncatalog:\n  - other",
            ["packages/a", "apps/a/b"],
            ["other", "apps/test", "catalog"],
            id="pnpm",
        ),
        pytest.param(
            "cargo",
            '[workspace]\nmembers = ["crates/*"]\nexclude = ["fuzz", "old/"]',
            ["crates/a", "anywhere/else"],
            ["fuzz", "fuzz/deep", "old", "old/b"],
            id="Cargo: path dependencies are members without being listed",
        ),
        pytest.param(
            "go-work",
            "go 1.22\n\nuse (\n\t./api // the api\n\t./tools/gen\n)\nuse ./cmd\nuse ../out\n",
            ["api", "tools/gen", "cmd"],
            ["tools", "api/inner", "out"],
            id="go.work",
        ),
        pytest.param("go-work", "use .\n", [""], ["sub"], id="go.work of its own folder"),
        pytest.param(
            "uv",
            '[tool.uv.workspace]\nmembers = ["libs/*"]\nexclude = ["libs/old"]',
            ["libs/a"],
            ["libs/old", "apps/a"],
            id="uv",
        ),
    ],
)
def test_a_manifest_claims_its_members(
    grouping: Grouping, manifest: str, members: list[str], others: list[str]
) -> None:
    found = claim(grouping, manifest)
    assert found is not None
    assert [folder for folder in members if not found.covers(folder)] == []
    assert [folder for folder in others if found.covers(folder)] == []


@pytest.mark.parametrize(
    ("grouping", "manifest"),
    [
        pytest.param("npm", '{"name": "x"}', id="a package that is no workspace"),
        pytest.param("npm", '{"workspaces": 3}', id="workspaces of a wrong type"),
        pytest.param("npm", "[1]", id="not an object"),
        pytest.param("npm", "{", id="broken JSON"),
        pytest.param("npm", "[" * 100_000, id="JSON too deep"),
        pytest.param("cargo", "[package]\nname = 'x'", id="a crate that is no workspace"),
        pytest.param("cargo", "[workspace", id="broken TOML"),
        pytest.param("cargo", "workspace = 3", id="workspace of a wrong type"),
        pytest.param("uv", "[tool.uv]", id="a project without a uv workspace"),
        pytest.param("uv", "tool = 1", id="tool of a wrong type"),
    ],
)
def test_what_is_no_such_manifest_claims_nothing(grouping: Grouping, manifest: str) -> None:
    assert claim(grouping, manifest) is None


@pytest.mark.parametrize(("grouping", "manifest"), [("pnpm", "packages: []"), ("go-work", "go 1.22")])
def test_an_empty_manifest_claims_only_its_own_folder(grouping: Grouping, manifest: str) -> None:
    found = claim(grouping, manifest)
    assert found is not None
    assert found.covers("")
    assert not found.covers("pkg")


def test_a_glob_that_is_none_claims_nothing() -> None:
    found = claim("npm", '{"workspaces": ["{" , "ok"]}')
    assert found is not None
    assert found.covers("ok")
    assert not found.covers("{x")
