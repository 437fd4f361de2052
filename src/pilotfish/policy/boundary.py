"""The one place where a path from a caller or a server becomes a path that we use (PATH-1 … PATH-5, T28–T30, T43).

Every surface passes through `admit`. What comes out is real: absolute, without symbolic links, in the file system's
own spelling, and inside the workspace or its git worktree by whole segments. Whatever leads out is refused before it
is looked at any closer, so that an answer never tells what lies outside.
"""

import os
import re
import stat
import sys
import unicodedata
from collections.abc import Callable, Sequence
from enum import Enum, auto
from fnmatch import translate
from functools import cache

from msgspec import Struct

from pilotfish.errors import Code, Refused
from pilotfish.model import AbsPath
from pilotfish.paths import below, is_dependency, is_inside, is_library, top_folder
from pilotfish.policy.openat import open_beneath
from pilotfish.system.ownership import top_of
from pilotfish.system.real_path import real_path

MAX_PATH = 4_096
"""What Linux takes as a path."""


LOOK_FLAGS = os.O_PATH | os.O_CLOEXEC if sys.platform == "linux" else 0
"""To name a file without opening it: a FIFO does not block, and a device does not notice."""

GONE = " (deleted)"
"""What Linux adds to the name of a file that is not there any more."""


class Want(Enum):
    """What the caller needs at the path."""

    FILE = auto()
    """A regular file that can be read."""
    PLACE = auto()
    """A path inside, whatever is there: a caller that has not seen the file before must `require_file`."""
    FOLDER = auto()
    TARGET = auto()
    """A regular file, or a place where one could be written."""
    TREE = auto()
    """A folder that may be moved or deleted with all that is in it."""


class Place(Enum):
    """Where a path lies, for showing a location."""

    IN_ROOT = auto()
    DEPENDENCY = auto()
    """A library, inside the workspace or installed beside it."""
    OUTSIDE = auto()


class Boundary(Struct, frozen=True):
    """What one client session may touch. Folders are real paths; `boundary_of` makes it."""

    workspace: AbsPath
    worktree: AbsPath
    """The git worktree that the workspace is part of; the workspace itself without one."""
    cwd: AbsPath
    allow_external: bool = False
    """Files outside may be read; never written."""
    private: tuple[AbsPath, ...] = ()
    """Our own configuration and state: no write, wherever they lie (T11)."""
    ignores_case: bool = False


class Admitted(Struct, frozen=True):
    """A path that may be used. Open it with `open_admitted`, which cannot be led elsewhere in between."""

    path: AbsPath
    root: AbsPath
    segments: tuple[str, ...]
    """From `root` down."""
    place: Place


def boundary_of(
    workspace: str, cwd: str | None = None, *, allow_external: bool = False, private: Sequence[str] = ()
) -> Boundary:
    """The boundary of a workspace; raises `Refused` when that is not a folder."""
    real = real_path(workspace)
    if not os.path.isdir(real):
        raise Refused(Code.ROOT_GONE, f"the workspace {workspace} is not a folder")
    return Boundary(
        workspace=AbsPath(real),
        worktree=AbsPath(top_of(real)),
        cwd=AbsPath(os.path.normpath(cwd) if cwd and os.path.isabs(cwd) else real),
        allow_external=allow_external,
        private=tuple(AbsPath(real_path(folder)) for folder in private),
        ignores_case=_ignores_case(real),
    )


def admit(request: str, boundary: Boundary, want: Want = Want.FILE) -> Admitted:
    """The file that `request` means, or `Refused` with the reason as its code."""
    named = _named(request, boundary.cwd)
    try:
        real = _resolved(named)
    except OSError as error:  # A link swapped while it is followed.
        raise Refused(Code.FILE_UNREADABLE, f"{named}: {error.strerror}") from None
    admitted = _placed(spelled(real, _names) if boundary.ignores_case else real, boundary)
    if admitted.root not in _roots(boundary) and not boundary.allow_external:
        raise Refused(
            Code.OUTSIDE_WORKSPACE,
            f"{request} is outside the workspace {boundary.workspace}",
            hint="Only files of the workspace and its git worktree are served; start in the folder of others.",
        )
    match want:
        case Want.FILE:
            require_file(admitted)
        case Want.PLACE:
            pass
        case Want.FOLDER:
            _refuse_unless_folder(admitted)
        case Want.TARGET:
            _refuse_protected(admitted, boundary)
            try:
                require_file(admitted)
            except Refused as refusal:
                if refusal.code is not Code.FILE_MISSING:
                    raise
        case Want.TREE:
            _refuse_protected(admitted, boundary)
            _refuse_unless_folder(admitted)
    return admitted


def require_file(admitted: Admitted) -> None:
    """Raise `Refused` unless a regular file is there that can be read."""
    os.close(open_admitted(admitted))


