"""Workspace edits as servers write them, and the files they are about."""

import json
import os
from pathlib import Path
from typing import Any

from pilotfish.model import AbsPath, Encoding
from pilotfish.operations.edits.staging import Stage, Staged
from pilotfish.policy.boundary import boundary_of
from pilotfish.protocol.edits import EditPlan, edit_plan
from pilotfish.protocol.uris import uri_of
from pilotfish.service.changes.disk import DiskNow
from pilotfish.system.files import DiskFiles


def uri(root: Path, name: str) -> str:
    return uri_of(AbsPath(str(root / name)))


def text_edit(line: int, start: int, end: int, new: str) -> dict[str, Any]:
    return {
        "range": {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}},
        "newText": new,
    }


def edited(root: Path, name: str, *edits: dict[str, Any], version: int | None = None) -> dict[str, Any]:
    return {"textDocument": {"uri": uri(root, name), "version": version}, "edits": list(edits)}


def created(root: Path, name: str, **options: bool) -> dict[str, Any]:
    return {"kind": "create", "uri": uri(root, name), "options": options}


def renamed(root: Path, old: str, new: str, **options: bool) -> dict[str, Any]:
    return {"kind": "rename", "oldUri": uri(root, old), "newUri": uri(root, new), "options": options}


def deleted(root: Path, name: str, **options: bool) -> dict[str, Any]:
    return {"kind": "delete", "uri": uri(root, name), "options": options}


def plan_of(*changes: dict[str, Any]) -> EditPlan:
    return edit_plan(json.dumps({"documentChanges": list(changes)}).encode())


def stage_of(root: Path, seen: dict[str, str] | None = None) -> Stage:
    texts = {AbsPath(str(root / name)): text for name, text in (seen or {}).items()}
    return Stage(DiskNow(boundary_of(str(root)), DiskFiles()), Encoding.UTF16, texts)


def staged(root: Path, *changes: dict[str, Any], seen: dict[str, str] | None = None) -> Staged:
    stage = stage_of(root, seen)
    stage.perform(plan_of(*changes))
    return stage.staged()


Written = dict[str, bytes | tuple[bytes, int]]
"""Contents by name, or contents and modes."""


def write(root: Path, files: Written) -> None:
    for name, value in files.items():
        content, mode = value if isinstance(value, tuple) else (value, 0o644)
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)


def left_in(home: AbsPath) -> list[str]:
    """The journals that are still there."""
    return os.listdir(home) if os.path.isdir(home) else []


def contents(root: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below a folder with its content and mode, and every folder that is empty."""
    found: dict[str, tuple[bytes, int]] = {}
    for folder, folders, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            found[str(path.relative_to(root))] = (path.read_bytes(), path.stat().st_mode & 0o7777)
        if not folders and not names:
            found[str(Path(folder).relative_to(root)) + "/"] = (b"", 0)
    return found
