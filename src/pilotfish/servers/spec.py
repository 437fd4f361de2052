"""What is known about one language server: a frozen value, made from the catalogue and the user's configuration.

The code knows no server by name: what one of them needs is a field here, and in the catalogue a key in camel case.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, field

if TYPE_CHECKING:
    from pilotfish.protocol.wire import Json
else:
    Json = Any  # msgspec reads no type that contains itself; what a TOML or JSON file holds is JSON anyway.

Word = Annotated[str, Meta(min_length=1)]
Words = tuple[Word, ...]
Positive = Annotated[int, Meta(ge=1)]
JsonTable = Mapping[str, Json]
TextMap = Mapping[str, str]


class CatalogueTable(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A closed table that `servers.catalogue` reads and lays the configuration over: another key is an error."""


class Role(StrEnum):
    """How a server shares a file with others."""

    MAIN = "main"
    """It understands the language. Of several, exactly one runs for a file, unless the configuration names more."""
    COMPANION = "companion"  # It adds to the main one (a linter, a framework) and runs beside it


class Risk(StrEnum):
    """What starting the server in a folder means, before a single request."""

    PARSES = "parses"  # it reads the project's files and runs nothing from them
    RUNS_PROJECT_CODE = "runs-project-code"  # it runs what the project names: scripts, plugins, macros, configuration


class RootStrategy(StrEnum):
    """Which of the folders with a root marker the server is started for."""

    NEAREST = "nearest"
    OUTERMOST = "outermost"  # for builds whose modules only make sense together
    WORKSPACE = "workspace"


Grouping = Literal["cargo", "go-work", "npm", "pnpm", "uv"]  # A manifest that joins several packages into one root


Manager = Literal[
    "apt", "brew", "cargo", "composer", "coursier", "dotnet", "gem", "ghcup", "go", "nimble", "nix", "npm", "opam",
    "pip", "rustup", "shell", "url",
]  # fmt: skip
"""What can install a server. `url` is a page for people, `shell` a command line for people."""


class PullSupport(StrEnum):
    """Whether and how the server offers `textDocument/diagnostic`."""

    NONE = "none"
    STATIC = "static"
    DYNAMIC = "dynamic"  # Registered some time after the start: until then its absence says nothing
    UNDECLARED = "undeclared"  # It answers, although it does not say that it would
    EMPTY = "empty"  # It offers it, and answers with nothing or about some older text: only what it publishes counts


class Phases(StrEnum):
    """Whether the first publish for a version is already the whole answer."""

    UNKNOWN = "unknown"
    """Another publish for the same version may replace it: it must stay for as long as this server has needed."""
    ONE = "one"
    UNTIL_PROGRESS_ENDS = "until-progress-ends"
    AFTER_PROGRESS = "after-progress"
    """It tells of its work, its loading too, and publishes for each open file at its end: what came before is void."""
    WITHIN_PROGRESS = "within-progress"
    """It tells of each check, and publishes all of it before the end: what it says outside of a later one is void."""
    UNTIL_QUIESCENT = "until-quiescent"  # Until `experimental/serverStatus` says `quiescent`


class OnDemand(CatalogueTable, frozen=True):
    """A `workspace/executeCommand` for the diagnostics of one file."""

    command: Word
    requests: Words = ()
    shape: Word | None = None
    """How to read its answers. None: it publishes before it answers, and takes the file's URI and `arguments`."""
    arguments: tuple[Json, ...] = ()
    hints: Words = ()  # The requests whose findings are all hints: whoever does not want any need not ask
    project: Word | None = None
    """The request that names the project of an open file. With it, files that are not open can be asked about."""
    project_files: Words = ()  # The names of files that make a folder a project
    reread: Word | None = None
    """The request that makes it read a file again that is not open: its own watchers tell late, or never."""
    reread_all: Word | None = None  # The same for all files, and for those that are new or gone
    affected: Word | None = None
    """The request of a plugin of ours that names the files which edits may have broken, see `server_affected`."""


