"""Which parts of a project's file run something or change what runs, and so need trust (TRUST-1, T1, T10, T12). Pure.

- `command`, `env` and `watch` of a server always do.
- `initialization` and `settings` hold whatever a server understands, and many a harmless-looking key names a program, a
  plugin, a folder with code, or switches on a build (`tsdk`, `overrideCommand`, `eslint.nodePath`, `procMacro.enable`).
  A list of the bad keys would always be one short, so the good values are recognised instead: a value passes only when
  no key on the way to it is, or contains, one of the words below, **and** it is true, false, null, a number, a version
  or a word of `VOCABULARY` (or a list of those), so that it can name no program, module, path or command line.
  An array goes or stays as a whole.
- Some environment variables are never taken from a project, trusted or not: they redirect every program, not just the
  server.
"""

import re
from collections.abc import Container, Iterator, Mapping

from msgspec import Struct

from pilotfish.config.jsonc import JsonPath
from pilotfish.protocol.wire import Json

RUNNING_FIELDS = ("command", "env", "watch")
FREE_FIELDS = ("initialization", "settings")

STEMS = (
    "acquisition", "autogenerate", "binary", "command", "compiler", "connection", "database", "debug", "download",
    "environ", "exec", "external", "fetch", "http", "inspect", "install", "interpreter", "launch", "library", "loader",
    "macro", "module", "network", "online", "onsave", "path", "plugin", "preload", "proxy", "registry", "remote",
    "runner", "runtime", "schema", "sdk", "socket", "spawn", "telemetry", "toolchain", "upload", "wrapper",
)  # fmt: skip
"""A key that contains one of these, in any spelling (`extraPaths`, `python_executable`), names or enables code, or
reaches out over the network (T52)."""

WORDS = frozenset({
    "arg", "args", "argument", "arguments", "argv", "bin", "build", "cache", "cmd", "dir", "directory", "dirs", "env",
    "exe", "extension", "extensions", "flag", "flags", "folder", "formatter", "gradle", "home", "hook", "hooks", "host",
    "jar", "jdk", "jvm", "linter", "log", "maven", "output", "port", "program", "run", "sbt", "script",
    "scripts", "shell", "task", "tasks", "tool", "tools", "uri", "url", "venv",
})  # fmt: skip
"""The same for words that count only as a whole word of the key (`buildScripts`, not `typescript`)."""

LANGUAGES = frozenset({"java", "node", "php", "python", "ruby"})
"""Harmless as the name of a section, an interpreter as the name of a value."""

VOCABULARY = frozenset({
    "all", "always", "auto", "basic", "both", "compact", "default", "disable", "disabled", "double", "enable",
    "enabled", "error", "errors", "false", "full", "hint", "ignore", "incremental", "info", "information", "literals",
    "loose", "maximal", "messages", "minimal", "moderate", "never", "no", "none", "nonrelative", "normal", "off",
    "on", "openfiles", "openfilesonly", "recommended", "relative", "roblox", "shortest", "single", "smart", "standard",
    "strict", "trace", "true", "verbose", "warn", "warning", "warnings", "whole", "workspace", "yes",
})  # fmt: skip
"""The words that servers take for a choice (`typeCheckingMode: "strict"`), in lower case and without dashes."""

KEY = re.compile(r"[A-Za-z0-9_$@.-]{1,100}\Z")
VERSION = re.compile(r"(?:\d{1,9}(?:\.\d{1,9}){0,3})?\Z")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

NEVER_FROM_A_PROJECT = re.compile(
    r"(?:PATH|HOME|SHELL|ENV|BASH_ENV|NODE_OPTIONS|NODE_PATH|(?:LD|DYLD|GIT|XDG|PILOTFISH)_.*|PYTHON.*)\Z",
    re.IGNORECASE,
)


class GatedValue(Struct, frozen=True):
    """A value that a project may not set unless it is trusted, at `path` below the server's entry."""

    server: str
    path: JsonPath
    value: Json


class Split(Struct, frozen=True):
    """A project's file, split by what needs trust."""

    open: dict[str, Json]  # What counts without trust
    whole: dict[str, Json]  # What counts with trust: everything but `refused`
    gated: tuple[GatedValue, ...]
    refused: tuple[GatedValue, ...]  # What never counts

    def entries(self) -> dict[str, Json]:
        """The servers' entries that run something, whole: this is what a person approves."""
        running = {gated.server for gated in self.gated}
        servers = self.whole.get("lsp")
        entries = servers if isinstance(servers, dict) else {}
        return {server: entry for server, entry in entries.items() if server in running}


def split(value: Mapping[str, Json]) -> Split:
    servers = value.get("lsp")
    if not isinstance(servers, dict):
        return Split(dict(value), dict(value), (), ())
    opened: dict[str, Json] = {}
    whole: dict[str, Json] = {}
    gated: list[GatedValue] = []
    refused: list[GatedValue] = []
    for server, entry in servers.items():
        if isinstance(entry, dict):
            env = entry.get("env")
            variables = env.items() if isinstance(env, dict) else ()
            never = {("env", name): said for name, said in variables if NEVER_FROM_A_PROJECT.match(name)}
            refused += [GatedValue(server, path, said) for path, said in never.items()]
            whole[server] = kept = _without(entry, never)
            running: dict[JsonPath, Json] = {(field,): kept[field] for field in RUNNING_FIELDS if kept.get(field)}
            for field in FREE_FIELDS:
                running |= dict(_suspects(kept.get(field), (field,), suspect=False))
            gated += [GatedValue(server, path, said) for path, said in running.items()]
            opened[server] = _without(kept, running)
    return Split({**value, "lsp": opened}, {**value, "lsp": whole}, tuple(gated), tuple(refused))


def _suspects(value: Json, path: JsonPath, *, suspect: bool) -> Iterator[tuple[JsonPath, Json]]:
    """Each value at or below `path` that does not pass; `suspect` says that a key of the path was one of the words."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _suspects(item, (*path, key), suspect=suspect or _is_suspect(key))
    elif suspect or not _is_harmless(value) or re.split(r"[._-]", str(path[-1]).lower())[-1] in LANGUAGES:
        yield path, value


def _is_suspect(key: str) -> bool:
    squeezed = re.sub(r"[^a-z]", "", key.lower())
    words = {word.lower() for word in WORD.findall(key)}
    return not KEY.match(key) or ".." in key or any(stem in squeezed for stem in STEMS) or not words.isdisjoint(WORDS)


def _is_harmless(value: Json) -> bool:
    if isinstance(value, str):
        return VERSION.match(value) is not None or value.lower().replace("-", "") in VOCABULARY
    if isinstance(value, list):
        return all(not isinstance(item, list | dict) and _is_harmless(item) for item in value)
    return True


def _without(entry: dict[str, Json], doomed: Container[JsonPath], path: JsonPath = ()) -> dict[str, Json]:
    """A copy without the doomed values, and without the objects that held nothing else."""
    kept: dict[str, Json] = {}
    for key, item in entry.items():
        here = (*path, key)
        left = _without(item, doomed, here) if isinstance(item, dict) else item
        if here not in doomed and (left or left == item):
            kept[key] = left
    return kept
