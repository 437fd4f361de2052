"""The benchmark of what an agent is told: its edits are what they claim, and it judges what was told rightly."""

import ast
import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from harness import corpus
from harness.numbers import percentile
from harness.servers import SERVERS
from hypothesis import given, settings
from hypothesis import strategies as st
from told import conversation, edits, figures, report, score, truth
from told.conversation import Told
from told.edits import Change, Edit
from told.makers import Source
from told.report import Outcome, Run
from told.subjects import Cost
from told.truth import Problem, Truth

pytestmark = pytest.mark.proves("BENCH-1")

LIBRARY = '''"""Things, and how to make them."""

from dataclasses import dataclass


@dataclass
class Thing:
    """One of them."""

    name: str
    weight: float = 1.0

    def heavier(self, by: float) -> "Thing":
        total = self.weight + by
        return Thing(self.name, total)


class Box:
    def __init__(self, size: int) -> None:
        self.size = size

    def holds(self, thing: Thing) -> bool:
        limit = float(self.size)
        return bool(thing.weight <= limit)


def make(name: str, count: int = 1) -> list[Thing]:
    """Make some."""
    made = []
    for number in range(count):
        made.append(Thing(name, float(number)))
    return sorted(made, key=str)


def count_of(things: list[Thing]) -> int:
    if not things:
        return 0
    # Umlauts count as one: ä
    amount = len(things)
    return int(amount)
'''
USER = """from .library import Box, Thing, count_of, make


def heaviest(name: str) -> Thing:
    things = make(name, 3)
    return things[-1].heavier(2.0)


def all_fit(box: Box, name: str) -> bool:
    return all(box.holds(thing) for thing in make(name)) and count_of(make(name)) > 0 and box.size > Thing(name).weight
"""
TEST = "from package.user import heaviest\n\n\ndef test_heaviest() -> None:\n    assert heaviest('a').name == 'a'\n"
PYTHON = {
    "package/__init__.py": "",
    "package/library.py": LIBRARY,
    "package/user.py": USER,
    "package/more.py": LIBRARY.replace("make", "produce").replace("Thing", "Item"),
    "package/main.py": "from . import library, more, user\n\nprint(library.make, more.produce, user.heaviest)\n",
    "tests/test_user.py": TEST,
}
TYPESCRIPT = {
    "src/library.ts": """import { helper } from './helper';

export interface Thing {
  name: string;
  weight?: number;
}

export function make(name: string, count: number): Thing[] {
  const things = range(count);
  return helper(things, name);
}

export function range(count: number): number {
  const doubled = count * 2;
  return doubled;
}

export class Box {
  size: number = 1;
  holds(thing: Thing): boolean {
    return range(this.size) > 0;
  }
}
""",
    "src/helper.ts": """import { Thing } from './library';

export function helper(count: number, name: string): Thing[] {
  const found = [{ name, weight: count }];
  return found;
}
""",
    "src/user.ts": """import { Box, Thing, make, range } from './library';
import { helper } from './helper';

export const box = new Box();
export const held = box.holds(make('a', range(1))[0]);
export const thing: Thing = helper(1, 'b')[0];
console.log(thing.name, thing.weight, box.size);
""",
}
GO = {
    "things.go": """package things

import (
\t"fmt"
\t"strings"
)

type Thing struct {
\tName   string
\tWeight int
}

func Make(name string) *Thing {
\ttrimmed := strings.TrimSpace(name)
\treturn New(trimmed)
}

func New(name string) *Thing {
\treturn &Thing{Name: name, Weight: 1}
}

func (t *Thing) Heavier(by int) int {
\ttotal := add(t.Weight, by)
\treturn add(total)
}

func show(t *Thing) {
\tfmt.Println(t.Name)
}
""",
    "more.go": """package things

func add(numbers ...int) int {
\ttotal := 0
\tfor _, number := range numbers {
\t\ttotal += number
\t}
\treturn int(total)
}

func use() {
\tshow(Make("a"))
\t_ = New("b").Heavier(add(1))
\t_ = Thing{Name: "c", Weight: 2}
}
""",
}
C = {
    "thing.h": """#include <stddef.h>

struct thing {
    char *name;
    size_t weight;
};

struct thing *thing_make(const char *name);
size_t thing_weigh(struct thing *one, size_t more);
""",
    "thing.c": """#include <string.h>
#include "thing.h"

struct thing *thing_make(const char *name) {
    int found = count(name);
    return take(found);
}

size_t thing_weigh(struct thing *one, size_t more) {
    size_t total = one->weight + more;
    return total;
}
""",
    "use.c": """#include "thing.h"

int use(void) {
    struct thing *one = thing_make("a");
    one->name = "b";
    return thing_weigh(one, one->weight);
}
""",
}
NAMED = {"python": PYTHON, "typescript": TYPESCRIPT, "go": GO, "c": C}
"""Languages whose edits name what others use."""
COMPONENT = """<template>
  <Inner :size="weight" @grow="grow()" />
</template>

<script lang="ts">
import { helper } from './helper';
import Inner from './Inner.vue';

export interface Frame {
  border: number;
}

export default defineComponent({
  props: {
    name: { type: String, required: true },
  },
  setup(props) {
    function holds(count: number) {
      const doubled = count * 2;
      return helper(doubled, props.name);
    }
    return {
      holds,
    };
  },
});
</script>
"""
INNER = """<script setup lang="ts">
const props = defineProps<{
  size: number;
}>();
</script>
"""
VUE = {
    **TYPESCRIPT,
    "src/Shelf.vue": COMPONENT,
    "src/Inner.vue": INNER,
    "src/shelf.ts": "import Shelf, { Frame } from './Shelf.vue';\nexport const held = (a: Frame) => Shelf.holds(a);\n",
}
PROJECTS = {**NAMED, "vue": VUE}
SEEDS = st.integers(0, 10_000)
BROKEN_ON_PURPOSE = {"syntax"}