class Freshness(CatalogueTable, frozen=True):
    """How to know that this server's diagnostics are those of the text just sent. None: not known, watch and learn."""

    pull: PullSupport | None = None
    unopened_pull: bool = False
    """A pull for a file that is not open is answered by the disk; others answer with nothing, as if it were clean."""
    phases: Phases = Phases.UNKNOWN
    loaded_by: Word | None = None
    """A notification of its own by which it has loaded its project; after a blank, the `type` that it has then."""
    ask_first: Word | None = None
    """A request about the file that makes it read the newest text: a pull before that is answered with an older one."""
    ask_after_text: Word | None = None
    """A request about a file that makes it take in a new text of that for other files, too, which it else does late."""
    barrier: Word | None = None  # A request that is answered only after the diagnostics of everything sent before it
    waits_for_work: bool = True
    """False: its diagnostics do not wait for the work that it tells of, not even for that at its start."""
    names_versions: bool = False
    """It names the version of an open file that has changed: a list without one is of the disk, or as it was opened."""
    publishes_unchanged: bool | None = None  # False: an edit that changes no diagnostic is followed by silence
    debounce_ms: Positive | None = None
    """The server's own pause before it publishes: what comes sooner after a change is about an older text."""
    debounces_opens: bool = True
    """False: of a file that was opened it speaks at once, and what it says there must stay for half of that pause."""
    on_save_only: bool = False  # It checks nothing before `didSave`
    save_progress: Word | None = None
    """`didSave` starts a second check that publishes; it is over when the progress whose token starts so has ended."""
    restarts_check: bool = False
    """It may end that check to begin it anew, for reasons of its own: an end is the last one only after a while."""
    compiler: Word | None = None
    """The source of what that second check finds: it words what the server's own analysis had found by itself."""
    answers_after: Word | None = None
    """A save or a change on disk starts a check: it is asked once the progress whose token starts so has ended."""
    dependents_after_save: bool = False  # Files that depend on the changed one are checked again only after `didSave`
    opens_with_unsaved: bool = False
    """And yet a file that is opened anew is checked with the texts of others that were sent and never saved."""
    cancels_on_change: bool = False
    """It gives up a question when some document is opened or changed, and says that we had cancelled it."""
    refreshes_on_open: bool = False
    """Opening or closing a document makes it send `workspace/diagnostic/refresh`, and changes nothing elsewhere."""
    keeps_findings: bool = False
    """What it finds in a file on the way to another one, it tells with the next check of that file, mended or not."""
    on_demand: OnDemand | None = field(default=None, name="onDemandCommand")
    did_change_extra: JsonTable = {}  # Members beside the standard ones of `didChange`, an extension of this server
    settings_first: bool = False
    """Of the files that are opened before it has asked for its settings, it checks the last one only."""
    cannot_check: Words = ()
    """Messages by which the server says that it does not check: an empty answer after one does not mean clean."""
    remedy: Word | None = None  # What a person does about such a message
    failed_check: Words = ()
    """Messages by which it says, while it answers a question, that this check failed: the answer then means nothing."""
    not_checked: Word | None = None
    """What it does not check however long one waits: its verdict is partial, and says so."""
    unchecked: Word | None = None
    """A pattern of what it does not check in a file: the verdict on a file that has it is partial."""
    late_imports: str = r"(\.\./[^\s\"'`<>()\[\]{};,]*)"
    """A pattern of relative paths, its group: those outside of its root it may take in late. Empty: it does not."""


class ScopeKind(StrEnum):
    """How the other files are found that a change may have broken, each way as it was measured for the server."""

    FILE = "file"  # It judges each file by itself: no change breaks another one
    CANDIDATES = "candidates"  # The files that mention what changed are checked, one by one
    PROJECT_PULL = "project-pull"  # One `workspace/diagnostic` is answered with every file of the project
    PROJECT_COMMAND = "project-command"
    """A command publishes what changed in any file of the project, and is answered after that."""
    PROJECT_PUSH = "project-push"
    """It publishes what changed in any file of the project before its own check of a saved file is over."""


