"""What a host's hook says and wants to hear: one `HostDialect` per host, all of them run in the daemon.

A dialect is pure. `read` turns the bytes that the host gave to the hook program into one of the events below,
`written` turns feedback into what the host shows its model.

`ToolHooks` is the shape that most hosts share: a hook is told which tool ran, with which arguments, and what came of
it.

    {"session_id", "cwd", "hook_event_name", "tool_name", "tool_input": {…}, "tool_response": …}

Some write `sessionId` and `hookEventName`. A host's own module is a table of its tools and the names of its events.
Before a tool that changes a file, the file is made ready; after a tool that reads one, too. After a change there is
feedback, and none when the tool itself failed. After any other tool, and with a prompt, the model hears what came late
and what commands have broken; before it stops, what it left. The answer adds context and decides nothing: the tool's
own result stays as the host made it. Only a stop is put off, by the words that the host has for it.
"""

from collections.abc import Iterator, Mapping
from typing import Literal, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.api.questions import Moment, Touch
from pilotfish.errors import Code, Refused
from pilotfish.hosts.shared.old_texts import Undo, old_texts_of, only_renames, patched_files
from pilotfish.protocol.codec import Malformed, decode, encode, fields, items


class TouchEvent(Struct, frozen=True):
    """A tool of the host has changed or read files; `touch.kind` says which."""

    touch: Touch
    conversation: str
    cwd: str | None = None
    root: str | None = None
    event: str = ""
    """The host's name of the event, where the answer must repeat it."""
    undos: Mapping[str, Undo] = {}
    """By path as in the touch: how to get from the new text to the one before, for files without one in the touch."""
    id: str = ""
    """What tells this event from every other one of its conversation. A host that loads several of our hook files sends
    it once for each, and only the first is answered. Empty: the host sends each event once."""


class MomentEvent(Struct, frozen=True):
    """Nothing that is known to have changed a file, but the model can be told something now."""

    moment: Moment
    conversation: str
    cwd: str | None = None
    root: str | None = None
    event: str = ""
    id: str = ""
    """As in `TouchEvent`."""


class StartEvent(Struct, frozen=True):
    conversation: str
    cwd: str | None = None
    root: str | None = None
    warms: bool = True
    """False for a command of it that begins, which may be the first that is heard of it."""


class EndEvent(Struct, frozen=True):
    """A conversation is over; hosts may say so twice."""

    conversation: str


class OtherEvent(Struct, frozen=True):
    """An event that is known, and with which there is nothing to do."""


class UnreadEvent(Struct, frozen=True):
    """An event that is not known, or lacks what is looked for: of a newer host, or of one that nobody has described."""

    name: str = ""
    keys: tuple[str, ...] = ()
    """What it has in place of what was looked for; the keys of the event itself where this is empty."""
    moment: MomentEvent | None = None
    """What can be done with it all the same."""


HostEvent = TouchEvent | MomentEvent | StartEvent | EndEvent | OtherEvent | UnreadEvent


def names_in(text: str) -> frozenset[str]:
    """The names in a text; of events there are many, and a line for each would hide the rest of a module."""
    return frozenset(text.split())


class PlainAnswer:
    """The half of a dialect that answers with the text as it is."""

    def written(self, feedback: str, event: str) -> bytes:  # noqa: ARG002 -- there is but one kind of answer
        return feedback.encode(errors="replace") + b"\n"


class HostDialect(Protocol):
    def read(self, event: bytes) -> HostEvent:
        """The host's event; raises `Refused` (`invalid_input`) when it is malformed."""
        ...

    def written(self, feedback: str, event: str) -> bytes:
        """What the hook program prints for feedback that is not empty, about the event of that name."""
        ...


MAX_FILES = 100
"""Of one event; of a patch that touches more, the first ones are checked."""

MAX_BYTES = 9000
"""Of feedback. Claude Code keeps 10,000 characters and makes a preview of more; no other host is known to keep
less, except where its table says so."""

