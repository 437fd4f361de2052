"""The replay of real changes: how changes are cut and ordered, how what was told is judged, and a small one in full."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from replay import history, plan, report
from replay.history import RealChange
from replay.play import Listener, Outcome, Played, is_open
from told.edits import Change
from told.truth import Problem, Truth

from support.servers.real import REPOSITORY, require

PATIENT = '{"timing": {"diagnosticsWaitTimeoutMs": 60000, "firstTouchTimeoutMs": 60000}}'
"""What is told is judged here, and not how soon on a busy machine."""

GREETING = (
    'def greet(name: str) -> str:\n    """Say it."""\n    return f"Hello {name}"\n\n\ndef bow() -> None:\n    pass\n'
)
WITH_TITLE = GREETING.replace("name: str)", "name: str, title: str)").replace("{name}", "{title} {name}")
CALLER = "from greeting import greet\n\n\ndef call_{0}() -> str:\n    return greet({1})\n"
OTHER = (
    '"""Something else."""\n\n\ndef other_{0}(given: int) -> int:\n    if given:\n        return {0}\n    return 1\n'
)

pytestmark = pytest.mark.proves("BENCH-1")


def callers(*names: str, given: str) -> dict[str, str]:
    return {f"{name}.py": CALLER.format(name, given) for name in names}


def a_change(*changes: Change, moves: Mapping[str, str] | None = None) -> RealChange:
    return RealChange("0 A change", "base", "commit", changes, moves or {})


def problem(file: str, message: str = '"greet" is unknown', line: int = 1) -> Problem:
    return Problem(file, line, 1, "error", "", message)


def test_files_whose_changed_lines_share_a_defined_name_are_one_change() -> None:
    before = {"greeting.py": GREETING, **callers("a", "b", given='"x"'), "z.py": "1\n", "y.py": "2\n"}
    after = {"greeting.py": WITH_TITLE, **callers("a", "b", given='"x", "Ms"'), "z.py": "3\n", "y.py": "4\n"}
    # The callers' changed lines mention `greet`, which a changed line of the library defines.
    assert history.groups(before, after) == [["a.py", "b.py", "greeting.py"], ["y.py", "z.py"]]


def test_a_change_is_never_of_more_files_than_the_limit() -> None:
    before = {f"{number:02}.py": f"def name_{number}(): ...\n" for number in range(30)}
    after = {path: text + f"name_{int(path[:2]) + 1}()\n" for path, text in before.items()}
    groups = history.groups(before, after)
    assert sorted(path for group in groups for path in group) == sorted(after)
    assert max(map(len, groups)) <= history.MOST


def test_callees_come_first_in_one_order_and_last_in_another() -> None:
    changes = [Change(path, text, text.replace('"x"', '"x", "Ms"')) for path, text in callers("a", given='"x"').items()]
    change = a_change(*changes, Change("greeting.py", GREETING, WITH_TITLE))
    paths = {order: [one.path for one in plan.ordered(change, order)] for order in plan.ORDERS}
    assert paths == {
        "diff": ["a.py", "greeting.py"],
        "callee": ["greeting.py", "a.py"],
        "caller": ["a.py", "greeting.py"],
    }


@pytest.mark.parametrize("order", plan.ORDERS)
def test_all_edits_of_a_change_together_make_the_change(order: str) -> None:
    moved = GREETING + "\n\ndef more() -> int:\n    return 1\n"
    change = a_change(
        Change("a.py", "1\n", None),
        Change("old.py", GREETING, None),
        Change("new.py", None, moved),
        Change("c.py", None, "2\n"),
        moves={"old.py": "new.py"},
    )
    state = {"a.py": "1\n", "old.py": GREETING, "kept.py": ""}
    for edit in plan.edits(change, order):
        for one in edit.changes:
            assert state.get(one.path) == one.before
        state = plan.applied(state, edit.changes)
    assert state == {"new.py": moved, "c.py": "2\n", "kept.py": ""}


def test_what_happens_around_a_change_is_the_same_in_every_order() -> None:
    texts = {"greeting.py": GREETING, **{f"other_{one}.py": OTHER.format(one) for one in range(12)}}
    changes = (Change("greeting.py", GREETING, WITH_TITLE), Change("new.py", None, "1\n"))
    seen = set[str]()
    several = [RealChange(f"0 Change {number}", "base", "commit", changes) for number in range(40)]
    for change in several:
        steps = [plan.steps(change, order, texts, "python") for order in plan.ORDERS]
        around = [[(step.kind, step.what, step.edits) for step in each if step.kind != "edit"] for each in steps]
        assert around[0] == around[1] == around[2]
        seen |= {what.partition(" ")[0] for kind, what, _ in around[0] if kind == "disorder"}
    assert seen == set(plan.DISORDERS)
    at_once = [len(step.edits) for step in plan.steps(several[0], "callee*2", texts, "python") if step.kind == "edit"]
    assert at_once == [2]


def heard_of(texts: Sequence[tuple[str, Truth]], root: Path) -> list[Outcome]:
    from told.conversation import Heard
    from told.edits import Edit

    listener = Listener(history.clone(root, "python"), root)
    edit = Edit(1, "edit", "others", "edit", (Change("greeting.py", "1", "2"),), "")
    step = plan.Step("edit", (edit,))
    return [listener.heard(number, step, truth, Heard(text)) for number, (text, truth) in enumerate(texts)]


def told(*problems: Problem) -> str:
    blocks = [
        f'<diagnostics file="{one.file}">\nERROR [{one.line}:1] {one.message}\n</diagnostics>' for one in problems
    ]
    return "\n".join(["LSP errors detected in other files:", *blocks])


def test_what_was_told_is_right_older_repeated_or_false(tmp_path: Path) -> None:
    new, old = problem("a.py"), problem("b.py", "something that was there before all this")
    before, after = {"b.py": (old,)}, {"a.py": (new,), "b.py": (old,)}
    first = Truth(before, after, {"a.py": (new,)})
    second = Truth(after, after, {})
    one, other = heard_of(
        [(told(new, old), first), (told(new, problem("c.py", "made up by somebody")), second)], tmp_path
    )
    assert (one.broken, one.told, one.older, one.repeated, one.false) == (["a.py"], ["a.py"], [str(old)], [], [])
    assert (other.older, other.repeated, other.false) == ([], [str(new)], ["c.py:1:1 error: made up by somebody"])


def test_what_is_not_told_in_its_turn_is_told_later_or_never(tmp_path: Path) -> None:
    new, more = problem("a.py"), problem("b.py")
    first = Truth({}, {"a.py": (new,), "b.py": (more,)}, {"a.py": (new,), "b.py": (more,)})
    outcomes = heard_of([("", first), (told(new), Truth(first.after, first.after, {}))], tmp_path)
    played = Played("project", "change", "diff", outcomes)
    figures = report.figures([played])
    assert [figures[name] for name in ("broken files", "told in the same turn", "told later", "never told")] == [
        2,
        0,
        1,
        1,
    ]
    assert played.is_wrong
    assert "    NEVER told: b.py" in report.explained(played)


def test_what_is_told_as_open_is_known_from_its_words() -> None:
    one = problem("a.py", "Argument missing for parameter title", 5)
    block = f'<diagnostics file="a.py">\nERROR [5:1] {one.message}\n| greet("x")\n</diagnostics>'
    assert is_open(block.replace("ERROR", "OPEN"), one)
    assert is_open(block.replace("ERROR [5:1]", "OPEN [5:1] not defined yet:"), one)
    assert not is_open(block, one)


def a_repository(root: Path) -> None:
    """Two real changes: a parameter more with its callers, of which one is forgotten; a module that moves."""
    others = {f"other_{one}.py": OTHER.format(one) for one in range(12)}
    first = {"greeting.py": GREETING, **callers("a", "b", "forgotten", given='"x"'), **others}
    second = {**first, "greeting.py": WITH_TITLE, **callers("a", "b", given='"x", "Ms"')}
    third = {path.replace("other_0", "moved"): text for path, text in second.items()} | callers("b", given='"y", "Ms"')
    root.mkdir()
    history.git(root, "init", "-q")
    (root / "ty.toml").write_text("")
    for title, state in (("Begin", first), ("Add a title", second), ("Move a module", third)):
        for path in root.glob("*.py"):
            path.unlink()
        for path, text in state.items():
            (root / path).write_text(text)
        history.git(root, "add", "-A")
        history.git(root, "commit", "-q", "-m", title)


@pytest.mark.slow
@pytest.mark.server("ty")
@pytest.mark.proves("DIAG-8", "DIAG-11", "FMT-7")
def test_of_two_changes_in_three_orders_all_that_broke_is_told_and_nothing_else(tmp_path: Path) -> None:
    require(["ty"])
    a_repository(tmp_path / "project")
    chosen = ["--repo", tmp_path / "project", "--server", "ty", "--pause", "0"]
    limits = ["--config", PATIENT, "--deadline-ms", "50000"]
    command = [REPOSITORY / "bench" / "replay" / "run", *chosen, *limits, "--strict", "--text"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| replays | 6 | 2 | 2 | 2 |" in done.stdout