class ProjectScope(CatalogueTable, frozen=True):
    """How far the server sees after a change. Where it lacks what the kind needs, candidates are checked."""

    kind: ScopeKind = ScopeKind.CANDIDATES
    command: Word | None = None  # Of `project-command`; a server that does not list it is too old for it
    progress: Word | None = None
    """Of `project-push`: the check after a save is over when the progress whose token starts so has ended."""
    starts_with_open: bool = False
    """Of `project-push`: it judges the open files first; all are judged once it speaks of one that is not open."""


class Relay(CatalogueTable, frozen=True):
    """Questions that the server has for another one of its root, which serves its files beside it with its plugin."""

    to: Words  # Who can be asked: the first of these that there is. They name the plugin by `${guest:ID}`.
    request: Word  # The notification by which it asks: an id, a request of the other server, and its arguments
    response: Word  # The notification by which it is answered: the id and the answer, null where there is none
    command: Word  # The other server's command for such requests. The answer is its `body`.
    project: Words  # Markers of a project that has such files: only there the other server gets the plugin
    alone: Word  # What is not checked where there is no other server


class NpmRequirement(CatalogueTable, frozen=True):
    """Major versions of a package, installed or else asked for, that it fits. One without it fits `below` alone."""

    package: Word = field(name="npm")
    minimum: Positive | None = None
    below: Positive | None = None


class Restricted(CatalogueTable, frozen=True):
    """What makes the server safe in a workspace that is not trusted. `reason` says what is given up."""

    reason: Word
    env: TextMap = {}
    initialization: JsonTable = {}
    settings: JsonTable = {}
    incomplete: bool = False  # Without what is given up it does not find every error: its verdict is partial
    unchecked: Word | None = None  # A pattern of what it does not check in a file without it, see `Freshness`
    requires: NpmRequirement | None = None
    """In other projects it is not started: what it would say without what is given up is wrong there."""


class LocalSchemas(CatalogueTable, frozen=True):
    """What keeps the server from fetching schemas that files name, unless the user allows it (T52)."""

    env: TextMap = {}
    initialization: JsonTable = {}
    settings: JsonTable = {}
    announcements: Words = ()


class Shown(CatalogueTable, frozen=True):
    """The versions that ran nothing of the trap repository (`tests/traps.py`): as they are, or `restricted`."""

    first: Word
    last: Word
    network: bool = False  # Whether it is of no use there without a network
    confined: bool = False
    """Whether it was shown only where the system holds it to its files: it writes what a project's file names."""
    own_folder: bool = False  # Whether it starts in its own folder: its program searches the current one for libraries
    commands: tuple[str, ...] = ()
    """Commands of its code actions that only answer with edits: any other may run the project, as one of gopls does."""


class Environment(StrEnum):
    """What a project needs besides the server, as far as `servers.toolchains` can tell whether it is here."""

    PYTHON = "python"
    NODE = "node"
    COMPILE_DATABASE = "compile-database"
    GO = "go"


class Imports(CatalogueTable, frozen=True):
    """How the server says that an import cannot be resolved, and what must be installed for that."""

    unresolved: Words = ()  # Codes of such diagnostics; where there are none, any error may come of it
    environment: Environment | None = None
    finds_unsaved: bool = False
    """It finds what is open and not on disk: after a deletion it can be shown what was there."""


class LoadedFiles(StrEnum):
    """Which files a server has read when it answers a question over the whole project."""

    PROJECT = "project"  # Every source file below its root
    OPENED = "opened"  # Those that were opened and what these import, as far as is known


