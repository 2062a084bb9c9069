"""Dependencies are pinned by hash, and may be installed from any registry."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
WEB_LOCK = ROOT / "web/package-lock.json"
NODE_LOCKS = [WEB_LOCK, ROOT / "tests/conformance/package-lock.json"]
for_every_node_lock = pytest.mark.parametrize("lock", NODE_LOCKS, ids=lambda path: path.parent.name)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_requirement_is_pinned_by_hash(lock: Path) -> None:
    logical_lines = lock.read_text().replace("\\\n", " ").splitlines()
    requirements = [line for line in logical_lines if line and not line.lstrip().startswith("#")]
    assert requirements
    for requirement in requirements:
        assert re.match(r"[a-z0-9-]+(\[[a-z0-9,-]+\])?==\S+ .*--hash=sha256:[0-9a-f]{64}\b", requirement), requirement


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_no_requirement_names_a_registry(lock: Path) -> None:
    assert "://" not in lock.read_text()


def node_packages(lock: Path) -> dict[str, dict[str, Any]]:
    """Every package of a lock but the one that it belongs to."""
    packages: dict[str, dict[str, Any]] = json.loads(lock.read_text())["packages"]
    return {path: package for path, package in packages.items() if path}


@for_every_node_lock
def test_every_node_package_is_pinned_by_hash(lock: Path) -> None:
    packages = node_packages(lock)
    assert packages
    hashed = re.compile(r"sha512-[A-Za-z0-9+/]{86}==")
    assert [path for path, package in packages.items() if not hashed.fullmatch(package.get("integrity", ""))] == []


@for_every_node_lock
def test_no_node_package_names_a_registry(lock: Path) -> None:
    assert [path for path, package in node_packages(lock).items() if "resolved" in package] == []
    # An address may say whom to pay, not where to fetch.
    without_funding = {path: {**package, "funding": None} for path, package in node_packages(lock).items()}
    assert "://" not in json.dumps(without_funding)


def test_the_web_lock_has_every_platform() -> None:
    """`npm ci` refuses a lock that misses a package for another platform."""
    packages = node_packages(WEB_LOCK)
    wanted = {name for package in packages.values() for name in package.get("optionalDependencies", {})}
    assert wanted
    assert wanted - {path.rpartition("node_modules/")[2] for path in packages} == set()


@for_every_node_lock
def test_the_lock_fits_what_is_required(lock: Path) -> None:
    manifest = json.loads((lock.parent / "package.json").read_text())
    locked = json.loads(lock.read_text())["packages"][""]
    for kind in ("dependencies", "devDependencies"):
        assert locked.get(kind) == manifest.get(kind)
