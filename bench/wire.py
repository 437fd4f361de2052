"""How fast bytes become values: `python bench/wire.py [REPEATS]` prints a table and asserts nothing.

Three readers share the same framing and the same chunks of 64 KiB, so what differs is the JSON:
Pilotfish (envelope with `Raw`, then our structs), the standard library (`json.loads`, no shapes at all) and lsprotocol
(`json.loads`, then its converter). They take turns in every round, and the table shows medians of CPU time.

The second table says for how long one message of the largest size stops everything else in the process, read on the
event loop's thread and read in a worker thread while the other thread ticks: msgspec and `json` both keep the global
interpreter lock, so the worker thread helps only between two calls, not within one.
"""

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lsprotocol import types as lsp
from lsprotocol.converters import get_converter
from msgspec import Raw

from pilotfish.protocol.codec import decode, decode_items, encode
from pilotfish.protocol.frames import MAX_MESSAGE, FrameDecoder, frame
from pilotfish.protocol.rpc import Answered, Event, Notified, Peer, decode_message
from pilotfish.protocol.wire import PublishDiagnosticsParams, WireDiagnostic, WireSymbol

CHUNK = 64 * 1024
"""What one read from a pipe gives at most."""

LARGEST_REPEATS = 3
"""Wall time, of which a busy machine only makes more: the least of a few is nearest to the truth."""

Reader = Callable[[list[bytes]], object]


# --- What is read -------------------------------------------------------------------------------------------------


def place(line: int) -> dict[str, object]:
    return {"start": {"line": line, "character": 4}, "end": {"line": line, "character": 20}}


def diagnostic(number: int) -> dict[str, object]:
    return {
        "range": place(number),
        "severity": 1,
        "code": "reportAttributeAccessIssue",
        "source": "basedpyright",
        "message": f'Cannot access attribute "value_{number}" for class "Widget"\n  Attribute is unknown',
    }


def symbol(number: int) -> dict[str, object]:
    where = {"uri": f"file:///home/user/project/src/package/module_{number % 500}.py", "range": place(number)}
    return {"name": f"function_{number}", "kind": 12, "location": where, "containerName": "package.module"}


def progress(number: int) -> bytes:
    value = {"kind": "report", "message": f"{number} files"}
    return Peer().notify("$/progress", {"token": "indexing", "value": value})


