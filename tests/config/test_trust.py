"""Who may say what runs: the policy matrix, the matrix of trusted roots, and the life of an approval."""

import json
import os
import shutil
from pathlib import Path

import pytest

from pilotfish.config.files import open_workspace
from pilotfish.config.load import Loaded, load_from
from pilotfish.config.trust import Stale, Trusted, TrustOffer, Untrusted, pin_file, pin_of, read_offer, write_pin
from pilotfish.model import AbsPath
from pilotfish.protocol.wire import Json
from support.files.config_home import Home

ENTRY: dict[str, Json] = {
    "command": ["./evil"],
    "env": {"A": "1"},
    "watch": ["./evil", "--watch"],
    "settings": {"python": {"pythonPath": "./evil", "analysis": {"typeCheckingMode": "strict"}}},
    "roots": ["setup.py"],
}
SERVERS: dict[str, Json] = {"pyright": ENTRY}
OVERRIDE: dict[str, Json] = {"lsp": SERVERS, "timing": {"requestTimeoutMs": 1234}}


def approve(home: Home) -> TrustOffer:
    """What `pilotfish trust` does after the answer yes."""
    with open_workspace(str(home.workspace)) as workspace:
        loaded = load_from(workspace, home.request())
        offer = read_offer(workspace, loaded.project_file, loaded.project)
        write_pin(home.places.pins, pin_of(workspace, offer))
    return offer


def obeyed(loaded: Loaded) -> bool:
    """Whether the project's commands are in force; half in force is a failure of its own."""
    pyright = loaded.config.servers["pyright"]
    python: dict[str, Json] = pyright.settings["python"]
    seen = {
        pyright.command == ("./evil",),
        pyright.env == {"A": "1"},
        pyright.watch == ("./evil", "--watch"),
        python.get("pythonPath") == "./evil",
    }
    assert len(seen) == 1
    assert pyright.roots == ("setup.py",), "what runs nothing always counts"
    assert python["analysis"] == {"diagnosticMode": "openFilesOnly", "typeCheckingMode": "strict"}
    assert loaded.config.timing.request_timeout_ms == 1234
    return seen == {True}


POLICIES: dict[str, tuple[Json, bool, bool]] = {
    "no file": (None, False, False),
    "default, not listed": ({}, False, False),
    "trusted-only, not listed": ({"projectConfigPolicy": "trusted-only"}, False, False),
    "trusted-only, listed": (
        {"projectConfigPolicy": "trusted-only", "trustedProjectRoots": ["WORKSPACE"]},
        False,
        True,
    ),
    "trusted-only, approved": ({"projectConfigPolicy": "trusted-only"}, True, True),
    "always": ({"projectConfigPolicy": "always"}, False, True),
    "never": ({"projectConfigPolicy": "never"}, False, False),
    "never, listed": ({"projectConfigPolicy": "never", "trustedProjectRoots": ["WORKSPACE"]}, False, False),
    "never, approved": ({"projectConfigPolicy": "never"}, True, False),
}


@pytest.mark.proves("TRUST-1", "TRUST-4", "T1")
@pytest.mark.parametrize(("security", "approved", "expected"), POLICIES.values(), ids=POLICIES)
def test_the_policy_decides_by_the_matrix(home: Home, security: Json, approved: bool, expected: bool) -> None:
    home.project(OVERRIDE)
    if isinstance(security, dict):
        roots = [str(home.workspace)] if "trustedProjectRoots" in security else []
        home.user({"security": {**security, "trustedProjectRoots": [*roots]}})
    if approved:
        approve(home)
    loaded = home.load()
    assert obeyed(loaded) is expected
    assert loaded.config.trusted is expected
    blocked = {problem.path for problem in loaded.warnings}
    fields: set[tuple[str | int, ...]] = {
        ("lsp", "pyright", "command"),
        ("lsp", "pyright", "env"),
        ("lsp", "pyright", "watch"),
        ("lsp", "pyright", "settings", "python", "pythonPath"),
    }
    assert blocked == (set() if expected else fields)
    assert all(f"pilotfish trust {home.workspace}" in str(problem) for problem in loaded.warnings)


ROOTS: dict[str, tuple[str, bool]] = {
    "the workspace itself": ("{code}/project", True),
    "a parent": ("{code}", True),
    "a sibling": ("{code}/proj", False),
    "a child": ("{code}/project/src", False),
    "glob": ("{code}/*", True),
    "glob at any depth": ("{base}/**", True),
    "glob elsewhere": ("{base}/other/**", False),
    "below home, but the workspace is not": ("~/**", False),
    "an alias of the workspace": ("{base}/alias", False),
    "a glob over the alias": ("{base}/ali*", False),
    "an alias of the parent": ("{base}/alias-of-code", False),
}


