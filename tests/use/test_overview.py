"""What a person sees who has just come to a project: `pilotfish` alone, `status`, and a check without a server."""

import subprocess
import sys

import pytest

from support.daemon.users import ShellUser, named_server

pytestmark = [pytest.mark.slow, pytest.mark.proves("CLI-1")]


def told(user: ShellUser) -> list[str]:
    done = user.run()
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_missing_server_is_named_with_the_command_that_installs_it(user: ShellUser) -> None:
    user.write("a.py", "x = 1\n")
    lines = told(user)
    assert lines[0] == f"{user.root} (not trusted)"
    assert "python  1 file: basedpyright is not installed" in lines
    assert "No Python environment was found, so imports of installed packages cannot be resolved." in lines
    assert lines[-2:] == ["Next: pilotfish install basedpyright", "All commands: pilotfish --help"]


def test_a_project_whose_servers_are_there_can_be_checked(user: ShellUser) -> None:
    user.install("basedpyright-langserver")
    user.write("a.py", "x = 1\n")
    user.write("README.md", "# a\n")
    lines = told(user)
    assert "python  1 file: basedpyright is ready" in lines
    assert lines[-2] == "Next: pilotfish check"


def test_the_environment_of_a_package_is_found_where_the_package_is(user: ShellUser) -> None:
    user.install("basedpyright-langserver")
    user.write("service/pyproject.toml", "[project]\nname = 'service'\n")
    user.write("service/a.py", "x = 1\n")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", user.root / "service/.venv"], check=True)
    assert "Python packages: service/.venv" in told(user)


def test_an_error_of_the_configuration_comes_first(user: ShellUser) -> None:
    user.configure({"lsp": {"toy": named_server("toy", ".x")}, "unknown": 1})
    user.write("a.x", "text\n")
    lines = told(user)
    assert any("The configuration has an error:" in line and "unknown" in line for line in lines)
    assert lines[-2] == "Next: pilotfish config check"


def test_status_is_about_the_languages_of_this_project(user: ShellUser) -> None:
    user.install("basedpyright-langserver")
    user.write("a.py", "x = 1\n")
    user.write("b.ts", "let x = 1\n")
    shown = user.run("status").stdout
    assert "\nbasedpyright  idle\n" in shown
    assert "typescript: LSP server" in shown
    assert "pilotfish install typescript" in shown
    assert "rust-analyzer" not in shown
    assert "rust-analyzer" in user.run("status", "--all").stdout


def test_a_question_without_a_server_says_what_to_install(user: ShellUser) -> None:
    user.write("a.py", "x = 1\n")
    assert "Install it with: pilotfish install basedpyright" in user.run("definition", "x").stdout


def test_a_home_folder_is_a_project_where_something_makes_it_one(user: ShellUser) -> None:
    user.home.environment["HOME"] = str(user.root)
    user.write("a.py", "x = 1\n")
    lines = told(user)
    assert lines[2] == "This folder is no project."
    assert lines[-2] == "Next: cd into a project, or pilotfish demo"
    user.write("pyproject.toml", "")
    assert "python  1 file: basedpyright is not installed" in told(user)


def test_a_server_that_came_with_us_is_not_installed_again(user: ShellUser) -> None:
    user.install("basedpyright-langserver")
    ours = user.root.parent / "ours"
    (user.root.parent / "home" / "bin").rename(ours)
    user.plant("unrelated", "#!/bin/sh\n")
    (ours / "pilotfish").write_text("#!/bin/sh\n")
    (ours / "pilotfish").chmod(0o755)
    (user.root.parent / "home" / "bin" / "pilotfish").symlink_to(ours / "pilotfish")
    done = user.run("install", "basedpyright")
    assert done.stdout == f"basedpyright: already installed together with pilotfish, in {ours}\n"


def test_a_check_offers_a_person_to_install_what_is_missing(user: ShellUser) -> None:
    user.write("a.py", "x = 1\n")
    asked = "Install basedpyright now? [Y/n]:"
    assert asked not in user.run("check").stdout
    seen = user.at_a_terminal("check", answer="n")
    assert asked in seen
    assert seen.count("not available") == 1
    assert "is not installed" in user.run().stdout


def test_an_empty_folder_is_shown_the_demo(user: ShellUser) -> None:
    lines = told(user)
    assert "No file here has a language server." in lines
    assert lines[-2] == "Next: pilotfish demo"


def test_every_verb_says_that_the_configuration_is_broken(user: ShellUser) -> None:
    user.install("basedpyright-langserver")
    user.write("a.py", "x = 1\n")
    user.write(".pilotfish/lsp.json", '{"lsp": ')
    for verb in ((), ("check",), ("check", "a.py"), ("definition", "a.py:1:1"), ("status",), ("doctor",)):
        done = user.run(*verb)
        assert "lsp.json:1:" in done.stdout + done.stderr, verb


