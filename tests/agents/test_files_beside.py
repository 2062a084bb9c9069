"""A log whose fold looks into a file beside it: read while that file is damaged, and again when it is whole.

Copies of a home that are not finished look like this. What a store says then does not depend on the order.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.store_dump import Dump, differences, dump
from turnlog.agents import agent
from turnlog.store.connection import connect
from turnlog.sync.syncer import sync

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize(
    ("name", "case", "beside"),
    [
        ("cline", "cline/3.0.65/tour", "sessions/*_cgrtx/*_cgrtx.json"),
        ("kimi-cli", "kimi_cli/1.45.0/tour", "kimi.json"),
        ("mistral-vibe", "mistral_vibe/3.0.2/tour", "**/meta.json"),
        ("mistral-vibe", "mistral_vibe/3.0.2/tour", "**/runtime-state.json"),
        ("mistral-vibe", "mistral_vibe/3.0.2/tour", "**/chunks/*.json"),
    ],
)
@pytest.mark.parametrize("damage", [b"", b'{"cut'], ids=["empty", "cut"])
def test_a_file_beside_a_log_that_comes_later_changes_nothing(
    name: str, case: str, beside: str, damage: bytes, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    shutil.copytree(DATA / case, home)
    whole = stored(name, home, tmp_path / "whole.db")
    files = {file: file.read_bytes() for file in home.glob(beside)}
    assert files
    for file in files:
        file.write_bytes(damage)
    assert stored(name, home, tmp_path / "later.db") != whole
    for file, content in files.items():
        file.write_bytes(content)
    assert differences(whole, stored(name, home, tmp_path / "later.db")) == []


def stored(name: str, home: Path, store: Path) -> Dump:
    """What a store says after a sync, but for the places of bytes in files of which it has seen two states."""
    sync(store, roots=[home], agents=[agent(name)])
    connection = connect(store)
    try:
        said = dump(connection)
    finally:
        connection.close()
    return {table: said[table] for table in ("messages", "parts", "links", "usage", "call totals", "edit totals")} | {
        "places": {key: row[1:9] for key, row in said["sessions"].items()}
    }
