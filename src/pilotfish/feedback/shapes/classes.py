"""What a class may owe to others than its own statements: to its bases, and to who asks for its members. Pure.

A decorator, a metaclass or a base may make a class of its fields, as dataclasses, models and enumerations are, or may
ask for members. Where all bases of a class are classes of the project, down to those of the language, nothing does.
"""

import builtins
from collections.abc import Callable, Collection, Iterable, Sequence

from pilotfish.feedback.shapes.python import PYTHON, Shape
from pilotfish.feedback.shapes.words import Import, ModulePath, key_of, may_mean, meant_by, target_of
from pilotfish.model import AbsPath

PLAIN_IMPORTS = frozenset({("typing", "Generic"), ("abc", "ABC")})
"""Bases from elsewhere that ask for nothing by themselves; what is abstract is asked for by its name."""

BUILTINS = frozenset(dir(builtins))


class PlainClasses:
    def __init__(
        self,
        shapes: Callable[[AbsPath], Sequence[Shape]],
        paths: Iterable[AbsPath],
        packages: Collection[ModulePath],
    ) -> None:
        self._shapes = shapes
        self._packages = packages
        self._known: dict[tuple[AbsPath, str], bool] = {}
        self._by_key: dict[str, list[AbsPath]] = {}
        for path in paths:
            if path.endswith(PYTHON):
                self._by_key.setdefault(key_of(path), []).append(path)

    def has(self, path: AbsPath, name: str) -> bool:
        """Whether what this name means in a file is such a class, whatever text of the file counts."""
        key = path, name
        if key not in self._known:
            # A class that has itself for a base is none.
            self._known[key] = False
            shapes = self._shapes(path)
            self._known[key] = bool(shapes) and all(self._is_plain(path, shape, name) for shape in shapes)
        return self._known[key]

    def _is_plain(self, path: AbsPath, shape: Shape, name: str) -> bool:
        heads = [one.bases for one in shape.classes if one.name == name]
        imports = [one for one in shape.imports if one.bound in {name, "*"}]
        if not heads and not imports:
            return name in BUILTINS
        return all(bases is not None and all(self.has(path, base) for base in bases) for bases in heads) and all(
            self._is_plain_import(path, one) for one in imports
        )

    def _is_plain_import(self, path: AbsPath, one: Import) -> bool:
        if one.name is None or one.name == "*":
            return False
        module = Import(one.level, one.module, "*", "*")
        named = (file for meant in meant_by(module, path) for file in self._by_key.get(meant[-1] if meant else "", ()))
        targets = [file for file in named if may_mean(module, path, target_of(file), self._packages)]
        if not targets:
            return (".".join(one.module), one.name) in PLAIN_IMPORTS
        return all(self.has(target, one.name) for target in targets)


_NAMES = """
aclose adjustable arraysize as_integer_ratio asend athrow avoids_symlink_attacks block_size buffer_updated characters
close closed commit connection_lost connection_made copy createDocument createDocumentType create_default_context
cursor data_received datagram_received decode decompress description detach digest digest_size dnd_end encode
endDocument endElement endElementNS endPrefixMapping eof eof_received err_msg error error_received exc_traceback
exc_type exc_value execute executemany exists fatalError fetchall fetchmany fetchone fileno filter finalize find_spec
flush get get_all get_buffer getbuffer handle handleError hasFeature height hexdigest ignorableWhitespace
implementation inverse is_dir is_file is_symlink isatty items iterdir iteritems joinpath json keys load_module
max_count max_size mode monotonic name notationDecl object open parent parse pipe_connection_lost pipe_data_received
process_exited processingInstruction put_nowait read read1 read_bytes read_text readable readinto readline readlines
resolution resolveEntity result rowcount run search seek seekable send setDocumentLocator setinputsizes setoutputsize
skippedEntity startDocument startElement startElementNS startPrefixMapping stderr stdin stdout step tell throw
timetuple truncate unparsedEntityDecl unused_data update value value_parser warning width writable write writelines
writeln
"""

ASKED_BY_STDLIB = frozenset(_NAMES.split())
"""Members that the protocols of the standard library ask for, besides those with two underscores (typeshed, 2026)."""
