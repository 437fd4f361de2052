"""Numbers as people read them: memory and times."""

SECONDS = 60
MINUTES = 60
HOURS = 48
"""Up to two days are given in hours: `30 h` is more exact than `1 d`."""

GIB = 1024


def memory(mib: float | None) -> str:
    if mib is None:
        return "–"
    return f"{mib:.0f} MiB" if mib < GIB else f"{mib / GIB:.1f} GiB"


def duration(milliseconds: int | None) -> str:
    """How long something has lasted, in its largest unit."""
    if milliseconds is None:
        return "–"
    seconds = milliseconds / 1000
    if seconds < SECONDS:
        return f"{seconds:.0f} s"
    minutes = seconds / SECONDS
    if minutes < MINUTES:
        return f"{minutes:.0f} min"
    hours = minutes / MINUTES
    return f"{hours:.0f} h" if hours < HOURS else f"{hours / 24:.0f} d"


def latency(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "–"
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"
