"""Where sessions have secrets is kept: nothing is looked at twice, what is new is, and no secret is in what is kept."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.plain_agent import Log, session_id
from support.plain_history import answer, call, prompt
from support.plain_store import read_home
from turnlog.model import TextPart, ToolState
from turnlog.redact import Redactor
from turnlog.store import open_store
from turnlog.store.base import Store
from turnlog.store.session_secrets import SessionSecrets

PASSWORD = "hunter2horse"
TOKEN = "ghp_" + "A1b2C3d4E5f6" * 3
NAME = session_id("s")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "plain"
    home.mkdir()
    log = Log(home, "s")
    log.message(prompt("u1", f"DB_PASS={PASSWORD}", 1), turn=1)
    log.message(answer("a1", 2, TextPart(text="nothing to hide here")), turn=1)
    log.message(answer("a2", 3, call("c", "Bash", {"command": f"echo {TOKEN}"}, ToolState.INPUT_AVAILABLE)), turn=1)
    return home


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Everything that is looked at for secrets."""
    found: list[object] = []
    learn = Redactor.learn

    def learned(self: Redactor, value: object) -> object:
        found.append(getattr(value, "id", value))
        return learn(self, value)

    monkeypatch.setattr(Redactor, "learn", learned)
    return found


def opened(home: Path) -> Iterator[Store]:
    path = home.parent / "turnlog.db"
    read_home(path, home)
    with open_store(path) as store:
        yield store


def secrets(home: Path) -> SessionSecrets:
    [found] = [SessionSecrets(store, store.session(NAME)) for store in opened(home)]
    return found


def test_only_what_is_new_and_what_names_secrets_is_looked_at_again(home: Path, looked_at: list[object]) -> None:
    first = secrets(home)
    assert looked_at == [NAME, "u1", "a1", "a2"]
    looked_at.clear()
    again = secrets(home)
    assert looked_at == [NAME, "u1"]  # a token shows by itself what it is
    assert again.known.mask(f"is {PASSWORD} right?") == first.known.mask(f"is {PASSWORD} right?")
    assert PASSWORD not in again.known.mask(f"is {PASSWORD} right?")
    Log(home, "s").message(answer("a3", 4, TextPart(text="secret_key = kR7x9Qw2Lm4Zt8Vb")), turn=1)
    looked_at.clear()
    grown = secrets(home)
    assert looked_at == [NAME, "u1", "a3"]
    assert "kR7x9Qw2Lm4Zt8Vb" not in grown.known.mask("is kR7x9Qw2Lm4Zt8Vb right?")


def test_other_rules_look_at_everything(home: Path, looked_at: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    secrets(home)
    looked_at.clear()
    monkeypatch.setattr("turnlog.redact.rules_digest", lambda: "other rules")
    secrets(home)
    assert looked_at == [NAME, "u1", "a1", "a2"]


def test_what_is_kept_has_no_secret_and_goes_with_the_session(home: Path) -> None:
    secrets(home)
    path = home.parent / "turnlog.db"
    with closing(sqlite3.connect(path)) as connection:
        [(places,)] = connection.execute("SELECT places FROM secret_places").fetchall()
    assert len(places) < 40
    assert not any(PASSWORD[at : at + 4].encode() in places for at in range(len(PASSWORD) - 4))
    with open_store(path) as store:
        store.forget(NAME)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM secret_places").fetchone() == (0,)


def test_a_store_that_cannot_be_written_is_looked_at_each_time(home: Path, looked_at: list[object]) -> None:
    read_home(home.parent / "turnlog.db", home)
    path = home.parent / "turnlog.db"
    with open_store(path) as store, closing(sqlite3.connect(path)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        SessionSecrets(store, store.session(NAME))
        looked_at.clear()
        found = SessionSecrets(store, store.session(NAME))
    assert looked_at == [NAME, "u1", "a1", "a2"]
    assert PASSWORD not in found.known.mask(f"is {PASSWORD} right?")
