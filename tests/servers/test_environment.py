"""What a server's process inherits."""

import os
from pathlib import Path

import pytest

from pilotfish.model import AbsPath
from pilotfish.servers.environment import child_environment, fingerprint, foreign_path, inheritable, search_path

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
    assert name not in child_environment({name: "secret"}, {}, PATH, untrusted=())


@pytest.mark.proves("T35")
@pytest.mark.parametrize(
    "name",
    ["HOME", "LANG", "LC_ALL", "XDG_CACHE_HOME", "GOPATH", "CARGO_HOME", "JAVA_HOME", "VIRTUAL_ENV", "HTTPS_PROXY"],
)
def test_what_toolchains_need_reaches_the_server(name: str) -> None:
    assert child_environment({name: "/x"}, {}, PATH, untrusted=())[name] == "/x"


@pytest.mark.proves("T35")
def test_of_another_process_only_what_a_server_may_have_is_kept() -> None:
    entries = [("PATH", "/bin"), ("GITHUB_TOKEN", "secret"), ("VIRTUAL_ENV", "/v"), ("LC_ALL", "C"), ("", "")]
    assert inheritable(entries) == (("PATH", "/bin"), ("VIRTUAL_ENV", "/v"), ("LC_ALL", "C"))


@pytest.mark.proves("T9")
def test_path_is_the_cleaned_one() -> None:
    assert child_environment({"PATH": ".:/space/bin"}, {}, PATH, untrusted=())["PATH"] == "/usr/bin:/bin"


@pytest.mark.proves("T9", "T12")
@pytest.mark.parametrize("value", ["/space/.venv", "/space", "/usr/lib:/space/lib", "/other/../space/x"])
def test_what_leads_into_an_untrusted_workspace_is_left_out(value: str) -> None:
    base = {"VIRTUAL_ENV": value, "GOPATH": "/home/me/go", "LANG": "C"}
    expected = {"GOPATH": "/home/me/go", "LANG": "C", "PATH": "/usr/bin:/bin"}
    assert child_environment(base, {}, PATH, untrusted=[AbsPath("/space")]) == expected
    assert child_environment(base, {}, PATH, untrusted=())["VIRTUAL_ENV"] == value


@pytest.mark.proves("T9", "T12", "T47")
@pytest.mark.parametrize(
    ("value", "left"),
    [
        (".", None), ("lib", None), ("", None), (":", None), ("/usr/lib:", "/usr/lib"), ("/usr/lib:./lib", "/usr/lib"),
        ("/space:/a:/b", "/a:/b"), ("/usr/../space/x:/a", "/a"), ("/proc/self/cwd:/a", "/a"), ("//space/x", None),
        ("/", None), ("/a", "/a"),
    ],
)  # fmt: skip
def test_of_a_list_of_folders_only_what_lies_elsewhere_stays(value: str, left: str | None) -> None:
    for name in ("PYTHONPATH", "NODE_PATH", "LD_LIBRARY_PATH", "PERL5LIB", "RUBYLIB", "XDG_DATA_DIRS"):
        kept = child_environment({name: value}, {}, PATH, untrusted=[AbsPath("/space")])
        assert kept.get(name) == left
        assert child_environment({name: value}, {}, PATH, untrusted=())[name] == value


@pytest.mark.proves("T47", "A18.7")
def test_a_folder_above_the_root_would_make_the_root_a_module(tmp_path: Path) -> None:
    root = AbsPath(os.path.realpath(tmp_path / "yaml"))
    os.mkdir(root)
    base = {"PYTHONPATH": f"{tmp_path}:/usr/lib"}
    assert child_environment(base, {}, PATH, untrusted=[root])["PYTHONPATH"] == "/usr/lib"


LEADING = {
    "GOFLAGS": ("-toolexec=/space/x", "-toolexec=x", "-mod=mod -overlay=o.json", "-modfile=other.mod", "-vettool=x"),
    "CC": ("/space/cc", "./cc", "tools/cc", "ccache /space/cc", '"/space/cc" -O'),
    "GOPROXY": ("file:///space/proxy", "https://a,file:///space/p", "file:///%73pace/p", "file:/space/p"),
    "LUA_PATH": ("./?.lua", "/a/?.lua;./?.lua", "/a/?.lua;/space/?.lua", ";;"),
    "NIX_PATH": ("nixpkgs=/space/n", "nixpkgs=n"),
    "RUSTUP_TOOLCHAIN": ("/space/toolchain", "./toolchain"),
    "OPAMSWITCH": (".", "/space"),
    "VIRTUAL_ENV": (".venv", "venv", "/space/.venv", "/a/../space/v", "/proc/self/cwd/v"),
    "GOROOT": ("go", "/space/go"),
    "CARGO_HOME": ("/space/.cargo", "cargo"),
    "MISE_CONFIG_FILE": ("/space/mise.toml", "./mise.toml", "conf/mise.toml"),
    "XDG_CONFIG_HOME": ("/space/.config", ".config"),
    "NODE_EXTRA_CA_CERTS": ("ca.pem", "/space/ca.pem"),
    "TZ": (":/space/zone",),
    "HOME": ("/space/home", "."),
    "TMPDIR": ("/space/tmp", "tmp"),
}


