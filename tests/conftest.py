"""What every test needs: a home folder of its own, and an environment that names no other place."""

import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support import costs, installed_agents, new_stores, thorough
from support.environment import hide_places
from support.profiles import load_profile
from turnlog import paths
from turnlog.server.sample import ensure_sample

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from support.postgres_stores import PostgresDatabases

load_profile()

# Importing the tests and what they test makes hundreds of thousands of objects that all stay: the collector would look
# through them again and again.
gc.disable()


_TEMPORARY = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Give the tests, and all that they start, a folder for temporary files that goes with them.

    Several servers leave files behind where they are killed. The path is short, since some hold sockets; other users
    may go through, since PostgreSQL refuses root. pytest's own folders stay where they would be: those of a failed test
    are kept.
    """
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    folder = Path(tempfile.mkdtemp(prefix="tl-", dir=os.environ["PYTEST_DEBUG_TEMPROOT"]))
    folder.chmod(0o711)
    config.stash[_TEMPORARY] = folder
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    config.pluginmanager.register(costs.Costs(is_quick=f"not {costs.MARKER}" in config.option.markexpr))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what a quick run leaves out."""
    thorough.mark(config, items)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Take the folder for temporary files away."""
    shutil.rmtree(config.stash[_TEMPORARY], ignore_errors=True)


def pytest_collection_finish() -> None:
    """What was imported and collected stays until the end, so the garbage collector need not look through it again."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def new_home(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Makes empty folders."""
    parent, numbers = tmp_path_factory.mktemp("homes"), count()

    def make() -> Path:
        # `mktemp` reads the whole folder to find the next number, which takes longer with every test.
        folder = parent / str(next(numbers))
        folder.mkdir()
        return folder

    return make


@pytest.fixture(scope="session", autouse=True)
def hidden_places() -> Iterator[None]:
    """No variable of the environment names a place of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        hide_places(patch)
        yield


@pytest.fixture(autouse=True)
def home(new_home: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder, so that no test ever sees the logs or the store of whoever runs it."""
    folder = new_home()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture(scope="session", autouse=True)
def copied_stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """New stores are copies of one that is made here."""
    with new_stores.copies(tmp_path_factory.mktemp("new store")):
        yield


@pytest.fixture(scope="session", autouse=True)
def packages_looked_up_once() -> Iterator[None]:
    """Which of the installed packages register agents does not change while tests run."""
    with installed_agents.looked_up_once():
        yield


@pytest.fixture(scope="session", autouse=True)
def unhurried_spelling() -> Iterator[None]:
    """A misspelt word is looked up for as long as it takes: where much runs, each second of the processor does less."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("turnlog.store.search.spelling._SECONDS", 60.0)
        yield


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    """Debian's browser. A process can have only one event loop of playwright, so all tests with a browser share it."""
    # Imported here: only the tests with a browser pay for it.
    from playwright.sync_api import sync_playwright

    from support.browser_visit import CHROMIUM

    switches = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*switches, "--disable-component-update", "--disable-sync"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def made_sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample's folder as a first `serve` makes it. Nobody writes to it."""
    folder = tmp_path_factory.mktemp("sample") / "sample"
    ensure_sample(folder / "turnlog.db")
    return folder


@pytest.fixture
def sample(home: Path, made_sample: Path) -> Path:
    """The sample's store where `serve` looks for it, made already: to read all its logs takes a server seconds."""
    path = paths.sample_path()
    path.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copytree(made_sample, path.parent)
    return path


@pytest.fixture
def stores_from_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts of the schema make new stores, for tests of just that."""
    new_stores.make_from_scripts(monkeypatch)


@pytest.fixture(scope="session")
def databases() -> Iterator["PostgresDatabases"]:
    """Databases on PostgreSQL 18: one server for all tests of a process."""
    # Imported here: only the tests with PostgreSQL pay for it.
    from support.postgres_servers import binaries_of_the_wheel, postgres_server
    from support.postgres_stores import PostgresDatabases

    with postgres_server(binaries_of_the_wheel()) as server, closing(PostgresDatabases(server)) as databases:
        yield databases
