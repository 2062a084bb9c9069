from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from support.postgres_servers import binaries_of_the_system, postgres_server
from support.postgres_stores import PostgresDatabases
from turnlog.store.postgres.store import PostgresStore


@pytest.fixture(scope="session")
def older_databases() -> Iterator[PostgresDatabases]:
    """Databases on the system's PostgreSQL, which is older where there is one."""
    binaries = binaries_of_the_system()
    if binaries is None:
        pytest.skip("no PostgreSQL is installed in /usr/lib/postgresql: stores ran on the wheel's version only")
    with postgres_server(binaries) as server, closing(PostgresDatabases(server)) as databases:
        yield databases


@pytest.fixture
def store(databases: PostgresDatabases) -> Iterator[PostgresStore]:
    """An empty store."""
    with databases.store() as found:
        yield found
