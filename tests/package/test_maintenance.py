"""What a maintainer and a package index look for at the top of the repository."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from pilotfish.surfaces.cli.main import root
from pilotfish.version import VERSION
from support.servers.real import REPOSITORY

PAGES = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_there_and_its_links_lead_somewhere(page: str) -> None:
    text = (REPOSITORY / page).read_text()
    assert text.startswith("# ")
    assert [link for link in re.findall(r"\]\(([^)#]+)\)", text) if not (REPOSITORY / link).is_file()] == []


def test_the_hook_of_pre_commit_is_a_command_line_that_exists() -> None:
    hooks = (REPOSITORY / ".pre-commit-hooks.yaml").read_text()
    (entry,) = re.findall(r"entry: pilotfish (.+)", hooks)
    verb, *words = shlex.split(entry)
    command = root.get_command(click.Context(root), verb)
    assert command is not None
    known = {option for one in command.params for option in one.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_the_container_and_the_feature_run_what_exists() -> None:
    feature = REPOSITORY / "packaging" / "devcontainer" / "src" / "pilotfish"
    about = json.loads((feature / "devcontainer-feature.json").read_text())
    script = (feature / "install.sh").read_text()
    assert about["id"] == feature.name
    assert {name.upper() for name in about["options"]} <= set(re.findall(r"\$\{(\w+):-", script))
    subprocess.run(["/bin/sh", "-n", feature / "install.sh"], check=True)
    commands = [about["postCreateCommand"], *re.findall(r"RUN (pilotfish [^&]+)", container())]
    for verb, *words in (shlex.split(command)[1:] for command in commands):
        found = root.get_command(click.Context(root), verb)
        assert found is not None
        assert {word for word in words if word.startswith("--")} <= {name for one in found.params for name in one.opts}


def container() -> str:
    return (REPOSITORY / "packaging" / "Dockerfile").read_text()


def test_the_changelog_says_of_each_version_what_breaks_and_what_is_new() -> None:
    versions = re.split(r"^## ", (REPOSITORY / "docs" / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    assert [version.split()[0] for version in versions] == [VERSION, "0.1.0"]
    newest = re.findall(r"^### (\w+)$", versions[0], re.MULTILINE)
    assert newest == [kind for kind in ("Breaking", "Added", "Changed", "Fixed") if kind in newest]
    assert not re.search(r"\n- ", versions[0].partition("### ")[0])


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As it is here, committed."""
    target = tmp_path_factory.mktemp("release") / "clone"
    subprocess.run(["git", "clone", "-q", "--shared", str(REPOSITORY), str(target)], check=True)
    for name in (
        "tools/release.py",
        "tools/recipes.py",
        "packaging/channels.toml",
        "pyproject.toml",
        "docs/CHANGELOG.md",
        *VERSIONED,
    ):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, target / name)
    who = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    for words in (["add", "-A"], [*who, "commit", "-qm", "now", "--allow-empty"]):
        subprocess.run(["git", *words], cwd=target, check=True)
    return target


VERSIONED = (
    "src/pilotfish/version.py",
    "npm/llxprt/package.json",
    "npm/pilotfish/package.json",
    "packaging/devcontainer/src/pilotfish/devcontainer-feature.json",
    "src/pilotfish/hosts/plugins/claude-code/.claude-plugin/plugin.json",
    "src/pilotfish/hosts/plugins/codex/.codex-plugin/plugin.json",
    "src/pilotfish/hosts/plugins/gemini/gemini-extension.json",
)


def test_nothing_is_released_that_is_not_committed_dated_and_of_one_version(clone: Path) -> None:
    def objections() -> list[str]:
        argv = [sys.executable, "tools/release.py", "--repository", "https://example.org/you/pilotfish"]
        done = subprocess.run(argv, cwd=clone, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        return done.stderr.splitlines()[1:]

    undated = f"- docs/CHANGELOG.md has no section `## {VERSION} (YEAR-MONTH-DAY)`"
    assert objections() == [undated]
    subprocess.run(["git", "tag", f"v{VERSION}"], cwd=clone, check=True)
    (clone / "npm/llxprt/package.json").write_text('{"version": "7.0.0"}')
    changed = [
        "- npm/llxprt/package.json is not committed",
        f"- npm/llxprt/package.json has another version than {VERSION}",
    ]
    assert objections() == [*changed, undated, f"- there is a tag v{VERSION}"]


def test_what_the_workflows_run_is_here() -> None:
    for file in (REPOSITORY / ".github" / "workflows").glob("*.yml"):
        named = re.findall(r"(?<![\w./])(\./check|tests/[\w/.]+)", file.read_text())
        assert [path for path in named if not (REPOSITORY / path).exists()] == []


@pytest.mark.parametrize(("option", "code", "said"), [("--help", 0, "usage: ./check"), ("--quik", 2, "--quik")])
def test_the_gate_explains_its_options_and_runs_nothing_for_one_that_it_does_not_know(
    option: str, code: int, said: str
) -> None:
    done = subprocess.run(["./check", option], cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == code
    assert said in done.stdout + done.stderr
    assert "(0." not in done.stdout, "no step ran"
