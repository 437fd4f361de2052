"""Trust that was given in a coding agent: what counts, what does not, and for what."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from config.test_trust import OVERRIDE, approve, obeyed
from pilotfish.config import host_trust
from pilotfish.config.host_trust import is_host_trusted, receipt_of
from pilotfish.config.trust import Trusted, Untrusted
from pilotfish.model import AbsPath
from pilotfish.protocol.wire import Json
from pilotfish.surfaces.cli.main import run
from support.files.config_home import Home

pytestmark = pytest.mark.proves("TRUST-7", "T57")

WIRED = {
    "claude-code": ".claude/settings.json",
    "gemini": ".gemini/settings.json",
    "pi": ".pi/agent/extensions/pilotfish.ts",
}


def wire(home: Home, *hosts: str) -> None:
    """What `pilotfish setup` leaves behind."""
    for host in hosts:
        receipt = Path(receipt_of(home.places, str(home.path / WIRED[host])))
        receipt.parent.mkdir(parents=True, exist_ok=True)
        receipt.write_text("{}")


def claude(home: Home, *folders: Path | str) -> Path:
    projects: dict[str, Json] = {str(folder): {"hasTrustDialogAccepted": True} for folder in folders}
    return home.user({"projects": projects, "numStartups": 7}, ".claude.json")


def gemini(home: Home, rules: dict[str, str], **settings: Any) -> Path:
    home.user({"security": settings} if settings else {}, ".gemini/settings.json")
    text = "// asked by Gemini\n" + json.dumps(rules)
    return home.user(text.encode(), ".gemini/trustedFolders.json")


def pi(home: Home, said: dict[str, bool | None]) -> Path:
    return home.user(dict(said), ".pi/agent/trust.json")


def git(home: Home, *arguments: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home.path), "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *arguments], cwd=home.workspace, env=environment, check=True, capture_output=True)


def trusted(home: Home, folder: Path | None = None) -> bool:
    """Whether programs of the project may run; what its file says to run never may."""
    there = Home(home.path, folder or home.workspace, home.environment)
    there.project(OVERRIDE)
    loaded = there.load()
    assert not obeyed(loaded)
    return loaded.config.trusted


GRANTS: dict[str, tuple[str, Callable[[Home], object]]] = {
    "Claude Code": ("claude-code", lambda home: claude(home, home.workspace)),
    "Gemini CLI": ("gemini", lambda home: gemini(home, {str(home.workspace): "TRUST_FOLDER"})),
    "Gemini CLI, a folder below": ("gemini", lambda home: gemini(home, {str(home.workspace / "src"): "TRUST_PARENT"})),
    "Pi": ("pi", lambda home: pi(home, {str(home.workspace): True})),
}


@pytest.mark.parametrize(("host", "grant"), GRANTS.values(), ids=GRANTS)
def test_it_counts_for_hosts_that_setup_wired_until_it_is_switched_off(
    host: str, grant: Callable[[Home], object], home: Home
) -> None:
    grant(home)
    assert not trusted(home), "not wired"
    wire(home, host)
    assert trusted(home)
    why = home.load().config.trust.why
    assert why.startswith("trusted in ")
    assert str(home.path) in why
    home.user({"security": {"hostTrust": False}})
    assert not trusted(home)
    home.user({"security": {"projectConfigPolicy": "never"}})
    assert not trusted(home)


SILENT: dict[str, Callable[[Home], object]] = {
    "Claude Code, the folder above": lambda home: claude(home, home.workspace.parent),
    "Claude Code, the home folder": lambda home: claude(home, home.path),
    "Claude Code, asked and refused": lambda home: home.user(
        {"projects": {str(home.workspace): {"hasTrustDialogAccepted": False}}}, ".claude.json"
    ),
    "Claude Code, a word for yes": lambda home: home.user(
        {"projects": {str(home.workspace): {"hasTrustDialogAccepted": "true"}}}, ".claude.json"
    ),
    "Gemini CLI, the folder above": lambda home: gemini(home, {str(home.workspace.parent): "TRUST_FOLDER"}),
    "Gemini CLI, the parent": lambda home: gemini(home, {str(home.workspace): "TRUST_PARENT"}),
    "Gemini CLI, switched off": lambda home: gemini(
        home, {str(home.workspace): "TRUST_FOLDER"}, folderTrust={"enabled": False}
    ),
    "Gemini CLI, a word that nobody knows": lambda home: gemini(home, {str(home.workspace): "TRUST_ME"}),
    "Pi, the folder above": lambda home: pi(home, {str(home.workspace.parent): True}),
    "Pi, not decided": lambda home: pi(home, {str(home.workspace): None}),
    "Codex, where a flag writes it": lambda home: home.user(
        f'[projects."{home.workspace}"]\ntrust_level = "trusted"\n'.encode(), ".codex/config.toml"
    ),
    "Qwen Code, where it is the default": lambda home: home.user(
        {str(home.workspace): "TRUST_FOLDER"}, ".qwen/trustedFolders.json"
    ),
    "a record that is no JSON": lambda home: home.user(b"{", ".claude.json"),
    "a record of another shape": lambda home: home.user([str(home.workspace)], ".claude.json"),
}


@pytest.mark.parametrize("record", SILENT.values(), ids=SILENT)
def test_what_is_no_word_about_this_folder_grants_nothing(record: Callable[[Home], object], home: Home) -> None:
    wire(home, *WIRED)
    record(home)
    assert not trusted(home)


REFUSALS: dict[str, Callable[[Home], object]] = {
    "Gemini CLI": lambda home: gemini(home, {str(home.workspace): "DO_NOT_TRUST"}),
    "Gemini CLI, the folder above": lambda home: gemini(home, {str(home.workspace.parent): "DO_NOT_TRUST"}),
    "Qwen Code": lambda home: home.user({str(home.workspace): "DO_NOT_TRUST"}, ".qwen/trustedFolders.json"),
    "Pi": lambda home: pi(home, {str(home.workspace.parent): False}),
    "Codex": lambda home: home.user(
        f'[projects."{home.workspace}"]\ntrust_level = "untrusted"\n'.encode(), ".codex/config.toml"
    ),
    "a record that cannot be read": lambda home: home.user(b"[", ".codex/config.toml"),
}


@pytest.mark.parametrize("refuse", REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_in_any_host_wins(refuse: Callable[[Home], object], home: Home) -> None:
    wire(home, "claude-code")
    claude(home, home.workspace)
    assert trusted(home)
    refuse(home)
    assert not trusted(home)
    assert isinstance(home.load().config.trust, Untrusted)
    approve(home)
    assert home.load().config.trusted, "what was approved here, after a look at it, is another matter"


def test_a_rule_that_is_nearer_wins_over_one_around_it(home: Home) -> None:
    wire(home, "gemini", "pi")
    gemini(home, {str(home.workspace.parent): "DO_NOT_TRUST", str(home.workspace): "TRUST_FOLDER"})
    assert trusted(home)
    gemini(home, {})
    pi(home, {str(home.workspace.parent): False, str(home.workspace): True})
    assert trusted(home)


def forged_by_mode(home: Home) -> None:
    claude(home, home.workspace).chmod(0o664)


def forged_by_folder(home: Home) -> None:
    gemini(home, {str(home.workspace): "TRUST_FOLDER"}).parent.chmod(0o777)


def forged_by_link(home: Home) -> None:
    file = claude(home, home.workspace)
    file.rename(home.workspace / "claude.json")
    file.symlink_to(home.workspace / "claude.json")


def forged_by_settings(home: Home) -> None:
    gemini(home, {str(home.workspace): "TRUST_FOLDER"}, folderTrust={"enabled": True})
    (home.path / ".gemini" / "settings.json").chmod(0o666)


@pytest.mark.parametrize("forged", [forged_by_mode, forged_by_folder, forged_by_link, forged_by_settings])
def test_a_record_that_others_can_write_grants_nothing(forged: Callable[[Home], None], home: Home) -> None:
    wire(home, *WIRED)
    forged(home)
    assert not trusted(home)


def test_a_home_that_is_opened_as_a_project_is_not_trusted(home: Home) -> None:
    # With our own files elsewhere, so that nothing but the home itself speaks against it.
    elsewhere = {f"XDG_{name}_HOME": str(home.workspace / name) for name in ("CONFIG", "STATE")}
    home = Home(home.path, home.workspace, {**home.environment, **elsewhere})
    wire(home, "claude-code")
    claude(home, home.path, home.workspace)
    assert not trusted(home, home.path)


@pytest.mark.parametrize("inside", ["", "src/deep"])
def test_a_repository_is_trusted_as_a_whole(inside: str, home: Home) -> None:
    git(home, "init")
    wire(home, "claude-code")
    folder = home.workspace / inside
    folder.mkdir(parents=True, exist_ok=True)
    claude(home, home.workspace)
    assert trusted(home, folder)
    link = home.path / "link"
    link.symlink_to(folder)
    assert trusted(home, link), "it is the folder that counts, not its name"


def test_a_part_of_a_repository_and_one_inside_another_are_not(home: Home) -> None:
    git(home, "init")
    wire(home, *WIRED)
    nested = home.workspace / "vendor" / "theirs"
    (nested / ".git").mkdir(parents=True)
    claude(home, home.workspace)
    gemini(home, {str(home.workspace): "TRUST_FOLDER"})
    pi(home, {str(home.workspace): True})
    assert trusted(home)
    assert not trusted(home, nested)
    for record in (".claude.json", ".gemini/trustedFolders.json", ".pi/agent/trust.json"):
        (home.path / record).unlink()
    claude(home, home.workspace / "vendor")
    assert not trusted(home)


def test_a_repository_of_another_user_around_a_folder_is_none(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    git(home, "init")
    wire(home, "claude-code")
    claude(home, home.workspace)
    inside = home.workspace / "src"
    inside.mkdir()
    assert trusted(home, inside)
    monkeypatch.setattr(host_trust, "is_foreign", bool)
    assert not trusted(home, inside)


def test_a_worktree_is_trusted_with_its_repository_and_only_if_that_knows_it(home: Home) -> None:
    git(home, "init")
    git(home, "commit", "--allow-empty", "-m", "a")
    worktree = home.path / "worktree"
    git(home, "worktree", "add", str(worktree))
    wire(home, "claude-code")
    claude(home, worktree)
    assert not trusted(home, worktree)
    claude(home, home.workspace)
    assert trusted(home, worktree)
    pretender = home.path / "pretender"
    pretender.mkdir()
    (pretender / ".git").write_text((worktree / ".git").read_text())
    assert not trusted(home, pretender)
    said = home.workspace / ".git" / "worktrees" / "worktree" / "gitdir"
    said.unlink()
    assert not trusted(home, worktree)
    os.mkfifo(said)
    assert not trusted(home, worktree), "nobody waits for a pipe"


@pytest.mark.proves("A18.29")
def test_the_files_that_decide_are_looked_at_again_when_they_change(home: Home) -> None:
    wire(home, "claude-code")
    file = claude(home, home.workspace)
    first = home.load()
    assert isinstance(first.config.trust, Trusted)
    assert str(file) in first.watched
    claude(home)
    assert not home.load(first).config.trusted


def test_the_list_names_the_host_and_untrust_says_where_to_take_it_back(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wire(home, *WIRED)
    monkeypatch.setenv("HOME", str(home.path))
    for name in ("PILOTFISH_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert run(["trust", "--list"]) == 0
    assert capsys.readouterr().out == "Nothing is trusted.\n"
    file = claude(home, home.workspace, home.path / "gone")
    gemini(home, {str(home.workspace): "TRUST_FOLDER"})
    pi(home, {str(home.workspace): True})
    assert run(["trust", "--list"]) == 0
    said = capsys.readouterr().out
    assert f"{home.workspace}  trusted in Claude Code ({file})" in said
    assert "gone" not in said
    assert run(["trust", "--list", "--json"]) == 0
    hosts = json.loads(capsys.readouterr().out)["hosts"]
    assert [one["host"] for one in hosts] == ["Claude Code", "Gemini CLI", "Pi"]
    assert run(["untrust", str(home.workspace)]) == 3
    assert "set security.hostTrust to false" in capsys.readouterr().err


def test_list_goes_on_where_the_settings_of_a_host_cannot_be_read(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wire(home, "gemini")
    gemini(home, {str(home.workspace): "TRUST_FOLDER"})
    home.user(b"{ broken", ".gemini/settings.json")
    for name, value in home.environment.items():
        monkeypatch.setenv(name, value)
    assert not trusted(home)
    assert run(["trust", "--list"]) == 0
    assert "Nothing is trusted" in capsys.readouterr().out


@pytest.mark.proves("TRUST-4")
def test_a_host_whose_record_is_too_large_trusts_no_repository(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    git(home, "init")
    wire(home, "claude-code")
    claude(home, home.workspace)
    repository = AbsPath(str(home.workspace))
    assert is_host_trusted(repository, home.places)
    monkeypatch.setattr(host_trust, "MAX_BYTES", 1)
    assert not is_host_trusted(repository, home.places)