class ProjectRequests(CatalogueTable, frozen=True):
    """Requests of `workspace/executeCommand` about projects. `shape` says how the answers are read."""

    command: Word
    files: Word  # Lists the files of the project that a file belongs to
    symbols: Word  # Finds symbols in every project that is open, where `workspace/symbol` looks in one
    shape: Word


class Completeness(CatalogueTable, frozen=True):
    """Whether a server knows the whole project when it is asked for every use of something."""

    loads: LoadedFiles = LoadedFiles.OPENED
    needs: Words = ()  # The files by which a project says what belongs to it; without one, only opened files are loaded
    narrowed_by: Words = ()  # Markers of a project that may leave files out: what is loaded is then not known
    skipped_paths: Word | None = None  # A pattern of paths, relative to the root, that it may not load
    skipped_lines: Word | None = None  # A pattern of a line by which a file says that it is only part of some builds
    types_in_strings: Word | None = None
    """A pattern of what stands before a string that is a type, and is read as one only when the file is checked."""
    requests: ProjectRequests | None = None


class Inputs(CatalogueTable, frozen=True):
    """What the server reads besides sources, and notices late or never when it changes: it is then started anew."""

    steering: Words = ()
    """Files that configure it, or sections of them (`pyproject.toml#tool.pyright`); by default its root markers."""
    extends: Words = ()  # Members by which these name others: `extends`, `references.path`
    environment: Environment | None = None  # Where the packages are that it reads
    reloads: Words = ()
    """Files that configure it and that it reads again before its next answer once it is told: shown by a run."""
    late_libraries: bool = False
    """It takes in a changed source of a library, or outside of its root, some time after it was told."""
    by_time: bool = False
    """It takes a file with the same time for the same file, also when it is told that the file has changed."""
    own_watchers: bool = False
    """It goes by what it sees itself of the disk, whatever it is told: a change of a source that is not open counts."""
    mentions: Word | None = None
    """A pattern of what a source says of files beside it that must be there: its group has their names, with `*`."""
    presence: Words = ()
    """What changes its answers by coming or going: `__init__.py` or `*.py` at any depth, `src/*` for modules there."""
    arrivals: Words = ()
    """Files that it does not find when they come, such as `*.proto`, if it has looked for them in vain before."""
    emptied: bool = False
    """It finds no package any more in a folder that has lost its last source, whatever comes there."""
    also_told: Words = ()  # Names of files besides its own sources whose changes it wants to be told of
    folders: TextMap = {}
    """Files of the project that name folders with further sources, and the pattern by which: its group is the path."""
    above: Words = ()  # Files that configure it in each folder above its root, too
    home: Words = ()  # Files that configure it below the user's home
    written: Words = ()  # Folders in its root that it fills itself: no file there configures it


class DerivedWatch(CatalogueTable, frozen=True):
    """A sidecar: run `command` when the option `when` is true, with the one at `argument` for `${argument}` in it."""

    command: Words
    when: Words
    argument: Words


class FileRule(CatalogueTable, frozen=True):
    """Which files a server serves: by extension, by name or, for a file that no server claims by those, by shebang."""

    extensions: Words = ()
    names: Words = field(default=(), name="fileNames")
    """Names, globs, or globs with slashes that are matched against the end of the path."""
    shebangs: Words = ()  # Interpreters without their version: `python` for `#!/usr/bin/env python3`
    language_ids: TextMap = field(default_factory=dict[str, str], name="languageId")
    """The language id by extension or name, for everything above; what a server needs beyond it stands first."""


class RootRule(CatalogueTable, frozen=True):
    """Which folder the server is started for."""

    markers: Words = field(default=(), name="roots")
    """Names, paths or globs below the folder; `pyproject.toml#tool.ruff` is a file that has such a section."""
    strong: Words = field(default=(), name="strongRoots")
    """Markers that count before the nearer ones of `markers`: the package, not the folder of its tests."""
    exclusions: Words = field(default=(), name="rootExclusions")
    """Markers that, as near to the file as the root or nearer, say that this server is not meant."""
    strategy: RootStrategy = field(default=RootStrategy.NEAREST, name="rootStrategy")
    required: bool = field(default=False, name="rootRequired")  # Not a candidate without a marker
    grouping: tuple[Grouping, ...] = ()
    requires: NpmRequirement | None = None


