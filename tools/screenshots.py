"""Makes the pictures of the live page in `docs/pictures` from a real run: `.venv/bin/python tools/screenshots.py`.

A real daemon and real language servers, two small projects, edits through the hook program as Claude Code calls it, and
Debian's Chromium. Look at the pictures before they are committed.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playwright.sync_api import expect, sync_playwright

CLONE = Path(__file__).resolve().parent.parent
PICTURES = CLONE / "docs" / "pictures"
BASE = Path("/tmp/you")
"""Shown on the page: the same on every machine."""

PILOTFISH = [sys.executable, "-m", "pilotfish"]

SHOP = {
    "shop/prices.py": "def price(name: str, count: int = 1) -> float:\n    return 1.5 * count\n",
    "shop/orders.py": "from shop.prices import price\n\n\ndef total(names: list[str]) -> float:\n"
    "    return sum(price(name) for name in names)\n",
    "shop/invoice.py": "from shop.prices import price\n\n\ndef line(name: str) -> str:\n"
    '    return f"{name}: {price(name):.2f}"\n',
    "shop/__init__.py": "",
}
CHANGED = "def price(name: str, count: int) -> list[float]:\n    return [1.5] * count\n"
BLOG = {"blog.py": 'TITLE: str = "A blog"\n\n\ndef heading() -> str:\n    return TITLE.upper()\n'}
PICTURES_OF = {
    "page-light": ("light", 1400),
    "page-dark": ("dark", 1400),
    "page-narrow": ("dark", 420),
    "page-wide": ("light", 1900),
}
SCALE = 1
SAMPLED_SECONDS = 12
PATIENCE_SECONDS = 60
"""For what the page shall show, on a busy machine."""


def main() -> None:
    with BASE.with_suffix(".lock").open("w") as lock:
        # Two at a time would take each other's folder away, which is the same on every machine.
        fcntl.flock(lock, fcntl.LOCK_EX)
        make_projects()


def make_projects() -> None:
    shutil.rmtree(BASE, ignore_errors=True)
    for name, files in {"shop": SHOP, "blog": BLOG}.items():
        for path, text in files.items():
            write(BASE / name / path, text)
        commit(BASE / name)
    beside = str(Path(sys.executable).parent)
    environment = {"HOME": str(BASE / "home"), "PATH": f"{beside}:/usr/bin:/bin", "LANG": "C.UTF-8"}
    try:
        take_pictures(environment)
    finally:
        subprocess.run([*PILOTFISH, "daemon", "stop"], env=environment, check=False, capture_output=True)
        shutil.rmtree(BASE, ignore_errors=True)


def take_pictures(environment: Mapping[str, str]) -> None:
    served = subprocess.Popen(
        [*PILOTFISH, "serve", "--json"], cwd=BASE / "shop", env=dict(environment), stdout=subprocess.PIPE, text=True
    )
    try:
        assert served.stdout is not None
        line = served.stdout.readline()
        if not line:
            raise SystemExit(f"`pilotfish serve` ended with {served.wait()} and printed nothing; its error is above")
        said: dict[str, Any] = json.loads(line)
        edits(environment)
        PICTURES.mkdir(exist_ok=True)
        expect.set_options(timeout=PATIENCE_SECONDS * 1000)
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            window = chromium.new_page(device_scale_factor=SCALE)
            window.goto(said["page"])
            expect(window.get_by_role("status")).to_have_text("Live")
            expect(window.get_by_text("ERROR").first).to_be_visible()
            # Enough looks at memory and latency for a curve.
            window.wait_for_timeout(SAMPLED_SECONDS * 1000)
            for name, (scheme, width) in PICTURES_OF.items():
                window.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
                window.set_viewport_size({"width": width, "height": 900})
                window.screenshot(path=PICTURES / f"{name}.png", full_page=width < 1000)
                print(f"written: docs/pictures/{name}.png")
            chromium.close()
    finally:
        served.terminate()
        served.wait()


def edits(environment: Mapping[str, str]) -> None:
    """Of an agent: one that breaks two files, one that repairs one of them, and one in another project."""
    shop, blog = BASE / "shop", BASE / "blog"
    hook(environment, shop, "SessionStart")
    hook(environment, blog, "SessionStart")
    edit(environment, shop, "shop/orders.py", SHOP["shop/orders.py"] + "\n\nlimit = 10\n")
    edit(environment, blog, "blog.py", BLOG["blog.py"].replace("str = ", "int = "))
    edit(environment, shop, "shop/prices.py", CHANGED)
    subprocess.run(
        [*PILOTFISH, "references", "price"], cwd=shop, env=dict(environment), capture_output=True, check=True
    )
    edit(
        environment, shop, "shop/orders.py", SHOP["shop/orders.py"].replace("price(name) for", "price(name, 1)[0] for")
    )


def edit(environment: Mapping[str, str], root: Path, name: str, text: str) -> None:
    write(root / name, text)
    tool = {"file_path": str(root / name), "content": text}
    hook(
        environment,
        root,
        "PostToolUse",
        tool_name="Write",
        tool_input=tool,
        tool_response={"filePath": str(root / name)},
    )


def hook(environment: Mapping[str, str], root: Path, event: str, **more: object) -> None:
    said = {"hook_event_name": event, "session_id": f"of {root.name}", "cwd": str(root), "source": "startup", **more}
    argv = [*PILOTFISH, "hook", "claude-code"]
    subprocess.run(
        argv, cwd=root, env=dict(environment), input=json.dumps(said), capture_output=True, text=True, check=True
    )


def commit(root: Path) -> None:
    """What an edit changed is known from the commit before it."""
    author = ["-c", "user.name=You", "-c", "user.email=you@example.org"]
    for argv in (["init", "--quiet"], ["add", "."], [*author, "commit", "--quiet", "--message", "Begin"]):
        subprocess.run(["git", *argv], cwd=root, check=True)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    os.umask(0o022)
    main()
