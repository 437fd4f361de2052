"""Numbers of things, in words."""


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 error`, `3 errors`."""
    return f"{count} {one if count == 1 else many or one + 's'}"
