"""A small workspace in one text file.

Free text at the top says what the case is about.
key: value                      settings of the case, e.g. `server: basedpyright`
-- path/to/file.py --           a file of the workspace, up to the next such line
-- path/to/file.py -- crlf bom  the same with Windows line endings, or with a byte-order mark
-- path/to/file.py@2 --         its second version, written over the first one as an edit
-- path/to/file.py -- unasked   only written: nobody tells the product that it is there or has changed
-- @name --                     a golden: expected text that `--update` may rewrite
"""

import re
from dataclasses import dataclass, replace

SECTION = re.compile(r"^-- (\S.*?)(?:@(\d+))? --(?: ([a-z ]+))?$", re.MULTILINE)
SETTING = re.compile(r"^([a-z]+): (.+)$", re.MULTILINE)

FLAGS = frozenset({"crlf", "bom", "unasked"})


@dataclass(frozen=True)
class Section:
    """One version of a file, or a golden. `body` has plain line endings whatever the flags say."""

    name: str
    body: str
    version: int = 1
    flags: tuple[str, ...] = ()

    @property
    def golden(self) -> str | None:
        return self.name[1:] if self.name.startswith("@") else None

    def written(self, text: str) -> bytes:
        """What stands on disk for `text`."""
        ended = text.replace("\n", "\r\n") if "crlf" in self.flags else text
        return ended.encode("utf-8-sig" if "bom" in self.flags else "utf-8")


@dataclass(frozen=True)
class Archive:
    settings: dict[str, str]
    sections: tuple[Section, ...]
    comment: str

    @property
    def files(self) -> tuple[Section, ...]:
        return tuple(section for section in self.sections if section.golden is None)

    @property
    def goldens(self) -> dict[str, str]:
        return {section.golden: section.body for section in self.sections if section.golden is not None}

    def with_golden(self, name: str, text: str) -> "Archive":
        made = Section(f"@{name}", text if text.endswith("\n") else f"{text}\n")
        if name not in self.goldens:
            return replace(self, sections=(*self.sections, made))
        kept = tuple(made if section.golden == name else section for section in self.sections)
        return replace(self, sections=kept)


def parse(text: str) -> Archive:
    comment, *parts = SECTION.split(text)
    sections = tuple(
        Section(name, body.removeprefix("\n"), int(version or 1), tuple((flags or "").split()))
        for name, version, flags, body in zip(*(parts[place::4] for place in range(4)), strict=True)
    )
    for section in sections:
        assert FLAGS.issuperset(section.flags), f"{section.name}: unknown flag in {section.flags}"
    return Archive(dict(SETTING.findall(comment)), sections, comment)


def render(archive: Archive) -> str:
    return archive.comment + "".join(_rendered(section) for section in archive.sections)


def _rendered(section: Section) -> str:
    version = f"@{section.version}" if section.version > 1 else ""
    flags = " ".join(("", *section.flags))
    return f"-- {section.name}{version} --{flags}\n{section.body}"
