"""Our section of a Markdown file that others write: between two comments, at its end, every other byte kept."""

from msgspec import Struct

BEGIN, END = "<!-- pilotfish -->\n", "<!-- end of pilotfish -->\n"


class MarkdownSection(Struct, frozen=True):
    text: str

    def added(self, text: str | None) -> str:
        kept = text or ""
        gap = "" if not kept else "\n" if kept.endswith("\n") else "\n\n"
        return f"{kept}{gap}{BEGIN}{self.text}{END}"

    def is_in(self, text: str) -> bool:
        return f"{BEGIN}{self.text}{END}" in text

    def removed(self, text: str, before: str | None) -> str | None:
        head, begin, rest = text.partition(BEGIN)
        _, end, tail = rest.partition(END)
        if not begin or not end:
            return text
        unchanged = before is not None and head.rstrip("\n") == before.rstrip("\n")
        # The empty line before the section is ours, too.
        head = before if before is not None and unchanged else head.removesuffix("\n")
        return head + tail if head + tail or before else None
