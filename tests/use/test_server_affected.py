"""A server that says which files an edit may have broken: whatever the compiler judges otherwise, and little more."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from pilotfish.api.answers import Feedback, State
from pilotfish.api.questions import Touch
from pilotfish.service.diagnostics import affected
from support.servers.real import require
from support.services.real import RealService, only, real_service

pytestmark = [
    pytest.mark.slow,
    pytest.mark.anyio,
    pytest.mark.server("typescript"),
    pytest.mark.proves("DIAG-11"),
]

PATIENT = {"timing": {"firstTouchTimeoutMs": 60_000, "diagnosticsWaitTimeoutMs": 60_000}}
OPTIONS: dict[str, object] = {"strict": True, "module": "esnext", "moduleResolution": "bundler", "types": []}
CONFIG: dict[str, object] = {
    "compilerOptions": {**OPTIONS, "paths": {"@alias/*": ["./src/*"]}},
    "include": ["src", "tests"],
}

FILES = {
    # A type that is inferred through a file which stays clean, and one that is only named there.
    "src/make.ts": "export const make = () => ({ n: 1 });\nexport interface Shape { side: number }\n",
    "src/pass.ts": 'import { make, type Shape } from "./make";\n'
    "export const made = make();\nexport const shape = {} as unknown as Shape;\n",
    "src/inferred.ts": 'import { made } from "./pass";\nexport const n: number = made.n;\n',
    "src/named.ts": 'import { shape } from "./pass";\nexport const side: number = shape.side;\n',
    # `export *` twice, and under a name.
    "src/tools.ts": "export function tool(a: string) { return a; }\nexport const other = 1;\n",
    "src/index.ts": 'export * from "./tools";\nexport * as all from "./tools";\n',
    "src/api.ts": 'export * from "./index";\n',
    "src/starred.ts": 'import { tool } from "./api";\ntool("a");\n',
    "src/spaced.ts": 'import { all } from "./index";\nexport const t = all;\nt.tool("a");\n',
    "src/chained.ts": 'import { t } from "./spaced";\nt.tool("a");\n',
    "src/aliased.ts": 'import { tool } from "@alias/tools";\ntool("a");\n',
    "src/unconcerned.ts": 'import { other } from "./tools";\nexport const o: number = other;\n',
    # A default export, one that is renamed, and a test of it.
    "src/main.ts": "export default class Main { run(): void {} }\n",
    "src/again.ts": 'import Main from "./main";\nexport { Main as Program };\n',
    "tests/program.ts": 'import { Program } from "../src/again";\nnew Program().run();\n',
    # Declarations that are merged with those of another file, and such of everybody.
    "src/merged.ts": "export interface Options { a: string }\n",
    "src/merging.ts": 'export {};\ndeclare module "./merged" { interface Options { b: string } }\n',
    "src/merges.ts": 'import type { Options } from "./merged";\n'
    "export function b(options: Options): string { return options.b; }\n",
    "src/everywhere.d.ts": "declare const VERSION: string;\n",
    "src/everybody.ts": "export const version: string = VERSION;\n",
    "src/globals.ts": "export {};\ndeclare global { interface Widget { size: number } }\n",
    "src/widget.ts": "export const size = (widget: Widget): number => widget.size;\n",
    # Operators on types, and what only looks like a comment.
    "src/table.ts": "export const table = { one: 1, two: 2 } as const;\nexport type Key = keyof typeof table;\n",
    "src/keyed.ts": 'import type { Key } from "./table";\n'
    "export const named = { one: true, two: true } satisfies Record<Key, boolean>;\n",
    "src/matched.ts": 'import type { Key } from "./table";\n'
    'export type Is<T> = T extends Key ? "yes" : "no";\nexport const is: Is<"two"> = "yes";\n',
    "src/regex.ts": "export const end = /\\/*$/;\nexport const trimmed = 1; /* a comment */\n",
    "src/trims.ts": 'import { trimmed } from "./regex";\nexport const t: number = trimmed;\n',
    "src/enum.ts": "export const enum Level { Low = 1, High = 2 }\n",
    "src/leveled.ts": 'import { Level } from "./enum";\nexport const high: Level.High = 2;\n',
    "src/base.ts": "export abstract class Base { open(): void {} private secret = 1; }\n",
    "src/derived.ts": 'import { Base } from "./base";\nexport class Derived extends Base {}\n',
    "src/uses.ts": 'import { Derived } from "./derived";\nnew Derived().open();\n',
    "src/declared.ts": "export function half(n: number): number { return n / 2; }\n",
    "src/halves.ts": 'import { half } from "./declared";\nhalf(1);\n',
}


class Case(NamedTuple):
    """An edit, and the files that it breaks; `most`: files that may be checked for it."""

    file: str
    old: str
    new: str
    broken: tuple[str, ...] = ()
    most: int = 0


BREAKING = [
    Case("src/make.ts", "n: 1", 'n: "one"', ("src/inferred.ts",), 3),
    Case("src/make.ts", "side: number", "side: string", ("src/named.ts",), 3),
    Case(
        "src/tools.ts",
        "a: string",
        "a: number",
        ("src/aliased.ts", "src/chained.ts", "src/spaced.ts", "src/starred.ts"),
        6,
    ),
    Case("src/main.ts", "run()", "start()", ("tests/program.ts",), 2),
    Case("src/merging.ts", "b: string", "c: string", ("src/merges.ts",), 2),
    Case("src/everywhere.d.ts", "VERSION: string", "VERSION: number", ("src/everybody.ts",), len(FILES)),
    Case("src/globals.ts", "size: number", "size: string", ("src/widget.ts",), len(FILES)),
    Case("src/table.ts", "two: 2", "too: 2", ("src/keyed.ts", "src/matched.ts"), 2),
    Case("src/regex.ts", "trimmed = 1", 'trimmed = "1"', ("src/trims.ts",), 1),
    Case("src/enum.ts", "High = 2", "High = 3", ("src/leveled.ts",), 1),
    Case("src/base.ts", "open()", "shut()", ("src/uses.ts",), 2),
]

HARMLESS = [
    Case("src/declared.ts", "n / 2", "n * 0.5"),
    Case("src/declared.ts", "export", "// a comment\nexport"),
    Case("src/declared.ts", "export", "/** What it is for. */\nexport"),
    Case("tests/program.ts", "new Program()", "export const made = new Program();\nmade"),
    Case("src/base.ts", "secret = 1", "secret = 2"),
    Case("src/tools.ts", "return a;", "const b = a; return b;"),
]


@pytest.fixture
async def project(tmp_path: Path) -> AsyncIterator[RealService]:
    require(["typescript"])
    async with real_service(tmp_path, {**only("typescript"), **PATIENT}) as real:
        for folder in ("src", "tests"):
            (real.root / folder).mkdir()
        real.write("tsconfig.json", json.dumps(CONFIG))
        for name, text in FILES.items():
            real.write(name, text)
        yield real


async def edited(real: RealService, name: str, text: str) -> Feedback:
    real.write(name, text)
    feedback = await real.service.touched(Touch((name,), "edit"), real.client)
    assert feedback.state is State.FRESH, feedback
    return feedback


async def test_every_file_that_an_edit_breaks_is_told_and_few_others_are_checked(project: RealService) -> None:
    for case in BREAKING:
        await project.service.touched(Touch((case.file,), "read"), project.client)
        done = await edited(project, case.file, FILES[case.file].replace(case.old, case.new))
        told = {name for name in FILES if name in done.text and name != case.file}
        assert told == set(case.broken), (case, done.text)
        assert done.others is not None
        assert done.others.complete == "candidates"
        assert done.others.candidates <= case.most, (case, done.others)
        undone = await edited(project, case.file, FILES[case.file])
        assert "<diagnostics" not in undone.text, (case, undone.text)


async def test_files_whose_declarations_take_too_long_are_compared_by_their_sources(
    project: RealService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then more is checked, and the same is told."""
    monkeypatch.setattr(affected, "DECLARATIONS_MS", -1)
    for case in BREAKING:
        await project.service.touched(Touch((case.file,), "read"), project.client)
        done = await edited(project, case.file, FILES[case.file].replace(case.old, case.new))
        told = {name for name in FILES if name in done.text and name != case.file}
        assert told == set(case.broken), (case, done.text)
        undone = await edited(project, case.file, FILES[case.file])
        assert "<diagnostics" not in undone.text, (case, undone.text)
    for case in (case for case in HARMLESS if case.file == "src/declared.ts"):
        feedback = await edited(project, case.file, FILES[case.file].replace(case.old, case.new))
        assert (feedback.text, (feedback.others and feedback.others.candidates) or 0) == ("", 0), case


