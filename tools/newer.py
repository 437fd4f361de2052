"""Lists what is newer than what we run: `python3 tools/newer.py [NAME…]`, before a release.

It asks the registries that npm and pip are configured for about every host, SDK and peer that a manifest pins, and
about what a newer version needs: one whose own packages are not all there cannot be installed, and then the reason is
printed in place of the manifest. It ends with 1 when something can be raised.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hosts import cpu

TOP = Path(__file__).resolve().parent.parent
MANIFESTS = ("tools/hosts.json", "tools/sdks.json", "bench/parity/peers.json")
WAIT_SECONDS = 120
RELEASE = re.compile(r"\d+(\.\d+)*\Z")


class Pin(NamedTuple):
    manifest: str
    name: str
    manager: str
    package: str
    version: str


class Finding(NamedTuple):
    pin: Pin
    newest: str
    obstacle: str
    """Why the newest cannot be installed here; empty when it can."""


def main() -> int:
    wanted = set(sys.argv[1:])
    pins = [pin for pin in all_pins() if not wanted or pin.name in wanted]
    found = [one for pin in pins if (one := look(pin)) is not None]
    width = max((len(f"{one.pin.name} ({one.pin.package})") for one in found), default=0)
    for one in found:
        what = f"{one.pin.name} ({one.pin.package})"
        print(f"{what:{width}}  {one.pin.version} → {one.newest}  {one.obstacle or one.pin.manifest}")
    print(f"{len(pins)} pins, {len(found)} with something newer, {sum(not one.obstacle for one in found)} to raise")
    return 1 if any(not one.obstacle for one in found) else 0


def all_pins() -> Iterator[Pin]:
    for manifest in MANIFESTS:
        if (TOP / manifest).exists():
            rows = json.loads((TOP / manifest).read_text().replace("{cpu}", cpu()))
            for name, row in rows.items():
                for manager in ("npm", "pypi"):
                    for package, version in row.get(manager, {}).items():
                        yield Pin(manifest, name, manager, package, version)


def look(pin: Pin) -> Finding | None:
    newest = newest_npm(pin.package) if pin.manager == "npm" else newest_pypi(pin.package)
    if newest is None or parts(newest) <= parts(pin.version):
        return None
    needs = missing_npm if pin.manager == "npm" else missing_pypi
    return Finding(pin, newest, needs(pin.package, newest))


def newest_npm(package: str) -> str | None:
    """The newest release, whatever is called the latest: a package for one processor has no such name at times."""
    versions = asked(["npm", "view", package, "versions", "--json"])
    listed = json.loads(versions) if versions else []
    releases = [one for one in ([listed] if isinstance(listed, str) else listed) if RELEASE.match(one)]
    return max(releases, key=parts, default=None)


def newest_pypi(package: str) -> str | None:
    said = asked([sys.executable, "-m", "pip", "index", "versions", package])
    named = re.match(r"\S+ \((\S+)\)", said)
    return named[1] if named else None


def missing_npm(package: str, version: str) -> str:
    """The packages of the same family that this version needs and that are not there."""
    family = package.partition("/")[0] if package.startswith("@") else ""
    needs = asked(["npm", "view", f"{package}@{version}", "dependencies", "--json"])
    own = {name: want for name, want in (json.loads(needs) if needs else {}).items() if name.split("/")[0] == family}
    gone = [f"{name}@{want}" for name, want in own.items() if not asked(["npm", "view", f"{name}@{want}", "version"])]
    return f"cannot be installed: there is no {', '.join(gone)}" if gone else ""


def missing_pypi(package: str, version: str) -> str:
    """The first package that this version needs and that is not there."""
    argv = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--break-system-packages"]
    done = subprocess.run([*argv, f"{package}=={version}"], capture_output=True, text=True, check=False)
    gone = re.search(r"No matching distribution found for (\S+)", done.stderr)
    return f"cannot be installed: there is no {gone[1]}" if gone else ""


def parts(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:4])


def asked(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


if __name__ == "__main__":
    sys.exit(main())