# --- Edits ----------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(PROJECTS)), SEEDS)
def test_a_plan_is_the_same_for_the_same_seed_and_every_edit_changes_what_the_one_before_left(
    language: str, seed: int
) -> None:
    planned = edits.plan(PROJECTS[language], language, 12, seed)
    assert planned == edits.plan(PROJECTS[language], language, 12, seed)
    assert [edit.number for edit in planned] == list(range(1, 13))
    state = dict(PROJECTS[language])
    for edit in planned:
        assert edit.changes
        for change in edit.changes:
            assert state.get(change.path) == change.before != change.after
        edits.apply(state, edit)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_python_can_be_read_after_every_edit_but_those_that_break_its_syntax(seed: int) -> None:
    for edit in edits.plan(PYTHON, "python", 12, seed):
        for change in edit.changes:
            if change.after is None:
                continue
            if edit.kind in BROKEN_ON_PURPOSE:
                with pytest.raises(SyntaxError):
                    ast.parse(change.after)
            else:
                ast.parse(change.after)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["typescript", "go", "c"]), SEEDS)
def test_brackets_match_after_every_edit_but_those_that_break_the_syntax(language: str, seed: int) -> None:
    for edit in edits.plan(PROJECTS[language], language, 12, seed):
        for change in edit.changes:
            if change.after is not None:
                counts = Counter(change.after)
                balanced = all(counts[one] == counts[other] for one, other in ("()", "[]", "{}"))
                assert balanced == (edit.kind not in BROKEN_ON_PURPOSE), edit


EDITS = [(language, kind) for language in PROJECTS for kind in (*edits.MAKERS[language], "delete-file", "move-file")]


@pytest.mark.parametrize(("language", "kind"), EDITS)
def test_every_kind_of_edit_that_a_language_has_can_be_made(language: str, kind: str) -> None:
    (edit,) = edits.plan(PROJECTS[language], language, 1, 3, [kind])
    assert edit.kind == kind
    assert edit.group == edits.group_of(kind)


