"""Ten kinds of projects, as they are before anything was done for them, and the next step that is right in each.

For `tests/use/test_first_answers.py`, and for `tools/newcomer.py`, which takes the steps. Standard library only.
"""

from dataclasses import dataclass, field
from pathlib import Path

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
    then: str = ""
    """The step for what `told` is about, once its server is installed."""
    server: str = ""
    """What a question names, where that is not the next step."""
    programs: tuple[str, ...] = ()
    """On the `PATH`: the first one fails, the others are links to it."""
    home: dict[str, str] = field(default_factory=dict[str, str])

    def make(self, folder: Path, home: Path) -> None:
        """Write its files, and what its user has."""
        for place, texts in ((folder, self.files), (home, self.home)):
            for name, text in texts.items():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).write_text(text)
        for number, name in enumerate(self.programs):
            program = home / "bin" / name
            program.parent.mkdir(exist_ok=True)
            if number:
                program.symlink_to(self.programs[0])
            else:
                program.write_text("#!/bin/sh\nexit 1\n")
                program.chmod(0o755)


PROJECTS = {
    "React": Project(
        REACT, "npm install", "There is no node_modules folder", "npm install", server="pilotfish install typescript"
    ),
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
        "install Go 1.26 or newer from https://go.dev/dl/",
        programs=("go",),
        home={"VERSION": "go1.19.8"},
    ),
    "C with CMake": Project(
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(p C)\nadd_executable(p main.c)\n",
            "main.c": "struct Main { int a; };\nint main(void) { return 0; }\n",
        },
        "pilotfish install clangd",
        "There is no compile_commands.json",
        "cmake -B build -DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
    ),
    "Java": Project(JAVA, "pilotfish install jdtls"),
    "shell": Project({"run.sh": "Main() { :; }\n"}, "pilotfish install bash"),
    "Python without an environment": Project(
        {"requirements.txt": "requests\n", "a.py": "class Main: ...\n", "run.sh": "echo\n", "style.css": "a {}\n"},
        "pilotfish install basedpyright",
        "No Python environment was found",
        "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt",
    ),
    "nothing": Project({}, "pilotfish demo"),
}