def published(size: int) -> bytes:
    items = [diagnostic(number) for number in range(size // len(encode(diagnostic(100))))]
    uri = "file:///home/user/project/src/package/module.py"
    return Peer().notify("textDocument/publishDiagnostics", {"uri": uri, "version": 7, "diagnostics": items})


def symbols(size: int) -> bytes:
    """The body of an answer of about that size, and never larger."""
    items = [symbol(number) for number in range(size // len(encode(symbol(1_000_000))))]
    return encode({"jsonrpc": "2.0", "id": 0, "result": items})


def chunks(data: bytes) -> list[bytes]:
    return [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]


# --- Who reads it -------------------------------------------------------------------------------------------------


def bodies(pieces: list[bytes]) -> Iterator[bytes]:
    decoder = FrameDecoder()
    for piece in pieces:
        yield from decoder.feed(piece)


def read_envelopes(pieces: list[bytes]) -> object:
    return [decode_message(body) for body in bodies(pieces)]


def read_events(pieces: list[bytes]) -> object:
    peer = Peer()
    return [peer.receive(body) for body in bodies(pieces)]


def read_structs(pieces: list[bytes]) -> object:
    peer = Peer()
    peer.request("workspace/symbol")
    return [structs(peer.receive(body)) for body in bodies(pieces)]


def structs(event: Event) -> object:
    match event:
        case Notified(_, params):
            return decode_items(decode(params, PublishDiagnosticsParams).diagnostics, WireDiagnostic)
        case Answered(_, _, result):
            return decode_items(result, WireSymbol)
        case _:
            raise AssertionError(event)


def read_plain(pieces: list[bytes]) -> object:
    return [json.loads(body) for body in bodies(pieces)]


def lsprotocol_reader(shape: type) -> Reader:
    converter = get_converter()

    def read(pieces: list[bytes]) -> list[object]:
        return [converter.structure(json.loads(body), shape) for body in bodies(pieces)]

    return read


@dataclass(frozen=True)
class Race:
    name: str
    messages: int
    pieces: list[bytes]
    readers: dict[str, Reader]

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces))


def races() -> list[Race]:
    small = chunks(b"".join(progress(number) for number in range(20_000)))
    by_lsprotocol = lsprotocol_reader(lsp.ProgressNotification)
    others: dict[str, Reader] = {"json": read_plain, "lsprotocol": by_lsprotocol}
    large = chunks(published(100_000) * 20)
    answer = chunks(frame(symbols(5_000_000)))
    return [
        Race("small, to envelopes", 20_000, small, {"pilotfish": read_envelopes, **others}),
        Race("small, to events", 20_000, small, {"pilotfish": read_events, **others}),
        Race("workspace/symbol, envelope", 1, answer, {"pilotfish": read_envelopes, "json": read_plain}),
        Race(
            "publishDiagnostics, 100 KB",
            20,
            large,
            {
                "pilotfish": read_structs,
                "json": read_plain,
                "lsprotocol": lsprotocol_reader(lsp.PublishDiagnosticsNotification),
            },
        ),
        Race(
            "workspace/symbol, 5 MB",
            1,
            answer,
            {
                "pilotfish": read_structs,
                "json": read_plain,
                "lsprotocol": lsprotocol_reader(lsp.WorkspaceSymbolResponse),
            },
        ),
    ]


def medians(race: Race, repeats: int) -> dict[str, float]:
    """CPU seconds of each reader; they take turns, so a busy machine slows all of them alike."""
    times: dict[str, list[float]] = {name: [] for name in race.readers}
    for _ in range(repeats):
        for name, read in race.readers.items():
            gc.collect()
            start = time.process_time()
            kept = read(race.pieces)
            times[name].append(time.process_time() - start)
            del kept
    return {name: statistics.median(samples) for name, samples in times.items()}


# --- How long everything else stops -------------------------------------------------------------------------------


def longest_gap(work: Callable[[], object]) -> float:
    """Seconds for which this thread, which does nothing but tick, did not run while another one worked."""
    longest = 0.0
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        last = time.perf_counter()
        done = pool.submit(work)
        # Looked at before it ticks: the work may be over by the time that `submit` returns.
        over = False
        while not over:
            over = done.done()
            now = time.perf_counter()
            last, longest = now, max(longest, now - last)
            time.sleep(0.0002)
        done.result()
    return longest


def on_this_thread(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock and of the processor."""
    wall, cpu = time.perf_counter(), time.thread_time()
    work()
    return time.perf_counter() - wall, time.thread_time() - cpu


def largest_steps() -> list[tuple[str, Callable[[], object]]]:
    body = symbols(MAX_MESSAGE)
    halved = body.replace(b'"function_7"', rb'"function_\ud800"', 1)
    result = Raw(body[body.index(b"[") : -1])
    odd = Raw(bytes(result).replace(b'"kind":12', b'"kind":"x"', 1))
    return [
        ("envelope", lambda: decode_message(body)),
        ("items to structs", lambda: decode_items(result, WireSymbol)),
        ("items to structs, one of them odd", lambda: decode_items(odd, WireSymbol)),
        ("json.loads", lambda: json.loads(body)),
        ("envelope with half a surrogate pair", lambda: decode_message(halved)),
    ]


def main(repeats: int) -> None:
    print(f"CPU time, median of {repeats}, chunks of {CHUNK // 1024} KiB; × is time against Pilotfish")
    print(f"{'':28}{'reader':>12}{'ms':>9}{'MB/s':>8}{'k msg/s':>9}{'×':>7}")
    for race in races():
        times = medians(race, repeats)
        for name, seconds in times.items():
            rates = f"{race.size / seconds / 1e6:8.0f}{race.messages / seconds / 1e3:9.1f}"
            print(f"{race.name:28}{name:>12}{seconds * 1e3:9.1f}{rates}{seconds / times['pilotfish']:7.1f}")
    print(f"\nlongest stop for a body of {MAX_MESSAGE >> 20} MiB, ms, least of {LARGEST_REPEATS}")
    print(f"{'':38}{'CPU':>8}{'on the loop':>13}{'in a thread':>13}")
    for name, work in largest_steps():
        direct, cpu = map(min, zip(*(on_this_thread(work) for _ in range(LARGEST_REPEATS)), strict=True))
        threaded = min(longest_gap(work) for _ in range(LARGEST_REPEATS))
        print(f"{name:38}{cpu * 1e3:8.0f}{direct * 1e3:13.0f}{threaded * 1e3:13.0f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