@pytest.mark.parametrize("kind", edits.MAKERS["vue"])
def test_each_file_of_a_project_of_components_is_edited_as_its_own_language(kind: str) -> None:
    components = {path: text for path, text in VUE.items() if path.endswith(".vue")}
    modules = {path: text for path, text in VUE.items() if not path.endswith(".vue")}
    own = [edits.MAKERS["vue"][kind](source, Random(1)) for source in sources(VUE, components)]
    assert any(own)
    for source in sources(VUE, modules):
        other = edits.MAKERS["typescript"].get(kind)
        assert edits.MAKERS["vue"][kind](source, Random(1)) == (other(source, Random(1)) if other else None)


def sources(texts: dict[str, str], these: dict[str, str]) -> list[Source]:
    others = {path: [text for other, text in texts.items() if other != path] for path in these}
    return [
        Source(path, text, lambda name, path=path: any(name in edits.words(one) for one in others[path]))
        for path, text in these.items()
    ]


@pytest.mark.parametrize("language", NAMED)
@pytest.mark.parametrize("kind", ["rename-export", "new-parameter", "rename-member", "remove-export"])
def test_what_is_meant_to_break_others_changes_a_name_that_others_use(language: str, kind: str) -> None:
    for seed in range(8):
        (edit,) = edits.plan(PROJECTS[language], language, 1, seed, [kind])
        (change,) = edit.changes
        assert change.before is not None
        assert change.after is not None
        others = [text for path, text in PROJECTS[language].items() if path != change.path]
        named = [word for word in edits.words(edit.note) if any(word in edits.words(text) for text in others)]
        assert named, edit.note


def test_a_renamed_local_of_python_is_renamed_wherever_it_is_used_and_nowhere_else() -> None:
    body = "result = 0\n    for item in items:\n        result += item\n    return result\n"
    texts = {"one.py": f"def total(items):\n    {body}"}
    for seed in range(6):
        (edit,) = edits.plan(texts, "python", 1, seed, ["rename-local"])
        (change,) = edit.changes
        assert change.after is not None
        name = "result" if "local result" in edit.note else "item"
        names = [node.id for node in ast.walk(ast.parse(change.after)) if isinstance(node, ast.Name)]
        assert name not in names
        assert f"{name}_value" in names
        assert "items" in names


def test_a_fix_restores_the_texts_of_the_edit_that_it_undoes() -> None:
    planned = edits.plan(PYTHON, "python", 40, 5)
    undone = [edit for edit in planned if edit.undoes is not None]
    assert undone
    for edit in undone:
        first = planned[(edit.undoes or 0) - 1]
        assert [(one.path, one.after, one.before) for one in first.changes] == [
            (one.path, one.before, one.after) for one in edit.changes
        ]


def test_only_the_kinds_that_were_asked_for_are_made_and_what_they_broke_is_fixed() -> None:
    planned = edits.plan(PYTHON, "python", 20, 2, ["own", "fix"])
    assert {edit.group for edit in planned} == {"own", "fix"}
    with pytest.raises(ValueError, match="no such kind"):
        edits.plan(PYTHON, "python", 1, 2, ["nonsense"])


def test_a_state_has_the_same_digest_however_it_was_reached() -> None:
    planned = edits.plan(PYTHON, "python", 30, 4)
    reached = list(edits.states(PYTHON, planned))
    by_text = {edits.digest(state): state for state in reached}
    assert all(by_text[edits.digest(state)] == state for state in reached)
    assert len(by_text) < len(reached)


# --- The truth ------------------------------------------------------------------------------------------------------


def problem(file: str, message: str, line: int = 1, rule: str = "rule", severity: str = "error") -> Problem:
    return Problem(file, line, 1, severity, rule, message)


def findings(*problems: Problem) -> dict[str, tuple[Problem, ...]]:
    return {
        file: tuple(one for one in problems if one.file == file) for file in dict.fromkeys(one.file for one in problems)
    }


