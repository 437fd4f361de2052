"""Shows what is told of other files: broken directly, through one that stays clean, by a deletion and by a move.

The agent has read every file before, so that each is open; an edit of the first file is told by the hook.
"""

import re
from collections.abc import Sequence

from pilotfish.api.answers import Diagnostic
from pilotfish.api.questions import Touch
from pilotfish.library.workspace import computer
from pilotfish.model import AbsPath
from pilotfish.service.service import Service
from pilotfish.service.workspaces import ClientSession
from support.proving.play import MAX_TRIES, MAX_WORDS, FreshAndWrong, NotProven, Stage
from support.proving.rows import Others, ProofRow, replaced
from support.servers.real import User

TOLD = re.compile(r'<diagnostics file="([^"]+)">(.*?)</diagnostics>', re.DOTALL)

TIMES_ON_DISK = 3
"""Svelte's server was wrong every second time."""


async def show_others(row: ProofRow, case: Others, user: User) -> tuple[str, ...]:
    """What holds, by name: an edit, an edit through a clean file, a deletion, a move."""
    for name, text in {**row.files, **case.files}.items():
        place = user.workspace / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    root = AbsPath(str(user.workspace))
    async with Service(computer(user.environment)).running() as service:
        stage = Stage(row, service, ClientSession("others", root, root), user.workspace)
        await _clean(stage, case, "before any edit")
        return await _all_ways(stage, case)


async def _all_ways(stage: Stage, case: Others) -> tuple[str, ...]:
    shown = list[str]()
    first, fine = stage.root / case.first, case.files[case.first]
    ways = {"edit": (case.edit, case.second, ""), "through": (case.through, case.third, case.second)}
    for way, (edit, broken, clean) in ways.items():
        if edit is not None:
            first.write_text(replaced(fine, edit))
            await _tells(stage, way, [case.first], broken, case.error, clean)
            first.write_text(fine)
            await _tells(stage, f"the end of {way}", [case.first])
            shown.append(way)
    for _ in range(TIMES_ON_DISK):
        if case.edit is None:
            break
        first.write_text(replaced(fine, case.edit))
        await _checks(stage, case, "after a change on disk", broken=True)
        first.write_text(fine)
        await _checks(stage, case, "after the end of a change on disk")
    if case.gone:
        first.unlink()
        shown += await _tells_or_doubts(stage, case, "deletion", [case.first])
        first.write_text(fine)
        await _tells(stage, "the end of deletion", [case.first])
        await _clean(stage, case, "after a deletion")
    if case.gone and case.moved:
        there = stage.root / case.moved
        there.parent.mkdir(parents=True, exist_ok=True)
        first.rename(there)
        shown += await _tells_or_doubts(stage, case, "move", [case.first, case.moved])
        there.rename(first)
        await _tells(stage, "the end of move", [case.moved, case.first])
        await _clean(stage, case, "after a move")
    return tuple(shown)


async def _tells_or_doubts(stage: Stage, case: Others, way: str, paths: Sequence[str]) -> list[str]:
    """The way, where the error in the second file is told; where that is not sure, the answer may say so instead."""
    try:
        await _tells(stage, way, paths, case.second, case.gone)
    except FreshAndWrong:
        raise
    except NotProven:
        if way not in case.unsure:
            raise
        return []
    return [way]


async def _clean(stage: Stage, case: Others, when: str) -> None:
    """Every file is read by the agent and has no error."""
    await _checks(stage, case, when)
    for name in filter(None, (case.first, case.second, case.third)):
        await stage.service.touched(Touch((name,), "read"), stage.client)


async def _checks(stage: Stage, case: Others, when: str, *, broken: bool = False) -> None:
    """A check, which asks about the first file last, finds the error in the second one, or none at all."""

    def is_error(one: Diagnostic) -> bool:
        return one.severity == "error"

    names = tuple(dict.fromkeys(filter(None, (case.third, case.second, case.first))))
    answer = await stage.service.check(stage.client, names)
    for _ in range(MAX_TRIES - 1):
        if answer.meta.state != "fresh":
            answer = await stage.service.check(stage.client, names)
    found = [f"{name}: {one.message}" for name, items in (answer.data or {}).items() for one in items if is_error(one)]
    is_right = any(re.search(case.error, one) for one in found if one.startswith(case.second)) if broken else not found
    if not is_right or answer.meta.state != "fresh":
        kind = FreshAndWrong if answer.meta.state == "fresh" else NotProven
        raise kind(f"other files {when}: {answer.meta.state}: {(found or [answer.meta.reason])[0]}")


async def _tells(
    stage: Stage, way: str, paths: Sequence[str], broken: str = "", pattern: str = "", clean: str = ""
) -> None:
    """After a change of these files, the error in `broken` is told, and nothing of `clean`; else of no other file."""
    feedback = await stage.service.touched(Touch(tuple(paths), "patch"), stage.client)
    told = {name: words for name, words in TOLD.findall(feedback.text) if name == broken or name not in paths}
    right = re.search(pattern, told.get(broken, "")) and clean not in told if broken else not told
    if not right:
        words = " ".join((feedback.text or feedback.reason or "nothing").split())[:MAX_WORDS]
        kind = FreshAndWrong if feedback.state == "fresh" else NotProven
        raise kind(f"other files after {way}: {feedback.state}: {words}")
