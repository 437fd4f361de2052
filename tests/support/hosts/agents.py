"""The hosts: how each is started, and which of its tools breaks and mends a file."""

from pathlib import Path

from support.daemon.homes import DaemonHome
from support.hosts.model_server import Call, Say
from support.hosts.real import Agent, call, program, write

BROKEN = 'def f() -> int:\n    return "x"\n'
MENDED = BROKEN.replace('"x"', "1")
ERROR = "invalid-return-type"
"""What ty says about the broken one."""

PROMPT = "Write a.py."

ADDING = (
    "*** Begin Patch\n*** Add File: a.py\n" + "".join(f"+{line}\n" for line in BROKEN.splitlines()) + "*** End Patch\n"
)
UPDATING = """\
*** Begin Patch
*** Update File: a.py
@@
 def f() -> int:
-    return "x"
+    return 1
*** End Patch
"""

CLINE = Path(__file__).with_name("cline_run.mjs")


def claude_code(home: DaemonHome, url: str) -> list[str]:
    home.environment.update(
        ANTHROPIC_API_KEY="none",
        ANTHROPIC_BASE_URL=url,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_AUTOUPDATER="1",
        IS_SANDBOX="1",
        # It waits five seconds for MCP servers otherwise, and a scripted model edits at once.
        MCP_CONNECTION_NONBLOCKING="0",
        MCP_CONNECT_TIMEOUT_MS="120000",
        MCP_TIMEOUT="120000",
    )
    return [program("claude-code"), "--permission-mode", "bypassPermissions", "--print", PROMPT]


def codex(home: DaemonHome, url: str) -> list[str]:
    folder = _home(home) / ".codex"
    folder.mkdir(exist_ok=True)
    home.environment.update(CODEX_HOME=str(folder), SCRIPTED_KEY="none")
    # Since 0.169 an option on the command line trusts no project.
    config, trusted = folder / "config.toml", f'[projects."{home.root}"]\ntrust_level = "trusted"\n'
    known = config.read_text() if config.exists() else ""
    if trusted not in known:
        config.write_text(f"{known}\n{trusted}")
    provider = {"name": "scripted", "base_url": f"{url}/v1", "wire_api": "responses", "env_key": "SCRIPTED_KEY"}
    # Only models that it knows are given its patch tool.
    settings = {"model": "gpt-5.5", "model_provider": "scripted"}
    settings |= {f"model_providers.scripted.{name}": value for name, value in provider.items()}
    options = [word for name, value in settings.items() for word in ("-c", f'{name}="{value}"')]
    # Trust of hooks is given by a person in a dialogue, and this is what stands for it without one.
    trust = ["--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust"]
    return [program("codex"), "exec", "--skip-git-repo-check", *trust, *options, PROMPT]


def copilot(home: DaemonHome, url: str) -> list[str]:
    home.environment.update(
        COPILOT_PROVIDER_BASE_URL=f"{url}/v1",
        COPILOT_PROVIDER_API_KEY="none",
        COPILOT_MODEL="scripted",
        COPILOT_OFFLINE="true",
        COPILOT_AUTO_UPDATE="false",
    )
    # What a person says when it asks; without that it does not read the hooks of a project.
    return [program("copilot"), "--allow-all-tools", "--allow-all-paths", "--trust-folder", "-p", PROMPT]


def gemini(home: DaemonHome, url: str) -> list[str]:
    home.environment.update(GEMINI_API_KEY="none", GOOGLE_GEMINI_BASE_URL=url)
    settings = {
        "general": {"disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
    }
    write(_home(home) / ".gemini" / "settings.json", settings)
    # What a person says when it asks; without that it does not read the settings of a project.
    write(_home(home) / ".gemini" / "trustedFolders.json", {str(home.root): "TRUST_FOLDER"})
    # With a model named it does not ask another one which to take.
    return [program("gemini"), "--approval-mode", "yolo", "-m", "gemini-2.5-flash", "-p", PROMPT]


def qwen(home: DaemonHome, url: str) -> list[str]:
    home.environment.update(OPENAI_API_KEY="none", OPENAI_BASE_URL=f"{url}/v1", OPENAI_MODEL="scripted")
    settings = {
        "general": {"disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
        "security": {"auth": {"selectedType": "openai"}},
    }
    write(_home(home) / ".qwen" / "settings.json", settings)
    return [program("qwen"), "--approval-mode", "yolo", "-p", PROMPT]


def cline(home: DaemonHome, url: str) -> list[str]:
    """The engine of Cline's command line, without the terminal part: npm has that for a few processors only."""
    return [program("node"), str(CLINE), program("cline"), f"{url}/v1", PROMPT]


def aider(home: DaemonHome, url: str) -> list[str]:
    home.environment.update(OPENAI_API_KEY="none", OPENAI_API_BASE=f"{url}/v1", LITELLM_LOCAL_MODEL_COST_MAP="True")
    write(_home(home) / ".aider" / "caches" / "model_prices_and_context_window.json", {})  # else it asks the network
    quiet = ["--analytics-disable", "--no-check-update", "--no-detect-urls", "--no-show-model-warnings", "--no-pretty"]
    shape = ["--edit-format", "whole", "--map-tokens", "0", "--no-git", "--no-gitignore", "--no-stream"]
    return [program("aider"), "--model", "openai/scripted", "--yes-always", *quiet, *shape, "--message", PROMPT, "a.py"]


AGENTS = (
    Agent(
        "claude-code",
        claude_code,
        call("Write", file_path="{file}", content=BROKEN),
        call("Edit", file_path="{file}", old_string='"x"', new_string="1"),
        ("File created successfully at: ", "has been updated successfully"),
    ),
    Agent(
        "codex",
        codex,
        lambda _: Call("apply_patch", ADDING),
        lambda _: Call("apply_patch", UPDATING),
        ("Success. Updated the following files:\nA a.py", "Success. Updated the following files:\nM a.py"),
    ),
    Agent(
        "copilot",
        copilot,
        call("create", path="{file}", file_text=BROKEN),
        call("edit", path="{file}", old_str='"x"', new_str="1"),
        ("Created file ", "updated with changes."),
    ),
    Agent(
        "gemini",
        gemini,
        call("write_file", file_path="{file}", content=BROKEN),
        call("replace", file_path="{file}", old_string='"x"', new_string="1", instruction="Return a number."),
        ("Successfully created and wrote to new file: ", "Successfully modified file: "),
    ),
    Agent(
        "qwen",
        qwen,
        call("write_file", file_path="{file}", content=BROKEN),
        call("edit", file_path="{file}", old_string='"x"', new_string="1"),
        ("Successfully created and wrote to new file: ", "has been updated."),
    ),
    Agent(
        "cline",
        cline,
        call("editor", path="{file}", new_text=BROKEN),
        call("editor", path="{file}", old_text='"x"', new_text="1"),
        ("File created successfully at: ", "Edited "),
    ),
    Agent(
        "aider",
        aider,
        lambda _: Say(f"a.py\n```\n{BROKEN}```"),
        lambda _: Say(f"Now it returns a number.\n\na.py\n```\n{MENDED}```"),
        (),
    ),
)


def _home(home: DaemonHome) -> Path:
    return Path(home.environment["HOME"])
