"""A team's usage by person, project, model and day, over a million messages.

    PYTHONPATH=src:tests python benchmarks/team_usage.py

200 people with 20,000 sessions of 50 messages each, half of them answers of up to three models within three hours of a
year: about 100,000 rows by quarter of an hour, and 80,000 by day, of which the figures are made.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Final, get_args

import psycopg

from hub import cpu_of_postgres
from support.postgres_servers import binaries_of_the_wheel, postgres_server
from support.postgres_stores import PostgresDatabases
from turnlog.hub.people.figures import Figures, FiguresBy
from turnlog.store.postgres.database import Database

_FILL: Final = """
INSERT INTO turnlog.users (id, name, created_at) SELECT 'u' || n, 'Person ' || n, 0 FROM generate_series(1, 200) n;
INSERT INTO turnlog.members (team_key, user_id, role, joined_at)
SELECT 1, 'u' || n, 'member', 0 FROM generate_series(1, 200) n;
INSERT INTO turnlog.projects (team_key, key, path, name)
SELECT 1, n, '/work/project-' || n, 'project-' || n FROM generate_series(1, 60) n;
INSERT INTO turnlog.models (team_key, key, name) SELECT 1, n, 'model-' || n FROM generate_series(1, 8) n;
INSERT INTO turnlog.sessions (team_key, key, agent, external_id, project_key)
SELECT 1, n, 'a', 's' || n, 1 + n % 60 FROM generate_series(1, {sessions}) n;
INSERT INTO turnlog.session_owners (team_key, session_id, owner_user)
SELECT 1, 'a:s' || n, 'u' || (1 + (n * 7919) % 200) FROM generate_series(1, {sessions}) n;
INSERT INTO turnlog.usage (team_key, quarter_hour, model_key, session_key, calls, input, cache_read, output, cost)
SELECT 1, 1960000 + (n * 104729) % 35000 + q, 1 + (n + q / 2) % 8, n, 5, 900, 90000, 2500, 45000000
FROM generate_series(1, {sessions}) n, generate_series(1, 5) q;
ANALYZE;
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sessions", type=int, default=20_000)
    arguments.add_argument("--times", type=int, default=15)
    given = arguments.parse_args()
    with postgres_server(binaries_of_the_wheel()) as server:
        url = PostgresDatabases(server).url()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_FILL.format(sessions=given.sessions).encode())
        with Database(url) as database:
            figures = Figures(database, fresh_seconds=-1)
            for by in get_args(FiguresBy):
                taken: list[float] = []
                used = cpu_of_postgres() + time.process_time()
                for _ in range(given.times):
                    began = time.perf_counter()
                    found = figures.usage(1, by, 5, None, None)
                    taken.append((time.perf_counter() - began) * 1000)
                used = (cpu_of_postgres() + time.process_time() - used) / given.times * 1000
                median = statistics.median(taken)
                print(f"{by}: CPU {used:.0f} ms, by the clock {median:.0f}; {len(found.rows)} rows")


if __name__ == "__main__":
    main()
