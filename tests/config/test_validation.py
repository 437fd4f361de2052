"""What is wrong with a config file, in words that help to fix it."""

import pytest

from pilotfish.config.problems import Problem, path_text, problems, without
from pilotfish.protocol.wire import Json

pytestmark = pytest.mark.proves("CFG-8")


def only(value: Json) -> Problem:
    (problem,) = problems(value, "/x/lsp.json")
    return problem


SERVER = ("lsp", "x")

WRONG: dict[str, tuple[Json, tuple[str | int, ...], str]] = {
    "the file is a list": ([], (), "an object"),
    "lsp is true": ({"lsp": True}, ("lsp",), "an object of servers by id, or false"),
    "lsp is null": ({"lsp": None}, ("lsp",), "an object of servers by id, or false"),
    "command is a string": ({"lsp": {"x": {"command": "ls"}}}, (*SERVER, "command"), "the program, then its arguments"),
    "command is empty": ({"lsp": {"x": {"command": []}}}, (*SERVER, "command"), "the program, then its arguments"),
    "command with an empty program": ({"lsp": {"x": {"command": [""]}}}, (*SERVER, "command"), "the program"),
    "command with NUL": ({"lsp": {"x": {"command": ["a\0"]}}}, (*SERVER, "command"), "the program"),
    "command with a number": ({"lsp": {"x": {"command": ["a", 1]}}}, (*SERVER, "command", 1), "a string"),
    "command is null": ({"lsp": {"x": {"command": None}}}, (*SERVER, "command"), "the program, then its arguments"),
    "extension without dot": ({"lsp": {"x": {"extensions": ["py"]}}}, (*SERVER, "extensions", 0), '".py"'),
    "no extension at all": ({"lsp": {"x": {"extensions": []}}}, (*SERVER, "extensions"), "a list that is not empty"),
    "absolute root marker": ({"lsp": {"x": {"roots": ["/etc"]}}}, (*SERVER, "roots", 0), "not absolute"),
    "root marker that leaves": ({"lsp": {"x": {"roots": ["a/../../b"]}}}, (*SERVER, "roots", 0), "without .."),
    "variable name": ({"lsp": {"x": {"env": {"A=B": "c"}}}}, (*SERVER, "env", "A=B"), "environment variable"),
    "variable value": ({"lsp": {"x": {"env": {"A": 1}}}}, (*SERVER, "env", "A"), "a string"),
    "language id": ({"lsp": {"x": {"languageId": {".x": "a b"}}}}, (*SERVER, "languageId", ".x"), "language id"),
    "restart": ({"lsp": {"x": {"restart": "always"}}}, (*SERVER, "restart"), '"backoff" or "never"'),
    "disabled is a word": ({"lsp": {"x": {"disabled": "yes"}}}, (*SERVER, "disabled"), "true or false"),
    "server id": ({"lsp": {"../x": {}}}, ("lsp", "../x"), "letters, digits"),
    "zero": ({"timing": {"requestTimeoutMs": 0}}, ("timing", "requestTimeoutMs"), "from 1 to 86400000"),
    "negative": ({"timing": {"requestTimeoutMs": -5}}, ("timing", "requestTimeoutMs"), "from 1 to 86400000"),
    "more than a day": ({"timing": {"requestTimeoutMs": 10**9}}, ("timing", "requestTimeoutMs"), "from 1 to 86400000"),
    "a float": ({"timing": {"requestTimeoutMs": 10.0}}, ("timing", "requestTimeoutMs"), "a whole number"),
    "true for a number": ({"timing": {"requestTimeoutMs": True}}, ("timing", "requestTimeoutMs"), "a whole number"),
    "severity": (
        {"feedback": {"includeSeverities": ["fatal"]}},
        ("feedback", "includeSeverities", 0),
        '"error", "hint", "info" or "warning"',
    ),
    "no severity": ({"feedback": {"includeSeverities": []}}, ("feedback", "includeSeverities"), "not empty"),
    "preset": ({"feedback": {"preset": "vim"}}, ("feedback", "preset"), '"llxprt", "opencode" or "pi"'),
    "no verdict": ({"feedback": {"noVerdict": False}}, ("feedback", "noVerdict"), '"say" or "silent"'),
    "policy": (
        {"security": {"projectConfigPolicy": "ask"}},
        ("security", "projectConfigPolicy"),
        '"trusted-only", "always" or "never"',
    ),
    "relative trusted root": (
        {"security": {"trustedProjectRoots": ["code/**"]}},
        ("security", "trustedProjectRoots", 0),
        "an absolute folder or glob",
    ),
    "trusted root of somebody else's home": (
        {"security": {"trustedProjectRoots": ["~bob/x"]}},
        ("security", "trustedProjectRoots", 0),
        "an absolute folder or glob",
    ),
    "trusted root that is no glob": (
        {"security": {"trustedProjectRoots": ["/a/{b"]}},
        ("security", "trustedProjectRoots", 0),
        "a glob that can be read",
    ),
}