def test_new_is_what_is_there_more_often_than_before_wherever_it_stands() -> None:
    before = findings(problem("a", "x", 1), problem("a", "x", 9), problem("a", "y", 3), problem("b", "z"))
    after = findings(problem("a", "x", 2), problem("a", "x", 4), problem("a", "x", 10), problem("c", "z"))
    new = truth.difference(before, after)
    assert {file: len(found) for file, found in new.items()} == {"a": 1, "c": 1}


def test_a_type_with_other_parameters_is_another_message() -> None:
    before, after = findings(problem("a", "`() -> Any` has no x")), findings(problem("a", "`(...) -> Any` has no x"))
    assert list(truth.difference(before, after)) == ["a"]


def test_an_error_is_the_same_in_its_place_however_it_is_explained() -> None:
    before, after = findings(problem("a", "no\n since x", 4)), findings(problem("a", "no\n since y", 4))
    assert truth.difference(before, after) == {}
    assert list(truth.difference(before, findings(problem("a", "no\n since y", 5)))) == ["a"]


@pytest.mark.parametrize(
    ("now", "changes", "new"),
    [
        ([problem("a", "no y", 4)], (), []),
        ([problem("a", "no y", 5)], (), ["no y"]),
        ([problem("a", "no y", 4, rule="other")], (), ["no y"]),
        ([problem("a", "no x", 4), problem("a", "no y", 4)], (), ["no y"]),
        ([problem("a", "no y", 5)], (Change("a", "1\n2\n3\n4\n", "0\n1\n2\n3\n4\n"),), []),
        ([problem("a", "no y", 4)], (Change("a", "1\n2\n3\n4\n", "1\n2\n3\nx\n"),), ["no y"]),
    ],
    ids=["other words", "another place", "another rule", "one more", "a line above it", "its own line"],
)
def test_an_old_error_that_names_something_else_is_not_new(
    now: list[Problem], changes: tuple[Change, ...], new: list[str]
) -> None:
    found = truth.Truth.of(findings(problem("a", "no x", 4)), findings(*now), changes)
    assert [one.message for several in found.new.values() for one in several] == new
    verdict = score.Judge().verdict(EDIT, found, told(*now))
    assert not [one for one in verdict.false if one.message == "no y"]


def test_what_stands_on_a_line_that_the_edit_wrote_may_be_told_as_new() -> None:
    change = Change("a", "1\nbad\n", "bad\n1\nbad()\n")
    found = truth.Truth.of(findings(problem("a", "no", 2)), findings(problem("a", "no", 3)), (change,))
    assert not found.new
    assert not score.Judge().verdict(EDIT, found, told(problem("a", "no", 3))).false
    stays = truth.Truth.of(findings(problem("a", "no", 1)), findings(problem("a", "no", 2)), (change,))
    assert score.Judge().verdict(EDIT, stays, told(problem("a", "no", 2))).false


def test_what_may_be_told_as_new_may_be_told_later_and_once() -> None:
    there = findings(problem("a", "no y", 4))
    reworded = truth.Truth.of(findings(problem("a", "no x", 4)), there, ())
    stays = truth.Truth.of(there, there, ())
    judge = score.Judge()
    assert not judge.verdict(EDIT, reworded, told()).false
    assert not judge.verdict(EDIT, stays, told(problem("a", "no y", 4))).false
    assert judge.verdict(EDIT, stays, told(problem("a", "no y", 4))).false


MESSAGES = st.lists(st.sampled_from("xyz"), max_size=8)


@given(MESSAGES, MESSAGES)
def test_the_difference_is_that_of_multisets(before: list[str], after: list[str]) -> None:
    new = truth.difference(
        findings(*(problem("a", one, line) for line, one in enumerate(before))),
        findings(*(problem("a", one, line) for line, one in enumerate(after))),
    )
    assert Counter(one.message for one in new.get("a", ())) == Counter(after) - Counter(before)