@pytest.mark.proves("TRUST-2", "TRUST-3")
@pytest.mark.parametrize("by_alias", [False, True], ids=["opened by its path", "opened by its alias"])
@pytest.mark.parametrize(("entry", "expected"), ROOTS.values(), ids=ROOTS)
def test_roots_are_trusted_by_the_matrix(home: Home, entry: str, expected: bool, by_alias: bool) -> None:
    base, code = home.workspace.parent.parent, home.workspace.parent
    (base / "alias").symlink_to(home.workspace)
    (base / "alias-of-code").symlink_to(code)
    home.project(OVERRIDE)
    home.user({"security": {"trustedProjectRoots": [entry.format(base=base, code=code)]}})
    opened = Home(home.path, base / "alias", home.environment) if by_alias else home
    assert obeyed(opened.load()) is expected


@pytest.mark.proves("TRUST-2", "TRUST-4")
@pytest.mark.parametrize("bad", ["project", "code/**", "~you/**", "{code}/{{a", "{code}/@(project|b)", 3], ids=str)
def test_a_bad_entry_is_a_config_error_and_then_nothing_is_trusted(home: Home, bad: str | int) -> None:
    home.project(OVERRIDE)
    entry = bad.format(code=home.workspace.parent) if isinstance(bad, str) else bad
    home.user({"security": {"trustedProjectRoots": [str(home.workspace), entry]}})
    loaded = home.load()
    assert [problem.path for problem in loaded.errors] == [("security", "trustedProjectRoots", 1)]
    assert not obeyed(loaded)
    assert loaded.config.security.trusted_project_roots == ()


BROKEN_USER_FILES: dict[str, bytes] = {
    "syntax": b'{"security": {"projectConfigPolicy": "always"}',
    "misspelt policy": b'{"security": {"projectConfigPolicy": "allways", "allowExternalPaths": true}}',
    "unknown key in security": b'{"security": {"projectConfigPolicy": "always", "trustAll": true}}',
    "not an object": b"[]",
}


@pytest.mark.proves("TRUST-4")
@pytest.mark.parametrize("content", BROKEN_USER_FILES.values(), ids=BROKEN_USER_FILES)
def test_rules_that_cannot_be_read_trust_nothing(home: Home, content: bytes) -> None:
    home.project(OVERRIDE)
    approve(home)
    assert obeyed(home.load())
    home.user(content)
    loaded = home.load()
    assert not obeyed(loaded)
    assert loaded.errors
    assert not loaded.config.security.allow_external_paths


@pytest.mark.proves("TRUST-4")
def test_an_error_outside_the_rules_does_not_change_them(home: Home) -> None:
    home.project(OVERRIDE)
    home.user({"security": {"trustedProjectRoots": [str(home.workspace)]}, "timing": {"requestTimeoutMs": -1}})
    loaded = home.load()
    assert loaded.errors
    assert obeyed(loaded)


@pytest.mark.proves("TRUST-4", "T15")
def test_rules_that_every_user_may_write_trust_nothing(home: Home) -> None:
    home.project(OVERRIDE)
    file = home.user({"security": {"projectConfigPolicy": "always"}})
    assert obeyed(home.load())
    file.chmod(0o666)
    loaded = home.load()
    assert not obeyed(loaded)
    assert "every user may write it" in str(loaded.errors[0])


@pytest.mark.proves("TRUST-1")
@pytest.mark.parametrize("section", ["security", "pool"])
def test_a_project_cannot_speak_for_the_user(home: Home, section: str) -> None:
    rules: dict[str, Json] = {
        "security": {"projectConfigPolicy": "always", "trustedProjectRoots": ["/**"], "allowExternalPaths": True},
        "pool": {"idleMinutes": 9999},
    }
    before = home.load().config
    home.project({section: rules[section], "lsp": {"pyright": {"command": ["./evil"]}}})
    loaded = home.load()
    assert loaded.config.security == before.security
    assert loaded.config.pool == before.pool
    assert loaded.config.servers["pyright"].command == ("pyright-langserver", "--stdio")
    assert "read from the user's own file only" in str(loaded.warnings[0])


# --- Approvals ----------------------------------------------------------------------------------------------------


def changed(**fields: Json) -> Json:
    """`OVERRIDE` with other fields in its server's entry."""
    return {**OVERRIDE, "lsp": {"pyright": {**ENTRY, **fields}}}


