"""For how long one message of the largest size stops everything else in the process: `python bench/wire.py` prints.

It is read on the event loop's thread, and in a worker thread while the other thread ticks: msgspec and `json` both keep
the global interpreter lock, so the worker thread helps only between two calls, not within one.
"""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from msgspec import Raw

from pilotfish.protocol.codec import decode_items, encode
from pilotfish.protocol.frames import MAX_MESSAGE
from pilotfish.protocol.rpc import decode_message
from pilotfish.protocol.wire import WireSymbol

REPEATS = 3
"""Wall time, of which a busy machine only makes more: the least of a few is nearest to the truth."""


def place(line: int) -> dict[str, object]:
    return {"start": {"line": line, "character": 4}, "end": {"line": line, "character": 20}}


def symbol(number: int) -> dict[str, object]:
    where = {"uri": f"file:///home/user/project/src/package/module_{number % 500}.py", "range": place(number)}
    return {"name": f"function_{number}", "kind": 12, "location": where, "containerName": "package.module"}


def symbols(size: int) -> bytes:
    """The body of an answer of about that size, and never larger."""
    items = [symbol(number) for number in range(size // len(encode(symbol(1_000_000))))]
    return encode({"jsonrpc": "2.0", "id": 0, "result": items})


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


def main() -> None:
    print(f"longest stop for a body of {MAX_MESSAGE >> 20} MiB, ms, least of {REPEATS}")
    print(f"{'':38}{'CPU':>8}{'on the loop':>13}{'in a thread':>13}")
    for name, work in largest_steps():
        direct, cpu = map(min, zip(*(on_this_thread(work) for _ in range(REPEATS)), strict=True))
        threaded = min(longest_gap(work) for _ in range(REPEATS))
        print(f"{name:38}{cpu * 1e3:8.0f}{direct * 1e3:13.0f}{threaded * 1e3:13.0f}")


if __name__ == "__main__":
    main()