def test_what_was_known_of_a_file_is_known_of_it_under_its_new_name() -> None:
    edit = Edit(1, "move-file", "others", "patch", (Change("a", "x", None), Change("b", None, "x")), "")
    assert truth.moved(findings(problem("a", "x")), edit).keys() == {"b"}


def test_the_output_of_each_checker_is_read() -> None:
    root = Path("/srv/project")
    place = {"start": {"line": 4, "character": 2}, "end": {"line": 4, "character": 3}}
    pyright = {"file": "/srv/project/a.py", "severity": "error", "message": "no", "range": place, "rule": "r"}
    assert list(truth.parse_pyright(json.dumps({"generalDiagnostics": [pyright]}), root)) == [
        Problem("a.py", 5, 3, "error", "r", "no")
    ]
    ty = {
        "check_name": "r",
        "description": "r: no",
        "severity": "major",
        "location": {"path": "a.py", "positions": {"begin": {"line": 5, "column": 3}}},
    }
    assert list(truth.parse_ty(json.dumps([ty]), root)) == [Problem("a.py", 5, 3, "error", "r", "no")]
    pyrefly = {"line": 5, "column": 3, "path": "a.py", "name": "r", "description": "no", "severity": "error"}
    assert list(truth.parse_pyrefly(json.dumps({"errors": [pyrefly]}), root)) == [
        Problem("a.py", 5, 3, "error", "r", "no")
    ]
    tsc = (
        "src/a.ts(5,3): error TS2322: Type 'A' is not B.\n  Because of C.\nsrc/b.ts(1,1): error TS1005: ';' expected.\n"
    )
    assert list(truth.parse_tsc(tsc, root)) == [
        Problem("src/a.ts", 5, 3, "error", "2322", "Type 'A' is not B.\n  Because of C."),
        Problem("src/b.ts", 1, 1, "error", "1005", "';' expected."),
    ]
    clangd = "I[10:00:00.1] Testing on source file /srv/project/a.c\nE[10:00:00.2] [undeclared] Line 5: no\n"
    assert list(truth.parse_clangd(clangd, root)) == [Problem("a.c", 5, 1, "error", "undeclared", "no")]
    assert list(truth.parse_gopls("/srv/project/a.go:5:3-7: undeclared name: x\n", root)) == [
        Problem("a.go", 5, 3, "error", "", "undeclared name: x")
    ]


def test_output_of_tsc_that_is_no_error_of_a_file_is_not_taken_for_a_clean_project() -> None:
    with pytest.raises(truth.CheckerFailed):
        list(truth.parse_tsc("error TS5083: Cannot read file '/srv/tsconfig.json'.\n", Path("/srv")))


# --- The score ------------------------------------------------------------------------------------------------------

TEXT = """LSP errors detected in this file, please fix:
<diagnostics file="a.py">
ERROR [3:5] "x" is not &lt;defined&gt; (reportUndefinedVariable)
ERROR [9:1] No rule here
... and 4 more
</diagnostics>

LSP errors detected in other files:
<diagnostics file="package/b.py">
ERROR [1:2] Import "c" (from d) could not be resolved (reportMissingImports)
</diagnostics>

2 more files have new errors: package/c.py, package/d.py
The edit was applied and need not be repeated; please fix these errors in a further edit.
"""
EDIT = Edit(1, "rename-export", "others", "edit", (Change("a.py", "x", "y"),), "")


def test_what_a_model_reads_is_read() -> None:
    read = score.said(TEXT, "/srv/project")
    assert read.findings == (
        Problem("a.py", 3, 5, "error", "reportUndefinedVariable", '"x" is not <defined>'),
        Problem("a.py", 9, 1, "error", "", "No rule here"),
        Problem("package/b.py", 1, 2, "error", "reportMissingImports", 'Import "c" (from d) could not be resolved'),
    )
    assert read.left_out == {"a.py": 4}
    assert "package/c.py" in read.rest
    opened = score.said("File: a.py\nOPEN [3:5] not defined yet: no (r)\n| no()\n", "/srv")
    assert (opened.findings, opened.rest) == ((Problem("a.py", 3, 5, "error", "r", "no"),), "")
    plain = score.said("File: a.py\nERROR [3:5] no (r) [new]\n", "/srv")
    assert plain.findings == (Problem("a.py", 3, 5, "error", "r", "no"),)