def open_admitted(admitted: Admitted) -> int:
    """Open an admitted file for reading; the descriptor is the caller's to close. Raises `Refused`."""
    return open_beneath(admitted.root, admitted.segments)


def classify(path: AbsPath, boundary: Boundary) -> Place:
    """Where a path from a server lies. Nothing is read there."""
    return _placed(_resolved(path), boundary).place


def spelled(path: str, listed: Callable[[str], Sequence[str]]) -> str:
    """`path` as a case-insensitive file system spells it; `listed` gives the names in a folder (F43, F46)."""
    result = top_folder(path)
    for segment in below(path, result) or ():
        names = listed(result)
        alike = [name for name in names if _alike(name) == _alike(segment)]
        result = os.path.join(result, segment if segment in names or not alike else min(alike))
    return result


def _named(request: str, cwd: AbsPath) -> str:
    """One leading `@` goes, and no more than one; then the path is made absolute and normal."""
    text = request.removeprefix("@")
    try:
        length = len(os.fsencode(text))
    except UnicodeEncodeError:
        raise Refused(Code.INVALID_INPUT, "a path must be encodable") from None
    if not 0 < length <= MAX_PATH or "\0" in text:
        raise Refused(Code.INVALID_INPUT, f"a path has 1 to {MAX_PATH} bytes and no NUL")
    return os.path.normpath(os.path.join(cwd, text))


def _resolved(path: str) -> str:
    """`path` without symbolic links. What is there, Linux names at once: `realpath` asks it once per folder."""
    if not LOOK_FLAGS:
        return real_path(path)
    try:
        descriptor = os.open(path, LOOK_FLAGS)
    except (OSError, ValueError):
        return real_path(path)
    try:
        real = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        real = ""
    finally:
        os.close(descriptor)
    is_plain = real.startswith("/") and not real.endswith(GONE)
    return real if is_plain else real_path(path)


def _placed(real: str, boundary: Boundary) -> Admitted:
    for root in _roots(boundary):
        if (segments := below(real, root)) is not None:
            place = Place.DEPENDENCY if is_dependency(segments) else Place.IN_ROOT
            return Admitted(AbsPath(real), root, segments, place)
    place = Place.DEPENDENCY if is_library(real) else Place.OUTSIDE
    top = top_folder(real)
    return Admitted(AbsPath(real), AbsPath(top), below(real, top) or (), place)


def _roots(boundary: Boundary) -> tuple[AbsPath, ...]:
    return (boundary.workspace, boundary.worktree)


def _refuse_unless_folder(admitted: Admitted) -> None:
    try:
        is_folder = stat.S_ISDIR(os.stat(admitted.path, follow_symlinks=False).st_mode)
    except OSError:
        raise Refused(Code.FILE_MISSING, f"{admitted.path} does not exist") from None
    if not is_folder:
        raise Refused(Code.NOT_A_FILE, f"{admitted.path} is not a folder")


def _refuse_protected(admitted: Admitted, boundary: Boundary) -> None:
    if admitted.root not in _roots(boundary):
        raise Refused(Code.OUTSIDE_WORKSPACE, f"{admitted.path} is outside the workspace: it may be read, not written")
    if (part := protected(admitted.segments)) is not None:
        raise Refused(Code.PROTECTED, f"{admitted.path} is not changed: {part} decides what other programs do")
    if any(is_inside(admitted.path, folder) for folder in boundary.private):
        raise Refused(Code.PROTECTED, f"{admitted.path} is not changed: it is pilotfish's own")


def _ignores_case(folder: str) -> bool:
    """Whether another spelling of the folder's own name leads to it."""
    parent, name = os.path.split(folder)
    try:
        return name.swapcase() != name and os.path.samefile(folder, os.path.join(parent, name.swapcase()))
    except OSError:
        return False


