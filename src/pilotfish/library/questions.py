"""Every operation as a typed method over the one way to ask.

A place is given by file, line and character; by file and `symbol` (`Class.method`), on a line of it where that helps;
or by `symbol` alone, which is looked up in the whole workspace. Lines and characters count from 1, and a character is
a Unicode code point.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from pilotfish.api.answers import (
    Action,
    Answer,
    Changes,
    Edge,
    Exploration,
    HierarchyItem,
    Hover,
    Impact,
    ItemReference,
    Location,
    Signature,
    Symbol,
    SymbolText,
)
from pilotfish.api.questions import Operation

FilePath = str | os.PathLike[str]

File = FilePath | None
Number = int | None
SymbolName = str | None

Locations = Answer[tuple[Location, ...]]
Symbols = Answer[tuple[Symbol, ...]]
Edges = Answer[tuple[Edge, ...]]
HierarchyItems = Answer[tuple[HierarchyItem, ...]]


class Questions(ABC):
    """No method raises for an error of the caller, a file or a server: it is in the answer."""

    @abstractmethod
    async def ask(self, operation: Operation, arguments: Mapping[str, object]) -> Answer[Any]:
        """Any operation, its fields named as on the wire (`filePath`, `newName`); what is None counts as absent."""

    # --- Places ----------------------------------------------------------------------------------------------------

    async def definition(
        self, file: File = None, line: Number = None, character: Number = None, *, symbol: SymbolName = None
    ) -> Locations:
        """Where a symbol is defined."""
        return await self.ask(Operation.DEFINITION, place(file, line, character, symbol))

    async def declaration(
        self, file: File = None, line: Number = None, character: Number = None, *, symbol: SymbolName = None
    ) -> Locations:
        """Where a symbol is declared."""
        return await self.ask(Operation.DECLARATION, place(file, line, character, symbol))

    async def type_definition(
        self, file: File = None, line: Number = None, character: Number = None, *, symbol: SymbolName = None
    ) -> Locations:
        """Where the type of a symbol is defined."""
        return await self.ask(Operation.TYPE_DEFINITION, place(file, line, character, symbol))

    async def implementation(
        self,
        file: File = None,
        line: Number = None,
        character: Number = None,
        *,
        symbol: SymbolName = None,
        limit: Number = None,
        offset: Number = None,
    ) -> Locations:
        """What implements an interface or method."""
        more = {"limit": limit, "offset": offset}
        return await self.ask(Operation.IMPLEMENTATION, place(file, line, character, symbol) | more)

    async def references(
        self,
        file: File = None,
        line: Number = None,
        character: Number = None,
        *,
        symbol: SymbolName = None,
        include_declaration: bool = True,
        limit: Number = None,
        offset: Number = None,
    ) -> Locations:
        """Every use of a symbol in the workspace; `meta.total` says how many there are."""
        more = {"includeDeclaration": include_declaration, "limit": limit, "offset": offset}
        return await self.ask(Operation.REFERENCES, place(file, line, character, symbol) | more)

    # --- Symbols ---------------------------------------------------------------------------------------------------

    async def hover(
        self, file: File = None, line: Number = None, character: Number = None, *, symbol: SymbolName = None
    ) -> Answer[Hover]:
        """Type and documentation of a symbol."""
        return await self.ask(Operation.HOVER, place(file, line, character, symbol))

    async def signature(
        self, file: File = None, line: Number = None, character: Number = None, *, symbol: SymbolName = None
    ) -> Answer[tuple[Signature, ...]]:
        """Signatures of the call around a position."""
        return await self.ask(Operation.SIGNATURE, place(file, line, character, symbol))

    async def symbols(
        self,
        file: FilePath,
        *,
        depth: Number = None,
        kinds: str | None = None,
        limit: Number = None,
        offset: Number = None,
    ) -> Symbols:
        """Outline of a file without what is local to functions; `kinds` chooses (`class,method`), `all` has locals."""
        more = {"depth": depth, "kinds": kinds, "limit": limit, "offset": offset}
        return await self.ask(Operation.DOCUMENT_SYMBOL, place(file) | more)

    async def workspace_symbols(
        self, query: str, file: File = None, *, kinds: str | None = None, limit: Number = None, offset: Number = None
    ) -> Symbols:
        """Symbols by name in the whole workspace, exact matches first; with a file, at its servers alone."""
        more = {"query": query, "kinds": kinds, "limit": limit, "offset": offset}
        return await self.ask(Operation.WORKSPACE_SYMBOL, place(file) | more)

    # --- Several requests in one -----------------------------------------------------------------------------------

    async def source(
        self, file: File = None, line: Number = None, character: Number = None, *, symbol: SymbolName = None
    ) -> Answer[tuple[SymbolText, ...]]:
        """The whole text of a symbol, or of several: `symbol="load, Class.method"`."""
        return await self.ask(Operation.SOURCE, place(file, line, character, symbol))

    async def explore(
        self, file: File = None, line: Number = None, character: Number = None, *, symbol: SymbolName = None
    ) -> Answer[Exploration]:
        """All about a symbol: type, documentation, text, who uses it."""
        return await self.ask(Operation.EXPLORE, place(file, line, character, symbol))

    async def impact(
        self, file: File = None, line: Number = None, character: Number = None, *, symbol: SymbolName = None
    ) -> Answer[Impact]:
        """What the uncommitted changes, or a symbol, touch: changed symbols, their users, what is broken now."""
        return await self.ask(Operation.IMPACT, place(file, line, character, symbol))

    # --- Hierarchies -----------------------------------------------------------------------------------------------

    async def incoming_calls(
        self,
        file: File = None,
        line: Number = None,
        character: Number = None,
        *,
        symbol: SymbolName = None,
        item: ItemReference | None = None,
        limit: Number = None,
        offset: Number = None,
    ) -> Edges:
        """Who calls a function, and where; `item` is one of an earlier answer."""
        more = {"callHierarchyItem": handed_back(item), "limit": limit, "offset": offset}
        return await self.ask(Operation.INCOMING_CALLS, place(file, line, character, symbol) | more)

    async def outgoing_calls(
        self,
        file: File = None,
        line: Number = None,
        character: Number = None,
        *,
        symbol: SymbolName = None,
        item: ItemReference | None = None,
        limit: Number = None,
        offset: Number = None,
    ) -> Edges:
        """What a function calls, and where; `item` is one of an earlier answer."""
        more = {"callHierarchyItem": handed_back(item), "limit": limit, "offset": offset}
        return await self.ask(Operation.OUTGOING_CALLS, place(file, line, character, symbol) | more)

    async def supertypes(
        self,
        file: File = None,
        line: Number = None,
        character: Number = None,
        *,
        symbol: SymbolName = None,
        item: ItemReference | None = None,
        limit: Number = None,
        offset: Number = None,
    ) -> HierarchyItems:
        """What a type is derived from; `item` is one of an earlier answer."""
        more = {"typeHierarchyItem": handed_back(item), "limit": limit, "offset": offset}
        return await self.ask(Operation.SUPERTYPES, place(file, line, character, symbol) | more)

    async def subtypes(
        self,
        file: File = None,
        line: Number = None,
        character: Number = None,
        *,
        symbol: SymbolName = None,
        item: ItemReference | None = None,
        limit: Number = None,
        offset: Number = None,
    ) -> HierarchyItems:
        """What is derived from a type; `item` is one of an earlier answer."""
        more = {"typeHierarchyItem": handed_back(item), "limit": limit, "offset": offset}
        return await self.ask(Operation.SUBTYPES, place(file, line, character, symbol) | more)

    # --- Changes ---------------------------------------------------------------------------------------------------

    async def rename(
        self,
        file: File = None,
        line: Number = None,
        character: Number = None,
        *,
        new_name: str,
        symbol: SymbolName = None,
        apply: bool = False,
    ) -> Answer[Changes]:
        """Rename a symbol everywhere: a diff, unless `apply` says to write it."""
        more = {"newName": new_name, "apply": apply}
        return await self.ask(Operation.RENAME, place(file, line, character, symbol) | more)

    async def rename_file(self, file: FilePath, new_path: FilePath, *, apply: bool = False) -> Answer[Changes]:
        """Move a file and let imports follow: a diff, unless `apply` says to do it."""
        more = {"newPath": os.fspath(new_path), "apply": apply}
        return await self.ask(Operation.RENAME_FILE, place(file) | more)

    async def edit_symbol(
        self,
        file: File = None,
        line: Number = None,
        character: Number = None,
        *,
        edit: Literal["replace", "before", "after", "delete"],
        symbol: SymbolName = None,
        text: str | None = None,
        digest: str | None = None,
        apply: bool = False,
    ) -> Answer[Changes]:
        """Replace or delete a symbol, or insert before or after it: a diff, unless `apply` says to write it."""
        more = {"edit": edit, "text": text, "digest": digest, "apply": apply}
        return await self.ask(Operation.EDIT_SYMBOL, place(file, line, character, symbol) | more)

    async def actions(
        self,
        file: FilePath,
        line: int,
        character: Number = None,
        *,
        kind: str | None = None,
        action: int | str | None = None,
        apply: bool = False,
    ) -> Answer[tuple[Action, ...]]:
        """Quick fixes and refactorings on a line; `action` picks one by number or title and shows what it would do."""
        more = {"kind": kind, "action": action, "apply": apply}
        return await self.ask(Operation.CODE_ACTIONS, place(file, line, character) | more)


def place(
    file: File = None, line: Number = None, character: Number = None, symbol: SymbolName = None
) -> dict[str, object]:
    """The fields of a place."""
    path = None if file is None else os.fspath(file)
    return {"filePath": path, "line": line, "character": character, "symbol": symbol}


def handed_back(item: ItemReference | None) -> object:
    """An item of an earlier answer as a question has it."""
    return None if item is None else msgspec.to_builtins(item)
