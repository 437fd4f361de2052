"""A spec made ready to run: restricted where the workspace is not trusted, placeholders filled in, sidecar known. Pure.

A placeholder is a whole string of a command, of the initialization options, of the settings or of a variable, never a
part of one (T13): `${root}`, `${rootUri}`, `${rootName}`, `${state}` (a private folder for this server and root),
`${pid}` (ours), `${npm:package/file}` (a file of an npm package), `${program:name}` (the path of a program that is not
the project's, else its bare name), `${plugins:name}` (a folder of plugins of ours for this kind of server),
`${preload:file}` (the option by which Node loads such a file of ours before all others) and `${guest:server}` (the
folder of a server whose files this one serves too; only where the project has such files).
For Python there are `${python}` (an interpreter that is not the project's), `${pythonEnvironment}` (a program of ours
that answers as the interpreter of the project's environment would; `${python}` where there is no environment),
`${pythonPackages}` (the folders of that environment's packages, a list) and `${pythonPrefix}` (its folder).
A variable whose placeholder has no value is not set, and an item of a list with a guest that is not there is left out.
"""

import re
from collections.abc import Callable, Container, Mapping
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from pilotfish.config.merge import overlaid
from pilotfish.protocol.codec import member
from pilotfish.protocol.wire import Json
from pilotfish.servers.install import bundles
from pilotfish.servers.spec import LocalSchemas, Restricted, Risk, ServerSpec
from pilotfish.servers.versions import is_between

PLACEHOLDER = re.compile(r"\$\{([a-zA-Z]+(?::[^}]*)?)\}")

Fill = Callable[[str], Json]  # What stands for a placeholder; None when there is nothing


class Allowed(Struct, frozen=True):
    """The server may start, as `spec` says. `given_up` names what an untrusted workspace does not get."""

    spec: ServerSpec
    given_up: str | None = None


class Withheld(Struct, frozen=True):
    """The server may not start here."""

    reason: str
    untested: bool = False  # Only this version of it: another one might start


def may_other_start(spec: ServerSpec, allowed: Allowed | Withheld) -> bool:
    """Whether the version that `pilotfish install` brings would start where the one that is there does not."""
    return spec.shown is not None and spec.id in bundles() and (isinstance(allowed, Allowed) or allowed.untested)


class Unfilled(Exception):
    """A placeholder has no value; the message names it."""


def admitted(
    spec: ServerSpec, *, trusted: bool, version: str | None = None, held: Container[str] = ("files",)
) -> Allowed | Withheld:
    """Starting a server is running the project, unless that version was shown to run nothing of it (T7, T46).

    `version` is that of the installed program, empty when it cannot be told; None when there is no program.
    A command that the user named is the user's own decision, as far as the server only parses.
    `held` is what the system holds a confined server to (`system.confinement.confinable`).
    """
    if trusted:
        return Allowed(spec)
    if spec.restricted is None and spec.risk is Risk.RUNS_PROJECT_CODE:
        return Withheld(f"{spec.name} runs code of the project, which is not trusted")
    if spec.shown is not None and spec.shown.confined and "files" not in held:
        return Withheld(f"{spec.name} writes files that a project names, nothing here keeps it from that (Landlock)")
    if not spec.rank.named and (doubt := _doubt(spec, version)):
        return Withheld(f"{doubt}, and this one is not trusted", untested=True)
    if spec.restricted is None:
        return Allowed(spec)
    return Allowed(_changed_by(spec.restricted, spec), spec.restricted.reason)


def without_remote_schemas(spec: ServerSpec) -> ServerSpec:
    """The spec of a server that fetches no schema, whatever the project's files say (T52)."""
    local = spec.local_schemas
    return spec if local is None else replace(_changed_by(local, spec), announcements=local.announcements)


def _changed_by(table: Restricted | LocalSchemas, spec: ServerSpec) -> ServerSpec:
    return replace(
        spec,
        env={**spec.env, **table.env},
        initialization=overlaid(spec.initialization, table.initialization),
        settings=overlaid(spec.settings, table.settings),
    )


def _doubt(spec: ServerSpec, version: str | None) -> str | None:
    """Why it is not known to run nothing of a project."""
    if spec.shown is None:
        return f"{spec.name} has not been tested with hostile projects"
    if version is None or is_between(version, spec.shown.first, spec.shown.last):
        return None
    known = f"version {version} of {spec.name}" if version else f"this {spec.name}, whose version is unknown,"
    tested = spec.shown.first
    if spec.shown.last != tested:
        tested += f" to {spec.shown.last}"
    return f"{known} has not been tested with hostile projects ({tested} has)"


def filled(spec: ServerSpec, fill: Fill) -> ServerSpec:
    """The spec with every placeholder replaced; raises `Unfilled`."""
    variables = dict[str, str]()
    for name, text in spec.env.items():
        found = PLACEHOLDER.fullmatch(text)
        value = fill(found.group(1)) if found else text
        if isinstance(value, str):
            variables[name] = value
    return replace(
        spec,
        command=tuple(_filled_word(word, fill) for word in spec.command),
        env=variables,
        initialization=cast("Mapping[str, Json]", _filled(dict(spec.initialization), fill)),
        settings=cast("Mapping[str, Json]", _filled(dict(spec.settings), fill)),
        watch=None if spec.watch is None else tuple(_filled_word(word, fill) for word in spec.watch),
    )


def placeholders(spec: ServerSpec) -> frozenset[str]:
    """The names of the placeholders that a spec has, restricted or not."""
    restricted = spec.restricted
    options = [spec.initialization, spec.settings]
    words = [*spec.command, *spec.env.values()]
    if restricted is not None:
        options += [restricted.initialization, restricted.settings]
        words += restricted.env.values()
    found = set[str]()

    def note(name: str) -> Json:
        found.add(name)
        return ""

    _filled([*map(dict, options), *words], note)
    return frozenset(found)


def sidecar(spec: ServerSpec) -> tuple[str, ...] | None:
    """The command that runs beside the server: the configured one, or the one that its options ask for (WATCH-3)."""
    rule, options = spec.derived_watch, spec.initialization
    if spec.watch is not None or rule is None:
        return spec.watch
    argument = member(options, *rule.argument)
    if member(options, *rule.when) is not True or not isinstance(argument, str) or not argument:
        return None
    # A file name that starts with a dash would be read as an option.
    safe = f"./{argument}" if argument.startswith("-") else argument
    return tuple(safe if word == "${argument}" else word for word in rule.command)


def _filled(value: Json, fill: Fill) -> Json:
    if isinstance(value, str):
        return _filled_text(value, fill)
    if isinstance(value, list):
        return [filled for item in value for filled in _present(item, fill)]
    if isinstance(value, dict):
        return {key: _filled(item, fill) for key, item in value.items()}
    return value


def _present(item: Json, fill: Fill) -> list[Json]:
    try:
        return [_filled(item, fill)]
    except Unfilled as unfilled:
        if not str(unfilled).startswith("${guest:"):
            raise
        return []


def _filled_text(text: str, fill: Fill) -> Json:
    found = PLACEHOLDER.fullmatch(text)
    if found is None:
        return text
    value = fill(found.group(1))
    if value is None:
        raise Unfilled(text)
    return value


def _filled_word(text: str, fill: Fill) -> str:
    value = _filled_text(text, fill)
    if not isinstance(value, str):
        raise Unfilled(text)
    return value