WITHOUT_FILES = names_in(
    "PostToolUseFailure Notification UserPromptExpansion SubagentStart StopFailure PreCompact PostCompact "
    "PermissionRequest PermissionDenied Setup TeammateIdle TaskCreated TaskCompleted Elicitation "
    "ElicitationResult ConfigChange CwdChanged WorktreeCreate WorktreeRemove InstructionsLoaded FileChanged "
    "DirectoryAdded MessageDisplay PreModelSwitch PostModelSwitch BeforeModel AfterModel BeforeToolSelection "
    "PreCompress ErrorOccurred UserPromptTransformed TodoCreated TodoCompleted UserPromptSubmit Stop "
    "SubagentStop AfterAgent"
)
"""Events in the references of these hosts that say nothing of a file. Where a host's own module does not name one of
them, there is nothing to do, for its model cannot be told anything then."""

PATH_NAMES = ("path", "filePath", "file_path")
"""How hosts call a path in a list of edits."""

T = TypeVar("T")

HostTouchKind = Literal["edit", "write", "patch", "read"]


class HostTool(Struct, frozen=True):
    """What a tool of a host does to files, and which of its arguments name them."""

    kind: HostTouchKind
    paths: tuple[str, ...] = ()
    """Arguments that hold a path, several, or objects with one; the first one that is there counts."""
    patch: str | None = None
    """The argument that holds an `apply_patch` envelope."""


HostTools = Mapping[str, HostTool]


def host_tools(*paths: str, edit: str = "", write: str = "", read: str = "") -> dict[str, HostTool]:
    """Tools that name their files by the same arguments: the names of those that edit, write or read one."""
    kinds: Mapping[HostTouchKind, str] = {"edit": edit, "write": write, "read": read}
    return {name: HostTool(kind, paths) for kind, names in kinds.items() for name in names.split()}


class ToolHookEvent(Struct, frozen=True):
    """The event as hosts send it. Unknown fields are ignored."""

    session_id: str = ""
    cwd: str | None = None
    hook_event_name: str = ""
    tool_name: str = ""
    tool_input: object = None
    tool_response: object = None
    tool_calls: object = None
    agent_id: object = None
    stop_hook_active: object = None
    hookEventName: str = ""  # noqa: N815 -- some hosts' spelling
    sessionId: str = ""  # noqa: N815 -- some hosts' spelling
    timestamp: object = None
    tool_use_id: object = None


NO_FILES = Touch((), "edit", max_bytes=MAX_BYTES)
"""What a call is told with, before it is known which files it has touched."""


class ToolHooks(Struct, frozen=True):
    """The dialect of one host of this shape."""

    tools: HostTools
    before: str = "PreToolUse"
    after: str = "PostToolUse"
    prompt: str | None = "UserPromptSubmit"
    """None: it shows its model nothing with a prompt."""
    stops: tuple[str, ...] = ("Stop", "SubagentStop")
    objection: str = "block"
    """How the host spells that its agent shall go on."""
    plain: bool = False
    """As in `Touch`."""
    max_bytes: int = MAX_BYTES
    plain_stop: bool = False
    """Whether the host escapes what is said before a stop, though not what is said after a tool."""
    counts: bool = True
    """Whether `after` comes once per call; False where another event ends it."""
    ignored: frozenset[str] = WITHOUT_FILES

    def read(self, event: bytes) -> HostEvent:
        return self.event_of(event_as(event, ToolHookEvent))

    def event_of(self, said: ToolHookEvent) -> HostEvent:
        name, session = said.hook_event_name or said.hookEventName, said.session_id or said.sessionId
        said = replace(said, hook_event_name=name, session_id=session)
        match name:
            case "SessionStart":
                return StartEvent(said.session_id, said.cwd)
            case "SessionEnd":
                return EndEvent(said.session_id)
            case self.before if files := files_of(self.tools, said.tool_name, said.tool_input):
                return TouchEvent(Touch(files, "read"), said.session_id, said.cwd)
            case self.before:
                # What is changed between this and the end of the call is the conversation's work.
                return StartEvent(said.session_id, said.cwd, warms=False)
            case self.after:
                return self._after(said)
            case self.prompt:
                return self.moment(said, "prompt")
            case _ if name in self.stops:
                return self.moment(said, "stop")
            case _ if name in self.ignored:
                return OtherEvent()
            case _:
                return UnreadEvent(name)

    def written(self, feedback: str, event: str) -> bytes:
        if event in self.stops:
            return encode({"decision": self.objection, "reason": feedback})
        return encode({"hookSpecificOutput": {"hookEventName": event, "additionalContext": feedback}})

    def moment(
        self, said: ToolHookEvent, kind: Literal["call", "prompt", "stop"], *, counts: bool = True
    ) -> MomentEvent:
        """What the event is, beside an edit."""
        agent = said.agent_id if isinstance(said.agent_id, str) else ""
        again = said.stop_hook_active is True
        plain = self.plain or (kind == "stop" and self.plain_stop)
        moment = Moment(kind, plain, self.max_bytes, agent, again, counts)
        return MomentEvent(moment, said.session_id, said.cwd, event=said.hook_event_name)

    def _after(self, said: ToolHookEvent) -> HostEvent:
        moment = self.moment(said, "call", counts=self.counts)
        if failed(said.tool_response):
            return moment
        touch = replace(
            NO_FILES, plain=self.plain, max_bytes=self.max_bytes, counts=self.counts, stops=bool(self.stops)
        )
        event = TouchEvent(touch, said.session_id, said.cwd, event=said.hook_event_name)
        found = touched(event, self.tools, said.tool_name, said.tool_input, said.tool_response)
        return found or without_files(moment, self.tools, said.tool_name, said.tool_input)


