"""Where code that must not run would leave its mark."""

from pathlib import Path


def canary(folder: Path) -> Path:
    """A file that does not exist, in a folder of its own beside the workspace: there a confined server may write, so
    that its silence is not the kernel's doing."""
    place = folder / "canary"
    place.mkdir(exist_ok=True)
    return place / "told"
