"""Aider: it has no hooks, but runs a linter on the files that it has edited.

- Run: 0.86.2, with `--lint-cmd` and `--auto-lint`.
- The linter gets the files as arguments. When it fails, what it prints is the next user message ("Fix any errors
  below"); when it ends with 0, the model hears nothing. `plugins/aider_lint.py` plays the linter.
- The event is what the linter was given: the names of the files, each followed by a NUL byte. It has no old text.
- The configuration is one file in the home folder or the project; it has no MCP servers.
"""

from pilotfish.api.questions import Touch
from pilotfish.errors import Code, Refused
from pilotfish.hosts.edits.yaml_edit import YamlEdit
from pilotfish.hosts.shared.hook_settings import RESTART
from pilotfish.hosts.shared.host_spec import HostSpec, Where, WiredFile, shell
from pilotfish.hosts.shared.tool_hooks import MAX_BYTES, MAX_FILES, HostEvent, OtherEvent, PlainAnswer, TouchEvent


class AiderDialect(PlainAnswer):
    def read(self, event: bytes) -> HostEvent:
        *names, rest = event.split(b"\0")
        if rest:
            raise Refused(Code.INVALID_INPUT, "malformed hook event: no NUL byte at the end")
        files = tuple(dict.fromkeys(name.decode(errors="surrogateescape") for name in names if name))[:MAX_FILES]
        if not files:
            return OtherEvent()
        return TouchEvent(Touch(files, "edit", plain=True, max_bytes=MAX_BYTES), "")


def wired_files(where: Where) -> tuple[WiredFile, ...]:
    edit = YamlEdit("lint-cmd", shell(where.programs.lint))
    return (where.folder(".").file(".aider.conf.yml", edit),)


HOST = HostSpec(
    title="Aider",
    files=wired_files,
    programs=("aider",),
    folders=(".aider", ".aider.conf.yml"),
    dialect=AiderDialect(),
    probes=("lint",),
    afterwards=(RESTART,),
)