def event_as(event: bytes, shape: type[T]) -> T:
    """The event as `shape`; raises `Refused` when it is something else."""
    try:
        return decode(event, shape)
    except Malformed as malformed:
        raise Refused(Code.INVALID_INPUT, f"malformed hook event: {malformed}") from None


def touched(
    event: TouchEvent, tools: HostTools, name: str, arguments: object, response: object = None
) -> TouchEvent | None:
    """The event with the files that a call has touched and what it says of their old texts; None without files."""
    files = files_of(tools, name, arguments)
    if not files:
        return None
    tool = tools[name]
    if tool.kind == "read":
        return replace(event, touch=replace(event.touch, paths=files, kind="read"))
    old = old_texts_of(files, arguments, response, fields(arguments).get(tool.patch) if tool.patch else None)
    touch = replace(event.touch, paths=files, kind=tool.kind, before=dict(old.known) or None, batch="part")
    return replace(event, touch=touch, undos=old.undos)


def without_files(moment: MomentEvent, tools: HostTools, name: str, arguments: object) -> MomentEvent | UnreadEvent:
    """What a call is that touched no file which is known: one that is not read where it should have named some."""
    tool, given = tools.get(name), fields(arguments)
    if tool is None or tool.kind == "read" or any(given.get(one) for one in (*tool.paths, tool.patch or "")):
        return moment
    return UnreadEvent(f"{moment.event} of {name}", tuple(given), moment)


def files_of(tools: HostTools, name: str, arguments: object) -> tuple[str, ...]:
    """The files that a call names; none for a tool that is not in the table."""
    tool, given = tools.get(name), fields(arguments)
    if tool is None:
        return ()
    patch = given.get(tool.patch) if tool.patch else None
    if isinstance(patch, str) and only_renames(patch):
        return ()
    files = patched_files(patch) if isinstance(patch, str) else ()
    for argument in tool.paths:
        files = files or tuple(dict.fromkeys(_paths(given.get(argument))))
    return files[:MAX_FILES]


def failed(response: object) -> bool:
    """Whether a tool says that it changed nothing."""
    if isinstance(response, str):
        code = response.partition("\n")[0].removeprefix("Exit code: ")
        return code.isdecimal() and int(code[:9]) != 0
    said = fields(response)
    return bool(said.get("error")) or said.get("isError") is True or said.get("is_error") is True


def _paths(value: object) -> Iterator[str]:
    for item in items(value) or (value,):
        path = next((fields(item)[name] for name in PATH_NAMES if name in fields(item)), item)
        # No file name contains a NUL byte.
        if isinstance(path, str) and path and "\0" not in path:
            yield path
