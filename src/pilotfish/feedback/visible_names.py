"""The names by which other files can see an edit: fewer than `changed_names` has, where the language is known. Pure.

What happens inside of a function is seen through its result alone, and not even through that where the function says
what it returns. Outside of functions, what stands on a changed line is seen by the name that it defines, and with it
whatever that is part of; a line that defines nothing (an import, an export, a decorator) by all of its words.
What the body of `__init__` does is seen by the attributes that it gives values to.
Where the rest of the file says a name that is seen, it is seen, too: a class by its base, a function by what it takes.
An edit that leaves a bracket or a quote open changes how the rest of the file is read, and counts with every name.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain

from pilotfish.feedback.changed_names import KEYWORDS, MAX_KEPT, WORD, changed_names, definitions, without_comments
from pilotfish.feedback.linemap import line_map
from pilotfish.feedback.same_code import same_but_for_variables

PYTHON: tuple[str, ...] = (".py", ".pyi")
TYPESCRIPT: tuple[str, ...] = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")

_DEF = re.compile(r"\s*(?:async\s+)?def\s")
_NO_FUNCTION = re.compile(
    r"\s*(?:export\s+|default\s+|declare\s+|abstract\s+)*(?:class|interface|enum|namespace|module|type|import)\b"
)
_BODY_BEGINS = re.compile(r"(?:\)[^(){}]*|=>\s*)\{\s*$")
"""The end of the line on which the body of a function, or a block, begins."""
_ANNOTATED: Mapping[tuple[str, ...], re.Pattern[str]] = {
    PYTHON: re.compile(r"\)\s*->.*:\s*$", re.DOTALL),
    TYPESCRIPT: re.compile(r"\)\s*:[^=].*\{\s*$", re.DOTALL),
}
_BLOCK = re.compile(r"\s*\}?\s*(?:if|else|for|while|switch|try|catch|finally|do|with|return|case)\b")
_ATTRIBUTE = re.compile(
    r"\b(?:self|cls|this)\.([^\W\d][\w$]*)"
    r"(?=\s*(?:(?:\*\*|//|<<|>>>?|&&|\|\||\?\?|[-+*/%&|^@])?=(?!=)|:\s*[^\W\d]|\]\s*=(?!=)))"
    r"|\b(?:for|as)\b.*?\b(?:self|cls|this)\.([^\W\d][\w$]*)"
)
"""An attribute that is assigned to: reading one changes nothing for others."""
_TARGET = re.compile(r"\b(?:self|cls|this)\.([^\W\d][\w$]*)(?=\s*,)")
"""One of several that are assigned to."""
_DECIDES = re.compile(r"\s*\}?\s*(?:else\s+)?(?:if|elif|while|match|case|assert|switch|except|catch)\b")
"""What such a line says decides what is known of the variables after it."""
_INSTANCE = frozenset({"self", "cls", "this"})
_PARAMETER = re.compile(r"(?:^|[(,])\s*\*{0,2}(?P<name>\w+)\s*(?::(?P<type>(?:[^,=\[\]()]|\[[^\]]*\])+))?")
_LOOP = re.compile(r"\s*(?:async\s+)?(?:for|while|do)\b")
_GIVEN = re.compile(
    r"^\s*(?:const|let|var)?\s*([^=()]*?)(?::[^=]*)?[-+*/%&|^@<>]*=(?!=)|\bfor\b(.*?)\b(?:in|of)\b|\bas\s+(\w+)|(\w+)\s*:="
)
"""What stands to the left of an assignment, and what other statements give a value."""
_IMPORT = re.compile(r"\s*(?:from\s+[\w.]+\s+)?import\s+(?P<bound>[\w.,\s]+)$")
"""One line, without brackets and stars."""
_RELATIVE = re.compile(r"\s*from\s+\.")
_CLASS = re.compile(r"\s*class\s+(?P<name>\w+)\s*(?:\((?P<bases>[^()\[\]=]*)\))?\s*:")
_INITIALIZES = re.compile(r"\s+def\s+__init__\b")
_MAKES_INSTANCE = frozenset({"__init__", "__new__", "__init_subclass__", "__set_name__", "constructor"})
_BRACKETS = "()[]{}"

MAX_HEAD = 60
"""Lines of one signature."""

MAX_LINES = 4_096
"""Lines whose words are kept: one patch after the other changes a few lines of the same files."""


def visible_names(old: str, new: str, extension: str, *, with_classes: bool = True) -> frozenset[str]:
    """Empty when nothing can be seen of the edit.

    `with_classes`: of Python, a member is seen by the class that it belongs to as well. Else only where that may have a
    base of another project, which may ask for a method, or where its attributes may say how it is made.
    """
    family = next((known for known in (PYTHON, TYPESCRIPT) if extension in known), None)
    every = changed_names(old, new, extension)
    if family is None or not every.all:
        return every.all
    before, after = _lines_of(old, extension), _lines_of(new, extension)
    moved = line_map(before, after)
    gone = [number for number, gap in enumerate(moved.old_gaps) if gap is not None]
    come = [number for number, gap in enumerate(moved.new_gaps) if gap is not None]
    if _brackets(before, gone) != _brackets(after, come) or _quotes(old) != _quotes(new):
        return every.all
    if family is PYTHON:
        alike = same_but_for_variables(old, new, [*_bodies(before, after, moved.moved, gone)])
        gone = [number for number in gone if not any(number in one for one, _ in alike)]
        come = [number for number in come if not any(number in one for _, one in alike)]
        texts = _Python(before, with_classes=with_classes), _Python(after, with_classes=with_classes)
        return _with_users(texts, frozenset(chain(texts[0].seen(gone), texts[1].seen(come))) - KEYWORDS)
    return frozenset(chain(_seen(before, gone, family), _seen(after, come, family))) - KEYWORDS


def imported_names(old: str, new: str, extension: str) -> frozenset[str]:
    """Names that an edit binds anew, all by imports: others see them where they import them from here."""
    if extension not in PYTHON:
        return frozenset()
    before, after = without_comments(old, extension), without_comments(new, extension)
    moved = line_map(before, after)
    gone = (before[number] for number, gap in enumerate(moved.old_gaps) if gap is not None)
    come = (after[number] for number, gap in enumerate(moved.new_gaps) if gap is not None)
    found = [_IMPORT.match(line) for line in chain(gone, come) if line.strip()]
    return frozenset(name for one in found if one for name in _bound(one["bound"])) if all(found) else frozenset()


def exported_names(text: str, extension: str) -> frozenset[str] | None:
    """What a file defines outside of classes and functions; None where the language is not known."""
    if extension not in PYTHON:
        return None
    lines = (line for line in without_comments(text, extension) if line.strip() and not line[0].isspace())
    return frozenset(name for line in lines for name in definitions(line)) - KEYWORDS


def _bound(imported: str) -> Iterator[str]:
    for one in imported.split(","):
        words = one.replace(".", " ").split()
        if words:
            yield words[-1] if "as" in words else words[0]


class _Lines(list[str]):
    """The lines of a text."""

    @cached_property
    def above(self) -> list[int]:
        """For each line the nearest one that it lies below by its indentation; -1 where there is none."""
        found, open_lines = list[int](), list[tuple[int, int]]()
        for number, line in enumerate(self):
            depth = _indentation(line)
            if line.strip():
                while open_lines and open_lines[-1][0] >= depth:
                    open_lines.pop()
            found.append(next((one for deep, one in reversed(open_lines) if deep < depth), -1))
            if line.strip():
                open_lines.append((depth, number))
        return found


def _lines_of(text: str, extension: str) -> _Lines:
    return _kept_lines(text, extension) if len(text) <= MAX_KEPT else _Lines(without_comments(text, extension))


@lru_cache(maxsize=8)
def _kept_lines(text: str, extension: str) -> _Lines:
    return _Lines(without_comments(text, extension))


class _Python:
    """A text of Python, and the classes in it of whose members only the names are seen."""

    def __init__(self, lines: _Lines, *, with_classes: bool) -> None:
        self.lines = lines
        self._own = frozenset[str]() if with_classes else _own_classes(lines)

    def seen(self, numbers: Sequence[int], *, users: frozenset[str] | None = None) -> Iterator[str]:
        for number in numbers:
            yield from self._member(number) or _seen(self.lines, [number], PYTHON, users=users)

    def _member(self, number: int) -> list[str]:
        """The name of the method whose signature is this line, or of the attribute, where no more is seen of it."""
        around = [*_enclosing(self.lines, number)]
        if not around or any(_DEF.match(self.lines[_head(self.lines, one)]) for one in around):
            return []
        # Of a value of several lines, the name stands on the first.
        first = self.lines[([number, *around])[-2]]
        above = _CLASS.match(self.lines[around[-1]])
        if above is None or above["name"] not in self._own or _BLOCK.match(first) or _CLASS.match(first):
            return []
        if not _DEF.match(first) and not self._says_how_it_is_made(around[-1]):
            return []
        return [name for name in definitions(first) if not name.startswith("__")]

    def _says_how_it_is_made(self, class_line: int) -> bool:
        """Whether a class has an `__init__` of its own. Else its attributes may be what its instances are made of."""
        inside = (line for line, above in zip(self.lines, self.lines.above, strict=True) if above == class_line)
        return any(map(_INITIALIZES.match, inside))


def _own_classes(lines: _Lines) -> frozenset[str]:
    """The classes whose bases are of the same project, as far as the file tells."""
    relative = frozenset(
        name
        for line in lines
        if _RELATIVE.match(line) and (one := _IMPORT.match(line))
        for name in _bound(one["bound"])
    )
    found = frozenset[str]()
    for line in lines:
        if head := _CLASS.match(line):
            bases = {one.strip() for one in (head["bases"] or "").split(",")} - {"", "object"}
            found |= {head["name"]} if bases <= relative | found else frozenset()
    return found


def _with_users(texts: Sequence[_Python], names: frozenset[str]) -> frozenset[str]:
    """These names, and those that are seen of the lines that say them, and so on."""
    words = [[_used_on(line) for line in text.lines] for text in texts]
    found, new = names, names
    while new:
        places = [[number for number, said in enumerate(each) if not new.isdisjoint(said)] for each in words]
        using = (text.seen(at, users=new) for text, at in zip(texts, places, strict=True))
        new = frozenset(chain.from_iterable(using)) - KEYWORDS - found
        found |= new
    return found


@lru_cache(maxsize=MAX_LINES)
def _used_on(line: str) -> frozenset[str]:
    """The words of a line but for those that it defines."""
    return _words(line).difference(definitions(line))


def names_seen_at(
    text: str, numbers: Collection[int], extension: str, *, with_classes: bool = True
) -> frozenset[str] | None:
    """The names by which other files see what stands on these lines; None where the language is not known."""
    family = next((known for known in (PYTHON, TYPESCRIPT) if extension in known), None)
    if family is None:
        return None
    lines = _lines_of(text, extension)
    there = [number for number in numbers if number < len(lines)]
    if family is TYPESCRIPT:
        return frozenset(_seen(lines, there, family)) - KEYWORDS
    python = _Python(lines, with_classes=with_classes)
    return _with_users([python], frozenset(python.seen(there)) - KEYWORDS)


def _seen(
    lines: _Lines, numbers: Sequence[int], family: tuple[str, ...], *, users: frozenset[str] | None = None
) -> Iterator[str]:
    """By which names other files see these lines; `users`: they only say one of these names, which have changed."""
    for number in numbers:
        if not lines[number].strip():
            continue
        around = [*_enclosing(lines, number)]
        functions = [one for one in around if _is_function(lines, one, family)]
        if functions:
            yield from _attributes(lines, number, functions[-1], users)
            # The outermost: what is inside of it nobody else names.
            yield from _result(lines, functions[-1], around, family)
            continue
        if family is PYTHON and _DEF.match(lines[number]):
            yield from _attributes(lines, number, number, users)
        for one in (number, *around):
            yield from definitions(lines[_head(lines, one)])
        yield from _decorated(lines, number)
        if users is None and not {*definitions(lines[number])} - KEYWORDS:
            imported = _IMPORT.match(lines[number]) if family is PYTHON else None
            yield from _bound(imported["bound"]) if imported else (found[0] for found in WORD.finditer(lines[number]))


def _bodies(
    before: _Lines, after: _Lines, moved: Sequence[int | None], gone: Sequence[int]
) -> Iterator[tuple[range, range]]:
    """The functions in which lines were changed, outermost ones, as they were and as they are."""
    for first in {one for number in gone if (one := _function_around(before, number)) is not None}:
        there = moved[first]
        if there is not None and _DEF.match(before[first]):
            yield _extent(before, first), _extent(after, there)


def _function_around(lines: _Lines, number: int) -> int | None:
    """The first line of the outermost function that a line lies in."""
    heads = (_head(lines, one) for one in _enclosing(lines, number))
    return next((one for one in reversed([*heads]) if _DEF.match(lines[one])), None)


def _extent(lines: _Lines, first: int) -> range:
    """From the first line of a function to its last."""
    depth, body = _indentation(lines[first]), range(_end_of_head(lines, first), len(lines))
    after = (number for number in body if lines[number].strip() and _indentation(lines[number]) <= depth)
    return range(first, next(after, len(lines)))


def _attributes(lines: _Lines, number: int, function: int, users: frozenset[str] | None) -> Iterator[str]:
    """The attributes to which a function gives what may come from one of its lines, by way of its variables, too."""
    signature = range(_head(lines, function), _end_of_head(lines, function))
    end = _extent(lines, signature.start).stop
    loops = [one for one in _enclosing(lines, number) if one > function and _LOOP.match(lines[one])]
    new = {number, *_statement(lines, number, function)}
    # A loop comes back to its beginning.
    body, changed = range(min((*new, *loops)), end), set[int]()
    while new:
        changed |= new
        if any(_DECIDES.match(lines[one]) for one in new):
            changed.update(body)
        given = frozenset(
            name
            for one in new
            for name in (_parameters(lines[one], users) if one in signature else _variables(lines[one]))
        )
        using = [one for one in body if not given.isdisjoint(_words(lines[one]))]
        new = {*using, *(first for one in using for first in _statement(lines, one, function))} - changed
    for one in sorted(changed):
        yield from _assigned(lines[one])


def _assigned(line: str) -> Iterator[str]:
    """The attributes that a line gives values to."""
    yield from filter(None, chain.from_iterable(_ATTRIBUTE.findall(line)))
    targets, equals, _ = line.partition("=")
    # Behind a bracket, it names an argument.
    if equals and "(" not in targets.lstrip(" \t("):
        yield from _TARGET.findall(targets)


def _statement(lines: _Lines, number: int, function: int) -> Iterator[int]:
    """The lines on which a statement begins that this one is a part of."""
    return (one for one in _enclosing(lines, number) if one > function and not _BLOCK.match(lines[one]))


@lru_cache(maxsize=MAX_LINES)
def _variables(line: str) -> frozenset[str]:
    """The variables and attributes to which a line gives a value."""
    given = (next(filter(None, found.groups()), "") for found in _GIVEN.finditer(line))
    return frozenset(word[0] for one in given for word in WORD.finditer(one)) - _INSTANCE


def _parameters(line: str, users: frozenset[str] | None) -> Iterator[str]:
    """The parameters on a line of a signature; with `users`, those whose type says one of these names."""
    for found in _PARAMETER.finditer(line):
        if found["name"] not in _INSTANCE and (users is None or not users.isdisjoint(_words(found["type"] or ""))):
            yield found["name"]


def _end_of_head(lines: _Lines, number: int) -> int:
    """The line after the signature that begins on this one."""
    head = range(number, min(len(lines), number + MAX_HEAD))
    return next((one for one in head if lines[one].rstrip().endswith((":", "{"))), head[-1]) + 1


@lru_cache(maxsize=MAX_LINES)
def _words(line: str) -> frozenset[str]:
    return frozenset(found[0] for found in WORD.finditer(line))


def _result(lines: _Lines, function: int, around: Sequence[int], family: tuple[str, ...]) -> Iterator[str]:
    """The names of a function whose result may be another one, and of the class that it makes instances of."""
    head = _head(lines, function)
    names = {*definitions(lines[head])}
    if "__init__" in names and lines[function].rstrip().endswith(":"):
        # The line is in its body, and not in a signature of several lines.
        return
    if names & _MAKES_INSTANCE:
        for one in around[around.index(function) :]:
            yield from definitions(lines[_head(lines, one)])
    if not _ANNOTATED[family].search("\n".join(lines[head : function + 1])):
        yield from names


def _decorated(lines: _Lines, number: int) -> Iterator[str]:
    if not lines[number].lstrip().startswith("@"):
        return
    for line in lines[number + 1 : number + MAX_HEAD]:
        if line.strip() and not line.lstrip().startswith("@"):
            yield from definitions(line)
            return


def _enclosing(lines: _Lines, number: int) -> Iterator[int]:
    """The lines that a line lies below by its indentation, the nearest first; of a signature, its last line."""
    above = lines.above[number]
    if lines[number].lstrip()[:1] in ")]}" and number:
        # It closes what the line before it, or one above that, has opened.
        depth, above = _indentation(lines[number]), number - 1
        while above >= 0 and (not lines[above].strip() or _indentation(lines[above]) > depth):
            above -= 1
    while above >= 0:
        yield above
        above = lines.above[above]


def _head(lines: _Lines, number: int) -> int:
    """Where the signature begins that ends on this line."""
    if not lines[number].lstrip().startswith(")"):
        return number
    depth = _indentation(lines[number])
    for other in range(number - 1, max(-1, number - MAX_HEAD), -1):
        if lines[other].strip() and _indentation(lines[other]) <= depth:
            return other
    return number


def _is_function(lines: _Lines, number: int, family: tuple[str, ...]) -> bool:
    head = lines[_head(lines, number)]
    if family is PYTHON:
        return _DEF.match(head) is not None
    is_body = _BODY_BEGINS.search(lines[number]) is not None
    return is_body and not _NO_FUNCTION.match(head) and not _BLOCK.match(head)


def _brackets(lines: _Lines, numbers: Sequence[int]) -> list[int]:
    text = "".join(lines[number] for number in numbers)
    return [
        text.count(opened) - text.count(closed) for opened, closed in zip(_BRACKETS[::2], _BRACKETS[1::2], strict=True)
    ]


def _quotes(text: str) -> tuple[int, ...]:
    return tuple(text.count(quote) % 2 for quote in ('"""', "'''", "`"))


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
