"""A user at a shell who asks for all uses of a name: the one that others use, in all of its meanings."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from support.daemon.homes import no_daemon_left
from support.servers.real import User, make_user, require

pytestmark = [pytest.mark.slow, pytest.mark.server("typescript"), pytest.mark.proves("OPS-1", "OPS-3")]

FILES = {
    "tsconfig.json": '{"compilerOptions": {"allowJs": true, "noEmit": true, "module": "commonjs"}, "include": ["*"]}',
    "error.ts": "export interface Late { at: number }\nexport const Late: { new (): Late } = class { at = 1 };\n",
    "use.ts": "import { Late } from './error';\nexport const made = new Late();\nexport type Kept = Late;\n",
    "application.js": "var app = exports = module.exports = {};\n"
    "app.set = function set(name) { return this; };\n"
    "app.enable = function enable(name) { return this.set(name); };\n",
    "tools.js": "var tag = require('tag');\nexports.tag = tag.make();\nexports.tags = [exports.tag];\n",
}


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    require(["typescript"])
    made = make_user(tmp_path_factory.mktemp("user"), ["typescript"], {}, trusted=False)
    for name, text in FILES.items():
        (made.workspace / name).write_text(text)
    with no_daemon_left(made.environment["PILOTFISH_HOME"]):
        yield made


def references(user: User, *asked: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pilotfish", "references", *asked],
        capture_output=True,
        text=True,
        check=False,
        cwd=user.workspace,
        env=dict(user.environment),
    )
    return done.stdout + done.stderr


def test_a_name_that_is_a_type_and_a_value_has_the_uses_of_both(user: User) -> None:
    found = references(user, "Late")
    assert "2:25  export const made = new Late();" in found
    assert "3:20  export type Kept = Late;" in found


def test_a_function_that_is_assigned_to_a_member_has_the_uses_of_the_member(user: User) -> None:
    found = references(user, "application.js", "set")
    assert "2:5" in found
    assert "3:50" in found


def test_an_import_and_an_export_of_one_name_are_told_apart(user: User) -> None:
    refused = references(user, "tools.js", "tag")
    assert "tag[0] tools.js:1:5" in refused
    assert "tag[1] tools.js:2:9" in refused
    assert "3:25" in references(user, "tools.js", "tag[1]")