@pytest.mark.proves("T47", "A18.8")
@pytest.mark.parametrize(("name", "value"), [(name, value) for name in LEADING for value in LEADING[name]])
def test_no_part_of_a_variable_may_lead_into_an_untrusted_root(name: str, value: str) -> None:
    assert name not in child_environment({name: value}, {}, PATH, untrusted=[AbsPath("/space")])
    assert child_environment({name: value}, {}, PATH, untrusted=())[name] == value


USUAL = {
    "GOFLAGS": "-mod=mod -tags=integration,linux",
    "CC": "ccache gcc",
    "GOPROXY": "https://proxy.example:8080/go,direct",
    "GOPRIVATE": "example.com/private/*",
    "HTTPS_PROXY": "http://user@proxy.example:3128/",
    "TZ": "Europe/Berlin",
    "LANG": "de_DE.UTF-8",
    "RUSTUP_TOOLCHAIN": "stable",
    "MISE_NODE_VERSION": "22",
    "JAVA_HOME": "/usr/lib/jvm/java-21",
    "GOPATH": "/home/me/go:/home/me/more",
    "LUA_PATH": "/usr/share/?.lua;/usr/share/?/init.lua",
    "XDG_CURRENT_DESKTOP": "GNOME",
}


@pytest.mark.proves("T35", "T47")
def test_what_people_have_set_stays() -> None:
    kept = child_environment(USUAL, {}, PATH, untrusted=[AbsPath("/space")])
    assert kept == {**USUAL, "PATH": "/usr/bin:/bin"}


@pytest.mark.proves("T47")
def test_a_link_into_the_root_leads_there_too(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "elsewhere").symlink_to(root)
    base = {"VIRTUAL_ENV": f"{tmp_path}/elsewhere/venv", "PYTHONPATH": f"{tmp_path}/elsewhere"}
    kept = child_environment(base, {}, PATH, untrusted=[AbsPath(os.path.realpath(root))])
    assert kept == {"PATH": "/usr/bin:/bin"}


@pytest.mark.proves("T48")
def test_only_folders_that_nobody_else_can_change_are_searched_for_an_untrusted_root(tmp_path: Path) -> None:
    own, anyones, below = tmp_path / "own", tmp_path / "anyones", tmp_path / "swapped" / "bin"
    for folder in (own, anyones, below):
        folder.mkdir(parents=True)
    anyones.chmod(0o777)
    below.parent.chmod(0o777)
    entries = os.pathsep.join(map(str, (own, anyones, below, "/proc/self/cwd")))
    assert search_path(entries, [AbsPath("/space")], trusted=False) == (str(own),)
    assert foreign_path(entries)[:2] == (str(anyones), str(below))
    assert len(search_path(entries, [AbsPath("/space")], trusted=True)) == 4


@pytest.mark.proves("T48", "REG-4")
def test_an_environment_that_makes_another_server_has_another_fingerprint() -> None:
    base = {"HOME": "/home/me", "TERM": "xterm", "PATH": "/a:/b", "XDG_CURRENT_DESKTOP": "GNOME", "TMPDIR": "/tmp/1"}
    passing = {**base, "TERM": "dumb", "PATH": "/session/17:/a:/b", "XDG_CURRENT_DESKTOP": "KDE", "TMPDIR": "/tmp/2"}
    assert fingerprint(base, ["/a/go"]) == fingerprint(passing, ["/a/go"])
    assert fingerprint(base, ["/a/go"]) != fingerprint(base, ["/b/go"])
    for name in ("PYTHONPATH", "GOFLAGS", "VIRTUAL_ENV", "XDG_CONFIG_HOME", "HTTPS_PROXY"):
        assert fingerprint(base, []) != fingerprint({**base, name: "/x"}, [])


@pytest.mark.proves("CFG-4")
def test_the_servers_own_variables_win() -> None:
    environment = child_environment(
        {"LANG": "de"}, {"LANG": "C", "NODE_OPTIONS": "--max-old-space-size=4096"}, PATH, untrusted=()
    )
    assert environment["LANG"] == "C"
    assert environment["NODE_OPTIONS"] == "--max-old-space-size=4096"