def told(*problems: Problem, rest: str = "", left_out: dict[str, int] | None = None) -> score.Said:
    return score.Said(problems, left_out or {}, rest)


def true(before: list[Problem], after: list[Problem]) -> Truth:
    return Truth(findings(*before), findings(*after), truth.difference(findings(*before), findings(*after)))


def test_only_what_is_new_may_be_told() -> None:
    what = true([problem("a.py", "old")], [problem("a.py", "old"), problem("a.py", "new", 4)])
    verdict = score.Judge().verdict(
        EDIT, what, told(problem("a.py", "new", 4), problem("a.py", "old"), problem("a.py", "invented", 7, "other"))
    )
    assert [one.message for one in verdict.right] == ["new"]
    assert [one.message for one in verdict.old] == ["old"]
    assert [one.message for one in verdict.unknown] == ["invented"]
    assert not verdict.missing
    assert verdict.own_new == 1


def test_the_same_message_told_twice_is_right_once() -> None:
    what = true([], [problem("a.py", "new", 4)])
    verdict = score.Judge().verdict(EDIT, what, told(problem("a.py", "new", 4), problem("a.py", "new", 9)))
    assert len(verdict.right) == 1
    assert len(verdict.false) == 1


def test_a_new_error_of_the_edited_file_is_missing_unless_it_is_told_or_counted() -> None:
    what = true([], [problem("a.py", "one"), problem("a.py", "two"), problem("a.py", "warning", severity="warning")])
    assert len(score.Judge().verdict(EDIT, what, told()).missing) == 2
    assert len(score.Judge().verdict(EDIT, what, told(left_out={"a.py": 1})).missing) == 1
    assert not score.Judge().verdict(EDIT, what, told(problem("a.py", "one"), left_out={"a.py": 1})).missing


def test_another_file_is_told_of_by_an_error_of_its_own_or_by_its_name_in_the_list() -> None:
    what = true([], [problem("b.py", "x"), problem("b.py", "y"), problem("c.py", "x"), problem("d.py", "x")])
    verdict = score.Judge().verdict(EDIT, what, told(problem("b.py", "y"), rest="1 more file has new errors: c.py"))
    assert set(verdict.broken) == {"b.py", "c.py", "d.py"}
    assert set(verdict.told) == {"b.py", "c.py"}
    assert verdict.untold == ("d.py",)
    assert not verdict.missing


def test_what_is_told_with_a_later_edit_is_late_and_not_false_as_long_as_it_is_true() -> None:
    judge, broken = score.Judge(), [problem("b.py", "x"), problem("c.py", "y")]
    first = judge.verdict(EDIT, true([], broken), told())
    later = Edit(2, "comment", "harmless", "edit", (Change("z.py", "x", "y"),), "")
    second = judge.verdict(later, true(broken, broken[:1]), told(problem("b.py", "x", 8), problem("c.py", "y")))
    assert first.untold == ("b.py", "c.py")
    assert second.late_for == ((1, "b.py"),)
    assert [one.file for one in second.false] == ["c.py"]
    outcomes = [
        Outcome(EDIT, true([], broken), Told("", 1.0), first),
        Outcome(later, true(broken, broken[:1]), Told("text", 2.0), second),
    ]
    run = Run("p", "s", "w", 1, outcomes, Cost())
    row = figures.figures([report.record(run, one) for one in outcomes])
    assert (row.broken, row.told, row.late, row.never) == (2, 0, 1, 1)
    assert (row.harmless_sizes, row.false, row.old) == ((4,), 1, 0)
    assert (
        report.table([run]).splitlines()[2].startswith("| p | s | w | 2 | **1** (0 + 1) | 0 / 0 (0) | 2 / 0 / 1 / 1 |")
    )
    assert len(report.by_kind([run]).splitlines()) == 4


