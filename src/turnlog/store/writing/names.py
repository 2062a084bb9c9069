"""Small tables of names: models, projects, price lists. Keys are looked up once a transaction."""

from __future__ import annotations

import sqlite3


class Names:
    """Name -> key, made on first use."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._models: dict[str, int] = {}
        self._projects: dict[str, int] = {}
        self._price_versions: dict[str, int] = {}

    def model(self, name: str | None) -> int | None:
        """The key of a model; None for None."""
        if name is None:
            return None
        key = self._models.get(name)
        if key is None:
            key = self._models[name] = self._ensure("models", "name", name)
        return key

    def price_version(self, name: str) -> int:
        """The key of a price list."""
        key = self._price_versions.get(name)
        if key is None:
            key = self._price_versions[name] = self._ensure("price_versions", "name", name)
        return key

    def project(self, path: str) -> int:
        """The key of the project at `path`."""
        key = self._projects.get(path)
        if key is None:
            self._connection.execute(
                "INSERT OR IGNORE INTO projects (path, name) VALUES (?, ?)", (path, project_name(path))
            )
            key = self._projects[path] = self._ensure("projects", "path", path)
        return key

    def _ensure(self, table: str, column: str, name: str) -> int:
        found = self._connection.execute(f"SELECT key FROM {table} WHERE {column} = ?", (name,)).fetchone()
        if found is not None:
            return found[0]
        return self._connection.execute(f"INSERT INTO {table} ({column}) VALUES (?)", (name,)).lastrowid or 0


def project_name(path: str) -> str:
    """What people call the project at a path: its last folder."""
    return path.rstrip("/\\").replace("\\", "/").rpartition("/")[2] or path
