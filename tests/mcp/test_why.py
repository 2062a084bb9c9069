"""An agent learns which session a line or commit of its own project came from, and nothing about other projects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from support.made_repository import MadeRepository, Session
from turnlog.errors import NotFoundError
from turnlog.mcp.history import History, HistoryScope
from turnlog.store import open_store
from turnlog.store.search.base import search_path
from turnlog.store.search.indexer import Indexer
from turnlog.sync.syncer import sync


class Made(NamedTuple):
    repository: MadeRepository
    session: str
    ask: Callable[[HistoryScope], History]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    folder = tmp_path_factory.mktemp("why")
    repository = MadeRepository(folder / "shop", folder / "claude")
    repository.write("till.py", ["total = 0"])
    repository.commit_by_hand("Begin")
    session = Session(repository, "Say what the tax is. API_KEY=sk-ant-api03-" + "Ab3dEf6hIj9kLm2nOp5q" * 4)
    session.edit("till.py", [], ["tax_of_the_till = rate_of_the_till * 7"])
    session.commit("Add the tax")
    session.save()
    path = folder / "store.db"
    sync(path, roots=[folder / "claude"])
    with Indexer(path, search_path(path)) as indexer:
        indexer.catch_up()
    with open_store(path) as store:

        def ask(scope: HistoryScope) -> History:
            return History(store, path, scope)

        yield Made(repository, f"claude-code:{session.name}", ask)


@pytest.fixture
def shop(made: Made) -> Iterator[History]:
    history = made.ask(HistoryScope(str(made.repository.folder)))
    yield history
    history.close()


def test_a_commit_leads_to_its_session_and_prompt_without_secrets(made: Made, shop: History) -> None:
    found = shop.why(made.repository.head())
    assert made.session in found
    assert "exact: its git commit printed the hash" in found
    assert "prompt: Say what the tax is." in found
    assert "sk-ant" not in found


@pytest.mark.parametrize("subject", ["till.py:2", "till.py"])
def test_a_line_and_a_file_lead_to_it(made: Made, shop: History, subject: str) -> None:
    assert made.session in shop.why(subject)


def test_what_no_session_wrote_has_none(made: Made, shop: History) -> None:
    assert made.session not in shop.why("till.py:1")


def test_a_session_of_another_project_is_not_named(made: Made, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    made.repository.git("clone", "-q", str(made.repository.folder), str(clone))
    history = made.ask(HistoryScope(str(clone)))
    found = history.why(made.repository.head())
    history.close()
    assert found.startswith("No session")


def test_a_file_outside_of_the_project_is_not_looked_at(made: Made, shop: History, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("x = 1\n")
    for subject in (str(tmp_path / "other.py"), "../claude"):
        with pytest.raises(NotFoundError, match="is not in"):
            shop.why(subject)
    with pytest.raises(NotFoundError, match="no file or commit"):
        shop.why("nothing_of_this_name")
    everything = made.ask(HistoryScope())
    assert made.session in everything.why(f"{made.repository.folder}/till.py:2")
    with pytest.raises(NotFoundError, match="absolute path"):
        everything.why("till.py")
    everything.close()