def test_a_file_that_a_later_feedback_names_in_a_list_is_late() -> None:
    judge, broken = score.Judge(), [problem("b.py", "x")]
    judge.verdict(EDIT, true([], broken), told())
    later = Edit(2, "comment", "harmless", "edit", (Change("z.py", "x", "y"),), "")
    listed = score.said("1 other file has errors that may be older than this edit: b.py", "/root")
    assert judge.verdict(later, true(broken, broken), listed).late_for == ((1, "b.py"),)


def test_long_messages_that_were_cut_are_the_same_and_short_ones_that_begin_alike_are_not() -> None:
    long = "Argument of type A cannot be assigned to parameter B because " + "of many reasons " * 20
    assert score.same(problem("a", long[:80] + "…"), problem("a", long))
    assert score.same(problem("a", "Type\u00a0&  is   odd"), problem("a", "Type & is odd"))
    assert not score.same(problem("a", "Expected expression"), problem("a", "Expected expression in brackets"))
    assert not score.same(problem("a", "x"), problem("b", "x"))


# --- Hosts, figures, projects ---------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["a\n", "b\n", "\n"]), max_size=12), st.lists(st.sampled_from(["a\n", "c\n"]), max_size=12)
)
def test_the_words_of_an_edit_say_what_it_does_and_where(before: list[str], after: list[str]) -> None:
    old, new = "".join(before), "".join(after)
    was, becomes = conversation.replaced_lines(old, new)
    assert old.replace(was, becomes, 1) == new
    assert old.count(was) == 1 or was in {old, ""}


def test_percentiles_are_values_that_were_measured() -> None:
    assert percentile([], 0.5) == 0
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile(list(range(1, 101)), 0.95) == 95


def test_every_project_is_pinned_and_has_a_checker_and_edits() -> None:
    for name, project in corpus.projects().items():
        assert len(project.sha256) == 64, name
        assert all(len(digest) == 64 for digest in project.beside.values())
        assert all(SERVERS[server].check and SERVERS[server].parse in truth.PARSERS for server in project.servers)
        assert project.language in {*edits.MAKERS, "javascript"}
        assert any(mark in project.package for mark in ("==", "@", "=")), name
        assert all("==" in requirement for requirement in project.requirements)


def test_what_a_file_had_when_it_was_deleted_is_not_new_when_it_comes_back() -> None:
    old, new = problem("a.py", "wrong"), problem("a.py", "worse")
    judge = score.Judge()
    gone = Edit(1, "delete-file", "others", "patch", (Change("a.py", "x", None),), "")
    judge.verdict(gone, Truth({"a.py": (old,)}, {}, {}), score.said("", "/r"))
    back = Edit(2, "fix", "fix", "patch", (Change("a.py", None, "x"),), "")
    verdict = judge.verdict(back, Truth({}, {"a.py": (old, new)}, {"a.py": (old, new)}), score.said("", "/r"))
    assert [one.message for one in verdict.missing] == ["worse"]


@pytest.mark.parametrize(("installed", "missing"), [(True, 2), (False, 1)])
def test_imports_of_packages_count_where_these_are_installed(installed: bool, missing: int) -> None:
    package = Problem("a.py", 1, 1, "error", "reportMissingImports", 'Import "rich.console" could not be resolved')
    own = Problem("a.py", 2, 1, "error", "reportMissingImports", 'Import "._gone" could not be resolved')
    edit = Edit(1, "own", "own", "edit", (Change("a.py", "x", "y"),), "")
    truth = Truth({}, {"a.py": (package, own)}, {"a.py": (package, own)})
    verdict = score.Judge(installed=installed).verdict(edit, truth, score.said("", "/r"))
    assert (len(verdict.missing), own in verdict.missing) == (missing, True)
