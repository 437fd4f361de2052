"""What a server's process inherits."""

import pytest

from pilotfish.model import AbsPath
from pilotfish.servers.environment import child_environment, inheritable

PATH = (AbsPath("/usr/bin"), AbsPath("/bin"))


@pytest.mark.proves("T12", "T35")
@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "SSH_AUTH_SOCK", "GPG_TTY",
        "LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "PYTHONSTARTUP", "GIT_SSH_COMMAND", "BASH_ENV",
        "PILOTFISH_HOME", "XDG_RUNTIME_DIR", "XDG_SESSION_ID", "NPM_TOKEN", "DBUS_SESSION_BUS_ADDRESS", "ANYTHING_ELSE",
    ],
)  # fmt: skip
def test_secrets_and_switches_stay_with_us(name: str) -> None:
    assert name not in child_environment({name: "secret"}, {}, PATH)


@pytest.mark.proves("T35")
@pytest.mark.parametrize(
    "name",
    ["HOME", "LANG", "LC_ALL", "XDG_CACHE_HOME", "GOPATH", "CARGO_HOME", "JAVA_HOME", "VIRTUAL_ENV", "HTTPS_PROXY"],
)
def test_what_toolchains_need_reaches_the_server(name: str) -> None:
    assert child_environment({name: "/x"}, {}, PATH)[name] == "/x"


@pytest.mark.proves("T35")
def test_of_another_process_only_what_a_server_may_have_is_kept() -> None:
    entries = [("PATH", "/bin"), ("GITHUB_TOKEN", "secret"), ("VIRTUAL_ENV", "/v"), ("LC_ALL", "C"), ("", "")]
    assert inheritable(entries) == (("PATH", "/bin"), ("VIRTUAL_ENV", "/v"), ("LC_ALL", "C"))


@pytest.mark.proves("T9")
def test_path_is_the_cleaned_one() -> None:
    assert child_environment({"PATH": ".:/space/bin"}, {}, PATH)["PATH"] == "/usr/bin:/bin"


@pytest.mark.proves("T9", "T12")
@pytest.mark.parametrize("value", ["/space/.venv", "/space", "/usr/lib:/space/lib", "/other/../space/x"])
def test_what_leads_into_an_untrusted_workspace_is_left_out(value: str) -> None:
    base = {"VIRTUAL_ENV": value, "GOPATH": "/home/me/go", "LANG": "C"}
    expected = {"GOPATH": "/home/me/go", "LANG": "C", "PATH": "/usr/bin:/bin"}
    assert child_environment(base, {}, PATH, [AbsPath("/space")]) == expected
    assert child_environment(base, {}, PATH)["VIRTUAL_ENV"] == value


@pytest.mark.proves("T9", "T12")
@pytest.mark.parametrize("value", [".", "lib", "/usr/lib:", ":", "/usr/lib:./lib"])
def test_a_relative_search_path_would_lead_into_the_root(value: str) -> None:
    assert "PYTHONPATH" not in child_environment({"PYTHONPATH": value}, {}, PATH, [AbsPath("/space")])
    assert child_environment({"PYTHONPATH": value}, {}, PATH)["PYTHONPATH"] == value


@pytest.mark.proves("CFG-4")
def test_the_servers_own_variables_win() -> None:
    environment = child_environment({"LANG": "de"}, {"LANG": "C", "NODE_OPTIONS": "--max-old-space-size=4096"}, PATH)
    assert environment["LANG"] == "C"
    assert environment["NODE_OPTIONS"] == "--max-old-space-size=4096"
