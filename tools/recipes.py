"""The recipes of package managers for what was built, its hashes, and where it comes from.

The recipes are `packaging/recipes`, with `@name@` for what a release decides. Nothing in here knows a version, a hash
or an address of its own.
"""

import base64
import hashlib
import json
import re
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

CLONE = Path(__file__).resolve().parent.parent
CHANNELS = tomllib.loads((CLONE / "packaging" / "channels.toml").read_text())
PROJECT = tomllib.loads((CLONE / "pyproject.toml").read_text())["project"]
SUMS = "SHA256SUMS"
PROVENANCE = "provenance.json"
FILES = {"wheel": "*.whl", "sdist": "*.tar.gz", "pyz": "pilotfish.pyz", "exe": "pilotfish.exe"}
NAME = re.compile(r"@([\w.]+)@")


def write(dist: Path, repository: str, version: str) -> None:
    known = values(dist, repository, version)
    for source, target in CHANNELS["recipes"].items():
        file = dist / "recipes" / target
        file.parent.mkdir(parents=True, exist_ok=True)
        template = (CLONE / "packaging" / "recipes" / source).read_text()
        file.write_text(NAME.sub(lambda found: known[found[1]], template))


def values(dist: Path, repository: str, version: str) -> Mapping[str, str]:
    """What stands between two `@`."""
    required = [re.split(r"[<>=;]", line)[0] for line in PROJECT["dependencies"] if "sys_platform" not in line]
    known = {
        "version": version,
        "repository": repository,
        "description": PROJECT["description"].rstrip("."),
        "license": PROJECT["license"],
        "author": PROJECT["authors"][0]["name"],
        "mcp_name": mcp_name(repository),
        "forge": str(urlsplit(repository).hostname).split(".")[-2],
        "requires.arch": " ".join(f"python-{name}" for name in required),
        "requires.srcinfo": "\n".join(
            f"\tdepends = {name}" for name in ["python", "git", *(f"python-{one}" for one in required)]
        ),
        "requires.nix": " ".join(required),
    }
    for word, pattern in FILES.items():
        (file,) = dist.glob(pattern)
        digest = hashlib.sha256(file.read_bytes())
        known[f"{word}.url"] = f"{repository}/releases/download/v{version}/{file.name}"
        known[f"{word}.sha256"], known[f"{word}.SHA256"] = digest.hexdigest(), digest.hexdigest().upper()
        known[f"{word}.sri"] = f"sha256-{base64.b64encode(digest.digest()).decode()}"
    return known


def mcp_name(repository: str) -> str:
    """The name in the registry of MCP servers: who owns the repository may use it."""
    address = urlsplit(repository)
    host = ".".join(reversed(str(address.hostname).split(".")))
    owner, name = address.path.strip("/").split("/")[-2:]
    return f"io.github.{owner}/{name}" if host == "com.github" else f"{host}.{owner}/{name}"


def seal(dist: Path, repository: str, version: str) -> None:
    """Write the hashes of all that is there, and a statement of what it was made from, by whom it is read alone."""
    for name in (SUMS, PROVENANCE):
        (dist / name).unlink(missing_ok=True)
    files = sorted(path for path in dist.rglob("*") if path.is_file())
    sums = {str(path.relative_to(dist)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    (dist / SUMS).write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=CLONE, capture_output=True, text=True, check=True)
    source = {"uri": f"git+{repository}@v{version}", "digest": {"gitCommit": commit.stdout.strip()}}
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in sums.items()],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{repository}/blob/v{version}/tools/package.py",
                "externalParameters": {"repository": repository, "version": version},
                "resolvedDependencies": [source, *bundled(dist / FILES["pyz"])],
            },
            "runDetails": {"builder": {"id": f"{repository}/blob/v{version}/tools/package.py"}},
        },
    }
    (dist / PROVENANCE).write_text(json.dumps(statement, indent=1) + "\n")


def bundled(archive: Path) -> list[Mapping[str, object]]:
    """The packages of others that the archive holds."""
    import zipfile

    with zipfile.ZipFile(archive) as inside:
        names = [name for name in inside.namelist() if name.endswith(".whl") and "/pilotfish-" not in name]
        return [
            {"name": name.rpartition("/")[2], "digest": {"sha256": hashlib.sha256(inside.read(name)).hexdigest()}}
            for name in names
        ]
