"""The hosts as one folder of modules: each found by its name, loaded alone, and true to what was run."""

import importlib
import json
import subprocess
import sys

import pytest

from pilotfish.errors import Refused
from pilotfish.hosts.registry import dialect_of, host_names, load_host, load_hosts
from support.hosts.dialects import dialect_names
from support.servers.real import REPOSITORY

MANIFEST = json.loads((REPOSITORY / "tools" / "hosts.json").read_text())


def test_every_module_is_a_host_of_its_name() -> None:
    assert {name: host.name for name, host in load_hosts().items()} == {name: name for name in host_names()}
    assert "claude-code" in host_names()


def test_a_host_without_a_hook_has_no_dialect() -> None:
    assert "goose" not in dialect_names()
    with pytest.raises(Refused, match="Goose has no hook"):
        dialect_of("goose")


def test_what_is_no_host_is_refused_with_the_names_of_all() -> None:
    for name in ("registry", "shared", "", "nobody", "../pi"):
        with pytest.raises(Refused) as refused:
            load_host(name)
        assert f"Known hosts: {', '.join(host_names())}." in str(refused.value.hint)


@pytest.mark.parametrize("name", [name for name in MANIFEST if name in host_names()])
def test_the_notes_of_a_host_name_the_version_that_the_tests_run(name: str) -> None:
    module = importlib.import_module(f"pilotfish.hosts.{name.replace('-', '_')}")
    packages = MANIFEST[name].get("npm") or MANIFEST[name]["pypi"]
    assert any(f"Run: {version}" in str(module.__doc__) for version in packages.values())


def test_the_daemon_starts_without_hosts_and_loads_the_one_whose_event_it_reads() -> None:
    code = """
import json, sys
import pilotfish.daemon.main
from pilotfish.hosts.registry import dialect_of
def hosts():
    return sorted(name for name in sys.modules if name.startswith("pilotfish.hosts.") and name.count(".") == 2)
before = hosts()
dialect_of("gemini")
print(json.dumps([before, sorted(set(hosts()) - set(before)), "pilotfish.hosts.edits.toml_edit" in sys.modules]))
"""
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    before, after, has_toml = json.loads(done.stdout)
    assert before == ["pilotfish.hosts.registry", "pilotfish.hosts.shared"]
    assert after == ["pilotfish.hosts.edits", "pilotfish.hosts.gemini"]
    assert not has_toml