class Rank(CatalogueTable, frozen=True):
    """How a server stands beside the others that serve the same file."""

    role: Role = Role.MAIN
    preference: Positive = 50  # Among several main servers that are installed, the lowest is taken
    favoured_by: Words = ()
    """Files by which a project says that it uses this one: it then comes before every preference."""
    conflicts: Words = ()  # Companions that would only say the same again
    named: bool = False
    """The configuration names its command, so it runs: a main server in place of the usual one, a custom one beside."""


class ServerSpec(CatalogueTable, frozen=True):
    """One server. Time limits and what follows a crash are in its `config.load.ServerConfig`, and only there."""

    id: Word
    name: Word
    languages: Words
    command: Words  # Empty for a custom server whose command no trusted configuration names
    files: FileRule = FileRule()
    root: RootRule = RootRule()
    env: TextMap = {}
    initialization: JsonTable = {}
    settings: JsonTable = {}
    watch: Words | None = None
    derived_watch: DerivedWatch | None = None
    serves_code: bool = True  # False for prose and data alone: it is used where it is, and not missed where it is not
    auxiliary: bool = False
    """For styles, markup, scripts and build files alone: missed only in a project without another language."""
    rank: Rank = Rank()
    risk: Risk = Risk.RUNS_PROJECT_CODE
    restricted: Restricted | None = None
    local_schemas: LocalSchemas | None = None
    connects: bool = False
    """It connects to a database that files of the project name: not before the user has configured it (T52)."""
    announcements: Words = ()  # notifications without parameters, sent after `initialized`
    shown: Shown | None = None
    freshness: Freshness = Freshness()
    scope: ProjectScope = ProjectScope()
    imports: Imports = Imports()
    undefined: Words = ()
    """Codes of diagnostics about what nothing defines yet; where a code is general, words of the message instead."""
    calls: Words = ()  # The same of calls, and values, that do not fit a definition which the next edit may change
    syntax: Words = ()
    """Patterns of codes of syntax errors, which no edit of another file mends; one without a code counts as such."""
    completeness: Completeness = Completeness()
    inputs: Inputs = Inputs()
    reads: Words = ()  # Extensions of files that its own import, and that other servers serve
    relay: Relay | None = None
    guests: tuple["ServerSpec", ...] = ()
    """Servers whose files this one serves beside them: the other end of their `relay`."""
    lacks: Words = ()  # Methods that this server does not offer in any version: known before it is started
    install: Mapping[Manager, Words] = {}
    needs: Words = ()  # programs that it needs beside itself, in words for people
    helpers: TextMap = {}  # Those of them that `pilotfish install` can install, and the package of each on PyPI
    modules: Words = ()
    """Where its program, an interpreter, may have it: patterns below the prefix of the program, or below `~`."""
    version_args: Words = ()
    death_signs: Words = ()
    """What it logs when a process that does its work has died while it lives on and answers with nothing."""
    aliases: Words = ()  # What other tools call this server in their configuration
    unproven: Word | None = None
    """Why no run of ours has shown it, if there is a reason beside that no registry carries it."""
    shares_worktrees: Literal["asked", "auto"] | None = None
    """One process serves worktrees of a repository in turns: each is answered as by its own, also for little (auto)."""
    disabled: bool = False

    @property
    def extensions(self) -> Words:
        """Of its own files, and of those that it serves beside others."""
        return tuple(one for spec in (self, *self.guests) for one in spec.files.extensions)

    def relays_to(self, servers: Collection[str]) -> bool:
        return self.relay is not None and not set(self.relay.to).isdisjoint(servers)
