"""A store of that history, and clients that ask for it as a browser on this machine would."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from support.described_responses import DescribedClient
from support.plain_agent import PlainAgent
from support.plain_store import read_home
from support.server_history import write_history
from turnlog.server import Settings, create_app


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store for tests that only read."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "home").mkdir()
    write_history(folder / "home")
    read_home(folder / "turnlog.db", folder / "home")
    return folder / "turnlog.db"


@pytest.fixture
def own_store(library: Path, tmp_path: Path) -> Path:
    """A copy of the store, to be changed."""
    for file in library.parent.glob("*.db*"):
        shutil.copy(file, tmp_path / file.name)
    return tmp_path / library.name


@pytest.fixture
def open_client() -> Iterator[Callable[..., TestClient]]:
    """Opens clients of a store, and closes them after the test. What they are answered is checked."""
    opened: list[TestClient] = []

    def open(store: Path, settings: Settings | None = None, base_url: str = "http://127.0.0.1:8765") -> TestClient:
        app = create_app(store, settings or Settings(static_folder=store.parent / "no web app"))
        client = DescribedClient(app, base_url=base_url, raise_server_exceptions=False, follow_redirects=False)
        opened.append(client.__enter__())
        return client

    yield open
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def client(library: Path, open_client: Callable[..., TestClient]) -> TestClient:
    """A client of the store that nobody changes."""
    return open_client(library)


@pytest.fixture
def plain_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the agent of the tests' logs."""
    monkeypatch.setattr("turnlog.agents.agent", {"plain": PlainAgent()}.__getitem__)