async def test_types_that_stand_in_comments_are_compared_too(
    project: RealService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(affected, "DECLARATIONS_MS", -1)
    options = {**OPTIONS, "allowJs": True, "checkJs": True}
    project.write("tsconfig.json", json.dumps({"compilerOptions": options, "include": ["src"]}))
    typed = "/** @param {string} a */\nexport function typed(a) { return a; }\n"
    project.write("src/typed.js", typed)
    project.write("src/caller.ts", 'import { typed } from "./typed.js";\ntyped("a");\n')
    await project.service.touched(Touch(("src/typed.js",), "read"), project.client)
    done = await edited(project, "src/typed.js", typed.replace("string", "number"))
    assert "src/caller.ts" in done.text


async def test_declarations_that_would_take_seconds_are_not_waited_for(project: RealService) -> None:
    """Each function has twice the type of the one before. What only its source tells, is then over-estimated."""
    levels = "".join(f"const f{n} = () => ({{ x{n}: f{n - 1}(), y{n}: f{n - 1}() }});\n" for n in range(1, 16))
    big = (
        f"const f0 = () => ({{ leaf: 1 }});\n{levels}export const made = () => {{ const all = f15(); return all; }};\n"
    )
    project.write("src/big.ts", big)
    project.write("src/user.ts", 'import { made } from "./big";\nexport const a: number = made().x15.x14.y13.x12;\n')
    await project.service.touched(Touch(("src/big.ts",), "read"), project.client)
    done = await edited(project, "src/big.ts", big.replace("const all = f15(); return all;", "return f15();"))
    assert done.others is not None
    assert done.others.candidates == 1


async def test_an_edit_that_nobody_can_see_makes_no_other_file_be_checked(project: RealService) -> None:
    for case in HARMLESS:
        await project.service.touched(Touch((case.file,), "read"), project.client)
        for text in (FILES[case.file].replace(case.old, case.new), FILES[case.file]):
            feedback = await edited(project, case.file, text)
            assert (feedback.text, (feedback.others and feedback.others.candidates) or 0) == ("", 0), case


LOST = {
    "src/lost.ts": "export const rows: number[] = [1];\nexport type Row = number;\n",
    "src/holds.ts": 'import { rows } from "./lost";\nexport const held = rows;\nexport const apart = 1;\n',
    # It imports nothing of what is gone, and infers a parameter from it.
    "src/walks.ts": 'import { held } from "./holds";\nheld.map((row) => row);\n',
    "src/apart.ts": 'import { apart } from "./holds";\nexport const one: number = apart;\n',
    "src/typed.ts": 'import type { Row } from "@alias/lost";\nexport const row: Row = 1;\n',
    "src/loads.ts": 'export const load = () => import("./lost");\n',
    "src/index/index.ts": 'export * from "../lost";\n',
    "tests/starred.ts": 'import { rows } from "../src/index/index";\nrows.forEach((row) => row);\n',
}
IMPORTERS = {"src/holds.ts", "src/walks.ts", "src/typed.ts", "src/loads.ts", "src/index/index.ts", "tests/starred.ts"}


@pytest.mark.parametrize("moved", [None, "src/found.ts"], ids=["deleted", "moved"])
async def test_who_imports_a_file_that_is_gone_is_known_from_the_first_question_on(
    project: RealService, moved: str | None
) -> None:
    (project.root / "src" / "index").mkdir()
    for name, text in LOST.items():
        project.write(name, text)
    await project.service.touched(Touch(("src/lost.ts",), "read"), project.client)
    if moved is None:
        (project.root / "src/lost.ts").unlink()
    else:
        (project.root / "src/lost.ts").rename(project.root / moved)
    touch = Touch(("src/lost.ts", *([moved] if moved else [])), "patch")
    feedback = await project.service.touched(touch, project.client)
    # What is inferred, TypeScript cannot be asked of as it was.
    inferred = {"src/walks.ts", "tests/starred.ts"}
    assert {name for name in FILES | LOST if f'file="{name}"' in feedback.text} == IMPORTERS - inferred, feedback.text
    assert feedback.reason is not None
    assert all(name in feedback.reason for name in inferred), feedback.reason
    assert feedback.others is not None
    assert feedback.others.complete == "candidates"
    # Names are heard as well where a file is new.
    assert moved is not None or feedback.others.candidates <= len(IMPORTERS) + 1, feedback.others


SOLUTION = {"files": [], "references": [{"path": "./tsconfig.build.json"}, {"path": "./tsconfig.spec.json"}]}
BUILD = {"compilerOptions": {**OPTIONS, "composite": True}, "include": ["src"]}
SPEC = {"compilerOptions": {**OPTIONS, "composite": True, "strict": False}, "include": ["src", "tests"]}


async def test_a_file_of_several_projects_is_judged_by_its_own_without_being_opened(project: RealService) -> None:
    """The project of the tests has the sources too, and is less strict with them."""
    for name, config in (("", SOLUTION), ("build.", BUILD), ("spec.", SPEC)):
        project.write(f"tsconfig.{name}json", json.dumps(config))
    for name in ("src/tools.ts", "tests/program.ts"):
        await project.service.touched(Touch((name,), "read"), project.client)
    text = FILES["src/tools.ts"].replace("other = 1", "other = 1 as number | undefined")
    done = await edited(project, "src/tools.ts", text)
    assert "src/unconcerned.ts" in done.text
    session = project.entry("typescript").session
    assert session is not None
    opened = {Path(path).relative_to(project.root).as_posix() for path in session.documents.paths}
    assert opened == {"src/tools.ts", "tests/program.ts"}
