from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hubs import Hub, hub
from support.postgres_stores import PostgresDatabases
from turnlog.store.postgres.store import PostgresStore


@pytest.fixture
def store(databases: PostgresDatabases) -> Iterator[PostgresStore]:
    """An empty store."""
    with databases.store() as found:
        yield found


@pytest.fixture
def new_hub(databases: PostgresDatabases, tmp_path: Path) -> Iterator[Hub]:
    """A hub without anybody."""
    with hub(databases, tmp_path) as found:
        yield found
