"""Installs agents from npm for the rig: of each the newest version that npm can install, since a release may lack a
package that it needs. Whatever happens to one agent, the others are installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RIG = Path(__file__).parent.parent / ".build/rig"
OLDER = 3
"""How many versions before the newest are tried."""


def main(packages: list[str]) -> None:
    for package in packages:
        print(_installed(package), flush=True)


def _installed(package: str) -> str:
    """What became of it, in a sentence."""
    if _install(f"{package}@latest"):
        return f"{package}: the newest version is installed"
    for version in _older_versions(package):
        if _install(f"{package}@{version}"):
            return f"{package}: the newest version cannot be installed; {version} is"
    there = RIG / "node_modules" / package / "package.json"
    kept = f"; {json.loads(there.read_bytes())['version']} is still there" if there.exists() else ""
    return f"{package}: not installed{kept}"


def _install(wanted: str) -> bool:
    words = ["npm", "install", "--prefix", RIG, "--no-audit", "--no-fund", "--loglevel=error", wanted]
    return subprocess.run(words, check=False).returncode == 0


def _older_versions(package: str) -> list[str]:
    """The releases before the newest, the last one first. Previews and builds of one platform have a hyphen."""
    viewed = subprocess.run(["npm", "view", package, "versions", "--json"], check=False, capture_output=True)
    # Of a package with one version it is a text.
    listed: list[str] | str = json.loads(viewed.stdout) if viewed.returncode == 0 else []
    releases = [version for version in listed if "-" not in version] if isinstance(listed, list) else []
    return releases[-2 : -2 - OLDER : -1]


if __name__ == "__main__":
    main(sys.argv[1:])