@pytest.mark.proves("TRUST-6", "T4")
@pytest.mark.parametrize(
    "content",
    [
        b"// a comment\n" + json.dumps(OVERRIDE, indent=3).encode(),
        {**OVERRIDE, "navigationTools": False},
        {**OVERRIDE, "lsp": {**SERVERS, "eslint": {"disabled": True}}},
    ],
    ids=["comments and layout", "something else", "a server that runs nothing of the project's"],
)
def test_an_approval_holds_while_what_runs_stays_the_same(home: Home, content: Json | bytes) -> None:
    home.project(OVERRIDE)
    approve(home)
    home.project(content)
    loaded = home.load()
    assert isinstance(loaded.config.trust, Trusted)
    assert obeyed(loaded)


RUG_PULLS: dict[str, tuple[Json, str]] = {
    "one byte of the command": (changed(command=["./evil "]), '"pyright.command": ["./evil"] → ["./evil "]'),
    "one more argument": (changed(command=["./evil", "x"]), '"pyright.command": ["./evil"] → ["./evil", "x"]'),
    "an argument split in two": (changed(watch=["./evil", "--", "watch"]), '"pyright.watch"'),
    "a variable": (changed(env={"A": "2"}), '"pyright.env.A": "1" → "2"'),
    "a setting": (changed(settings={"python": {"pythonPath": "./worse"}}), '"pyright.settings.python.pythonPath"'),
    "which files start it": (changed(extensions=[".md"]), '"pyright.extensions": null → [".md"]'),
    "another server": (
        {**OVERRIDE, "lsp": {**SERVERS, "eslint": {"command": ["x"]}}},
        '"eslint": null → {"command": ["x"]}',
    ),
    "nothing left": ({}, '"pyright"'),
}


@pytest.mark.proves("TRUST-6", "T4")
@pytest.mark.parametrize(("content", "difference"), RUG_PULLS.values(), ids=RUG_PULLS)
def test_an_approval_goes_stale_when_what_runs_changes(home: Home, content: Json, difference: str) -> None:
    home.project(OVERRIDE)
    approve(home)
    home.project(content)
    trust = home.load().config.trust
    assert isinstance(trust, Stale)
    assert any(difference in line for line in trust.differences), trust.differences


@pytest.mark.proves("T4")
def test_a_stale_approval_runs_nothing_and_says_what_changed(home: Home) -> None:
    home.project(OVERRIDE)
    approve(home)
    home.project(changed(command=["./worse"]))
    loaded = home.load()
    assert loaded.config.servers["pyright"].command == ("pyright-langserver", "--stdio")
    assert loaded.config.servers["pyright"].withheld[0] == "command"
    text = "\n".join(map(str, loaded.warnings))
    assert "changed since it was trusted" in text
    assert '["./evil"] → ["./worse"]' in text
    home.project(OVERRIDE)
    assert obeyed(home.load()), "the approved content is approved again"


@pytest.mark.proves("T4")
def test_the_content_of_a_program_inside_the_workspace_is_approved_too(home: Home) -> None:
    home.project(OVERRIDE)
    home.project(b"#!/bin/sh\n", "evil")
    home.project(b"x", "real/tool")
    (home.workspace / "linked").symlink_to("real/tool")
    home.project(changed(watch=["node", "linked"]))
    assert approve(home).programs.keys() == {"evil", "linked"}
    assert isinstance(home.load().config.trust, Trusted)
    home.project(b"y", "real/tool")
    trust = home.load().config.trust
    assert isinstance(trust, Stale)
    assert "content of linked" in trust.differences[0]