def next_step(user: ShellUser) -> str:
    return told(user)[-2]


def test_pictures_styles_and_scripts_are_not_what_a_project_is_about(user: ShellUser) -> None:
    user.write("src/App.tsx", "export const a = 1;\n")
    user.write("pom.xml", "<project/>\n")
    for number in range(5):
        user.write(f"public/{number}.svg", "<svg/>\n")
        user.write(f"styles/{number}.css", "a {}\n")
        user.write(f"scripts/{number}.sh", "echo\n")
    assert next_step(user) == "Next: pilotfish install typescript"
    assert '"typescript-language-server" is not available' in user.run("definition", "a").stdout


def test_all_servers_that_a_project_lacks_are_installed_in_one_step_after_its_packages(user: ShellUser) -> None:
    user.write("src/main.ts", "export const a = 1;\n")
    user.write("src/App.vue", "<script></script>\n")
    user.write("package.json", '{"dependencies": {"vue": "3"}}')
    assert next_step(user) == "Next: npm install"
    user.write("node_modules/vue/package.json", "{}")
    assert next_step(user) == "Next: pilotfish install typescript vue"


def test_a_server_that_asks_another_one_is_not_all_that_a_project_needs(user: ShellUser) -> None:
    user.configure({"security": {"trustedProjectRoots": [str(user.root)]}})
    user.write("App.vue", "<script></script>\n")
    user.plant("vue-language-server", "#!/bin/sh\n")
    assert "vue is ready, but typescript is not installed" in "\n".join(told(user))
    assert next_step(user) == "Next: pilotfish install typescript"


def test_scripts_are_where_there_is_nothing_else(user: ShellUser) -> None:
    user.write("run.sh", "echo\n")
    assert next_step(user) == "Next: pilotfish install bash"


def test_a_proxy_of_rustup_is_not_the_server(user: ShellUser) -> None:
    user.write("Cargo.toml", "[package]\nname = 'a'\n")
    user.write("src/main.rs", "fn main() {}\n")
    user.plant("rustup", "#!/bin/sh\nexit 1\n")
    home = user.root.parent / "home"
    (home / "bin" / "rust-analyzer").symlink_to("rustup")
    assert next_step(user) == "Next: rustup default stable && rustup component add rust-analyzer rust-src"
    (home / ".rustup" / "toolchains" / "stable" / "bin").mkdir(parents=True)
    (home / ".rustup" / "settings.toml").write_text('default_toolchain = "stable"\n')
    assert next_step(user) == "Next: rustup component add rust-analyzer rust-src"
    assert "rustup component add rust-analyzer rust-src" in user.run("check").stdout


def test_packages_that_are_not_installed_come_after_the_server(user: ShellUser) -> None:
    user.write("requirements.txt", "anyio\n")
    user.write("a.py", "import anyio\n")
    assert next_step(user) == "Next: pilotfish install basedpyright"
    user.install("basedpyright-langserver")
    step = "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"
    assert next_step(user) == f"Next: {step}"
    assert f"→ {step}" in user.run("doctor").stdout


def test_a_search_that_stands_in_for_a_server_is_for_the_symbol(user: ShellUser) -> None:
    user.write("a.ts", "export const total = 1;\n")
    assert "rg -n 'total' -g '*.ts'" in user.run("references", "a.ts", "total").stdout


def test_a_name_that_only_files_without_a_server_mention_is_not_called_unknown(user: ShellUser) -> None:
    user.install("basedpyright-langserver")
    user.write("a.py", "x = 1\n")
    user.write("Counter.svelte", "<script>let n = 0;</script>\n")
    user.write("App.svelte", "<Counter/>\n")
    done = user.run("definition", "Counter")
    assert done.returncode == 2
    assert "pilotfish install svelte" in done.stdout


def test_trust_names_the_servers_that_wait_for_it(user: ShellUser) -> None:
    user.write("biome.json", "{}\n")
    user.write("a.ts", "export const a = 1;\n")
    user.write("node_modules/.bin/biome", "#!/bin/sh\n")
    (user.root / "node_modules/.bin/biome").chmod(0o755)
    assert "These servers wait for trust: biome" in user.run("trust").stdout


@pytest.mark.proves("REG-7")
def test_whoever_names_no_server_to_install_is_told_what_the_project_needs(user: ShellUser) -> None:
    user.write("a.ts", "let x = 1\n")
    done = user.run("install")
    assert done.returncode != 0
    assert "For this project: pilotfish install typescript" in done.stderr


@pytest.mark.proves("REG-7")
def test_a_program_that_a_server_runs_is_found_by_its_name(user: ShellUser) -> None:
    assert "bash" in user.run("servers", "shellcheck").stdout
    # Where PyPI has no wheel for the system, the package of the system is named.
    done = user.run("install", "--remove", "shellcheck")
    assert "unknown server" not in done.stderr
