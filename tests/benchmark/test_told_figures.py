"""The figures of kept results: other programs' words are read rightly, counts are counted, and the pages are theirs."""

import json
import re
from typing import Any

import pytest
from harness.servers import CLONE
from told import figures, score
from told.edits import Change, Edit
from told.score import Said
from told.truth import Problem, Truth

pytestmark = pytest.mark.proves("BENCH-1")

ERROR = Problem("src/a.ts", 3, 7, "error", "2322", "Type 'string' is not assignable to type 'number'.")
MESSAGE = ERROR.message
SERENA = {
    "src/a.ts": {
        "Error": {"f": [{"message": MESSAGE, "range": {"start": {"line": 2, "character": 6}}, "code": 2322}]},
        "Hint": {"<file>": [{"message": "'x' is deprecated.", "range": {"start": {"line": 0, "character": 0}}}]},
    }
}
AGENT_LSP = f"""GCF profile=generic
## "file:///w/src/a.ts" [2]{{severity,code,message,"range>start>line","range>start>character"}}
1|2322|{MESSAGE}|2|6
4|6385|'x' is deprecated.|0|0
"""


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("", f"File: src/a.ts\nERROR [3:7] {MESSAGE} (2322)"),
        ("lines", f"Broken now, of 2 files checked:\nsrc/a.ts:3:7  error: {MESSAGE} (2322)\n1 symbol changed:"),
        ("lines", f"src/a.ts:3:7  error: {MESSAGE} (2322)\nsrc/a.ts:1:1  hint: 'x' is deprecated. (6385)"),
        ("serena", json.dumps(SERENA)),
        ("agent-lsp", AGENT_LSP),
        ("agent-lsp", re.sub(r"(?<=\{).*(?=\})", lambda fields: fields[0].title(), AGENT_LSP)),
    ],
)
def test_every_form_says_the_same_finding(form: str, text: str) -> None:
    (found,) = score.read(text, "/w", form).findings
    assert found == ERROR


def test_claude_code_names_a_file_by_its_last_name(tmp_path: Any) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.ts").touch()
    text = (
        f"The following new diagnostic issues were detected:\n\na.ts:\n  ✘ [Line 3:7] {MESSAGE} [2322] (typescript)\n"
    )
    text += "  ★ [Line 1:1] 'x' is deprecated. [6385] (typescript)\n"
    (found,) = score.read(text, str(tmp_path), "claude-code").findings
    assert found == ERROR


def test_what_is_heard_before_the_next_edit_is_late_for_the_one_before() -> None:
    judge, other = score.Judge(), Problem("b.ts", 1, 1, "error", "2305", "Module has no exported member 'f'.")
    broken = {"b.ts": (other,)}
    first = Edit(1, "rename-export", "others", "edit", (Change("a.ts", "1", "2"),), "")
    undone = Edit(2, "fix", "fix", "edit", (Change("a.ts", "2", "1"),), "", undoes=1)
    assert judge.verdict(first, Truth({}, broken, broken), Said()).untold == ("b.ts",)
    verdict = judge.verdict(undone, Truth(broken, {}, {}), Said(), Said((other,)))
    # The edit that mends it comes after it was told.
    assert (verdict.late_for, verdict.false) == (((1, "b.ts"),), ())


def row(**more: Any) -> figures.Row:
    verdict: dict[str, Any] = {
        **{name: [] for name in ("right", "late", "late_for", "old", "unknown", "missing", "broken", "told")},
        "own_new": 0,
        **more,
    }
    edit = {"number": 2, "kind": "comment", "group": "harmless"}
    told = {"text": "x" * 10, "milliseconds": 5.0, "error": ""}
    return {"project": "p", "server": "s", "subject": "w", "edit": edit, "told": told, "new": [], "verdict": verdict}


def test_more_bytes_more_mistakes_and_fewer_edits_are_worse_and_time_is_not() -> None:
    good = [row(broken=["b"], told=["b"]), row()]
    slow = [{**one, "told": {**one["told"], "milliseconds": 9e9}} for one in good]
    assert not figures.compared(good, slow)[1]
    finding = {"file": "b"}
    for worse in (
        [row(broken=["b"], told=["b"]), row(old=[finding])],
        [row(broken=["b"], told=["b"]), row(own_new=1, missing=[finding])],
        [row(broken=["b"]), row()],
        [row(broken=["b"], told=["b"])],
        [{**one, "told": {**one["told"], "text": "x" * 20}} for one in good],
        [],
    ):
        assert figures.compared(good, worse)[1]
        assert worse == [] or not figures.compared(worse, worse)[1]


def test_the_pages_of_the_site_are_those_of_the_kept_results() -> None:
    rows = figures.rows(figures.SUBJECTS)
    made = figures.made(rows, json.loads(figures.ABOUT.read_text()))
    assert {path: (CLONE / path).read_text() for path in made} == made


def test_the_table_of_other_files_has_a_row_for_each_project_and_server() -> None:
    rows = figures.rows(figures.OTHERS)
    assert figures.of_others(rows).count("\n") == 1 + len(figures.runs(rows))
