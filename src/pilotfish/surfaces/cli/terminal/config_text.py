"""What the config verbs print. Pure: from loaded values to lines and to JSON.

Every value of a file is shown as ASCII JSON, whole: a person approves what is shown.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

from pilotfish.config.load import Loaded
from pilotfish.config.merge import ConfigSource
from pilotfish.config.problems import Problem, path_text, printable
from pilotfish.config.trust import BadPin, Pin, Stale, Trust, Trusted, TrustOffer, Untrusted
from pilotfish.model import AbsPath
from pilotfish.protocol.wire import Json

CONSEQUENCE = (
    "Trusting it also allows language servers from inside it (node_modules/.bin, .venv)\n"
    "and servers that run the project's own code (build scripts, macros, plugins).\n"
    "When what it asks to run changes, it is untrusted again."
)


def show_lines(loaded: Loaded, *, changed_only: bool) -> Iterator[str]:
    """The merged configuration, each value with its origin."""
    yield f"workspace: {printable(loaded.config.root)}"
    yield f"trust: {trust_text(loaded.config.trust)}"
    used = {sheet.file for sheet in loaded.sheets}
    for file in loaded.watched:
        if file in used:
            yield f"read: {printable(file)}"
    if not loaded.config.enabled:
        yield "LSP disabled by configuration"
    yield ""
    for keys, origin in loaded.merged.origins.items():
        if not (changed_only and origin.source in {ConfigSource.DEFAULT, ConfigSource.CATALOGUE}):
            yield f"{path_text(keys)} = {json.dumps(_at(loaded.merged.value, keys))}  # {printable(str(origin))}"


def show_json(loaded: Loaded) -> dict[str, Any]:
    return {
        "root": loaded.config.root,
        "trust": trust_json(loaded.config.trust),
        "files": [sheet.file for sheet in loaded.sheets],
        "config": loaded.merged.value,
        "origins": {
            path_text(keys): _known({"source": origin.source, "file": origin.file, "preset": origin.preset})
            for keys, origin in loaded.merged.origins.items()
        },
        "problems": [problem_json(problem) for problem in loaded.problems],
    }


def check_lines(loaded: Loaded) -> Iterator[str]:
    """Every problem, then their number."""
    for problem in loaded.problems:
        yield f"{problem.grade}: {problem}"
    read = ", ".join(printable(sheet.file) for sheet in loaded.sheets) or "no config file"
    yield f"{len(loaded.errors)} error(s), {len(loaded.warnings)} warning(s) in {read}"


def check_json(loaded: Loaded) -> dict[str, Any]:
    return {"ok": not loaded.errors, "problems": [problem_json(problem) for problem in loaded.problems]}


def offer_lines(offer: TrustOffer, root: AbsPath, waiting: Sequence[str] = ()) -> Iterator[str]:
    """What would run, whole: the command lines, their environment and folder, and every other approved key.

    `waiting`: the servers that only wait for this.
    """
    if waiting:
        yield f"These servers wait for trust: {', '.join(map(printable, waiting))}."
    if not offer.entries:
        yield f"{printable(root)} asks to run no program of its own."
    for server, entry in offer.entries.items():
        yield f"{printable(root)} asks, in {printable(offer.file)}, to run for {json.dumps(server)}:"
        for keys, value in _leaves(entry, ()):
            yield f"  {path_text(keys)} = {json.dumps(value)}"
        yield f"  in {printable(root)} or a folder of it"
    for word, digest in offer.programs.items():
        yield f"  {json.dumps(word)} is a file of the workspace: {digest}"
    yield CONSEQUENCE


def offer_json(offer: TrustOffer, root: AbsPath, trust: Trust) -> dict[str, Any]:
    asks = {"file": offer.file, "servers": dict(offer.entries), "programs": dict(offer.programs)}
    return {"root": root, "trust": trust_json(trust), "asks": asks}


def pin_line(pin: Pin | BadPin, trust: Trust | None) -> str:
    """One row of the list of approved folders; `trust` is None when the folder is gone."""
    match pin:
        case Pin():
            return f"{printable(pin.path)}  {trust_text(trust) if trust else 'gone'}  {pin.digest}"
        case BadPin():
            return f"ignored: {printable(str(pin))}"
        case _:
            assert_never(pin)


def pin_json(pin: Pin | BadPin, trust: Trust | None) -> dict[str, Any]:
    match pin:
        case Pin():
            return {"root": pin.path, "digest": pin.digest, "trust": trust_json(trust) if trust else {"state": "gone"}}
        case BadPin():
            return {"error": str(pin)}
        case _:
            assert_never(pin)


def trust_text(trust: Trust) -> str:
    state = trust_json(trust)
    return f"{state['state']} ({printable(state['why'])})"


def trust_json(trust: Trust) -> dict[str, Any]:
    match trust:
        case Trusted():
            return {"state": "trusted", "why": trust.why}
        case Untrusted():
            return {"state": "untrusted", "why": trust.why}
        case Stale():
            return {"state": "stale", "why": trust.why, "differences": list(trust.differences)}
        case _:
            assert_never(trust)


def problem_json(problem: Problem) -> dict[str, Any]:
    place = {"line": problem.place.line, "column": problem.place.column} if problem.place else {}
    facts = {
        "grade": problem.grade,
        "file": problem.file,
        "path": path_text(problem.path),
        "message": problem.message,
        "value": problem.value,
        "accepted": problem.accepted,
        "nearest": problem.nearest,
    }
    return _known(facts) | place


def _known(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if value is not None}


def _at(value: Json, keys: tuple[str, ...]) -> Json:
    for key in keys:
        value = value[key] if isinstance(value, dict) else None
    return value


def _leaves(value: Json, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Json]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, (*keys, key))
    else:
        yield keys, value