def _names(folder: str) -> Sequence[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return ()


def _alike(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


# --- What no edit of ours may touch, even inside the workspace (T11, T28, T53) ----------------------------------------

# Files that decide what other programs run, or what an agent believes: a language server that is confused by a
# repository, or malicious, must not be able to create or change them through us. One list, by pattern: `*` stands for
# any characters, at any depth. Names are compared as the most forgiving file systems do: without case, in one Unicode
# form, without characters that cannot be seen, without dots at the end.
# Files that language servers are for (`package.json`, `tsconfig.json`, a `justfile`) are not on it: a rename must reach
# them, and the person sees the diff.

AGENTS = (
    "agent", "agents", "amp", "claude", "codex", "crush", "firebender", "gemini", "goose", "iflow", "jules", "kilo",
    "llxprt", "opencode", "qwen", "replit", "warp",
)  # fmt: skip
"""Agents that read `NAME.md`, `NAME.local.md` or `NAME.json`."""

PROTECTED = (
    # What agents are told, and how they are set up; the folders of each hold rules, skills, hooks and servers.
    ".agent", ".agents", ".ai", ".aiassistant", ".aider*", ".amazonq", ".amp", ".antigravity*", ".augment*", ".claude*",
    ".cline*", ".codebuddy", ".codeium*", ".codex*", ".commandcode", ".continue*", ".copilot*", ".crush*", ".cursor*",
    ".dispatch", ".factory", ".firebender*", ".forge", ".gemini*", ".goose*", ".idx", ".iflow", ".junie*", ".kilo*",
    ".kiro*", ".letta", ".llxprt*", ".mcp*", ".mux", ".openhands*", ".opencode*", ".pi", ".pilotfish", ".plandex*",
    ".pochi", ".qoder", ".qwen*", ".roo*", ".rovodev*", ".ruler", ".rules", ".serena", ".tabnine", ".trae*", ".void*",
    ".warp*", ".windsurf*", ".zed", ".zencoder*", ".aiexclude", ".aiignore",
    *(f"{agent}{ending}" for agent in AGENTS for ending in (".md", ".*.md", ".json", ".jsonc")),
    "*copilot-instructions.md", "*.agent.md", "*.chatmode.md", "*.instructions.md", "*.prompt.md", "airules.md",
    "lsp.json", ".lsp.json", "mcp.json", "mcp.jsonc", "mcp_config.json", "mcp-servers.json", "skill.md",
    # What version control, forges and their machines run.
    ".bzr", ".circleci", ".buildkite", ".drone*", ".forgejo", ".gitea", ".git", ".gitattributes", ".gitconfig",
    ".githooks", ".gitlab*", ".gitmodules", ".hg", ".hgrc", ".husky*", ".jj", ".lefthook*", ".svn", ".teamcity",
    ".travis.yml", ".woodpecker*", "*appveyor.yml", "azure-pipelines*.y*ml", "bitbucket-pipelines.yml",
    "buildspec*.y*ml", "cloudbuild.y*ml", ".cirrus*", "dependabot.y*ml", "jenkinsfile*", "lefthook*.y*ml",
    "lefthook*.toml", "lefthook*.json", ".lintstagedrc*", "lint-staged.config.*", ".overcommit.yml", ".pre-commit*",
    # What editors and debuggers run on opening a folder.
    ".devcontainer*", ".dir-locals*.el", ".exrc", ".fleet", ".gdbinit", ".idea", ".lldbinit", ".lvimrc", ".nvim.lua",
    ".nvimrc", ".vimrc", ".vs", ".vscode*", ".ycm_extra_conf.py", "*.code-workspace", "*.sublime-project",
    "*.sublime-workspace",
    # What shells and version managers run on entering a folder, or at a login.
    ".*-version", ".asdfrc", ".bash*", ".cshrc", ".direnv*", ".env", ".env.*", ".envrc*", ".inputrc", ".kshrc",
    ".login", ".mise*", ".nvmrc", ".profile", ".sdkmanrc", ".tcshrc", ".tool-versions", ".zlog*", ".zprofile", ".zsh*",
    "mise*.toml", "rust-toolchain*",
    # What package managers and build tools run, and where they fetch from; secrets.
    ".bazelrc", ".bundle", ".cargo", ".condarc", ".curlrc", ".gemrc", ".mvn", ".netrc", ".npmrc", ".pdm*", ".pnp.*",
    ".pnpmfile.*", ".pypirc", ".ssh", ".wgetrc", ".yarn", ".yarnrc*", "*-wrapper.properties", "*.pth", "_netrc",
    "bunfig.toml", "nuget.config", "pdm.toml", "pip.conf", "pip.ini", "poetry.toml", "sitecustomize.py",
    "usercustomize.py", "uv.toml",
)  # fmt: skip
"""Names of folders and files, at any depth: a nested repository has hooks too."""

PROTECTED_PATHS = (
    (".config", "pilotfish"),
    (".config", "opencode"),
    (".config", "mise"),
    (".config", "git"),
    (".config", "goose"),
    (".config", "crush"),
    *((".github", name) for name in ("actions", "agents", "chatmodes", "hooks", "instructions", "prompts", "skills")),
    (".github", "workflows"),
)
"""Folders by two names, at any depth."""


def protected(segments: Sequence[str]) -> str | None:
    """The part of a path below a root that makes it untouchable; None when nothing does."""
    folded = [_folded(segment) for segment in segments]
    for place, segment in enumerate(folded):
        if _protected_names().match(segment) or (segment, *folded[place + 1 : place + 2]) in PROTECTED_PATHS:
            return segments[place]
    return None


@cache
def _protected_names() -> re.Pattern[str]:
    """Made for the first edit: it takes as long as fifty modules, and no daemon needs it to start."""
    return re.compile("|".join(translate(pattern) for pattern in PROTECTED))


def _folded(segment: str) -> str:
    visible = "".join(character for character in segment if unicodedata.category(character) != "Cf")
    return unicodedata.normalize("NFC", visible).casefold().rstrip(". ")