def test_programs_elsewhere_are_not_part_of_an_approval(home: Home, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("x")
    os.mkfifo(home.workspace / "fifo")
    home.project(b"x", "pyright")
    home.project(
        {"lsp": {"pyright": {"command": ["pyright", str(outside), "../../outside", "fifo", "--x", "a\tb", "."]}}}
    )
    assert approve(home).programs == {}, "a bare program name is looked up on PATH, and the rest are no files of ours"


@pytest.mark.proves("T3")
def test_another_folder_of_the_same_name_is_not_the_approved_one(home: Home) -> None:
    home.project(OVERRIDE)
    approve(home)
    copy = home.workspace.with_name("copy")
    shutil.copytree(home.workspace, copy)
    home.workspace.rename(home.workspace.with_name("old"))
    copy.rename(home.workspace)
    trust = home.load().config.trust
    assert isinstance(trust, Untrusted)
    assert "replaced" in trust.why


@pytest.mark.proves("T3", "TRUST-6")
def test_an_approval_is_for_one_folder_and_not_for_those_below_it(home: Home) -> None:
    home.project(OVERRIDE)
    approve(home)
    inner = Home(home.path, home.workspace / "inner", home.environment)
    inner.project(OVERRIDE)
    assert obeyed(home.load())
    assert not obeyed(inner.load())


@pytest.mark.proves("T3")
def test_pointers_inside_the_workspace_are_not_followed(home: Home) -> None:
    trusted = Home(home.path, home.workspace.with_name("trusted"), home.environment)
    trusted.project(OVERRIDE)
    approve(trusted)
    home.project(OVERRIDE)
    home.project(f"gitdir: {trusted.workspace}/.git\n".encode(), ".git")
    assert not obeyed(home.load())


@pytest.mark.proves("T11")
@pytest.mark.parametrize("inside", ["config", "state"])
def test_a_workspace_that_holds_the_files_that_decide_is_never_trusted(home: Home, inside: str) -> None:
    variable = "XDG_CONFIG_HOME" if inside == "config" else "PILOTFISH_HOME"
    environment = {**home.environment, variable: str(home.workspace / inside)}
    trap = Home(home.path, home.workspace, environment)
    trap.project(OVERRIDE)
    trap.user({"security": {"projectConfigPolicy": "always", "trustedProjectRoots": ["/**"]}})
    approve(trap)
    loaded = trap.load()
    assert not obeyed(loaded)
    assert isinstance(loaded.config.trust, Untrusted)
    assert "is inside this workspace" in loaded.config.trust.why


@pytest.mark.proves("T11")
def test_a_hosts_own_file_inside_the_workspace_cannot_trust_it(home: Home) -> None:
    inner = Home(home.path, home.path / ".pi", home.environment)
    inner.project(OVERRIDE)
    home.user({"security": {"projectConfigPolicy": "always"}}, ".pi/agent/lsp.json")
    home.project(OVERRIDE)
    assert obeyed(home.load(host="pi"))
    assert not obeyed(inner.load(host="pi"))


@pytest.mark.proves("TRUST-4", "T15")
def test_a_damaged_record_means_untrusted(home: Home) -> None:
    home.project(OVERRIDE)
    approve(home)
    Path(pin_file(home.places.pins, AbsPath(str(home.workspace)))).chmod(0o644)
    loaded = home.load()
    assert not obeyed(loaded)
    assert isinstance(loaded.config.trust, Untrusted)
    assert "open to other users" in loaded.config.trust.why


@pytest.mark.proves("T4", "T15")
def test_a_record_whose_digest_was_swapped_is_not_believed(home: Home) -> None:
    home.project(OVERRIDE)
    approve(home)
    home.project(changed(command=["./worse"]))
    with open_workspace(str(home.workspace)) as workspace:
        loaded = load_from(workspace, home.request())
        now = read_offer(workspace, loaded.project_file, loaded.project)
    file = Path(pin_file(home.places.pins, AbsPath(str(home.workspace))))
    file.write_text(json.dumps({**json.loads(file.read_text()), "digest": now.digest}))
    assert isinstance(home.load().config.trust, Stale)


@pytest.mark.proves("T4")
def test_no_two_offers_share_a_digest_by_moving_bytes_between_parts() -> None:
    offers = [
        TrustOffer(""),
        TrustOffer("a"),
        TrustOffer("a", {"b": {}}),
        TrustOffer("ab", {"": {}}),
        TrustOffer("a", {"b": "c"}),
        TrustOffer("a", {}, {"b": "c"}),
        TrustOffer("a", {"b": ["c", "d"]}),
        TrustOffer("a", {"b": ["cd"]}),
        TrustOffer("a", {"b": ["c"], "d": []}),
    ]
    assert len({offer.digest for offer in offers}) == len(offers)


@pytest.mark.proves("TRUST-6")
def test_a_project_without_a_file_can_be_approved_and_goes_stale_when_it_gets_one(home: Home) -> None:
    approve(home)
    assert isinstance(home.load().config.trust, Trusted)
    home.project({"timing": {"requestTimeoutMs": 5}})
    assert isinstance(home.load().config.trust, Trusted)
    home.project(OVERRIDE)
    assert isinstance(home.load().config.trust, Stale)


@pytest.mark.proves("T5")
def test_what_was_approved_is_what_is_parsed_even_under_a_racing_writer(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file changes right after it has been read: the load goes on with what it read."""
    from pilotfish.config.files import WorkspaceFiles

    home.project(OVERRIDE)
    approve(home)
    read = WorkspaceFiles.read

    def racing(self: WorkspaceFiles, name: str) -> bytes | None:
        data = read(self, name)
        home.project(changed(command=["./worse"]))
        return data

    monkeypatch.setattr(WorkspaceFiles, "read", racing)
    assert obeyed(home.load())
    monkeypatch.undo()
    assert isinstance(home.load().config.trust, Stale)