@pytest.mark.parametrize(("value", "path", "accepted"), WRONG.values(), ids=WRONG)
def test_a_wrong_value_is_named_with_its_path_and_what_is_accepted(
    value: Json, path: tuple[str | int, ...], accepted: str
) -> None:
    problem = only(value)
    assert problem.path == path
    assert accepted in (problem.accepted or "")
    assert problem.value is not None


NEAREST: dict[str, tuple[Json, str | None]] = {
    "top": ({"timming": {}}, "timing"),
    "server": ({"lsp": {"x": {"comand": ["a"]}}}, "command"),
    "feedback": ({"feedback": {"maxPerFiles": 3}}, "maxPerFile"),
    "server's own limits": ({"lsp": {"x": {"timeouts": {"initializeTimeout": 3}}}}, "initializeTimeoutMs"),
    "nothing is near": ({"qqqqqqqq": 1}, None),
    "there is no enabled switch": ({"enabled": False}, None),
}


@pytest.mark.parametrize(("value", "nearest"), NEAREST.values(), ids=NEAREST)
def test_an_unknown_key_is_an_error_with_the_nearest_known_one(value: Json, nearest: str | None) -> None:
    problem = only(value)
    assert problem.message == "unknown key"
    assert problem.nearest == nearest


def test_all_errors_are_reported_at_once() -> None:
    value: Json = {"lsp": {"x": {"command": "a", "env": []}, "y": {"rots": []}}, "timing": 3, "color": "red"}
    paths = {path_text(problem.path) for problem in problems(value, "/x/lsp.json")}
    assert paths == {"lsp.x.command", "lsp.x.env", "lsp.y.rots", "timing", "color"}


def test_the_message_reads_as_one_line_with_everything_in_it() -> None:
    problem = only({"lsp": {"x": {"comand": ["a"]}}})
    assert str(problem) == (
        '/x/lsp.json: lsp.x.comand = ["a"]: unknown key; accepted: one of command, disabled, env, extensions,'
        ' initialization, languageId, restart, roots, settings, timeouts, watch; did you mean "command"?'
    )


@pytest.mark.proves("T32")
def test_nothing_that_a_terminal_would_obey_gets_into_a_message() -> None:
    hostile = "\x1b]52;c;aGk=\x07\u202e\r\n"
    text = str(only({hostile: hostile})) + str(only({"lsp": {"x": {"command": hostile * 100}}}))
    assert text.isascii() or set(text) - {chr(code) for code in range(32, 127)} == {"…"}
    assert len(text) < 1500


def test_a_file_counts_without_what_is_wrong_in_it() -> None:
    value: Json = {
        "lsp": {"x": {"disabled": True, "comand": []}, "y": {"roots": ["ok", "/bad"], "command": ["y"]}},
        "timing": {"requestTimeoutMs": -1, "initializeTimeoutMs": 1},
    }
    left = without(value, problems(value, "f"))
    assert left == {
        "lsp": {"x": {"disabled": True}, "y": {"command": ["y"]}},
        "timing": {"initializeTimeoutMs": 1},
    }
    assert problems(left, "f") == ()
