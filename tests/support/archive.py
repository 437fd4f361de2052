"""A small workspace in one text file.

Free text at the top says what the case is about.
key: value                      settings of the case, e.g. `server: basedpyright`
-- path/to/file.py --           a file of the workspace, up to the next such line
-- @name --                     a golden: expected text that `--update` may rewrite
"""

import re
from dataclasses import dataclass, replace

SECTION = re.compile(r"^-- (\S.*?) --$", re.MULTILINE)
SETTING = re.compile(r"^([a-z]+): (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Archive:
    settings: dict[str, str]
    files: dict[str, str]
    goldens: dict[str, str]
    comment: str

    def with_golden(self, name: str, text: str) -> "Archive":
        return replace(self, goldens=self.goldens | {name: text})


def parse(text: str) -> Archive:
    comment, *sections = SECTION.split(text)
    pairs = {name: body.removeprefix("\n") for name, body in zip(sections[::2], sections[1::2], strict=True)}
    return Archive(
        settings=dict(SETTING.findall(comment)),
        files={name: body for name, body in pairs.items() if not name.startswith("@")},
        goldens={name[1:]: body for name, body in pairs.items() if name.startswith("@")},
        comment=comment,
    )


def render(archive: Archive) -> str:
    sections = archive.files | {f"@{name}": body for name, body in archive.goldens.items()}
    return archive.comment + "".join(f"-- {name} --\n{body}" for name, body in sections.items())
