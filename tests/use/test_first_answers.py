"""The first answer in ten kinds of projects, on a machine without any server: it names the right next step."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.daemon.users import ShellUser

pytestmark = [pytest.mark.slow, pytest.mark.proves("CLI-1", "REG-6")]

REACT = {
    "package.json": '{"dependencies": {"react": "19"}}',
    "tsconfig.json": "{}",
    "src/App.tsx": "export function Main() { return null; }\n",
    "src/App.css": "a {}\n",
    "index.html": "<!doctype html>\n",
    **{f"public/{number}.svg": "<svg/>\n" for number in range(4)},
}
JAVA = {
    "pom.xml": "<project/>\n",
    "src/a.xml": "<a/>\n",
    "src/b.xml": "<a/>\n",
    "src/main/java/Main.java": "class Main {}\n",
}


@dataclass(frozen=True)
class Project:
    """Its files, what the first look says besides, and what is named as the next step, there and by a question."""

    files: dict[str, str]
    step: str
    told: str = ""
    programs: tuple[str, ...] = ()
    home: dict[str, str] = field(default_factory=dict[str, str])


PROJECTS = {
    "React": Project(REACT, "pilotfish install typescript", "There is no node_modules folder"),
    "Vue": Project({"package.json": "{}", "src/Main.vue": "<script>let Main</script>\n"}, "pilotfish install vue"),
    "Svelte": Project(
        {"package.json": "{}", "src/Main.svelte": "<script>let Main</script>\n"}, "pilotfish install svelte"
    ),
    "Rust by rustup": Project(
        {"Cargo.toml": "[package]\nname = 'a'\n", "src/main.rs": "struct Main;\n"},
        "rustup component add rust-analyzer rust-src",
        programs=("rustup", "rust-analyzer"),
        home={".rustup/settings.toml": 'default_toolchain = "s"\n', ".rustup/toolchains/s/bin/cargo": ""},
    ),
    "an older Go than go.mod asks for": Project(
        {"go.mod": "module example.com/a\n\ngo 1.26\n", "main.go": "package main\n\ntype Main struct{}\n"},
        "",  # gopls may be one of the system's programs, which are found too
        "go.mod asks for Go 1.26, and Go 1.19 is installed",
        programs=("go",),
        home={"VERSION": "go1.19.8"},
    ),
    "C with CMake": Project(
        {"CMakeLists.txt": "project(p C)\n", "main.c": "struct Main { int a; };\n"},
        "pilotfish install clangd",
        "There is no compile_commands.json",
    ),
    "Java": Project(JAVA, "pilotfish install jdtls"),
    "shell": Project({"run.sh": "Main() { :; }\n"}, "pilotfish install bash"),
    "Python without an environment": Project(
        {"requirements.txt": "requests\n", "a.py": "class Main: ...\n", "run.sh": "echo\n", "style.css": "a {}\n"},
        "pilotfish install basedpyright",
        "No Python environment was found",
    ),
    "nothing": Project({}, "pilotfish demo"),
}


@pytest.mark.parametrize("project", [pytest.param(one, id=name) for name, one in PROJECTS.items()])
def test_the_first_answer_names_the_right_next_step(project: Project, user: ShellUser) -> None:
    for name, text in project.files.items():
        user.write(name, text)
    home = Path(user.home.environment["HOME"])
    for name, text in project.home.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    for program in project.programs[:1]:
        user.plant(program, "#!/bin/sh\nexit 1\n")
    for proxy in project.programs[1:]:
        (home / "bin" / proxy).symlink_to(project.programs[0])
    first = user.run().stdout
    assert f"\nNext: {project.step}" in first
    assert project.told in first
    if project.files and project.step:
        asked = user.run("definition", "Main")
        assert asked.returncode == 2
        assert project.step in asked.stdout
